//! Agents of other processes: forwards typed lines to their owner, and takes them over.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use ikigai_core::AgentId;
use ikigai_engine::{
    CommitError, Engine, EngineError, ProcessRecord, StoreError, Submission, UiEvent, UserInput,
    is_agent_here,
};

use super::Driver;
use crate::protocol::{ControlAnswer, ControlOutput, ControlRequest};

/// Answer of another process, or an error message.
pub type NeighbourAnswer<'a> = Pin<Box<dyn Future<Output = Result<ControlAnswer, String>> + 'a>>;

/// Other processes that own agents and answer requests.
pub trait Neighbours {
    /// Sends a request to one of them; times out soon.
    fn ask<'a>(&'a self, whom: &'a ProcessRecord, request: ControlRequest) -> NeighbourAnswer<'a>;
}

impl Driver {
    /// Sets the way to ask other processes.
    pub fn set_neighbours(&mut self, neighbours: Arc<dyn Neighbours>) {
        self.neighbours = Some(neighbours);
    }

    /// Hands typed text to the process that holds the agent, or queues it as mail.
    /// Reports which; returns `false` if it cannot be handed over.
    pub(super) async fn send_to_holder(
        &mut self,
        agent: AgentId,
        submission: &Submission,
        owner: &ProcessRecord,
    ) -> bool {
        let (id, input) = (submission.id, &submission.input);
        if Box::pin(self.runs_without_agent(agent, submission)).await {
            return true;
        }
        let where_to = format!("pid {} on {}", owner.pid, owner.host);
        let submit = ControlRequest::Submit {
            text: input.line().to_owned(),
            agent: Some(agent.to_string()),
        };
        let answer = ask(self, owner, submit).await;
        if matches!(
            answer,
            Ok(ControlAnswer::Said(
                ControlOutput::Ok | ControlOutput::Pending { .. }
            ))
        ) {
            self.app.mark_received(id);
            self.app
                .toast(format!("Open in another ikigai ({where_to}): sent there"));
            return true;
        }
        if !input.is_message() {
            return false;
        }
        match self.engine.store_pending(agent, submission).await {
            Ok(()) => {
                self.app.mark_received(id);
                self.app
                    .toast(format!("Open in another ikigai ({where_to}): queued there"));
            }
            Err(error) => self.not_submitted(agent, submission, &error),
        }
        true
    }

    /// Executes a line that needs no lease on its agent: a command of this screen, or a fork.
    ///
    /// Returns `false` for any other line.
    pub(super) async fn runs_without_agent(
        &mut self,
        agent: AgentId,
        submission: &Submission,
    ) -> bool {
        let (id, input) = (submission.id, &submission.input);
        let done = match self.engine.screen_line(agent, input).await {
            Ok(Some(next)) => {
                self.app.mark_received(id);
                self.app
                    .handle_event(agent, &UiEvent::Next(next), Instant::now());
                return true;
            }
            Ok(None) => Box::pin(fork_here(self, agent, input)).await,
            Err(error) => Err(error),
        };
        match done {
            Ok(true) => self.app.mark_received(id),
            Ok(false) => return false,
            Err(error) => self.not_submitted(agent, submission, &error),
        }
        true
    }

    /// Takes an agent over from its owner.
    pub(super) async fn take(&mut self, agent: AgentId) {
        match self.try_take(agent).await {
            Ok(said) => self.app.toast(said),
            Err(reason) => self.app.warn(&reason),
        }
    }

    async fn try_take(&mut self, agent: AgentId) -> Result<String, String> {
        let record = self.engine.reader().agent(agent).await;
        let record = record.map_err(|error| error.to_string())?;
        let record = record.ok_or("agent not found in the store")?;
        let owner = match self.engine.activate(&record).await {
            Ok(()) => return Ok("This agent is already open here".to_owned()),
            Err(EngineError::Commit(CommitError::Held { owner, .. })) => owner,
            Err(error) => return Err(error.to_string()),
        };
        let is_here = is_agent_here(&self.engine, &record).await;
        if !is_here.map_err(|error| error.to_string())? {
            Box::pin(check_workdir(self, agent)).await?;
        }
        let release = ControlRequest::Release {
            agent: Some(agent.to_string()),
        };
        let released = match ask(self, &owner, release).await? {
            ControlAnswer::Said(ControlOutput::Released { agents }) => agents,
            ControlAnswer::Error { error } => return Err(error),
            _ => return Err("unexpected answer of the other process".to_owned()),
        };
        let taken = self.engine.activate(&record).await;
        taken.map_err(|_| format!("pid {} did not release the agent", owner.pid))?;
        self.show(agent).await;
        self.app.set_holder(None);
        self.tree.want();
        let worked = released.iter().any(|one| one.worked);
        Ok(if worked {
            format!(
                "Took over from pid {} during a turn. /resume to continue",
                owner.pid
            )
        } else {
            format!("Took over from pid {}", owner.pid)
        })
    }

    /// Notes that another process takes an agent; from now on the screen follows it.
    pub(crate) fn give_away(&mut self, agent: AgentId, to: &str) {
        self.app.give_away(agent);
        if agent != self.app.current() {
            return;
        }
        self.app.set_holder(Some(format!("taken over by {to}")));
        self.follow(agent);
    }

    /// Shows rows and drafts of the process that owns the current agent.
    pub(super) fn follow(&mut self, agent: AgentId) {
        let head = self.app.pane().map(|pane| pane.agent.state.head());
        self.follower.start(&self.engine, agent, head);
    }

    /// Takes agents back from a process in the background, and continues their work.
    pub async fn take_back(&mut self) {
        let released = match self.neighbours.as_deref() {
            Some(neighbours) => release_background(&self.engine, neighbours).await,
            None => return,
        };
        let taken = match released {
            Ok(released) => {
                if let Some(text) = sandbox_change(released.sandbox, self.engine.uses_sandbox()) {
                    self.app.toast(text);
                }
                self.engine.take_over(&released.worked).await
            }
            Err(error) => Err(error.into()),
        };
        if let Err(error) = taken {
            self.app.warn(&error);
        }
    }
}

/// Sends a request to the process that holds an agent.
pub(super) async fn ask(
    driver: &Driver,
    owner: &ProcessRecord,
    request: ControlRequest,
) -> Result<ControlAnswer, String> {
    match &driver.neighbours {
        Some(neighbours) => neighbours.ask(owner, request).await,
        None => Err("the other process cannot be reached".to_owned()),
    }
}

/// Asks the process that holds an agent to interrupt it.
pub(super) async fn interrupt_elsewhere(
    driver: &mut Driver,
    agent: AgentId,
    owner: &ProcessRecord,
) {
    let interrupt = ControlRequest::Interrupt {
        agent: Some(agent.to_string()),
    };
    let place = format!("pid {} on {}", owner.pid, owner.host);
    match ask(driver, owner, interrupt).await {
        Ok(ControlAnswer::Error { error }) | Err(error) => {
            driver.app.warn(&format!("Not interrupted: {error}"));
        }
        Ok(_) => driver.app.toast(format!("Interrupted by {place}")),
    }
}

/// Refuses an agent whose working directory is missing on this machine.
#[expect(
    clippy::disallowed_methods,
    reason = "a blocking thread looks at the directory"
)]
async fn check_workdir(driver: &Driver, agent: AgentId) -> Result<(), String> {
    let pane = driver.app.pane().map(|pane| &pane.agent.state);
    let settings = pane.filter(|state| state.agent() == agent);
    let workdir = settings.and_then(|state| state.settings().workdir.clone());
    let Some(workdir) = workdir else {
        return Ok(());
    };
    let path = workdir.clone();
    let is_there = tokio::task::spawn_blocking(move || Path::new(&path).is_dir()).await;
    if is_there.unwrap_or(false) {
        return Ok(());
    }
    Err(format!(
        "{workdir} does not exist on this machine · /fork or /export the agent instead"
    ))
}

/// Forks an agent that another process holds, or an ended one; the children are this one's.
/// `false` if the line asks for no fork.
async fn fork_here(
    driver: &mut Driver,
    agent: AgentId,
    input: &UserInput,
) -> Result<bool, EngineError> {
    let Some(record) = driver.engine.reader().agent(agent).await? else {
        return Ok(false);
    };
    let Some((output, idle)) = driver.engine.fork_here(&record, input).await? else {
        return Ok(false);
    };
    driver.app.toast(output.trim_end().to_owned());
    driver.tree.want();
    if let Some(child) = idle {
        driver.show(child).await;
    }
    Ok(true)
}

/// Agents that background processes released.
#[derive(Default)]
struct ReleasedAgents {
    /// Those that were working.
    worked: Vec<AgentId>,
    /// True if commands ran in the sandbox there; none if there was no such process.
    sandbox: Option<bool>,
}

/// Returns the message about commands that run in the sandbox here, but not there, or vice versa.
fn sandbox_change(there: Option<bool>, here: bool) -> Option<&'static str> {
    match (there?, here) {
        (false, true) => Some(
            "Commands run in the sandbox from now on. In the background they ran without it (--no-sandbox)",
        ),
        (true, false) => {
            Some("Commands run without the sandbox from now on. In the background they ran in it")
        }
        _ => None,
    }
}

/// Makes background processes release their agents.
async fn release_background(
    engine: &Engine,
    neighbours: &dyn Neighbours,
) -> Result<ReleasedAgents, StoreError> {
    let mut contacted = Vec::new();
    let mut released = ReleasedAgents::default();
    let owners = engine.reader().owners().await?.into_iter();
    for owner in owners.filter(ProcessRecord::may_live) {
        if owner.pid == std::process::id() || contacted.contains(&owner.pid) {
            continue;
        }
        contacted.push(owner.pid);
        let said = neighbours.ask(&owner, ControlRequest::Version).await;
        let Ok(ControlAnswer::Said(ControlOutput::Version(version))) = said else {
            continue;
        };
        if version.mode != "background" {
            continue;
        }
        let release = ControlRequest::Release { agent: None };
        if let Ok(ControlAnswer::Said(ControlOutput::Released { agents })) =
            neighbours.ask(&owner, release).await
        {
            let worked = agents.into_iter().filter(|agent| agent.worked);
            let worked = worked.filter_map(|agent| agent.id.parse::<AgentId>().ok());
            released.worked.extend(worked);
            released.sandbox = version.sandbox.or(released.sandbox);
        }
    }
    Ok(released)
}
