//! Root agents: agents without a parent, in the session of a directory.

use std::path::PathBuf;

use ikigai_core::data::SystemOrigin;
use ikigai_core::names::{free_name, name_from};
use ikigai_core::settings::Pin;
use ikigai_core::{Epoch, Event, Seq, Settings};
use ikigai_store::{
    AgentEffect, Batch, CommitError, Effect, HeadClaim, LeaseClaim, NewAgent, SessionRecord, blobs,
};
use ikigai_tools::Place;

use super::{Ledger, Starter};
use crate::agent_names::find_free_name;
use crate::documents::Document;
use crate::environment::{draw_agent, draw_session};
use crate::instructions::instruction_files;
use crate::{Engine, EngineError};

/// System prompt of a new agent: the same for all, so that they share a provider's cache.
const SYSTEM_PROMPT: &str = include_str!("system_prompt.md");

impl Ledger {
    /// Creates a root agent in a directory's session.
    pub(crate) async fn create_root(
        engine: &Engine,
        directory: &str,
        workdir: &str,
        starter: Starter,
    ) -> Result<Self, EngineError> {
        let (session, is_new) = session_of(engine, directory).await?;
        let id = Some(session.id).filter(|_| !is_new);
        let wanted = name_from(directory.rsplit('/').next().unwrap_or_default());
        let pins = Self::first_pins(engine, workdir).await?;
        let mut taken = Vec::new();
        loop {
            let name = find_free_name(engine, id, &wanted, &taken).await?;
            let start = Settings {
                name: Some(name.clone()),
                workdir: Some(workdir.to_owned()),
                model: Some(engine.models().first_choice()?),
                pins: pins.clone(),
                ..Settings::default()
            };
            let batch = Self::root_batch(engine, &session, is_new, &start);
            match engine.commit_without_lease(batch.clone()).await {
                Ok(_) => {
                    let id = batch.heads[0].agent;
                    return Self::begin(engine.clone(), id, Epoch(1), starter).await;
                }
                // Another process took the name, which may not be listed yet.
                Err(CommitError::NameTaken(_)) => taken.push(name),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns the pins of a new agent in a directory, with their texts stored.
    async fn first_pins(engine: &Engine, workdir: &str) -> Result<Option<Vec<Pin>>, EngineError> {
        let (start, home) = (PathBuf::from(workdir), engine.environment().home());
        let found =
            tokio::task::spawn_blocking(move || instruction_files(&start, home.as_deref())).await;
        let place = Place {
            workdir: PathBuf::from(workdir),
            hidden: engine.safety().hidden.clone(),
        };
        let mut pins = Vec::new();
        for path in found.unwrap_or_default() {
            let Some(name) = path.to_str() else { continue };
            let hash = match Document::read_pinned(engine, &place, name).await {
                Ok(document) => {
                    let hash = blobs::put_blob(engine.log(), &document.bytes).await?;
                    Some(hash.to_string())
                }
                Err(_) => None,
            };
            pins.push(Pin {
                path: Some(name.to_owned()),
                hash,
                off: None,
            });
        }
        Ok(Some(pins).filter(|pins| !pins.is_empty()))
    }

    fn root_batch(
        engine: &Engine,
        session: &SessionRecord,
        is_new: bool,
        settings: &Settings,
    ) -> Batch {
        let name = settings.name.as_deref().unwrap_or_default();
        let now = engine.environment().now();
        let id = draw_agent(engine.environment());
        let make = is_new.then(|| Effect::MakeSession(session.clone()));
        let agent = NewAgent {
            id,
            name: name.to_owned(),
            session: session.id,
            parent: None,
            fork_point: None,
            created_at: now,
        };
        let events = [
            Event::system(SYSTEM_PROMPT.trim_end(), SystemOrigin::Start),
            Event::set("start", settings.as_set()),
        ];
        let lease = LeaseClaim {
            epoch: Epoch(1),
            expected: Seq(0),
        };
        Batch {
            heads: vec![HeadClaim {
                agent: id,
                lease: Some(lease),
            }],
            rows: events
                .into_iter()
                .map(|event| engine.row_of(event, id, now))
                .collect(),
            with: make
                .into_iter()
                .chain([Effect::Agent(AgentEffect::Create { agent, owned: true })])
                .collect(),
        }
    }
}

/// Finds a directory's session on this machine, or makes the record of its first one.
///
/// A new session has a name that no other session has, and the flag is true.
async fn session_of(
    engine: &Engine,
    directory: &str,
) -> Result<(SessionRecord, bool), EngineError> {
    if let Some(session) = engine.sessions_of(directory).await?.pop() {
        return Ok((session, false));
    }
    let environment = engine.environment();
    let wanted = name_from(directory.rsplit('/').next().unwrap_or_default());
    let sessions = engine.sessions().await?;
    let is_taken = |name: &str| sessions.iter().any(|session| session.name == name);
    let session = SessionRecord {
        id: draw_session(environment),
        name: free_name(&wanted, is_taken),
        directory: directory.to_owned(),
        created_at: environment.now(),
        machine: environment.machine(),
        host: environment.host(),
    };
    Ok((session, true))
}
