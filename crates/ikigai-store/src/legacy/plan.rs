//! Plan of an import: agents and positions of all rows, made before the first line is written.

use std::collections::{HashMap, HashSet};

use ikigai_core::names::{free_name, name_from};
use ikigai_core::settings::ModelChoice;
use ikigai_core::{AgentId, Kind, RowRef, Seq, StoredKind};
use sha2::{Digest, Sha256};

use super::{Home, ImportReport, OldAgent};

/// Returns the kind for an old name; `tool` is the original name of `tool_result`.
pub(super) fn kind_of(name: &str) -> Option<Kind> {
    let newer = [
        Kind::Usage,
        Kind::Interrupted,
        Kind::Error,
        Kind::Summary,
        Kind::Process,
        Kind::Files,
    ];
    let kind = StoredKind::of(name).read_as();
    kind.filter(|kind| !newer.contains(kind))
}

/// An agent of the new log.
#[derive(Debug)]
pub(super) struct PlannedAgent {
    pub(super) id: AgentId,
    pub(super) name: String,
    pub(super) parent: Option<usize>,
    pub(super) is_dead: bool,
    pub(super) created_at: i64,
    pub(super) model: ModelChoice,
    /// The last row that it inherits.
    pub(super) fork_point: Option<RowRef>,
    /// Row with its system prompt, while it has no own one.
    pub(super) system: Option<RowRef>,
    /// A child begins with its fork; the older log of this one does not.
    pub(super) lacks_fork: bool,
    fork_message_id: i64,
    /// Old numbers of its rows, in order.
    rows: Vec<i64>,
    /// Positions of its system prompts.
    systems: Vec<Seq>,
}

impl PlannedAgent {
    /// Returns the position of its newest row.
    pub(super) fn head(&self) -> Seq {
        self.place(self.rows.len()).before()
    }

    /// Returns the position of the row with this index.
    fn place(&self, index: usize) -> Seq {
        Seq((index + usize::from(self.lacks_fork)) as u64).next()
    }

    /// Returns the position of its newest row whose old number is at most `id`.
    fn newest_upto(&self, id: i64) -> Option<Seq> {
        let count = self.rows.partition_point(|row| *row <= id);
        let newest = count.checked_sub(1).map(|index| self.place(index));
        newest.or_else(|| self.lacks_fork.then_some(Seq(1)))
    }
}

/// New positions of everything.
#[derive(Debug)]
pub(super) struct ImportPlan {
    pub(super) agents: Vec<PlannedAgent>,
    by_uuid: HashMap<String, usize>,
    root: usize,
    /// Old numbers of all imported rows, in order, with their agents.
    owners: Vec<(i64, u32)>,
}

impl ImportPlan {
    /// Puts agents in order, parents before their children, and gives them names.
    pub(super) fn new(mut old: Vec<OldAgent>, home: &Home<'_>, report: &mut ImportReport) -> Self {
        if old.iter().all(|agent| agent.parent.is_some()) {
            // Rows without an owner go to a root.
            old.insert(0, OldAgent::default());
        }
        let mut taken = home.taken.clone();
        let mut plan = Self {
            agents: Vec::with_capacity(old.len()),
            by_uuid: HashMap::with_capacity(old.len()),
            root: 0,
            owners: Vec::new(),
        };
        let known: HashSet<String> = old.iter().map(|agent| agent.uuid.clone()).collect();
        let mut left = old;
        while !left.is_empty() {
            let is_next = |agent: &OldAgent| {
                let parent = agent.parent.as_deref();
                parent.is_none_or(|uuid| !known.contains(uuid) || plan.by_uuid.contains_key(uuid))
            };
            let (mut next, later): (Vec<_>, Vec<_>) = left.into_iter().partition(is_next);
            left = later;
            if next.is_empty() {
                // Parents that are their own descendants: one of them is made a root.
                let mut first = left.remove(0);
                let name = first.name.as_deref().unwrap_or(&first.uuid);
                report.remark(format!(
                    "agent `{name:.64}` is its own ancestor: imported as a root"
                ));
                first.parent = None;
                next.push(first);
            }
            for agent in next {
                plan.add(agent, home, &mut taken, report);
            }
        }
        let root = plan.agents.iter().position(|agent| agent.parent.is_none());
        plan.root = root.unwrap_or(0);
        plan
    }

    fn add(
        &mut self,
        old: OldAgent,
        home: &Home<'_>,
        taken: &mut HashSet<String>,
        report: &mut ImportReport,
    ) {
        let called = old.name.as_deref().filter(|name| !name.trim().is_empty());
        let wanted = match (called, &old.parent) {
            (Some(name), _) => name_from(name),
            (None, None) => name_from(home.directory.rsplit('/').next().unwrap_or_default()),
            (None, Some(_)) => "agent".to_owned(),
        };
        let name = free_name(&wanted, |name| taken.contains(name));
        if !old.is_dead {
            taken.insert(name.clone());
        }
        if called.is_some_and(|called| called != name) {
            let called = called.unwrap_or_default();
            report.remark(format!("agent `{called:.64}` was renamed to {name}"));
        }
        let parent = old.parent.as_ref().and_then(|uuid| {
            let parent = self.by_uuid.get(uuid).copied();
            if parent.is_none() {
                report.remark(format!(
                    "the parent of {name} is missing: imported as a root"
                ));
            }
            parent
        });
        let own = ModelChoice {
            provider: old.provider,
            model: old.model,
            level: old.level,
        };
        let known = own.model.as_ref().and_then(|_| (home.known)(&own));
        if let (Some(model), None) = (&own.model, &known) {
            let now = home.model.model.as_deref().unwrap_or_default();
            report.remark(format!(
                "{name} used {model:.64}, which is not available here: it continues with {now}"
            ));
        }
        let model = known.unwrap_or_else(|| home.model.clone());
        self.by_uuid.insert(old.uuid.clone(), self.agents.len());
        self.agents.push(PlannedAgent {
            id: id_of(&old.uuid),
            name,
            parent,
            is_dead: old.is_dead,
            created_at: old.created_at.unwrap_or(home.at.0),
            model,
            fork_point: None,
            system: None,
            lacks_fork: parent.is_some(),
            fork_message_id: old.fork_message_id.unwrap_or(0),
            rows: Vec::new(),
            systems: Vec::new(),
        });
    }

    /// Assigns a position to a row, if it can be imported. Call it in the order of row numbers.
    pub(super) fn put(
        &mut self,
        id: i64,
        agent: Option<&str>,
        kind: &str,
        is_childs_fork: bool,
        report: &mut ImportReport,
    ) {
        let Some(kind) = kind_of(kind) else {
            report.remark(format!(
                "event {id} has the unknown kind `{kind:.64}`: skipped"
            ));
            return;
        };
        let owner = agent.and_then(|uuid| self.by_uuid.get(uuid)).copied();
        if let (Some(uuid), None) = (agent, owner) {
            report.remark(format!(
                "event {id} belongs to the missing agent `{uuid:.64}`: given to the root"
            ));
        }
        let owner = owner.unwrap_or(self.root);
        let planned = &mut self.agents[owner];
        if planned.rows.is_empty() && is_childs_fork {
            planned.lacks_fork = false;
        }
        if kind == Kind::System {
            let place = planned.place(planned.rows.len());
            planned.systems.push(place);
        }
        planned.rows.push(id);
        self.owners
            .push((id, u32::try_from(owner).unwrap_or(u32::MAX)));
    }

    /// Finds the fork points, after all rows have positions.
    pub(super) fn finish(&mut self) {
        for index in 0..self.agents.len() {
            let planned = &self.agents[index];
            // Parents come first, so their inherited rows are known.
            let Some(parent) = planned.parent.map(|parent| &self.agents[parent]) else {
                continue;
            };
            let upto = planned.fork_message_id;
            let point = Some(upto).filter(|upto| *upto > 0);
            let point = point.and_then(|upto| parent.newest_upto(upto));
            let system = point.and_then(|point| {
                let own = parent.systems.iter().rfind(|place| **place <= point);
                own.map(|place| RowRef::new(parent.id, *place))
                    .or(parent.system)
            });
            let point = point.map(|point| RowRef::new(parent.id, point));
            let planned = &mut self.agents[index];
            (planned.fork_point, planned.system) = (point, system);
        }
    }

    /// Returns the new position of a row, with the index of its agent.
    pub(super) fn place_of(&self, id: i64) -> Option<(usize, RowRef)> {
        let found = self.owners.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        let owner = self.owners[found].1 as usize;
        let planned = self.agents.get(owner)?;
        let index = planned.rows.binary_search(&id).ok()?;
        Some((owner, RowRef::new(planned.id, planned.place(index))))
    }

    /// Returns the agent with this old id.
    pub(super) fn agent(&self, uuid: &str) -> Option<&PlannedAgent> {
        Some(&self.agents[*self.by_uuid.get(uuid)?])
    }

    /// Returns true if an agent may rewind to a row: an older own one, or one of an ancestor.
    pub(super) fn holds(&self, owner: usize, at: RowRef, target: RowRef) -> bool {
        let mut agent = Some(owner);
        if target.agent == at.agent {
            return target.seq < at.seq;
        }
        // Parents have smaller indexes, so this ends.
        while let Some(index) = agent {
            let planned = &self.agents[index];
            if planned
                .fork_point
                .is_some_and(|point| point.agent == target.agent && target.seq <= point.seq)
            {
                return true;
            }
            agent = planned.parent;
        }
        false
    }
}

/// Returns the id of an agent: its old one if that is valid, else one derived from it.
pub(super) fn id_of(uuid: &str) -> AgentId {
    if let Ok(id) = uuid.parse() {
        return id;
    }
    let mut number = 0_u64;
    loop {
        // Nearly every draw gives an id.
        let bytes = digest(&["agent", uuid, &number.to_string()]);
        if let Some(id) = AgentId::from_random(bytes) {
            return id;
        }
        number += 1;
    }
}

/// Returns 16 bytes that differ for different words.
pub(super) fn digest(words: &[&str]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for word in words {
        hash.update((word.len() as u64).to_le_bytes());
        hash.update(word);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    bytes
}
