//! Rules about sessions, and about the names of their running agents.

use ikigai_core::{AgentId, SessionId};

use super::rules::{Decider, bad};
use super::writes::Write;
use crate::batch::SessionMove;
use crate::error::CommitError;
use crate::records::SessionRecord;

impl<'b> Decider<'_, 'b> {
    pub(super) fn make_session(&mut self, session: &'b SessionRecord) -> Result<(), CommitError> {
        let id = session.id;
        let is_new = !self.facts.sessions.contains(&id);
        if !(is_new && self.changes.sessions.insert(id)) {
            return Err(bad(format!("there is a session {id} already")));
        }
        self.list.push(Write::InsertSession(session));
        Ok(())
    }

    pub(super) fn move_session(&mut self, place: &'b SessionMove) -> Result<(), CommitError> {
        self.check_session(place.session)?;
        self.list.push(Write::MoveSession(place));
        Ok(())
    }

    /// Refuses a batch that names an unknown session.
    pub(super) fn check_session(&self, session: SessionId) -> Result<(), CommitError> {
        let is_made = self.changes.sessions.contains(&session);
        if is_made || self.facts.sessions.contains(&session) {
            return Ok(());
        }
        Err(bad(format!("there is no session {session}")))
    }

    /// Reserves a name among the running agents of a session.
    pub(super) fn take_name(
        &mut self,
        session: SessionId,
        agent: AgentId,
        name: &str,
    ) -> Result<(), CommitError> {
        let key = (session, name.to_owned());
        let holder = match self.changes.names.get(&key) {
            Some(changed) => *changed,
            None => self.facts.names.get(&key).copied(),
        };
        if holder.is_some_and(|holder| holder != agent) {
            return Err(CommitError::NameTaken(key.1));
        }
        self.changes.names.insert(key, Some(agent));
        Ok(())
    }

    /// Frees the name of an agent, unless another agent runs under it.
    pub(super) fn free_name(&mut self, agent: AgentId) -> Result<(), CommitError> {
        let facts = self.agent(agent)?;
        let (session, name) = (facts.session, facts.name.clone());
        if self.take_name(session, agent, &name).is_ok() {
            self.changes.names.insert((session, name), None);
        }
        Ok(())
    }
}
