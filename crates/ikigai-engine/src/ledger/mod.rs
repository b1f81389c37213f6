//! Ledger of one agent: lease, state, and the only calls of `commit`.

mod adoption;
mod commit;
mod grants;
mod leases;
mod open_calls;
mod requests;
mod reservations;
mod retry;
mod roots;
mod tally;
mod turn_starts;

use std::path::{Path, PathBuf};

use ikigai_core::data::CommandData;
use ikigai_core::settings::{Approve, ModelChoice};
use ikigai_core::{AgentId, Epoch, Event, Row, RowRef, Settings};
use ikigai_store::history::CONTROL_ROWS_PER_SNAPSHOT;
use ikigai_store::{Agent, AgentEffect, AgentRecord, CommitError, Effect, MailId, history};

pub use adoption::adopt_session;
pub(crate) use commit::{CommitPlan, ExtraWrites};
pub(crate) use grants::share_process_mode;
pub use requests::HolderRequests;
pub(crate) use reservations::{Estimate, Reservation};
pub(crate) use retry::{Patience, put_blobs, read_held, report_silence};
pub(crate) use tally::Tally;
pub(crate) use turn_starts::is_message;

use self::reservations::SharedReservations;
use crate::environment::CrashPoint;
use crate::frontend::AgentJob;
use crate::{Engine, EngineError};

/// Starts an agent with a job, or idle.
pub(crate) type Starter = fn(Ledger, Option<AgentJob>);

/// Lease, state and commits of one agent of this process.
pub(crate) struct Ledger {
    pub(crate) engine: Engine,
    pub(crate) agent: Agent,
    pub(crate) epoch: Epoch,
    pub(crate) tally: Tally,
    /// Rows that settled a former process's turn and that no front end has yet.
    pub(crate) settled: Vec<Row>,
    /// Mail that was queued before this process took the lease.
    pub(crate) old_mail: Vec<MailId>,
    /// Starts another agent of this process, without a front end.
    pub(crate) starter: Starter,
    /// Control rows since the newest snapshot.
    control_rows: usize,
    /// Estimates of running requests.
    reservations: SharedReservations,
}

impl Ledger {
    /// Reads the agent whose lease was taken at `epoch`.
    pub(crate) async fn begin(
        engine: Engine,
        agent: AgentId,
        epoch: Epoch,
        starter: Starter,
    ) -> Result<Self, EngineError> {
        let agent = Agent::restore(engine.reader(), agent).await?;
        let newest = RowRef::new(agent.state.agent(), agent.state.head());
        // Former holders may have stored a few each, so they are counted too.
        let most = CONTROL_ROWS_PER_SNAPSHOT;
        let (tally, control_rows) = tokio::join!(
            Tally::read(engine.reader(), newest),
            history::control_rows_since_snapshot(engine.reader(), newest, most),
        );
        let (tally, control_rows) = (tally?, control_rows?);
        // A mode of this process ends with the lease: another process may have set one since.
        engine.hub().set_process_mode(agent.state.agent(), None);
        Ok(Self {
            engine,
            agent,
            epoch,
            tally,
            settled: Vec::new(),
            old_mail: Vec::new(),
            starter,
            control_rows,
            reservations: SharedReservations::default(),
        })
    }

    pub(crate) fn id(&self) -> AgentId {
        self.agent.state.agent()
    }

    /// Settings in force.
    pub(crate) fn settings(&self) -> &Settings {
        self.agent.state.settings()
    }

    /// Returns the working directory.
    pub(crate) fn workdir(&self) -> PathBuf {
        let workdir = self.settings().workdir.as_deref();
        Path::new(workdir.unwrap_or("/")).to_owned()
    }

    /// Reports a crash point to the environment.
    pub(crate) fn crash_point(&self, point: CrashPoint) {
        self.engine.environment().crash_point(point);
    }

    /// Corrects the columns of the agent's record where they differ from its log.
    pub(crate) async fn mend_columns(&mut self, found: &AgentRecord) -> Result<(), EngineError> {
        let state = &self.agent.state;
        let mut with = Vec::new();
        if let Some(name) = state.settings().name.clone()
            && name != found.name
        {
            with.push(Effect::Agent(AgentEffect::SetName {
                agent: found.id,
                name,
            }));
        }
        let fork = state.fork().cloned().unwrap_or_default();
        let (parent, fork_point) = (fork.parent_uuid, state.inherits_from());
        if (parent, fork_point) != (found.parent, found.fork_point) {
            with.push(Effect::Agent(AgentEffect::SetOrigin {
                agent: found.id,
                parent,
                fork_point,
            }));
        }
        for effect in with {
            match self.commit(CommitPlan::effects(vec![effect])).await {
                // Another agent has the name by now, or the log names a missing agent. The columns
                // are only a cache, so the agent continues.
                Err(EngineError::Commit(
                    CommitError::NameTaken(_) | CommitError::BadBatch(_) | CommitError::NoAgent(_),
                )) => {}
                other => drop(other?),
            }
        }
        Ok(())
    }

    /// Sets the approval mode of this process; the log has a row about it.
    pub(crate) async fn approve_for_now(&mut self, mode: Approve) -> Result<Vec<Row>, EngineError> {
        let data = CommandData {
            command: Some("approve".to_owned()),
            args: Some(format!("{} for now", mode.word())),
            ..CommandData::default()
        };
        let row = Event::Command { output: None, data };
        let rows = self.commit(CommitPlan::events(vec![row])).await?;
        self.engine.hub().set_process_mode(self.id(), Some(mode));
        Ok(rows)
    }

    /// Chooses the model from the next request on.
    pub(crate) async fn choose_model(
        &mut self,
        choice: ModelChoice,
    ) -> Result<Vec<Row>, EngineError> {
        if self.settings().model.as_ref() == Some(&choice) {
            return Ok(Vec::new());
        }
        let settings = Settings {
            model: Some(choice),
            ..Settings::default()
        };
        let row = Event::set("model", settings.as_set());
        self.commit(CommitPlan::events(vec![row])).await
    }
}
