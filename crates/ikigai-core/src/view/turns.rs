//! Turns: their first rows, and the busy state. Computed from rows, never stored.

use crate::data::{self, CommandData, ErrorData, ForkData, ForkRole, RewindData, UserData, Via};
use crate::ids::AgentId;
use crate::kind::Kind;
use crate::load::Loaded;
use crate::path::Path;
use crate::view::{Entry, View};

/// Agent and number of a response; older rows have no number.
type ResponseKey = (AgentId, Option<u64>);

/// Busy state of an agent while the rows of a view are read.
#[derive(Clone, Debug)]
pub(crate) struct Activity {
    /// None while the rows seen do not decide it.
    busy: Option<bool>,
    /// Response of the newest call, while it may continue.
    calling: Option<ResponseKey>,
    /// Response of the newest row that has one.
    newest: Option<ResponseKey>,
    /// True if the newest response has no row before the rows seen.
    sure: bool,
}

impl Activity {
    /// Starts before the first row of a view.
    pub(crate) fn at_start_of(view: &View, path: &Path) -> Self {
        let complete = view.is_complete(path);
        Self {
            busy: complete.then_some(false),
            sure: complete,
            ..Self::idle()
        }
    }

    /// Starts between two turns.
    fn idle() -> Self {
        Self {
            busy: Some(false),
            calling: None,
            newest: None,
            sure: true,
        }
    }

    /// Returns true if the agent is busy after the rows so far; none if undecided.
    pub(crate) fn is_busy(&self) -> Option<bool> {
        self.busy
    }

    /// Adds the entry at `index`. A row that is reported as bad changes nothing.
    pub(crate) fn step(&mut self, view: &View, index: usize) {
        let Some(entry) = view.entries().get(index) else {
            return;
        };
        if view.problem(index).is_some() {
            return;
        }
        let data = entry.row.data.as_deref();
        match entry.kind() {
            Some(Kind::User) => {
                // A message to the agent ends every response.
                self.calling = None;
                self.sure = true;
                let user: UserData = data::read(data);
                if user.shell.is_none() && user.merge.is_none() {
                    self.busy = Some(true);
                }
            }
            Some(Kind::ToolCall) => {
                self.calling = self.responded(entry);
                self.busy = Some(true);
            }
            Some(Kind::ToolResult) => {
                self.break_older();
                self.busy = Some(true);
            }
            Some(Kind::Assistant) => {
                let response = self.responded(entry);
                let calls = self.calling.is_some() && self.calling == response;
                self.busy = (calls || self.sure).then_some(calls);
            }
            Some(Kind::Interrupted) => {
                self.break_older();
                self.stopped();
            }
            Some(Kind::Clear) => self.stopped(),
            Some(Kind::Error) => {
                if data::read::<ErrorData>(data).omit.is_none() {
                    self.stopped();
                }
            }
            Some(Kind::Rewind) if view.follows_its_target(index).is_none() => {}
            Some(Kind::Rewind) => match data::read::<RewindData>(data).via {
                Some(Via::Retry) => self.busy = Some(true),
                _ => self.stopped(),
            },
            Some(Kind::Fork) => {
                if data::read::<ForkData>(data).role == Some(ForkRole::Child) {
                    self.stopped();
                }
            }
            Some(Kind::Command) => {
                if data::read::<CommandData>(data).resume == Some(true) {
                    self.busy = Some(true);
                }
            }
            Some(
                Kind::System
                | Kind::Mark
                | Kind::AgentKilled
                | Kind::Usage
                | Kind::Summary
                | Kind::Process
                | Kind::Files,
            )
            | None => {}
        }
    }

    /// Adds a row of a response and returns the response.
    fn responded(&mut self, entry: &Entry) -> Option<ResponseKey> {
        let response = response_of(entry);
        if self.newest.is_some() && self.newest != response {
            // A row after another response belongs to one that began after it.
            self.sure = true;
            self.break_older();
        }
        self.newest = response;
        response
    }

    /// Separates rows without a number, which belong together only while they are adjacent.
    fn break_older(&mut self) {
        self.calling = self.calling.filter(|(_, response)| response.is_some());
    }

    fn stopped(&mut self) {
        self.busy = Some(false);
    }
}

fn response_of(entry: &Entry) -> Option<ResponseKey> {
    match &entry.loaded {
        Ok(Loaded::Message(part)) => Some((entry.at().agent, part.response)),
        _ => None,
    }
}

/// Returns the indices of the entries at which turns begin, oldest first.
///
/// A turn begins with a `user` row that was written while the agent was idle. At the beginning of a
/// view that is not the whole path the state is unknown, so nothing is counted. `is_after_turns`
/// returns true for an index before which whole turns end, whatever else is known.
pub(crate) fn turn_starts(
    view: &View,
    path: &Path,
    is_after_turns: impl Fn(usize) -> bool,
) -> Vec<usize> {
    let mut activity = Activity::at_start_of(view, path);
    let mut starts = Vec::new();
    for (index, entry) in view.entries().iter().enumerate() {
        if is_after_turns(index) {
            activity = Activity::idle();
        }
        let is_user = entry.kind() == Some(Kind::User) && entry.loaded.is_ok();
        if is_user && activity.is_busy() == Some(false) {
            starts.push(index);
        }
        activity.step(view, index);
    }
    starts
}
