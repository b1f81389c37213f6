//! What keys do: the ladders of Esc and Ctrl-C, sending, and going from agent to agent.

use std::time::{Duration, Instant};

use ikigai_core::AgentId;
use ikigai_core::data::Cause;
use ikigai_core::settings::Approve;
use ikigai_engine::commands::{Command, Line, parse};
use ikigai_engine::{Errand, Intent, Stop};

use super::overlay::help;
use super::terminal_programs::wants_terminal;
use super::typing::Way;
use super::{App, Choosing, Mode, Phase, Wish};
use crate::input::Edit;
use crate::key::{Code, Key};
use crate::keys::{self, Action, Meaning};

/// A key pressed once more within this time is meant as the second.
const AGAIN: Duration = Duration::from_secs(2);

/// An Esc so soon after an interrupt was meant for it.
const LATE_ESCAPE: Duration = Duration::from_secs(1);

/// What pressing a key once more would do, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Armed {
    what: Again,
    until: Instant,
}

/// What pressing a key once more does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    Clears,
    Browses,
    Quits,
    Suspends,
    Sends,
    /// Nothing: the interrupt was just said.
    Interrupted,
}

impl App {
    /// Does what a key means.
    pub(super) fn press(&mut self, key: Key) {
        if matches!(self.mode, Mode::Leaving) {
            return self.press_leaving(key);
        }
        let is_typed = self.secret_takes(key) || self.question_types(key);
        let is_taken = is_typed || self.prompt_types(key) || self.merging_takes(key);
        if is_taken || self.picker_takes(key) || self.kill_answered(key) {
            return;
        }
        self.pressed.push(key);
        let pressed = std::mem::take(&mut self.pressed);
        match self.bindings.meaning(&self.modes(), &pressed) {
            Meaning::Prefix => {
                self.pressed = pressed;
                self.say(format!("{} …", key_names(&self.pressed)));
            }
            Meaning::Action(action) => {
                if pressed.len() > 1 {
                    self.said = None;
                }
                self.act(action);
            }
            Meaning::Nothing if pressed.len() > 1 => self.say("that means nothing"),
            Meaning::Nothing => self.type_key(key),
        }
    }

    /// Where a key is looked up, first to last.
    fn modes(&self) -> Vec<keys::Mode> {
        if self.asked.is_open() {
            return vec![keys::Mode::Question];
        }
        match &self.mode {
            Mode::Overlay(_) => return vec![keys::Mode::Overlay],
            Mode::Picker(_) => return vec![keys::Mode::Picker],
            Mode::Board(_) => return vec![keys::Mode::Board],
            // They have taken the key.
            Mode::Merging(_) | Mode::Secret(_) => return Vec::new(),
            Mode::Input | Mode::Leaving | Mode::Browse(_) => {}
        }
        let mut modes = Vec::new();
        let Some(pane) = self.pane() else {
            return modes;
        };
        let browses = matches!(self.mode, Mode::Browse(_));
        if browses {
            // What is typed waits.
        } else if self.search.is_some() {
            modes.push(keys::Mode::Search);
        } else if pane.completion.is_open() {
            modes.push(keys::Mode::List);
        }
        if self.has_question() {
            modes.push(keys::Mode::Asked);
        }
        if self.others_ask() {
            modes.push(keys::Mode::Others);
        }
        if browses {
            modes.push(keys::Mode::Browse);
            return modes;
        }
        if pane.editor.is_empty() && self.search.is_none() {
            modes.push(keys::Mode::Empty);
        }
        modes.push(keys::Mode::Input);
        modes
    }

    /// A key that means nothing else is typed.
    fn type_key(&mut self, key: Key) {
        let Code::Char(character) = key.code else {
            return;
        };
        if key.ctrl || key.alt {
            return;
        }
        match &mut self.mode {
            Mode::Input => {}
            Mode::Overlay(_) => self.mode = Mode::Input,
            Mode::Leaving
            | Mode::Browse(_)
            | Mode::Picker(_)
            | Mode::Board(_)
            | Mode::Merging(_)
            | Mode::Secret(_) => return,
        }
        self.typed_at = Some(self.now);
        // Whoever types a sentence does not answer: the letters that follow are of the sentence.
        self.asked.wait();
        let mut letter = [0; 4];
        self.type_text(character.encode_utf8(&mut letter));
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Edit(edit) => self.edit(edit),
            Action::Agent(number) => self.go_to_number(number),
            Action::Send => self.send(),
            Action::SendNow => self.send_now(),
            Action::Complete => self.complete(),
            Action::SearchHistory => self.search_history(),
            Action::HistoryPrevious => self.recall(Way::Older),
            Action::HistoryNext => self.recall(Way::Newer),
            Action::Editor => {
                let text = self.pane().map(|pane| pane.editor.text());
                self.wishes.extend(text.map(Wish::Edit));
            }
            Action::DeleteOrQuit => self.delete_or_quit(),
            Action::CycleApproval => self.cycle_approval(),
            Action::TreeParent => {
                let own = self.roster.get(self.current);
                let parent = own.and_then(|known| known.branch.agent.parent);
                self.go_to(parent, "this agent has no parent");
            }
            Action::TreeChild => {
                let child = self.roster.children(self.current).next().map(|(id, _)| id);
                self.go_to(child, "this agent has no children · /fork makes one");
            }
            Action::TreePrevious => self.go_beside(-1),
            Action::TreeNext => self.go_beside(1),
            Action::NextNeedingMe => {
                let asking = self.roster.asking().find(|(id, _)| *id != self.current);
                let asking = asking.map(|(id, _)| id);
                self.go_to(asking, "no other agent needs you");
            }
            Action::PreviousAgent => self.go_to(self.before, "there is no agent before"),
            Action::Escape => self.escape(),
            Action::Interrupt => self.interrupt_or_quit(),
            Action::Suspend => self.suspend(),
            Action::Quit => self.leave(),
            Action::Help => {
                self.mode = Mode::Overlay(help(&self.bindings));
            }
            Action::Browse => self.browse(None),
            Action::Board => self.open_board(),
            Action::Redraw => self.wishes.push(Wish::Redraw),
            Action::ToolOutput => self.toggle_tool_output(),
            Action::ScrollUp => self.scroll(-1),
            Action::ScrollDown => self.scroll(1),
            Action::ScrollPageUp => self.scroll(-self.page()),
            Action::ScrollPageDown => self.scroll(self.page()),
            Action::ScrollHalfUp => self.scroll(-self.page() / 2),
            Action::ScrollHalfDown => self.scroll(self.page() / 2),
            Action::ScrollTop => self.scroll(isize::MIN / 2),
            Action::ScrollBottom => self.scroll_to_end(),
            Action::AnswerQuestion => self.open_question(),
            Action::OtherNo => self.refuse_other(),
            Action::OtherGo => {
                let asking = self.roster.asking().find(|(id, _)| *id != self.current);
                let asking = asking.map(|(id, _)| id);
                self.go_to(asking, "no other agent asks");
            }
            action => {
                let _ = self.act_in_list(action)
                    || self.act_in_question(action)
                    || self.act_in_overlay(action)
                    || self.act_in_browse(action)
                    || self.act_in_board(action);
            }
        }
    }

    pub(super) fn input_is_empty(&self) -> bool {
        self.pane().is_none_or(|pane| pane.editor.is_empty())
    }

    /// Sends what is typed.
    pub(super) fn send(&mut self) {
        let Some(pane) = self.panes.get_mut(&self.current) else {
            return;
        };
        if pane.editor.continue_line() || pane.editor.text().trim().is_empty() {
            return;
        }
        let typed = pane.editor.text();
        if self.holds_key_back(&typed) {
            return;
        }
        let Some(pane) = self.panes.get_mut(&self.current) else {
            return;
        };
        let text = pane.editor.take();
        pane.put_back = None;
        self.history.sent(text.clone());
        pane.scrollback.look_at_end();
        self.typed();
        self.submit(text);
    }

    /// Has a line carried out, as if it had been typed.
    pub fn submit(&mut self, text: String) {
        self.notes.clear();
        self.grant_offer = None;
        // What was said of something before is over; a question that stays is not.
        self.said.take_if(|(_, until)| until.is_some());
        if let Line::Command(command, rest) = parse(&text)
            && self.submit_here(command, rest)
        {
            return;
        }
        if let Line::Shell { command, sent } = parse(&text)
            && wants_terminal(command)
        {
            let command = command.to_owned();
            return self.wishes.push(Wish::RunOnTerminal { command, sent });
        }
        let intent = match parse(&text) {
            Line::Command(command, rest) if command.only_shows(rest) => Intent::Preview(text),
            _ => Intent::Command(text),
        };
        self.wishes.push(Wish::Say(self.current, intent));
    }

    /// Carries out what only a screen can do; says whether it was that.
    fn submit_here(&mut self, command: &Command, rest: &str) -> bool {
        match (command.name, rest.trim()) {
            ("quit", "") => self.leave(),
            ("history", "") => self.browse_all(),
            ("model", "") => self.wishes.push(Wish::Choose(Choosing::Model)),
            ("sessions", "") => self.wishes.push(Wish::Choose(Choosing::Session)),
            ("switch", "") => self.choose_agent(),
            ("key", "") => self.choose_key_provider(),
            ("key", provider) if !provider.contains(char::is_whitespace) => self.ask_key(provider),
            ("theme", "") => self.choose_theme(),
            ("keys", "") => self.mode = Mode::Overlay(help(&self.bindings)),
            ("agents", "") => self.open_board(),
            ("merge", arguments) => {
                let merge = Wish::PreviewMerge(self.current, arguments.to_owned());
                self.wishes.push(merge);
            }
            ("search", words) if !words.is_empty() => self.search_log(words),
            ("take", "") => self.wishes.push(Wish::Take(self.current)),
            _ => return false,
        }
        true
    }

    /// Interrupts the answer and sends what waits. A tool that runs is let be: what waits goes out
    /// after it anyway.
    fn send_now(&mut self) {
        let live = self.roster.live(self.current);
        let doing = live.and_then(|live| live.turn.as_ref());
        let phase = doing.map(|doing| doing.phase.clone());
        let is_left_over = live.is_some_and(|live| !live.is_busy() && !live.queued.is_empty());
        if !self.input_is_empty() {
            self.send();
        } else if is_left_over {
            // A message that a former process queued goes out in a turn of its own.
            let answer = Intent::Do(Errand::Mail);
            self.wishes.push(Wish::Say(self.current, answer));
        }
        match phase {
            None => {}
            Some(Phase::Runs) => self.say("it goes out as soon as the running tool is done"),
            Some(_) => {
                self.sends_now = true;
                self.interrupt();
            }
        }
    }

    /// Has the agent that is shown stop.
    pub(super) fn interrupt(&mut self) {
        let stop = Intent::Stop(Stop::Interrupt(Cause::User));
        self.wishes.push(Wish::Say(self.current, stop));
        self.arm(Again::Interrupted, LATE_ESCAPE);
    }

    pub(super) fn is_busy(&self) -> bool {
        self.roster
            .live(self.current)
            .is_some_and(super::Live::is_busy)
    }

    fn escape(&mut self) {
        let armed = self.armed.take().map(|armed| armed.what);
        if self.refuse_and_stop() {
            return;
        }
        if self.close_list() || self.selection.take().is_some() {
            return;
        }
        match armed {
            Some(Again::Interrupted) => return,
            Some(Again::Clears) => {
                self.clear_input();
                self.said = None;
                return;
            }
            Some(Again::Sends) => {
                self.said = None;
                return;
            }
            Some(Again::Browses) if self.input_is_empty() && !self.is_busy() => {
                return self.browse(None);
            }
            Some(Again::Browses | Again::Quits | Again::Suspends) | None => {}
        }
        if self.is_busy() {
            self.interrupt();
        } else if !self.input_is_empty() {
            self.say("Esc again clears");
            self.arm(Again::Clears, AGAIN);
        } else {
            self.say("Esc again to browse");
            self.arm(Again::Browses, AGAIN);
        }
    }

    fn interrupt_or_quit(&mut self) {
        let armed = self.armed.take().map(|armed| armed.what);
        if self.selection.is_some() {
            self.copy_selection();
            self.selection = None;
        } else if !matches!(self.mode, Mode::Input) {
            self.mode = Mode::Input;
        } else if self.close_list() {
        } else if self.is_busy() {
            self.interrupt();
        } else if !self.input_is_empty() {
            self.clear_input();
            self.say("cleared · Ctrl-Y brings it back");
        } else if armed == Some(Again::Quits) {
            self.leave();
        } else {
            self.say("Ctrl-C again to quit");
            self.arm(Again::Quits, AGAIN);
        }
    }

    fn clear_input(&mut self) {
        if let Some(pane) = self.panes.get_mut(&self.current) {
            pane.editor.clear();
        }
        self.typed();
    }

    fn delete_or_quit(&mut self) {
        if self.input_is_empty() {
            self.leave();
        } else {
            self.edit(Edit::DeleteForward);
        }
    }

    fn suspend(&mut self) {
        let armed = self.armed.take().map(|armed| armed.what);
        if self.roster.working() == 0 || armed == Some(Again::Suspends) {
            self.said = None;
            self.wishes.push(Wish::Suspend);
        } else {
            self.say("agents are working · Ctrl-Z again pauses them");
            self.arm(Again::Suspends, AGAIN);
        }
    }

    /// Has the next Enter send what is held back.
    pub(super) fn arm_sending(&mut self) {
        self.arm(Again::Sends, super::SAID);
    }

    /// Whether Enter was pressed again for what was held back.
    pub(super) fn is_sent_again(&mut self) -> bool {
        let is_armed = |armed: &Armed| armed.what == Again::Sends;
        self.armed.take_if(|armed| is_armed(armed)).is_some()
    }

    fn arm(&mut self, what: Again, time: Duration) {
        let until = self.now + time;
        self.armed = Some(Armed { what, until });
    }

    pub(super) fn disarm(&mut self) {
        self.armed = self.armed.filter(|armed| self.now < armed.until);
    }

    fn cycle_approval(&mut self) {
        let mode = self.pane().map(|pane| self.mode_of(&pane.agent.state));
        let next = match mode.unwrap_or(Approve::Ask) {
            Approve::Read => Approve::Ask,
            Approve::Ask => Approve::Edits,
            Approve::Edits | Approve::All => Approve::Read,
        };
        self.grant_offer = None;
        let line = format!("/approve {}", next.word());
        self.wishes
            .push(Wish::Say(self.current, Intent::Command(line)));
    }

    /// Shows another agent, or says why not.
    pub(super) fn go_to(&mut self, agent: Option<AgentId>, why_not: &str) {
        match agent {
            Some(agent) => self.wishes.push(Wish::Show(agent)),
            None => self.say(why_not),
        }
    }

    fn go_beside(&mut self, step: isize) {
        let siblings = self.roster.siblings(self.current);
        let place = siblings.iter().position(|id| *id == self.current);
        let beside = place
            .and_then(|place| place.checked_add_signed(step))
            .and_then(|place| siblings.get(place).copied());
        self.go_to(beside, "there is no agent on that side");
    }

    fn go_to_number(&mut self, number: u8) {
        let index = usize::from(number).checked_sub(1);
        let agent = index.and_then(|index| self.roster.all().nth(index));
        let agent = agent.map(|(id, _)| id);
        self.go_to(agent, "there are not that many agents");
    }

    fn page(&self) -> isize {
        isize::from(u8::try_from(self.rows.saturating_sub(6)).unwrap_or(50)).max(1)
    }

    fn scroll_to_end(&mut self) {
        if let Some(pane) = self.panes.get_mut(&self.current) {
            pane.scrollback.look_at_end();
        }
    }

    pub(super) fn forget_armed(&mut self) {
        self.armed = None;
    }

    pub(super) fn armed_until(&self) -> Option<Instant> {
        self.armed.map(|armed| armed.until)
    }

    /// Takes in pasted text.
    pub(super) fn paste(&mut self, text: &str) {
        self.typed_at = Some(self.now);
        if self.secret_pastes(text) || self.prompt_pastes(text) || self.picker_pastes(text) {
            return;
        }
        if !matches!(self.mode, Mode::Input) {
            self.mode = Mode::Input;
        }
        let Some(pane) = self.panes.get_mut(&self.current) else {
            return;
        };
        if let Err(error) = pane.editor.paste(text) {
            self.say(format!("⚠ {error}"));
        }
        self.typed();
    }
}

/// The names of keys that were pressed one after the other.
fn key_names(keys: &[Key]) -> String {
    let names: Vec<_> = keys.iter().map(ToString::to_string).collect();
    names.join(" ")
}
