//! Entry of an API key, hidden on the screen and kept out of every history.

use ikigai_core::counts::counted;
use ikigai_engine::TypedKey;

use super::hints::Hints;
use super::layer::{Area, Handled, Layer};
use super::lines::NARROW;
use super::{EngineRequest, UiContext, mouse};
use crate::input::EditCommand;
use crate::key::{KeyCode, KeyPress, MouseEvent};
use crate::keys::{self, Action, Meaning};
use crate::line::{TextLine, TextSpan};
use crate::look::{Look, Tone};
use crate::paint::Grid;
use crate::text::clean;
use crate::width::width;

/// Most bytes of a key.
const LONGEST: usize = 4096;

/// A key that the user types.
pub(super) struct KeyEntry {
    provider: String,
    typed: String,
}

impl KeyEntry {
    /// Asks for the key of a provider.
    pub(super) fn new(provider: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            typed: String::new(),
        }
    }

    fn push(&mut self, character: char) {
        if self.typed.len() < LONGEST && !character.is_control() {
            self.typed.push(character);
        }
    }

    fn submit(&self, ctx: &mut UiContext) {
        let Some(key) = TypedKey::new(&self.typed) else {
            return ctx.toast("Not a valid key. Esc to cancel");
        };
        let provider = self.provider.clone();
        ctx.close();
        ctx.toast(format!("Verifying with {provider} …"));
        ctx.effects.push(EngineRequest::SetKey { provider, key });
    }

    /// Returns the row in place of the input, and the column of the cursor.
    fn line(&self, columns: u16) -> (TextLine, u16) {
        let provider = clean(&self.provider);
        let count = self.typed.chars().count();
        let (label, count) = match count {
            _ if columns < NARROW => (format!("{provider} key: "), format!("{count} hidden")),
            0 => (format!("{provider} API key (hidden): "), String::new()),
            _ => (
                format!("{provider} API key (hidden): "),
                counted(count, "character"),
            ),
        };
        let column = width(&label) + width(&count);
        let line = TextLine::new(vec![
            TextSpan::new(label, Tone::Question),
            TextSpan::new(count, Tone::Text),
        ]);
        let hints = Hints {
            gap: "  ",
            keys: &["Enter verify and save"],
            way_out: "Esc cancel",
            look: Look::of(Tone::Faint),
        };
        let line = hints.after(&line, columns);
        (line, u16::try_from(column).unwrap_or(u16::MAX))
    }
}

impl Layer for KeyEntry {
    fn bindings(&self, _ctx: &UiContext) -> Vec<keys::KeyMode> {
        Vec::new()
    }

    fn key(&mut self, key: KeyPress, ctx: &mut UiContext) -> Handled {
        let meaning = ctx.bindings.meaning(&[keys::KeyMode::Input], &[key]);
        match (meaning, key.code) {
            (Meaning::Action(Action::Send), _) => self.submit(ctx),
            (Meaning::Action(Action::Escape | Action::Interrupt), _) => {
                ctx.close();
                ctx.toast("Cancelled. Key not saved");
            }
            (Meaning::Action(Action::Edit(EditCommand::Backspace)), _) => {
                self.typed.pop();
            }
            (Meaning::Action(Action::Edit(EditCommand::KillToStart)), _) => self.typed.clear(),
            (_, KeyCode::Char(character)) if !key.ctrl && !key.alt => self.push(character),
            _ => {}
        }
        Handled::Yes
    }

    fn paste(&mut self, text: &str, _ctx: &mut UiContext) -> Handled {
        for character in text.trim().chars() {
            self.push(character);
        }
        Handled::Yes
    }

    fn mouse(&mut self, mouse: MouseEvent, ctx: &mut UiContext) -> Handled {
        mouse::act(mouse, ctx);
        Handled::Yes
    }

    fn draw(&mut self, area: Area, ctx: &mut UiContext, grid: &mut Grid) -> Area {
        let (line, column) = self.line(ctx.columns);
        grid.fill(ctx.input_row, Tone::Text);
        grid.line(ctx.input_row, 0, &line);
        grid.cursor = Some((ctx.input_row, column.min(ctx.columns - 1)));
        area
    }
}
