//! Prompt for one line in the last row, for browse mode and the board.

use super::UiContext;
use crate::input::{EditCommand, Editor};
use crate::key::{KeyCode, KeyPress};
use crate::keys::{self, Action, Meaning};
use crate::line::TextLine;
use crate::look::{Look, Tone};
use crate::paint::Grid;
use crate::text::{clean, cut};

/// A line that the user types.
pub(super) struct LinePrompt {
    title: String,
    editor: Editor,
}

/// Outcome of a key in a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PromptOutcome {
    /// The prompt stays; its text may have changed.
    Open,
    /// Enter: the text without surrounding blanks.
    Entered(String),
    Cancelled,
}

impl LinePrompt {
    pub(super) fn new(title: impl Into<String>, text: &str) -> Self {
        let mut editor = Editor::default();
        editor.set(text);
        Self {
            title: title.into(),
            editor,
        }
    }

    pub(super) fn text(&self) -> String {
        self.editor.text()
    }

    /// Takes a key.
    pub(super) fn key(&mut self, key: KeyPress, ctx: &mut UiContext) -> PromptOutcome {
        ctx.typed_at = Some(ctx.now);
        let meaning = ctx.bindings.meaning(&[keys::KeyMode::Input], &[key]);
        match (meaning, key.code) {
            (Meaning::Action(Action::Send), _) => {
                return PromptOutcome::Entered(self.editor.text().trim().to_owned());
            }
            (Meaning::Action(Action::Escape | Action::Interrupt), _) => {
                return PromptOutcome::Cancelled;
            }
            (Meaning::Action(Action::Edit(edit)), _) => {
                let was_empty = self.editor.is_empty();
                self.editor.apply(edit);
                if was_empty && edit == EditCommand::Backspace {
                    return PromptOutcome::Cancelled;
                }
            }
            (Meaning::Nothing, KeyCode::Char(character)) if !key.ctrl && !key.alt => {
                self.editor.insert(character.encode_utf8(&mut [0; 4]));
            }
            _ => {}
        }
        PromptOutcome::Open
    }

    /// Inserts the first line of pasted text.
    pub(super) fn paste(&mut self, text: &str) {
        self.editor.insert(text.lines().next().unwrap_or_default());
    }

    /// Draws the prompt in a row.
    pub(super) fn draw(&mut self, grid: &mut Grid, row: u16, columns: u16) {
        grid.fill(row, Tone::Text);
        let look = Look::of(Tone::Question).with(Look::BOLD);
        let title = TextLine::of(format!(" {} ", clean(&self.title)), look);
        let column = grid.line(row, 0, &cut(&title, columns / 2, "… "));
        let room = columns.saturating_sub(column + 1).max(1);
        let (typed, cursor) = self.editor.one_row(room);
        grid.line(row, column, &typed);
        let cursor = column + cursor;
        grid.cursor = Some((row, cursor.min(columns.saturating_sub(1))));
    }
}
