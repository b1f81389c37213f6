//! What merging children would bring, to be changed before it becomes a row of their parent.

use std::collections::VecDeque;

use ikigai_core::AgentId;
use ikigai_engine::{Errand, Intent, MergePreview};

use super::hints::Hints;
use super::{App, Live, Mode, Wish};
use crate::input::Editor;
use crate::key::{Code, Key};
use crate::keys::{self, Action, Meaning};
use crate::line::{Line, Span};
use crate::look::{Look, Role};
use crate::paint::Grid;
use crate::text::{clean, cut, wrap};

/// How many rows tell what was changed.
const FACT_ROWS: usize = 3;

/// What can be done with a preview.
const KEYS: Hints<'_> = Hints {
    gap: " ",
    keys: &["Enter merges it", "Ctrl-G editor", "Alt-Enter newline"],
    way_out: "Esc leaves it",
    look: Look::of(Role::Status),
};

/// See the module.
pub(super) struct Merging {
    /// The parent.
    into: AgentId,
    /// What is looked at, and what comes after it.
    previews: VecDeque<MergePreview>,
    /// How many there were.
    count: usize,
    /// What is to be said of the first.
    editor: Editor,
    /// Whether the board was open before.
    is_of_board: bool,
}

impl App {
    /// Shows what merging these would bring into their parent.
    pub fn preview_merge(&mut self, into: AgentId, previews: Vec<MergePreview>) {
        let previews = VecDeque::from(previews);
        let Some(first) = previews.front() else {
            return;
        };
        let mut editor = Editor::default();
        editor.set(&first.text);
        editor.move_to(0);
        let is_of_board = self.board().is_some();
        self.prompt = None;
        // It would stand where the keys are.
        self.said = None;
        self.mode = Mode::Merging(Box::new(Merging {
            into,
            count: previews.len(),
            previews,
            editor,
            is_of_board,
        }));
    }

    fn merging(&mut self) -> Option<&mut Merging> {
        match &mut self.mode {
            Mode::Merging(merging) => Some(merging),
            _ => None,
        }
    }

    /// Takes a key for a preview, if one is open.
    pub(super) fn merging_takes(&mut self, key: Key) -> bool {
        let meaning = self.bindings.meaning(&[keys::Mode::Input], &[key]);
        let now = self.now;
        let Some(merging) = self.merging() else {
            return false;
        };
        let editor = &mut merging.editor;
        match (meaning, key.code) {
            (Meaning::Action(Action::Send), _) if editor.ends_with_backslash() => {
                editor.continue_line();
            }
            (Meaning::Action(Action::Send), _) => self.merge_first(),
            (Meaning::Action(Action::Escape | Action::Interrupt), _) => {
                let (merged, count) = (merging.count - merging.previews.len(), merging.count);
                self.end_merging();
                self.say(match merged {
                    0 => "nothing was merged".to_owned(),
                    merged => format!("merged {merged} of {count}"),
                });
            }
            (Meaning::Action(Action::Editor), _) => {
                let text = editor.text();
                self.wishes.push(Wish::Edit(text));
            }
            (Meaning::Action(Action::Edit(edit)), _) => {
                editor.apply(edit);
            }
            (Meaning::Nothing, Code::Char(character)) if !key.ctrl && !key.alt => {
                editor.insert(character.encode_utf8(&mut [0; 4]));
            }
            _ => {}
        }
        self.typed_at = Some(now);
        true
    }

    /// Takes text for a preview, pasted or in the place of what is there, if one is open.
    pub(super) fn merging_text(&mut self, text: &str, is_whole: bool) -> bool {
        let Some(merging) = self.merging() else {
            return false;
        };
        if is_whole {
            merging.editor.set(text);
        } else if !merging.editor.insert(text) {
            self.say("⚠ the text is too large");
        }
        true
    }

    /// Merges what is looked at, and goes on to the next.
    fn merge_first(&mut self) {
        let Some(merging) = self.merging() else {
            return;
        };
        let text = merging.editor.text();
        if text.trim().is_empty() {
            return self.say("nothing to merge · Esc leaves it");
        }
        let into = merging.into;
        let Some(preview) = merging.previews.pop_front() else {
            return self.end_merging();
        };
        let next = merging.previews.front().map(|next| next.text.clone());
        match next {
            Some(next) => {
                merging.editor = Editor::default();
                merging.editor.set(&next);
                merging.editor.move_to(0);
            }
            None => self.end_merging(),
        }
        if self.roster.live(into).is_some_and(Live::is_busy) {
            let name = self.name_of(into).unwrap_or_default();
            self.say(format!("it is merged as soon as {name} has ended its turn"));
        }
        let merge = Errand::Merge(Box::new(preview), text);
        self.wishes.push(Wish::Say(into, Intent::Do(merge)));
    }

    fn end_merging(&mut self) {
        let is_of_board = self.merging().is_some_and(|merging| merging.is_of_board);
        self.mode = Mode::Input;
        if is_of_board {
            self.open_board();
        }
    }

    /// Draws a preview above a row, if one is open.
    pub(super) fn draw_merging(&mut self, grid: &mut Grid, bottom: u16) -> bool {
        let columns = self.columns;
        let said = self.said.as_ref().map(|(said, _)| said.clone());
        let Mode::Merging(merging) = &mut self.mode else {
            return false;
        };
        let Some(preview) = merging.previews.front() else {
            return false;
        };
        let parent = self.roster.get(merging.into);
        let parent = parent.map_or("", |known| known.branch.agent.name.as_str());
        let place = merging.count - merging.previews.len() + 1;
        let place = match merging.count {
            1 => String::new(),
            count => format!(" · {place} of {count}"),
        };
        let title = Line::new(vec![
            Span::new(
                format!("{} ", clean(&preview.title())),
                Look::of(Role::Agent).with(Look::BOLD),
            ),
            Span::new(format!("into {}{place}", clean(parent)), Role::Text),
        ]);
        grid.line(0, 0, &cut(&title, columns, "…"));
        let facts = preview.facts();
        let facts = wrap(&Line::of(clean(&facts), Role::Faint), columns, &[]);
        let mut row = 1;
        let most = if self.rows < 15 { 1 } else { FACT_ROWS };
        for line in facts.iter().take(most) {
            grid.line(row, 0, line);
            row += 1;
        }
        row += u16::from(self.rows >= 15);
        let room = bottom.saturating_sub(row).max(1);
        let layout = merging.editor.layout(columns - 2, room);
        for (row, line) in (row..bottom).zip(&layout.rows) {
            grid.line(row, 1, line);
        }
        let cursor = (
            row + u16::try_from(layout.cursor.0).unwrap_or(0),
            1 + u16::try_from(layout.cursor.1).unwrap_or(0),
        );
        grid.cursor = Some((cursor.0.min(bottom), cursor.1.min(columns - 1)));
        let line = match said {
            Some(said) => cut(
                &Line::of(format!(" {}", clean(&said)), Role::Busy),
                columns,
                "…",
            ),
            None => KEYS.after(&Line::default(), columns),
        };
        grid.fill(bottom, Role::Text);
        grid.line(bottom, 0, &line);
        true
    }
}
