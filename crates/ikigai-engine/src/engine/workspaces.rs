//! Workspaces: directories of machines, the names in them, and the authors of rows.

use ikigai_core::{AgentId, Event, Micros, NewRow, PersonName, SessionId};
use ikigai_store::{AgentRecord, MOST_NAMESAKES, SessionRecord};

use super::EngineReader;
use crate::EngineError;

/// Minimum length of an id prefix.
const SHORTEST_PREFIX: usize = 4;

impl EngineReader {
    /// Returns the person for whom this process works.
    pub fn person(&self) -> Option<PersonName> {
        self.environment.person()
    }

    /// Makes the row of an event; if a person caused it, this process's person is its author.
    pub(crate) fn row_of(&self, event: Event, agent: AgentId, at: Micros) -> NewRow {
        let author = self.person().filter(|_| event.is_of_person());
        event.into_row(agent, at).by(author)
    }

    /// Returns true if a session is on this machine.
    pub fn is_here(&self, session: &SessionRecord) -> bool {
        let host = self.environment.host();
        session.is_on(self.environment.machine(), host.as_deref())
    }

    /// Returns the sessions of a directory of this machine, oldest first.
    pub async fn sessions_of(&self, directory: &str) -> Result<Vec<SessionRecord>, EngineError> {
        let mut sessions = self.store.sessions_in(directory).await?;
        sessions.retain(|session| self.is_here(session));
        Ok(sessions)
    }

    /// Finds an agent by its name, `WORKSPACE/NAME`, its id, or a unique prefix of its id.
    ///
    /// Names are looked up in this process's workspace first.
    pub async fn find(&self, name: &str) -> Result<AgentRecord, EngineError> {
        let directory = self.directory.as_deref();
        let near = directory.map_or(Near::Nothing, Near::Directory);
        AgentFinder { reader: self, near }.find(name).await
    }

    /// Like [`Self::find`]; names are looked up in an agent's workspace first.
    pub async fn find_near(&self, agent: AgentId, name: &str) -> Result<AgentRecord, EngineError> {
        let near = Near::Agent(agent);
        AgentFinder { reader: self, near }.find(name).await
    }
}

/// Returns true if an agent belongs to a session of this machine.
pub async fn is_agent_here(
    engine: &EngineReader,
    agent: &AgentRecord,
) -> Result<bool, EngineError> {
    let sessions = engine.sessions().await?;
    let session = sessions.iter().find(|it| it.id == agent.session);
    Ok(session.is_some_and(|session| engine.is_here(session)))
}

/// Place whose names come first.
#[derive(Clone, Copy)]
enum Near<'a> {
    /// No place.
    Nothing,
    /// Workspace of an agent.
    Agent(AgentId),
    /// Directory of this machine.
    Directory(&'a str),
}

/// Lookup of agents by typed names.
struct AgentFinder<'a> {
    reader: &'a EngineReader,
    near: Near<'a>,
}

impl AgentFinder<'_> {
    async fn find(&self, name: &str) -> Result<AgentRecord, EngineError> {
        let found = match name.split_once('/') {
            Some((workspace, name)) => self.find_in(workspace, name).await?,
            None => self.namesakes(name).await?,
        };
        match <[AgentRecord; 1]>::try_from(found) {
            Ok([agent]) => return Ok(agent),
            Err(found) if found.len() > 1 => return Err(ambiguous(name, &found)),
            Err(_) => {}
        }
        if let Ok(id) = name.parse()
            && let Some(agent) = self.reader.store.agent(id).await?
        {
            return Ok(agent);
        }
        let mut agents = self.reader.store.agents(None).await?;
        let long_enough = name.chars().count() >= SHORTEST_PREFIX;
        agents.retain(|agent| {
            agent.name == name || long_enough && agent.id.to_string().starts_with(name)
        });
        match <[AgentRecord; 1]>::try_from(agents) {
            Ok([agent]) => Ok(agent),
            Err(found) if found.is_empty() => Err(EngineError::NoSuchAgent(name.to_owned())),
            Err(found) => Err(ambiguous(name, &found)),
        }
    }

    /// Returns the running agents of a name: those nearby, else all.
    async fn namesakes(&self, name: &str) -> Result<Vec<AgentRecord>, EngineError> {
        let found = self.reader.store.find_by_name(None, name).await?;
        if found.len() < 2 {
            return Ok(found);
        }
        let mut nearby = Vec::new();
        for session in self.sessions_near().await? {
            if found.len() < MOST_NAMESAKES {
                nearby.extend(found.iter().filter(|it| it.session == session).cloned());
            } else {
                // There may be more than were read.
                nearby.extend(self.reader.store.find_by_name(Some(session), name).await?);
            }
        }
        Ok(if nearby.is_empty() { found } else { nearby })
    }

    async fn sessions_near(&self) -> Result<Vec<SessionId>, EngineError> {
        Ok(match self.near {
            Near::Nothing => Vec::new(),
            Near::Agent(agent) => {
                let agent = self.reader.store.agent(agent).await?;
                agent.into_iter().map(|agent| agent.session).collect()
            }
            Near::Directory(directory) => {
                let sessions = self.reader.sessions_of(directory).await?.into_iter();
                sessions.map(|session| session.id).collect()
            }
        })
    }

    /// Returns the running agents of a name in the workspaces of a name.
    async fn find_in(&self, workspace: &str, name: &str) -> Result<Vec<AgentRecord>, EngineError> {
        let mut found = Vec::new();
        for session in self.reader.store.sessions().await? {
            if session.name == workspace || session.id.to_string() == workspace {
                found.extend(
                    self.reader
                        .store
                        .find_by_name(Some(session.id), name)
                        .await?,
                );
            }
        }
        Ok(found)
    }
}

fn ambiguous(name: &str, found: &[AgentRecord]) -> EngineError {
    EngineError::Ambiguous {
        name: name.to_owned(),
        matches: found.iter().map(|agent| agent.id.to_string()).collect(),
    }
}
