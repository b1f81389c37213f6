//! Grants of this user on this machine: tagging rows, and the part of a log that is in force.

use ikigai_core::fork::ForkEvents;
use ikigai_core::grants::GrantScope;
use ikigai_core::settings::Approve;
use ikigai_core::{AgentId, AgentState, Event, Seq};
use ikigai_tools::permission::{Grant, GrantKey};

use crate::frontend::{Desk, Update};
use crate::{Engine, Worker};

impl Engine {
    /// The mode in force for an agent: the logged one, as far as it was granted here.
    pub fn mode_in_force(&self, state: &AgentState) -> Approve {
        self.in_force(state).mode
    }

    /// Mode and rules of an agent that this user granted on this machine.
    pub(crate) fn in_force(&self, state: &AgentState) -> Grant {
        Grant::in_force(state, || self.grant_key())
    }

    pub(crate) fn grant_key(&self) -> GrantKey {
        self.environment.grant_key()
    }

    /// Leaves a child the part of its parent's settings that is in force, and tags it.
    pub(crate) fn grant_to_child(
        &self,
        parent: &AgentState,
        child: AgentId,
        rows: &mut ForkEvents,
    ) {
        let Some(Event::Fork { data, .. }) = rows.child.first_mut() else {
            return;
        };
        let Some(settings) = data.settings.as_mut() else {
            return;
        };
        let Grant { mode, rules } = self.in_force(parent);
        settings.approve = settings.approve.map(|logged| logged.narrower(mode));
        if let Some(logged) = &mut settings.rules {
            logged.retain(|rule| rules.contains(rule));
        }
        let scope = GrantScope::of_settings(settings);
        let tag = || self.grant_key().tag(child, Seq(1), &scope);
        data.grant = scope.is_wide().then(tag);
    }
}

impl Worker {
    /// Mode and rules in force here; `run --approve` replaces the mode for this process.
    pub(crate) fn grant(&self) -> Grant {
        let granted = self.engine.in_force(&self.agent.state);
        Grant {
            mode: self.approve.unwrap_or(granted.mode),
            ..granted
        }
    }

    /// Names mode and rules that the log has and this user did not grant here; none if all are.
    pub(crate) fn foreign_grants(&self) -> Option<String> {
        let granted = self.engine.in_force(&self.agent.state);
        let settings = self.settings();
        let logged = settings.approve.unwrap_or(Approve::Ask);
        let mode = (logged != granted.mode).then(|| format!("mode {}", logged.word()));
        let rules = settings.rules.as_ref().map_or(0, Vec::len) - granted.rules.len();
        let rules = match rules {
            0 => None,
            1 => Some("1 rule".to_owned()),
            rules => Some(format!("{rules} rules")),
        };
        let parts: Vec<_> = mode.into_iter().chain(rules).collect();
        (!parts.is_empty()).then(|| parts.join(" and "))
    }

    /// Offers once in this process to grant what the log of a root agent has from elsewhere.
    pub fn offer_grants(&self, desk: &mut Desk<'_>) {
        let is_root = self.agent.state.fork().is_none();
        let Some(foreign) = self.foreign_grants().filter(|_| is_root) else {
            return;
        };
        // A mode for this process leaves nothing open.
        if self.approve.is_none() && self.engine.hub.offers_grants(self.agent.state.agent()) {
            desk.tell(Update::GrantOffer(format!(
                "Not in force here: {foreign}, granted by another user or machine. \
                 /approve grant to apply"
            )));
        }
    }

    /// Tags the rows that grant something, now that their positions are known.
    pub(crate) fn tag_grants(&self, event: &mut Event, seq: Seq) {
        let agent = self.agent.state.agent();
        if let Event::Command { data, .. } = event
            && let (Some(set), Some(grant)) = (&data.set, &mut data.grant)
        {
            let scope = GrantScope::of_set(set);
            *grant = self.engine.grant_key().tag(agent, seq, &scope);
        }
    }
}

/// Says whether an event waits for a tag.
pub(crate) fn awaits_tag(event: &Event) -> bool {
    matches!(event, Event::Command { data, .. } if data.grant.is_some())
}

/// The tag of a row whose position is not known yet; none if the values need no tag.
pub(crate) fn pending_tag(set: &serde_json::Map<String, serde_json::Value>) -> Option<String> {
    GrantScope::of_set(set).is_wide().then(String::new)
}
