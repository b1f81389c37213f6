//! Handler of the engine's events.

use std::time::{Duration, Instant};

use ikigai_core::AgentId;
use ikigai_engine::commands::{Line, Next, parse};
use ikigai_engine::{MailId, Outcome, Question, UiEvent, UserRequest};

use super::overlay::Overlay;
use super::quit::QuitPrompt;
use super::toast::signed;
use super::{App, EngineRequest, LoadRequest, TerminalAction, UiContext, quit};
use crate::text::one_line;

/// Longest beginning of a call in a notification.
const NOTICE_CHARS: usize = 80;

/// Shortest turn whose end is notified.
const LONG_TURN: Duration = Duration::from_secs(10);

impl App {
    /// Handles an event of an agent. The driver has applied stored rows to its pane before.
    pub fn handle_event(&mut self, agent: AgentId, update: UiEvent, now: Instant) {
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
    pub fn received(&mut self, id: MailId) {
        if self.ctx.received(id) && self.is_open::<QuitPrompt>() {
            self.refresh();
        }
    }
}

impl UiContext {
    fn handle_event(&mut self, agent: AgentId, update: UiEvent) {
        let is_current = agent == self.current;
        self.notice(agent, &update);
        self.roster
            .handle_event(agent, &update, self.now, is_current);
        if self.roster.get(agent).is_none() {
            self.effects.push(LoadRequest::Tree);
        }
        match update {
            UiEvent::Stored(row) | UiEvent::Settled(row) if changes_tree(&row) => {
                self.effects.push(LoadRequest::Tree);
            }
            UiEvent::TakenBack { text, .. } if self.sends_now => {
                self.effects
                    .push(EngineRequest::Send(agent, UserRequest::Say(text)));
            }
            UiEvent::TakenBack { text, .. } => self.hand_back(agent, &text),
            UiEvent::Received(id) => {
                self.received(id);
            }
            UiEvent::Unstored { id, reason } => self.unstored(id, &reason),
            UiEvent::ShellStarted { id, .. } => self.shell_runs(id),
            UiEvent::Next(Next::Input(text)) => self.put_back(agent, text),
            UiEvent::Next(Next::EditSummary(draft)) => {
                self.effects.push(TerminalAction::EditSummary(agent, draft));
            }
            UiEvent::NotStored { id, text, reason } => {
                self.hand_back(agent, &text);
                if let Some(id) = id {
                    self.returned(id, &reason);
                }
                let warning = match parse(&text) {
                    Line::Message(_) => {
                        let reason = reason.strip_prefix("not sent: ").unwrap_or(&reason);
                        format!("Not sent: {reason}")
                    }
                    _ => format!("not stored, nothing was done: {reason}"),
                };
                self.warn(&warning);
            }
            UiEvent::Ended(_) => self.sends_now = false,
            UiEvent::Next(next) if is_current => self.do_next(next),
            UiEvent::Next(Next::Quit) => quit::leave(self),
            UiEvent::Preview {
                line,
                output,
                severity,
            } if is_current => {
                let output = signed(severity, &output, self.options.symbols);
                self.open(Overlay::of_text(&line, &output));
            }
            UiEvent::Notice(text) if is_current => self.toast(text),
            UiEvent::GrantOffer(text) if is_current => self.grant_offer = Some(text),
            UiEvent::Warning(text) => {
                let name = self.name_of(agent).unwrap_or_default();
                let whose = if is_current {
                    String::new()
                } else {
                    format!("{name}: ")
                };
                self.warn(&format!("{whose}{text}"));
            }
            _ => {}
        }
    }

    /// Executes the screen part of the current agent's command.
    fn do_next(&mut self, next: Next) {
        match next {
            Next::Input(text) => self.put_back(self.current, text),
            Next::Switch(other) => self.effects.push(EngineRequest::Show(other)),
            Next::Copy(text) => self.effects.push(TerminalAction::Copy(text)),
            Next::Theme(name) => self.effects.push(TerminalAction::SetTheme(name)),
            Next::Mouse(on) => self.effects.push(TerminalAction::SetMouse(on)),
            Next::View(open) => self.view(open),
            Next::Refresh => {
                self.effects.push(LoadRequest::Pane);
                self.effects.push(TerminalAction::Redraw);
            }
            Next::Quit => quit::leave(self),
            Next::EditSummary(draft) => {
                self.effects
                    .push(TerminalAction::EditSummary(self.current, draft));
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

    /// Notifies a user whose terminal has no focus.
    fn notice(&mut self, agent: AgentId, update: &UiEvent) {
        if self.is_focused {
            return;
        }
        let name = self.name_of(agent).unwrap_or_default();
        let live = self.roster.live(agent);
        let text = match update {
            UiEvent::Question(question) => {
                format!("{name} asks: {}: {}", question.tool, preview(question))
            }
            UiEvent::Ended(outcome) => {
                let doing = live.and_then(|live| live.turn.as_ref());
                let is_long = doing.is_some_and(|doing| self.now - doing.since > LONG_TURN);
                match outcome {
                    Outcome::Completed if is_long => format!("{name} is done"),
                    Outcome::Failed(reason) => format!("{name} failed: {reason}"),
                    Outcome::Completed | Outcome::Interrupted(_) => return,
                }
            }
            _ => return,
        };
        self.effects.push(TerminalAction::Notify(text));
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
