//! Grants of this user on this machine: tags, and the part in force.

use ikigai_core::fork::ForkEvents;
use ikigai_core::grants::GrantScope;
use ikigai_core::settings::Approve;
use ikigai_core::{AgentId, AgentState, Event, Seq};
use ikigai_tools::permission::{Grant, GrantKey};

use crate::EngineReader;

impl EngineReader {
    /// Returns the mode in force: that of this process, else the logged one, limited to grants
    /// made here.
    pub fn mode_in_force(&self, state: &AgentState) -> Approve {
        self.in_force(state).mode
    }

    /// Returns the mode and rules in force. `--approve` replaces the mode for this process.
    pub(crate) fn in_force(&self, state: &AgentState) -> Grant {
        let granted = self.granted(state);
        Grant {
            mode: self
                .hub()
                .process_mode(state.agent())
                .unwrap_or(granted.mode),
            ..granted
        }
    }

    /// Returns the mode and rules of an agent that this user granted on this machine.
    pub(crate) fn granted(&self, state: &AgentState) -> Grant {
        Grant::in_force(state, || self.grant_key())
    }

    pub(crate) fn grant_key(&self) -> GrantKey {
        self.environment().grant_key()
    }
}

/// Gives a child its parent's settings that are in force, with tags.
pub(crate) fn grant_to_child(
    engine: &EngineReader,
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
    let Grant { mode, rules } = engine.granted(parent);
    settings.approve = settings.approve.map(|logged| logged.narrower(mode));
    if let Some(logged) = &mut settings.rules {
        logged.retain(|rule| rules.contains(rule));
    }
    let scope = GrantScope::of_settings(settings);
    let tag = || engine.grant_key().tag(child, Seq(1), &scope);
    data.grant = scope.is_wide().then(tag);
}

/// Returns true if an event needs a tag.
pub(crate) fn awaits_tag(event: &Event) -> bool {
    matches!(event, Event::Command { data, .. } if data.grant.is_some())
}

/// Returns an empty tag for a row without a position, if it needs one.
pub(crate) fn pending_tag(set: &serde_json::Map<String, serde_json::Value>) -> Option<String> {
    GrantScope::of_set(set).is_wide().then(String::new)
}
