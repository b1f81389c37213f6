//! Histories: actions played on a log, row by row as the program would write them.

use std::collections::{HashMap, HashSet};

use ikigai_core::data::{ForkContext, SystemOrigin};
use ikigai_core::load::{Loaded, load};
use ikigai_core::settings::Pin;
use ikigai_core::{AgentId, Block, Event, Kind, Role, Row, RowRef, Seq};
use ikigai_store::{Batch, Effect, Log, Snapshot};
use serde_json::{Map, Value};

use super::action::{Action, ActionKind, Forking, HeldRow};
use super::bad_rows::is_control;
use super::counts::Counts;
use super::events;
use super::text::Text;
use crate::oracle::Oracle;
use crate::{TestLog, block_on};

/// A log made by actions, with its oracle and counts.
pub struct History {
    /// The agents, live and stored.
    pub log: TestLog,
    /// The oracle of the same rows.
    pub oracle: Oracle,
    /// Statistics of the rows.
    pub counts: Counts,
    /// Agents in order of creation, each with the number of its ancestors.
    agents: Vec<(AgentId, usize)>,
    /// All calls with their ids, oldest first.
    pub(super) calls: Vec<(RowRef, String)>,
    ids: HashSet<String>,
    summaries: Vec<RowRef>,
    pub(super) responses: HashMap<AgentId, u64>,
}

impl Default for History {
    fn default() -> Self {
        let mut log = TestLog::new(1);
        let root = log.root();
        Self {
            log,
            oracle: Oracle::default(),
            counts: Counts::default(),
            agents: vec![(root, 0)],
            calls: Vec::new(),
            ids: HashSet::new(),
            summaries: Vec::new(),
            responses: HashMap::new(),
        }
    }
}

impl History {
    /// Plays all actions.
    pub fn of(actions: &[Action]) -> Self {
        let mut history = Self::default();
        for action in actions {
            history.step(action);
        }
        history
    }

    /// Returns the agents in order of creation.
    pub fn agents(&self) -> impl Iterator<Item = AgentId> + '_ {
        self.agents.iter().map(|(agent, _)| *agent)
    }

    /// Returns the newest row of each agent that has rows.
    pub fn heads(&self) -> Vec<RowRef> {
        self.agents()
            .filter_map(|agent| self.oracle.head(agent))
            .collect()
    }

    /// Returns every row of every agent.
    pub fn rows(&self) -> Vec<RowRef> {
        let heads = self.heads().into_iter();
        let own = |head: RowRef| (1..=head.seq.0).map(move |seq| RowRef::new(head.agent, Seq(seq)));
        heads.flat_map(own).collect()
    }

    /// Returns true if a row is a control row, by their definition.
    pub fn is_control(&self, at: RowRef) -> bool {
        let row = self.oracle.row(at);
        is_control(row.kind.name(), row.data.as_deref())
    }

    /// Plays one action; returns the agents whose logs may have grown.
    pub fn step(&mut self, action: &Action) -> Vec<AgentId> {
        let newest_first = self.agents.len() - 1 - action.agent % self.agents.len();
        let (agent, _) = self.agents[newest_first];
        let mut touched = vec![agent];
        match &action.kind {
            ActionKind::Say { text, how } => {
                let event = events::user(text.spell(), *how, agent);
                self.append(agent, vec![event]);
            }
            ActionKind::Respond(reply) => self.respond(agent, reply),
            ActionKind::GoOn(piece) => self.go_on(agent, piece),
            ActionKind::Answer(answer) => self.answer(agent, answer),
            ActionKind::Interrupt(cause) => self.append(agent, vec![Event::interrupted(*cause)]),
            ActionKind::Fail { text, omit } => {
                let omit = omit.as_ref().map(|places| {
                    let rows = places.iter().filter_map(|place| self.find(agent, *place));
                    rows.collect()
                });
                self.append(agent, vec![events::error(text.spell(), omit)]);
            }
            ActionKind::Mark(label) => self.append(agent, vec![Event::mark(*label)]),
            ActionKind::Rewind { to, via } => {
                if let (Some(target), Some(from)) = (self.find(agent, *to), self.oracle.head(agent))
                {
                    self.append(agent, vec![Event::rewind(target, from, *via)]);
                }
            }
            ActionKind::BadRewind { target, via } => self.rewind_badly(agent, target, *via),
            ActionKind::Clear { system } => {
                let system = system
                    .as_ref()
                    .map(|text| Event::system(text.spell(), SystemOrigin::Clear));
                self.append(agent, std::iter::once(Event::Clear).chain(system).collect());
            }
            ActionKind::System(text) => {
                let event = Event::system(text.spell(), SystemOrigin::Typed);
                self.append(agent, vec![event]);
            }
            ActionKind::Command {
                set,
                echo,
                resume,
                output,
            } => {
                let spell = |text: &Option<Text>| text.as_ref().map(Text::spell);
                let set = set.map(settings);
                let event = events::command(set, spell(echo), *resume, spell(output));
                self.append(agent, vec![event]);
            }
            ActionKind::PinLater(hash) => {
                let pin = Pin {
                    path: Some("AGENTS.md".to_owned()),
                    hash: Some((*hash).to_owned()),
                    off: None,
                };
                self.append(agent, vec![Event::set_pins(vec![pin], true)]);
            }
            ActionKind::Kill { target, all } => {
                let (target, _) = self.agents[target % self.agents.len()];
                let others = self.agents().filter(|_| *all).collect();
                self.append(agent, vec![events::killed(target, others)]);
            }
            ActionKind::Usage(tokens) => self.append(agent, vec![events::usage(*tokens)]),
            ActionKind::Summarise {
                from,
                to,
                text,
                form,
            } => {
                if let (Some(from), Some(to)) = (self.find(agent, *from), self.find(agent, *to)) {
                    let text = text.as_ref().map(Text::spell);
                    self.append(agent, vec![events::context_row(text, from, to, *form)]);
                }
            }
            ActionKind::Compact { keep, text } => self.compact(agent, *keep, text.as_ref()),
            ActionKind::TakeBack { which, names_range } => {
                if let Some(undone) = back(&self.summaries, *which) {
                    let event = events::take_back(undone, *names_range);
                    self.append(agent, vec![event]);
                }
            }
            ActionKind::Fork(forking) => touched.push(self.fork(agent, forking)),
            ActionKind::Bad(row) => self.leave_bad_row(agent, row),
            ActionKind::Snapshot => self.put_snapshot(agent),
            ActionKind::Restart => self.log.restart(agent),
            ActionKind::LookBack(rows) => self.log.look_back(agent, *rows),
            ActionKind::Forget(keep) => self.log.forget(agent, *keep),
        }
        touched
    }

    pub(super) fn append(&mut self, agent: AgentId, events: Vec<Event>) {
        self.log.append_all(agent, events);
        self.record(agent);
    }

    pub(super) fn inject(
        &mut self,
        agent: AgentId,
        kind: &str,
        content: Option<&str>,
        data: Option<&str>,
    ) {
        let control = is_control(kind, data);
        self.log.inject(agent, kind, content, data, control);
        self.record(agent);
    }

    /// Adds an agent's new rows to the oracle and the counts.
    fn record(&mut self, agent: AgentId) {
        let known = self.oracle.head(agent).map_or(0, |head| head.seq.0);
        for seq in known + 1..=self.log.peek(agent).state.head().0 {
            let row = self.log.row(RowRef::new(agent, Seq(seq)));
            self.oracle.add(row.clone());
            self.count(&row);
        }
    }

    fn count(&mut self, row: &Row) {
        let counts = &mut self.counts;
        *counts.kinds.entry(row.kind.name().to_owned()).or_default() += 1;
        counts.rows += 1;
        counts.bad_rows += usize::from(self.oracle.is_bad(row.at));
        let long = |text: &Option<String>| text.as_ref().is_some_and(|text| text.len() >= 200_000);
        counts.huge_rows += usize::from(long(&row.content) || long(&row.data));
        if row.kind.read_as() == Some(Kind::Summary) {
            self.summaries.push(row.at);
        }
        if self.oracle.is_valid_rewind(row.at) {
            let before = RowRef::new(row.at.agent, row.at.seq.before());
            let target = self.oracle.predecessor(row.at);
            let left = target.is_some_and(|target| !self.oracle.path(before).contains(&target));
            counts.rewinds += 1;
            counts.rewinds_to_abandoned += usize::from(left);
        }
        if let Some(Block::ToolCall { id, .. }) = last_block(row) {
            let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            let illegal = id.is_empty() || id.len() > 64 || !id.chars().all(legal);
            counts.calls += 1;
            counts.repeated_ids += usize::from(!self.ids.insert(id.clone()));
            counts.illegal_ids += usize::from(illegal);
            self.calls.push((row.at, id));
        }
    }

    /// Returns a row that the agent holds; another one if there is none of that sort.
    pub(super) fn find(&self, agent: AgentId, place: HeldRow) -> Option<RowRef> {
        let newest = self.oracle.head(agent)?;
        let path = self.oracle.path(newest);
        let own = || (1..=newest.seq.0).map(|seq| RowRef::new(agent, Seq(seq)));
        let held = || own().chain(self.oracle.inherited(agent));
        let (found, index): (Vec<RowRef>, usize) = match place {
            HeldRow::OnPath(index) => (Vec::new(), index),
            HeldRow::Abandoned(index) => (own().filter(|row| !path.contains(row)).collect(), index),
            HeldRow::Inherited(index) => (self.oracle.inherited(agent), index),
            HeldRow::Mark(index) => {
                let is_mark = |row: &RowRef| self.oracle.row(*row).kind.name() == "mark";
                (held().filter(is_mark).collect(), index)
            }
            HeldRow::InResponse(index) => (
                held().filter(|row| self.is_in_response(*row)).collect(),
                index,
            ),
            HeldRow::Any(index) => (held().collect(), index),
        };
        back(&found, index).or_else(|| back(&path, index))
    }

    /// Returns true if the next row belongs to the same response.
    fn is_in_response(&self, row: RowRef) -> bool {
        let next = RowRef::new(row.agent, row.seq.next());
        let last = self.oracle.head(row.agent);
        let response = |at| match load(self.oracle.row(at)) {
            Ok(Loaded::Message(part)) if part.message.role == Role::Assistant => {
                Some(part.response)
            }
            _ => None,
        };
        last.is_some_and(|last| next.seq <= last.seq)
            && response(row).is_some()
            && response(row) == response(next)
    }

    /// Cuts or summarises all turns before one of the newest.
    fn compact(&mut self, agent: AgentId, keep: usize, text: Option<&Text>) {
        let Some(head) = self.oracle.head(agent) else {
            return;
        };
        let path = self.oracle.path(head);
        let starts = self.oracle.turn_starts(&path);
        if let Some(start) = back(&starts, keep).filter(|start| *start > 0) {
            let text = text.map(Text::spell);
            let event = Event::summary(text.as_deref(), path[0], path[start - 1]);
            self.append(agent, vec![event]);
        }
    }

    fn fork(&mut self, parent: AgentId, forking: &Forking) -> AgentId {
        let mut order = self.log.order(&format!("agent-{}", self.agents.len()));
        order.at = forking.at.and_then(|place| self.find(parent, place));
        if forking.fresh {
            order.context = ForkContext::Fresh;
        }
        let newest = self.oracle.head(parent);
        let point = newest.map(|newest| order.at.unwrap_or(newest));
        if let Some(point) = point.filter(|_| !forking.fresh) {
            self.counts.forks += 1;
            self.counts.forks_in_response += usize::from(self.is_in_response(point));
        }
        order.call = forking
            .call
            .and_then(|call| back(&self.calls, call))
            .map(|(call, _)| call);
        order.prompt = forking
            .prompt
            .as_ref()
            .map(|text| Text::spell(text).as_str().into());
        order.set = forking.set.map(settings).unwrap_or_default();
        let child = self.log.fork(parent, order);
        let depth = self.agents.iter().find(|(agent, _)| *agent == parent);
        let depth = depth.map_or(0, |(_, depth)| depth + 1);
        self.counts.depth = self.counts.depth.max(depth);
        self.agents.push((child, depth));
        self.record(parent);
        self.record(child);
        child
    }

    fn put_snapshot(&mut self, agent: AgentId) {
        let state = &self.log.peek(agent).state;
        let upto = RowRef::new(agent, state.head());
        let folded = state.to_snapshot();
        if upto.seq > Seq(0) {
            let with = vec![Effect::PutSnapshot(Snapshot { upto, folded })];
            block_on(self.log.store.commit(Batch {
                with,
                ..Batch::default()
            }))
            .unwrap();
        }
    }
}

/// Returns the element at `index` from the end, modulo the length.
pub(super) fn back<T: Clone>(all: &[T], index: usize) -> Option<T> {
    let back = index.checked_rem(all.len())?;
    all.iter().nth_back(back).cloned()
}

fn last_block(row: &Row) -> Option<Block> {
    match load(row) {
        Ok(Loaded::Message(part)) => part.message.blocks.into_iter().next_back(),
        Ok(Loaded::Nothing) | Err(_) => None,
    }
}

fn settings(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap()
}
