//! Saying it again, and going on: `/retry`, `/resume`.

use ikigai_core::Event;
use ikigai_core::data::Via;
use ikigai_store::history;

use super::reply::Then;
use super::rows::{name_of, quoted};
use super::time::leave_for;
use super::{Command, Completes, During, Group, Reply, Takes, Trouble, Typed};
use crate::{EngineError, Errand, Worker};

pub(super) const RETRY: Command = Command {
    help: "send your last message again; what came of it is left behind",
    during: During::Interrupts,
    ..Command::new("retry", Group::Talk, |worker, _, _| Box::pin(retry(worker)))
};

pub(super) const RESUME: Command = Command {
    arguments: "",
    help: "go on with a turn that was stopped",
    takes: Takes::Words,
    completes: &[Completes::Agents],
    ..Command::new("resume", Group::Agents, |worker, typed, _| {
        Box::pin(resume(worker, typed))
    })
};

async fn retry(worker: &mut Worker) -> Result<Reply, Trouble> {
    worker.check_model().await?;
    let message = worker.last_message().await?;
    let (data, departure) = leave_for(worker, message, Via::Retry).await?;
    let row = history::row_at(worker.engine.store(), message).await?;
    let said = row.as_ref().map(quoted).unwrap_or_default();
    let name = name_of(worker, message).await?;
    let workdir = worker.settings().workdir.as_deref();
    let changed = departure
        .changed(workdir)
        .map_or_else(String::new, |changed| {
            format!(" · files changed since and NOT restored: {changed}")
        });
    let output = format!("↻ {name} {said} again{changed} · /redo brings the other answer back");
    let reply = Reply::does(Event::Rewind(data), output);
    Ok(reply.then(Then::Work(Errand::Answer)))
}

async fn resume(worker: &mut Worker, typed: &Typed) -> Result<Reply, Trouble> {
    if let Some(name) = typed.one("resume")? {
        let agent = worker.engine.find(name).await?;
        if agent.id != worker.agent.state.agent() {
            return Trouble::refused(format!("{name} is another agent · go there first"));
        }
    }
    if worker.unsettled {
        return Trouble::refused("it is at work");
    }
    match worker.check_resumable().await {
        Ok(()) => {}
        Err(EngineError::NothingToResume) => {
            return Trouble::refused("there is no stopped turn to go on with");
        }
        Err(error) => return Err(error.into()),
    }
    let reply = Reply::does(Event::resume(), "▶ going on");
    Ok(reply.then(Then::Work(Errand::GoOn)))
}
