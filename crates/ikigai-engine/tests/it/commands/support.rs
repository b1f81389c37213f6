//! Helpers that type lines and read their outcome.

use ikigai_core::settings::Approve;
use ikigai_core::{Block, Request};
use ikigai_engine::commands::{Done, Next};
use ikigai_engine::{FrontEnd, USER_REQUESTS, UiEvent, UserInput, Worker};
use ikigai_store::Agent;
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::support::{World, printed_in};

/// Outcome of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Came {
    /// Printed text.
    pub(super) output: String,
    pub(super) warned: bool,
    pub(super) next: Option<Next>,
    /// Notices and warnings.
    pub(super) notices: Vec<String>,
}

/// Types a line and returns its outcome.
pub(super) async fn line(worker: &mut Worker, line: &str) -> Came {
    let (done, told) = typed(worker, line).await;
    let mut output = Vec::new();
    let mut next = None;
    let mut notices = Vec::new();
    for update in told {
        match update {
            UiEvent::Stored(row) => output.extend(printed_in(&row)),
            UiEvent::Next(what) => next = Some(what),
            UiEvent::Notice(text) | UiEvent::Warning(text) => notices.push(text),
            _ => {}
        }
    }
    Came {
        output: output.join("\n"),
        warned: done.warned,
        next,
        notices,
    }
}

/// Types a line and returns its output.
pub(super) async fn printed(worker: &mut Worker, text: &str) -> String {
    line(worker, text).await.output
}

/// Types a line and returns all events.
pub(super) async fn typed(worker: &mut Worker, line: &str) -> (Done, Vec<UiEvent>) {
    let (_sender, mut receiver) = mpsc::channel(USER_REQUESTS);
    let mut told = Vec::new();
    let mut tell = |update| told.push(update);
    let mut desk = FrontEnd::new(&mut receiver, &mut tell);
    let done = worker
        .line(UserInput::parse(line), &mut desk)
        .await
        .unwrap();
    (done, told)
}

/// Observable state of an agent: scrollback, fold and next request.
#[derive(Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) scrollback: Vec<String>,
    agent: Agent,
    pub(super) request: Request,
}

/// Returns the state of a live agent.
pub(super) async fn seen(world: &World, worker: &Worker) -> Seen {
    see(world, worker.agent().clone()).await
}

/// Returns the state of the same agent after a restart.
pub(super) async fn seen_again(world: &World, worker: Worker) -> Seen {
    let id = worker.agent().state.agent();
    drop(worker);
    let world = world.restarted();
    let agent = Agent::restore(&*world.store, id).await.unwrap();
    see(&world, agent).await
}

async fn see(world: &World, mut agent: Agent) -> Seen {
    agent.read_all(&*world.store).await.unwrap();
    agent.know_all(&*world.store).await.unwrap();
    let shown = agent.view.scrollback().map(|shown| shown.to_string());
    Seen {
        scrollback: shown.filter(|line| !line.is_empty()).collect(),
        request: world
            .engine
            .next_request(agent.state.agent())
            .await
            .unwrap(),
        agent,
    }
}

/// Checks that a restart changes nothing.
pub(super) async fn survives(world: &World, worker: Worker) {
    let before = seen(world, &worker).await;
    let after = seen_again(world, worker).await;
    assert_eq!(before, after);
}

/// Creates a directory and an agent in it that needs no approvals.
pub(super) async fn agent_in_a_directory(world: &World) -> (TempDir, Worker) {
    let place = tempfile::tempdir().unwrap();
    let workdir = place.path().to_str().unwrap();
    let mut worker = world.engine.create_root(workdir, workdir).await.unwrap();
    worker.approve_for_now(Approve::All).await.unwrap();
    (place, worker)
}

/// Returns the texts of the next request, in order.
pub(super) async fn texts(world: &World, worker: &Worker) -> Vec<String> {
    let request = seen(world, worker).await.request;
    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
    let texts = blocks.filter_map(|block| match block {
        Block::Text { text } => Some(text.clone()),
        _ => None,
    });
    texts.collect()
}

/// Forks a fresh child without a prompt, and opens it.
pub(super) async fn child_of(world: &World, worker: &mut Worker, name: &str) -> Worker {
    printed(worker, &format!("/fork --fresh --name {name}")).await;
    let child = world.engine.find(name).await.unwrap();
    world.engine.open(&child).await.unwrap()
}
