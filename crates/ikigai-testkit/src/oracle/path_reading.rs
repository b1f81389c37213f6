//! Oracle of turns, pairing and requests, read off a path.
//!
//! Each function follows the words of its requirement and nothing else.

use std::collections::{HashMap, HashSet};

use ikigai_core::data::{self, UserData, UserOrigin};
use ikigai_core::load::{Loaded, Part, load};
use ikigai_core::{AgentId, Block, Kind, Role, RowRef};
use serde_json::Value;

use super::{Oracle, object, reference};

/// One part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestPart {
    User,
    Summary,
    Note,
    Response { speaks: bool, calls: bool },
}

/// Agent and number of the response that a row belongs to.
type ReadingKey = (AgentId, Option<u64>);

impl Oracle {
    /// Returns the message of a row, if it is one.
    fn part(&self, at: RowRef) -> Option<Part> {
        match load(self.row(at)) {
            Ok(Loaded::Message(part)) => Some(part),
            Ok(Loaded::Nothing) | Err(_) => None,
        }
    }

    fn kind(&self, at: RowRef) -> Option<Kind> {
        self.row(at).kind.read_as()
    }

    /// Returns true if the agent is busy at the end of this path: E7b, literally.
    pub fn is_busy(&self, path: &[RowRef]) -> bool {
        let mut busy = false;
        for (index, at) in path.iter().enumerate() {
            if self.is_bad(*at) {
                continue;
            }
            let data = object(self.row(*at));
            let has = |key| data.get(key).is_some_and(Value::is_object);
            let says = |key, word: &str| data.get(key).and_then(Value::as_str) == Some(word);
            match self.kind(*at) {
                Some(Kind::User) if has("shell") || has("merge") => {}
                Some(Kind::User | Kind::ToolCall | Kind::ToolResult) => busy = true,
                Some(Kind::Assistant) => busy = self.response_has_calls(&path[..=index]),
                Some(Kind::Error) if omitted(data.get("omit")).is_some() => {}
                Some(Kind::Interrupted | Kind::Error | Kind::Clear) => busy = false,
                Some(Kind::Rewind) => busy = says("via", "retry"),
                Some(Kind::Fork) if says("role", "child") => busy = false,
                Some(Kind::Command) if data.get("resume") == Some(&Value::Bool(true)) => {
                    busy = true;
                }
                _ => {}
            }
        }
        busy
    }

    /// Returns true if the response of the last row of this path has calls.
    ///
    /// Its rows are those of its agent with its number or, in older logs, neighbours without one.
    fn response_has_calls(&self, path: &[RowRef]) -> bool {
        let key_of = |at: RowRef| {
            let assistant = |part: &Part| part.message.role == Role::Assistant;
            self.part(at)
                .filter(assistant)
                .map(|part| (at.agent, part.response))
        };
        let last = path.last().and_then(|at| key_of(*at));
        let mut same = path.iter().rev().take_while(|at| {
            let numbered = last.is_some_and(|(_, number)| number.is_some());
            let neighbour = match self.part(**at) {
                Some(_) => key_of(**at) == last,
                None => self.kind(**at) != Some(Kind::Interrupted),
            };
            numbered || neighbour
        });
        same.any(|at| self.kind(*at) == Some(Kind::ToolCall) && key_of(*at) == last)
    }

    /// Returns the rows of a path that begin turns: `user` rows written while the agent was idle.
    pub fn turn_starts(&self, path: &[RowRef]) -> Vec<usize> {
        let is_user = |at: RowRef| self.kind(at) == Some(Kind::User) && !self.is_bad(at);
        let starts = path.iter().enumerate().filter(|(index, at)| {
            let idle = || !self.is_busy(&path[..*index]);
            is_user(**at) && idle()
        });
        starts.map(|(index, _)| index).collect()
    }

    /// Returns the calls of a path with their results: N1b.
    pub fn answers(&self, path: &[RowRef]) -> HashMap<RowRef, Option<RowRef>> {
        let mut calls: Vec<(RowRef, String, Option<RowRef>)> = Vec::new();
        for at in path {
            let Some(part) = self.part(*at) else { continue };
            match part.message.blocks.last() {
                Some(Block::ToolCall { id, .. }) => calls.push((*at, id.clone(), None)),
                Some(Block::ToolResult { tool_call_id, .. }) => {
                    let named = |call: &RowRef, id: &String| match part.answers {
                        Some(named) => named == *call,
                        None => id == tool_call_id,
                    };
                    let mut open = calls.iter_mut().rev().filter(|(_, _, by)| by.is_none());
                    if let Some((_, _, by)) = open.find(|(call, id, _)| named(call, id)) {
                        *by = Some(*at);
                    }
                }
                _ => {}
            }
        }
        calls.into_iter().map(|(call, _, by)| (call, by)).collect()
    }

    /// Returns true if a call of the last response of a path has no result.
    pub fn last_response_is_open(&self, path: &[RowRef]) -> bool {
        let keys = path.iter().map(|at| {
            let part = self.part(*at)?;
            let speaks = part.message.role == Role::Assistant;
            speaks.then_some((at.agent, part.response))
        });
        let keys: Vec<Option<ReadingKey>> = keys.collect();
        let last = keys.iter().rev().find_map(|key| *key);
        let answers = self.answers(path);
        let mut of_last = path
            .iter()
            .zip(keys)
            .filter(|(_, key)| last.is_some() && *key == last);
        of_last.any(|(at, _)| answers.get(at) == Some(&None))
    }

    /// Returns the indices that summaries in force cover, with the summaries.
    fn covers(&self, path: &[RowRef]) -> HashMap<usize, RowRef> {
        let place: HashMap<_, _> = path.iter().enumerate().map(|(i, at)| (*at, i)).collect();
        let mut active: Vec<(RowRef, usize, usize)> = Vec::new();
        let summaries = path
            .iter()
            .filter(|at| self.kind(**at) == Some(Kind::Summary));
        for at in summaries {
            let data = object(self.row(*at));
            if let Some(undone) = reference(data.get("undo")) {
                active.retain(|(summary, ..)| *summary != undone);
            } else if data.contains_key("elide") && !self.says_something(*at) {
                // An elision replaces nothing.
            } else if let (Some(from), Some(to)) =
                (reference(data.get("from")), reference(data.get("to")))
            {
                let last = place.get(&to).filter(|last| **last < place[at]);
                if let (Some(first), Some(last)) = (place.get(&from), last) {
                    active.push((*at, *first, *last));
                }
            }
        }
        let covered = active.into_iter();
        covered
            .flat_map(|(at, first, last)| (first..=last).map(move |i| (i, at)))
            .collect()
    }

    fn says_something(&self, at: RowRef) -> bool {
        let text = self.row(at).content.as_deref().unwrap_or_default();
        !text.trim().is_empty()
    }

    /// Returns the indices of covered user messages that a summary keeps.
    fn kept(
        &self,
        path: &[RowRef],
        covers: &HashMap<usize, RowRef>,
        summary: RowRef,
    ) -> Vec<usize> {
        let Some(from) = reference(object(self.row(summary)).get("verbatim_from")) else {
            return Vec::new();
        };
        let Some(first) = path.iter().position(|at| *at == from) else {
            return Vec::new();
        };
        let is_kept = |index: &usize| {
            let row = self.row(path[*index]);
            // A key of the wrong type counts as absent.
            let user: UserData = data::read(row.data.as_deref());
            let is_own = user.origin != Some(UserOrigin::Mail)
                && user.origin != Some(UserOrigin::Notice)
                && user.from.is_none()
                && user.shell.is_none()
                && user.merge.is_none();
            covers.get(index) == Some(&summary)
                && self.kind(row.at) == Some(Kind::User)
                && self.part(row.at).is_some_and(|part| speaks(&part))
                && is_own
        };
        (first..path.len()).filter(is_kept).collect()
    }

    /// Returns true if a request of this path ends with something to answer.
    pub fn can_be_answered(&self, path: &[RowRef]) -> bool {
        let said = self.said(path);
        let begins = |said: &RequestPart| matches!(said, RequestPart::User | RequestPart::Summary);
        let from_user = said.iter().skip_while(|said| !begins(said));
        let silent = RequestPart::Response {
            speaks: false,
            calls: false,
        };
        match from_user.filter(|said| **said != silent).last() {
            None | Some(RequestPart::Summary) => false,
            Some(RequestPart::Response { calls, .. }) => *calls,
            Some(RequestPart::User | RequestPart::Note) => true,
        }
    }

    /// Returns the texts of a request in the user's role, oldest first.
    ///
    /// These are messages, and summaries in place of the rows that they cover.
    pub fn in_the_users_name(&self, path: &[RowRef]) -> Vec<String> {
        let covers = self.covers(path);
        let mut texts = Vec::new();
        for (index, at) in path.iter().enumerate() {
            match covers.get(&index) {
                Some(summary) => {
                    let later = (index + 1..path.len()).any(|i| covers.get(&i) == Some(summary));
                    if !later {
                        texts.extend(self.row(*summary).content.clone());
                        let kept = self.kept(path, &covers, *summary).into_iter();
                        texts
                            .extend(kept.filter_map(|index| self.row(path[index]).content.clone()));
                    }
                }
                None if self.kind(*at) == Some(Kind::User) => {
                    texts.extend(self.row(*at).content.clone());
                }
                None => {}
            }
        }
        texts.retain(|text| !text.trim().is_empty());
        texts
    }

    fn said(&self, path: &[RowRef]) -> Vec<RequestPart> {
        let covers = self.covers(path);
        let omits: HashSet<RowRef> = path
            .iter()
            .filter(|at| self.kind(**at) == Some(Kind::Error))
            .filter_map(|at| omitted(object(self.row(*at)).get("omit")))
            .flatten()
            .collect();
        let mut said = Vec::new();
        let mut going_on: Option<ReadingKey> = None;
        for (index, at) in path.iter().enumerate() {
            if let Some(summary) = covers.get(&index) {
                let covers_more = (index + 1..path.len()).any(|i| covers.get(&i) == Some(summary));
                let is_cut = object(self.row(*summary)).get("cut") == Some(&Value::from(true));
                let keeps = !self.kept(path, &covers, *summary).is_empty();
                if !covers_more && (self.says_something(*summary) || is_cut || keeps) {
                    said.push(RequestPart::Summary);
                }
                going_on = None;
                continue;
            }
            let Some(part) = self.part(*at) else {
                if self.kind(*at) == Some(Kind::Interrupted) {
                    said.push(RequestPart::Note);
                    going_on = None;
                }
                continue;
            };
            let left_out = omits.contains(at);
            match part.message.role {
                Role::Tool => going_on = None,
                Role::User => {
                    going_on = None;
                    if left_out || speaks(&part) {
                        said.push(RequestPart::User);
                    }
                }
                Role::Assistant => {
                    let key = Some((at.agent, part.response));
                    let before = said.last().copied().filter(|_| going_on == key);
                    if before.is_some() {
                        said.pop();
                    }
                    said.push(with(before, &part, left_out));
                    going_on = key;
                }
            }
        }
        said
    }
}

/// Returns a response with one more row.
fn with(before: Option<RequestPart>, part: &Part, left_out: bool) -> RequestPart {
    let (mut speaks_so_far, mut calls_so_far) = match before {
        Some(RequestPart::Response { speaks, calls }) => (speaks, calls),
        _ => (false, false),
    };
    let hangs = part.message.blocks.len() > 1 || !part.message.metadata.is_empty();
    let gone = left_out && !hangs;
    match part.message.blocks.last() {
        Some(Block::ToolCall { .. }) => calls_so_far |= !gone,
        _ => speaks_so_far |= gone || speaks(part),
    }
    RequestPart::Response {
        speaks: speaks_so_far,
        calls: calls_so_far,
    }
}

fn speaks(part: &Part) -> bool {
    let spoken = part
        .message
        .blocks
        .iter()
        .rfind(|block| !matches!(block, Block::Image(_)));
    matches!(spoken, Some(Block::Text { text }) if !text.trim().is_empty())
}

/// Returns the rows that an error names, if it names any.
fn omitted(value: Option<&Value>) -> Option<Vec<RowRef>> {
    let named = value?.as_array()?.iter();
    named.map(|value| reference(Some(value))).collect()
}
