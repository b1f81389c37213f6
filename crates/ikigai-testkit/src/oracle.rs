//! Oracle of paths: every row has its predecessor, and a path is walked row by row.
//!
//! It shares no code with the paths of the program.

mod path_reading;

use std::collections::{BTreeMap, HashMap, HashSet};

use ikigai_core::load::{Loaded, load};
use ikigai_core::{AgentId, Kind, Message, Row, RowRef, Seq, Settings};
use serde_json::{Map, Value};

/// All rows of some agents, each with its predecessor.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    rows: HashMap<RowRef, Row>,
    predecessors: HashMap<RowRef, Option<RowRef>>,
    heads: BTreeMap<AgentId, Seq>,
}

impl Oracle {
    /// Adds a row. Rows that it can refer to must be added before.
    pub fn add(&mut self, row: Row) {
        let at = row.at;
        let predecessor = self.find_predecessor(&row);
        self.predecessors.insert(at, predecessor);
        self.heads.insert(at.agent, at.seq);
        self.rows.insert(at, row);
    }

    fn find_predecessor(&self, row: &Row) -> Option<RowRef> {
        let data = object(row);
        let previous = RowRef::new(row.at.agent, row.at.seq.before());
        let previous = Some(previous).filter(|previous| previous.seq > Seq(0));
        match row.kind.read_as() {
            Some(Kind::Clear) => None,
            Some(Kind::Rewind) => match (previous, reference(data.get("target"))) {
                (Some(last), Some(target)) if self.held(last).contains(&target) => Some(target),
                _ => previous,
            },
            _ if previous.is_none() => self.fork_point(&data, row.kind.read_as()),
            _ => previous,
        }
    }

    fn fork_point(&self, first: &Map<String, Value>, kind: Option<Kind>) -> Option<RowRef> {
        let is = |key, word: &str| first.get(key).and_then(Value::as_str) == Some(word);
        if kind != Some(Kind::Fork) || !is("role", "child") || is("context", "fresh") {
            return None;
        }
        reference(first.get("fork_point")).filter(|point| self.rows.contains_key(point))
    }

    /// Returns a row.
    pub fn row(&self, at: RowRef) -> &Row {
        &self.rows[&at]
    }

    /// Returns the newest row of an agent, if it has any.
    pub fn head(&self, agent: AgentId) -> Option<RowRef> {
        let seq = *self.heads.get(&agent)?;
        Some(RowRef::new(agent, seq))
    }

    /// Returns all agents that have rows.
    pub fn agents(&self) -> impl Iterator<Item = AgentId> + '_ {
        self.heads.keys().copied()
    }

    /// Returns the rows of an agent up to one of them, oldest first.
    pub fn own(&self, upto: RowRef) -> impl DoubleEndedIterator<Item = &Row> + '_ {
        let at = move |seq| RowRef::new(upto.agent, Seq(seq));
        (1..=upto.seq.0).map(move |seq| &self.rows[&at(seq)])
    }

    /// Returns the predecessor of a row.
    pub fn predecessor(&self, of: RowRef) -> Option<RowRef> {
        self.predecessors[&of]
    }

    /// Returns the path of a row, oldest first.
    pub fn path(&self, of: RowRef) -> Vec<RowRef> {
        let mut path = vec![of];
        while let Some(before) = path.last().and_then(|row| self.predecessors[row]) {
            path.push(before);
        }
        path.reverse();
        path
    }

    /// Returns the rows that an agent holds if `upto` is its newest row.
    ///
    /// These are its own rows and the path of its fork point.
    pub fn held(&self, upto: RowRef) -> HashSet<RowRef> {
        let own = (1..=upto.seq.0).map(|seq| RowRef::new(upto.agent, Seq(seq)));
        own.chain(self.inherited(upto.agent)).collect()
    }

    /// Returns the path of an agent's fork point, oldest first.
    pub fn inherited(&self, agent: AgentId) -> Vec<RowRef> {
        let first = RowRef::new(agent, Seq(1));
        let fork_point = self.predecessors.get(&first).copied().flatten();
        fork_point.map_or_else(Vec::new, |point| self.path(point))
    }

    /// Returns the marks on the path of a row, oldest first.
    pub fn marks(&self, of: RowRef) -> Vec<(RowRef, Option<String>)> {
        let path = self.path(of).into_iter();
        let marks = path.filter(|at| self.row(*at).kind.read_as() == Some(Kind::Mark));
        let label = |at| {
            let label = object(self.row(at)).get("label").cloned();
            label.as_ref().and_then(Value::as_str).map(str::to_owned)
        };
        marks.map(|at| (at, label(at))).collect()
    }

    /// Returns the settings of an agent if this is its newest row.
    pub fn settings(&self, upto: RowRef) -> Settings {
        let mut settings = Map::new();
        for row in self.own(upto) {
            let mut data = object(row);
            let taken = match row.kind.read_as() {
                Some(Kind::Fork) if row.at.seq == Seq(1) && is_child(&data) => {
                    data.remove("settings")
                }
                Some(Kind::Command) => data.remove("set"),
                _ => None,
            };
            if let Some(Value::Object(taken)) = taken {
                taken
                    .into_iter()
                    .for_each(|(key, value)| take_over(&mut settings, key, value));
            }
        }
        serde_json::from_value::<Settings>(Value::Object(settings)).unwrap()
    }

    /// Returns the system prompt of an agent if this is its newest row.
    pub fn system(&self, upto: RowRef) -> Option<String> {
        let is_prompt =
            |row: &&Row| row.kind.read_as() == Some(Kind::System) && row.content.is_some();
        if let Some(row) = self.own(upto).rfind(is_prompt) {
            return row.content.clone();
        }
        let first = self.own(upto).next()?;
        let data = object(first);
        if first.kind.read_as() != Some(Kind::Fork) || !is_child(&data) {
            return None;
        }
        let named = reference(data.get("system"))?;
        Some(self.rows.get(&named)?.content.clone().unwrap_or_default())
    }

    /// Returns the loaded messages of a path, oldest first.
    pub fn messages(&self, of: RowRef) -> Vec<Message> {
        let loaded = self.path(of).into_iter().map(|at| load(self.row(at)));
        let messages = loaded.filter_map(|loaded| match loaded {
            Ok(Loaded::Message(part)) => Some(part.message),
            Ok(Loaded::Nothing) | Err(_) => None,
        });
        messages.collect()
    }

    /// Returns true for a row that does not load, or an invalid rewind.
    pub fn is_bad(&self, at: RowRef) -> bool {
        let row = self.row(at);
        let is_rewind = row.kind.read_as() == Some(Kind::Rewind);
        load(row).is_err() || (is_rewind && !self.is_valid_rewind(at))
    }

    /// Returns true if a row is a rewind with a valid target.
    pub fn is_valid_rewind(&self, at: RowRef) -> bool {
        let row = self.row(at);
        let target = reference(object(row).get("target"));
        let follows = target.is_some() && self.predecessors[&at] == target;
        row.kind.read_as() == Some(Kind::Rewind) && follows
    }
}

/// Returns the data of a row; empty if it is no object.
pub(crate) fn object(row: &Row) -> Map<String, Value> {
    let data = row.data.as_deref().unwrap_or_default();
    serde_json::from_str(data).unwrap_or_default()
}

/// Reads `{"agent","seq"}`; 0 counts as absent.
pub(crate) fn reference(value: Option<&Value>) -> Option<RowRef> {
    let value = value?.as_object()?;
    let agent = value.get("agent")?.as_str()?.parse().ok()?;
    let seq = value.get("seq")?.as_u64().filter(|seq| *seq > 0)?;
    Some(RowRef::new(agent, Seq(seq)))
}

fn is_child(data: &Map<String, Value>) -> bool {
    data.get("role") == Some(&Value::from("child"))
}

/// Merges one setting: null resets it, and an invalid value is ignored.
fn take_over(settings: &mut Map<String, Value>, key: String, value: Value) {
    if value.is_null() {
        settings.remove(&key);
        return;
    }
    let alone = Map::from_iter([(key.clone(), value)]);
    let read = serde_json::from_value::<Settings>(Value::Object(alone)).unwrap();
    if let Some(value) = read.as_set().remove(&key) {
        settings.insert(key, value);
    }
}
