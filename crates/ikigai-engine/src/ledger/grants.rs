//! Grants of this user on this machine, for one agent.

use ikigai_core::counts::counted;
use ikigai_core::grants::GrantScope;
use ikigai_core::settings::Approve;
use ikigai_core::{Event, Seq};
use ikigai_tools::permission::Grant;

use super::Ledger;
use crate::frontend::{FrontEnd, UiEvent};

/// Gives another agent of this process the same mode, until its lease ends. A child that explores
/// keeps to reading.
pub(crate) fn share_process_mode(own: &Ledger, other: &Ledger) {
    let is_reading = |ledger: &Ledger| ledger.settings().approve == Some(Approve::Read);
    if is_reading(other) && !is_reading(own) {
        return;
    }
    let hub = own.engine.hub();
    hub.set_process_mode(other.id(), hub.process_mode(own.id()));
}

impl Ledger {
    /// Returns the mode and rules in force here.
    pub(crate) fn grant(&self) -> Grant {
        self.engine.in_force(&self.agent.state)
    }

    /// Describes logged mode and rules that this user did not grant here, if any.
    pub(crate) fn foreign_grants(&self) -> Option<String> {
        let granted = self.engine.granted(&self.agent.state);
        let settings = self.settings();
        let logged = settings.approve.unwrap_or(Approve::Ask);
        let mode = (logged != granted.mode).then(|| format!("mode {}", logged.word()));
        let rules = settings.rules.as_ref().map_or(0, Vec::len) - granted.rules.len();
        let rules = (rules > 0).then(|| counted(rules, "rule"));
        let parts: Vec<_> = mode.into_iter().chain(rules).collect();
        (!parts.is_empty()).then(|| parts.join(" and "))
    }

    /// Offers, once per process, to accept the foreign grants of a root agent's log.
    pub(crate) fn offer_grants(&self, front: &mut FrontEnd<'_>) {
        let is_root = self.agent.state.fork().is_none();
        let Some(foreign) = self.foreign_grants().filter(|_| is_root) else {
            return;
        };
        // With a mode for this process, there is nothing to offer.
        let hub = self.engine.hub();
        if hub.process_mode(self.id()).is_none() && hub.offers_grants(self.id()) {
            front.emit(UiEvent::GrantOffer(format!(
                "Not in force here: {foreign}, granted by another user or machine. \
                 /approve grant to apply"
            )));
        }
    }

    /// Tags the granting rows, once their positions are known.
    pub(crate) fn tag_grants(&self, event: &mut Event, seq: Seq) {
        let agent = self.id();
        if let Event::Command { data, .. } = event
            && let (Some(set), Some(grant)) = (&data.set, &mut data.grant)
        {
            let scope = GrantScope::of_set(set);
            *grant = self.engine.grant_key().tag(agent, seq, &scope);
        }
    }
}
