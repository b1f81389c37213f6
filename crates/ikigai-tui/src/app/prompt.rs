//! One line that is typed in the screen's last row for something that browse mode or the board asks.

use ikigai_core::AgentId;

use super::App;
use crate::input::Editor;
use crate::key::{Code, Key};
use crate::keys::{self, Action, Meaning};
use crate::line::Line;
use crate::look::{Look, Role};
use crate::paint::Grid;
use crate::text::{clean, cut};

/// What a line is typed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To find it.
    Find,
    /// As the label of a mark.
    Label,
    /// As mail to an agent.
    Mail(AgentId),
    /// To see only agents whose names have it.
    Filter,
}

/// See the module.
pub(super) struct Prompt {
    pub(super) purpose: Purpose,
    pub(super) title: String,
    editor: Editor,
}

impl App {
    /// Begins to ask for a line.
    pub(super) fn prompt(&mut self, purpose: Purpose, title: impl Into<String>, text: &str) {
        let mut editor = Editor::default();
        editor.set(text);
        self.prompt = Some(Prompt {
            purpose,
            title: title.into(),
            editor,
        });
    }

    /// Takes a key for the line, if one is asked for.
    pub(super) fn prompt_types(&mut self, key: Key) -> bool {
        let Some(prompt) = &mut self.prompt else {
            return false;
        };
        self.typed_at = Some(self.now);
        match (
            self.bindings.meaning(&[keys::Mode::Input], &[key]),
            key.code,
        ) {
            (Meaning::Action(Action::Send), _) => {
                if let Some(prompt) = self.prompt.take() {
                    let text = prompt.editor.text().trim().to_owned();
                    self.prompted(prompt.purpose, text);
                }
                return true;
            }
            (Meaning::Action(Action::Escape | Action::Interrupt), _) => {
                self.close_prompt();
                return true;
            }
            (Meaning::Action(Action::Edit(edit)), _) => {
                let is_empty = prompt.editor.is_empty();
                prompt.editor.apply(edit);
                if is_empty && edit == crate::input::Edit::Backspace {
                    self.close_prompt();
                    return true;
                }
            }
            (Meaning::Nothing, Code::Char(character)) if !key.ctrl && !key.alt => {
                prompt.editor.insert(character.encode_utf8(&mut [0; 4]));
            }
            _ => {}
        }
        self.prompt_changed();
        true
    }

    /// Takes pasted text for the line, if one is asked for.
    pub(super) fn prompt_pastes(&mut self, text: &str) -> bool {
        let Some(prompt) = &mut self.prompt else {
            return false;
        };
        prompt
            .editor
            .insert(text.lines().next().unwrap_or_default());
        self.prompt_changed();
        true
    }

    fn close_prompt(&mut self) {
        if let Some(prompt) = self.prompt.take()
            && prompt.purpose == Purpose::Filter
        {
            self.filter_board(String::new());
        }
    }

    fn prompt_changed(&mut self) {
        let filter = self.prompt.as_ref();
        let filter = filter.filter(|prompt| prompt.purpose == Purpose::Filter);
        if let Some(text) = filter.map(|prompt| prompt.editor.text()) {
            self.filter_board(text);
        }
    }

    fn prompted(&mut self, purpose: Purpose, text: String) {
        match purpose {
            Purpose::Find => self.find(text),
            Purpose::Label => self.set_mark(&text),
            Purpose::Mail(to) => self.send_mail(to, &text),
            Purpose::Filter => self.filter_board(text),
        }
    }

    /// Draws the line in a row, if one is asked for.
    pub(super) fn draw_prompt(&mut self, grid: &mut Grid, row: u16) -> bool {
        let Some(prompt) = &mut self.prompt else {
            return false;
        };
        grid.fill(row, Role::Text);
        let look = Look::of(Role::Question).with(Look::BOLD);
        let title = Line::of(format!(" {} ", clean(&prompt.title)), look);
        let column = grid.line(row, 0, &cut(&title, self.columns / 2, "… "));
        let room = self.columns.saturating_sub(column + 1).max(1);
        let (typed, cursor) = prompt.editor.one_row(room);
        grid.line(row, column, &typed);
        let cursor = column + cursor;
        grid.cursor = Some((row, cursor.min(self.columns.saturating_sub(1))));
        true
    }
}
