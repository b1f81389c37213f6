//! Commands on turns: `/retry`, `/resume`.

use std::fmt::Write as _;

use ikigai_core::Event;
use ikigai_core::data::Via;
use ikigai_store::{Status, history};

use super::reply::Then;
use super::rows::{name_of, quoted};
use super::{Command, Completes, During, Group, Reply, Takes, Trouble, Typed};
use crate::rewind_effects::leave_for;
use crate::{AgentJob, EngineError, Worker};

/// Argument for all agents.
const ALL: &str = "all";

pub(super) const RETRY: Command = Command {
    help: "send your last message again; what came of it is left behind",
    during: During::Interrupts,
    ..Command::new("retry", Group::Talk, |worker, _, _| Box::pin(retry(worker)))
};

pub(super) const RESUME: Command = Command {
    arguments: "[AGENT … | all]",
    help: "go on with turns that were stopped: this agent's, or those of others",
    takes: Takes::Words,
    completes: &[Completes::Agents],
    ..Command::new("resume", Group::Agents, |worker, typed, _| {
        Box::pin(resume(worker, typed))
    })
};

pub(super) const TAKE: Command = Command {
    help: "ask the process that holds this agent to let go of it, and go on here",
    ..Command::new("take", Group::Agents, |_, _, _| {
        // This process holds the agent already.
        Box::pin(async { Trouble::refused("this agent is open here") })
    })
};

async fn retry(worker: &mut Worker) -> Result<Reply, Trouble> {
    worker.check_model().await?;
    let message = worker.ledger.last_message().await?;
    let (data, departure) = leave_for(
        worker.ledger.engine.reader(),
        &worker.ledger.agent,
        message,
        Via::Retry,
    )
    .await?;
    let row = history::row_at(worker.ledger.engine.reader(), message).await?;
    let said = row.as_ref().map(quoted).unwrap_or_default();
    let name = name_of(worker, message).await?;
    let workdir = worker.ledger.settings().workdir.as_deref();
    let changed = departure
        .changed(workdir)
        .map_or_else(String::new, |changed| {
            format!(" · files changed since and NOT restored: {changed}")
        });
    let output = format!("↻ {name} {said} again{changed} · /redo brings the other answer back");
    let reply = Reply::does(Event::Rewind(data), output);
    Ok(reply.then(Then::Work(AgentJob::Answer)))
}

async fn resume(worker: &mut Worker, typed: &Typed) -> Result<Reply, Trouble> {
    let own = worker.ledger.agent.state.agent();
    let mut others = Vec::new();
    let mut is_meant = typed.words.is_empty();
    for name in &typed.words {
        if name == ALL {
            is_meant = true;
            let mut living = worker.ledger.engine.agents().await?;
            living.retain(|agent| agent.id != own && agent.status == Status::Running);
            others.extend(living);
        } else {
            let agent = worker.ledger.engine.find(name).await?;
            is_meant |= agent.id == own;
            others.extend(Some(agent).filter(|agent| agent.id != own));
        }
    }
    let mut output = String::new();
    for other in others {
        if crate::turn::resume_other(worker, &other).await? {
            let _ = writeln!(output, "▶ {} goes on", other.name);
        }
    }
    if is_meant && worker.unsettled {
        return Trouble::refused(format!("{output}it is at work"));
    }
    let goes_on = match worker.check_resumable().await {
        Ok(()) => is_meant,
        Err(EngineError::NothingToResume) => false,
        Err(error) => return Err(error.into()),
    };
    if goes_on {
        let reply = Reply::does(Event::resume(), format!("{output}▶ going on"));
        return Ok(reply.then(Then::Work(AgentJob::GoOn)));
    }
    if output.is_empty() {
        return Trouble::refused("there is no stopped turn to go on with");
    }
    Ok(Reply::says(output.trim_end()))
}
