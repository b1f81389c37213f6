//! Handler of the engine's events.

use std::time::{Duration, Instant};

use ikigai_core::AgentId;
use ikigai_engine::commands::Next;
use ikigai_engine::{
    LineChange, LiveChange, MailId, Outcome, Question, UiEvent, UserInput, UserRequest,
};

use super::overlay::Overlay;
use super::quit::QuitPrompt;
use super::toast::with_sign;
use super::{App, EngineRequest, LoadRequest, TerminalAction, UiContext, quit};
use crate::text::one_line;

/// Longest beginning of a call in a notification.
const NOTICE_CHARS: usize = 80;

/// Shortest turn whose end is notified.
const LONG_TURN: Duration = Duration::from_secs(10);

impl App {
    /// Handles an event of an agent. The driver has applied stored rows to its pane before.
    pub fn handle_event(&mut self, agent: AgentId, update: &UiEvent, now: Instant) {
        self.tick(now);
        let has_ended = matches!(update, UiEvent::Ended(_) | UiEvent::Received(_));
        self.ctx.handle_event(agent, update);
        self.apply_changes();
        // The question before quitting may be obsolete.
        if has_ended && self.is_open::<QuitPrompt>() {
            self.refresh();
        }
        self.sync_question();
    }

    /// Notes that a line is stored, or that its command ran.
    pub fn mark_received(&mut self, id: MailId) {
        if self.ctx.mark_received(id) && self.is_open::<QuitPrompt>() {
            self.refresh();
        }
    }
}

impl UiContext {
    fn handle_event(&mut self, agent: AgentId, update: &UiEvent) {
        let is_current = agent == self.current;
        let change = self.roster.apply(agent, update, self.now, is_current);
        if let Some(text) = notification(&change).filter(|_| !self.is_focused) {
            let name = self.name_of(agent).unwrap_or_default();
            self.effects
                .push(TerminalAction::Notify(format!("{name} {text}")));
        }
        if self.roster.get(agent).is_none() {
            self.effects.push(LoadRequest::Tree);
        }
        if changes_inbox(&change) {
            self.effects.push(LoadRequest::Inbox);
        }
        match change {
            LiveChange::Row(row) | LiveChange::Settled(row) => {
                if changes_tree(row) {
                    self.effects.push(LoadRequest::Tree);
                }
            }
            LiveChange::Line(line) => self.line_changed(agent, line),
            LiveChange::Next(next) => self.do_next(agent, next.clone()),
            LiveChange::Ended { .. } => self.sends_now = false,
            LiveChange::Preview {
                line,
                output,
                severity,
            } => {
                if is_current {
                    let output = with_sign(severity, output, self.options.symbols);
                    self.open(Overlay::of_text(line, &output));
                }
            }
            LiveChange::Notice(text) => {
                if is_current {
                    self.toast(text);
                }
            }
            LiveChange::GrantOffer(text) => {
                if is_current {
                    self.grant_offer = Some(text.to_owned());
                }
            }
            LiveChange::Warning(text) => {
                let name = self.name_of(agent).unwrap_or_default();
                let whose = if is_current {
                    String::new()
                } else {
                    format!("{name}: ")
                };
                self.warn(&format!("{whose}{text}"));
            }
            // The next frame shows them.
            LiveChange::State
            | LiveChange::Began
            | LiveChange::Answer(_)
            | LiveChange::Restarted
            | LiveChange::Retry(_)
            | LiveChange::ToolLine(_)
            | LiveChange::ShellLine(_)
            | LiveChange::Question(_)
            | LiveChange::Unasked(_)
            | LiveChange::StoreAway(_) => {}
        }
    }

    fn line_changed(&mut self, agent: AgentId, line: LineChange<'_>) {
        match line {
            LineChange::TakenBack(text) if self.sends_now => {
                let request = UserRequest::Line(UserInput::Message(text.to_owned()));
                self.effects.push(EngineRequest::Send(agent, request));
            }
            LineChange::TakenBack(text) => self.hand_back(agent, text),
            LineChange::Received(id) => {
                self.mark_received(id);
            }
            LineChange::Unstored { id, reason } => self.mark_unstored(id, reason),
            LineChange::Running(id) => self.shell_runs(id),
            LineChange::NotStored { id, input, reason } => {
                self.hand_back(agent, input.line());
                if let Some(id) = id {
                    self.mark_returned(id, reason);
                }
                let word = if input.is_message() { "sent" } else { "done" };
                let reason = reason.strip_prefix("not sent: ").unwrap_or(reason);
                self.warn(&format!("not {word}: {reason}"));
            }
            LineChange::Queued(_) | LineChange::Delivered => {}
        }
    }

    /// Executes the screen part of a command. Of other agents, only what concerns them or all.
    fn do_next(&mut self, agent: AgentId, next: Next) {
        let is_current = agent == self.current;
        match next {
            Next::Input(text) => self.put_back(agent, text),
            Next::EditSummary(draft) => {
                self.effects.push(TerminalAction::EditSummary(agent, draft));
            }
            Next::Quit => quit::leave(self),
            _ if !is_current => {}
            Next::Switch(other) => self.effects.push(EngineRequest::Show(other)),
            Next::Copy(text) => self.effects.push(TerminalAction::Copy(text)),
            Next::Theme(name) => self.effects.push(TerminalAction::SetTheme(name)),
            Next::Mouse(on) => self.effects.push(TerminalAction::SetMouse(on)),
            Next::View(open) => self.view(open),
            Next::Refresh => {
                self.effects.push(LoadRequest::Pane);
                self.effects.push(TerminalAction::Redraw);
            }
        }
    }

    /// Unfolds all events, or folds them.
    fn view(&mut self, open: Option<bool>) {
        let Some(pane) = self.current_mut() else {
            return;
        };
        match open {
            Some(open) => pane.scrollback.unfold_all(open),
            None => pane.scrollback.toggle_all(),
        }
    }

    /// Puts the text of a command's answer into the input of its agent.
    ///
    /// It is in the log, so the next typed command replaces it.
    fn put_back(&mut self, agent: AgentId, text: String) {
        self.hand_back(agent, &text);
        if let Some(pane) = self.panes.get_mut(&agent) {
            pane.put_back = Some(text);
        }
    }
}

/// Returns the text for a user whose terminal has no focus, without the name of the agent.
fn notification(change: &LiveChange<'_>) -> Option<String> {
    match change {
        LiveChange::Question(question) => Some(format!(
            "needs approval: {}: {}",
            question.tool,
            preview(question)
        )),
        LiveChange::Ended { outcome, took } => match outcome {
            Outcome::Completed if took.is_some_and(|took| took > LONG_TURN) => {
                Some("is done".to_owned())
            }
            Outcome::Failed(reason) => Some(format!("failed: {reason}")),
            Outcome::Completed | Outcome::Interrupted(_) => None,
        },
        _ => None,
    }
}

/// Returns the beginning of a call on one line, for a notification.
fn preview(question: &Question) -> String {
    let line = one_line(&question.shown);
    match line.char_indices().nth(NOTICE_CHARS) {
        None => line.into_owned(),
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

/// Reports whether a row changes the tree.
fn changes_tree(row: &ikigai_core::Row) -> bool {
    use ikigai_core::Kind::{AgentKilled, Command, Fork};
    matches!(row.kind.read_as(), Some(Fork | AgentKilled | Command))
}

/// Reports whether an event may change what waits for the user.
fn changes_inbox(change: &LiveChange<'_>) -> bool {
    use ikigai_core::Kind::{AgentKilled, Clear, Error, Interrupted, Process, Rewind, User};
    match change {
        LiveChange::Row(row) | LiveChange::Settled(row) => matches!(
            row.kind.read_as(),
            Some(AgentKilled | Clear | Error | Interrupted | Process | Rewind | User)
        ),
        LiveChange::Began
        | LiveChange::Ended { .. }
        | LiveChange::Question(_)
        | LiveChange::Unasked(_) => true,
        LiveChange::State
        | LiveChange::Answer(_)
        | LiveChange::Restarted
        | LiveChange::Retry(_)
        | LiveChange::ToolLine(_)
        | LiveChange::ShellLine(_)
        | LiveChange::Line(_)
        | LiveChange::Preview { .. }
        | LiveChange::Notice(_)
        | LiveChange::Warning(_)
        | LiveChange::GrantOffer(_)
        | LiveChange::StoreAway(_)
        | LiveChange::Next(_) => false,
    }
}
