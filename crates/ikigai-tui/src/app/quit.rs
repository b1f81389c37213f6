//! Quitting, with a question while agents or processes run or messages are not stored.

use ikigai_core::counts::counted;
use ikigai_engine::ListedProcess;

use super::layer::{Handled, Layer};
use super::toast::Toast;
use super::{App, TerminalAction, UiContext, mouse};
use crate::key::{KeyCode, KeyPress, MouseEvent};
use crate::keys;

impl App {
    /// Sets the background processes of this process's agents.
    pub fn set_processes(&mut self, processes: Vec<ListedProcess>) {
        self.ctx.processes = processes;
    }
}

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
    // The background keeps the setting of this program.
    let bare = if ctx.options.is_confined {
        ""
    } else {
        " without sandbox"
    };
    let (working, processes) = (ctx.roster.working(), ctx.processes.len());
    let agents = counted(working, "agent");
    let running = counted(processes, "background process");
    let (what, stop, bare) = match (working, processes) {
        (0, 0) => return ctx.leaving_pending(),
        (0, _) => (format!("{running} running"), "stop", ""),
        (_, 0) => (format!("{agents} working"), "pause", bare),
        _ => (format!("{agents} working, {running} running"), "stop", bare),
    };
    let them = if working + processes == 1 {
        "it"
    } else {
        "them"
    };
    Some(format!(
        "{what}:  q {stop} {them} and quit · b quit, keep {them} running{bare} · Esc cancel"
    ))
}

/// Returns the action that quits and ends the work.
fn quitting(ctx: &UiContext) -> TerminalAction {
    match ctx.processes.len() {
        0 => TerminalAction::Quit,
        _ => TerminalAction::StopProcessesAndQuit,
    }
}

impl Layer for QuitPrompt {
    fn bindings(&self, _ctx: &UiContext) -> Vec<keys::KeyMode> {
        Vec::new()
    }

    fn key(&mut self, key: KeyPress, ctx: &mut UiContext) -> Handled {
        match key.code {
            KeyCode::Char('q') => ctx.effects.push(quitting(ctx)),
            KeyCode::Char('b') => ctx.effects.push(TerminalAction::QuitToBackground),
            KeyCode::Char('d' | 'c') if key.ctrl => ctx.effects.push(quitting(ctx)),
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
