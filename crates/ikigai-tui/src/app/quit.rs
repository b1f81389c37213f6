//! Quitting, with a question while agents work or messages are not stored.

use super::layer::{Handled, Layer};
use super::toast::Toast;
use super::{TerminalAction, UiContext, mouse};
use crate::key::{KeyCode, KeyPress, MouseEvent};
use crate::keys;

/// Question before quitting; its text is the toast.
pub(super) struct QuitPrompt;

/// Quits, or asks first.
pub(super) fn leave(ctx: &mut UiContext) {
    let Some(text) = question(ctx) else {
        return ctx.effects.push(TerminalAction::Quit);
    };
    ctx.toast = Some(Toast::lasting(text));
    ctx.open(QuitPrompt);
}

/// Returns the text of the question; none if there is no work to lose.
fn question(ctx: &UiContext) -> Option<String> {
    let (agents, them) = match ctx.roster.working() {
        0 => return ctx.leaving_pending(),
        1 => ("1 agent is".to_owned(), "it"),
        working => (format!("{working} agents are"), "them"),
    };
    let keys = format!("q pause {them} and quit · b quit, keep {them} running · Esc cancel");
    Some(format!("{agents} working:  {keys}"))
}

impl Layer for QuitPrompt {
    fn bindings(&self, _ctx: &UiContext) -> Vec<keys::KeyMode> {
        Vec::new()
    }

    fn key(&mut self, key: KeyPress, ctx: &mut UiContext) -> Handled {
        match key.code {
            KeyCode::Char('q') => ctx.effects.push(TerminalAction::Quit),
            KeyCode::Char('b') => ctx.effects.push(TerminalAction::QuitToBackground),
            KeyCode::Char('d' | 'c') if key.ctrl => ctx.effects.push(TerminalAction::Quit),
            KeyCode::Escape => {
                ctx.toast = None;
                ctx.close();
            }
            _ => {}
        }
        Handled::Yes
    }

    fn mouse(&mut self, mouse: MouseEvent, ctx: &mut UiContext) -> Handled {
        mouse::act(mouse, ctx);
        Handled::Yes
    }

    /// Updates the question, or quits if there is no work to lose any more.
    fn refresh(&mut self, ctx: &mut UiContext) {
        match question(ctx) {
            Some(text) => ctx.toast = Some(Toast::lasting(text)),
            None => ctx.effects.push(TerminalAction::Quit),
        }
    }
}
