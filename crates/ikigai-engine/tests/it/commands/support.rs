//! Typing lines, and looking at what came of them.

use ikigai_core::Request;
use ikigai_core::render::{Shown, render};
use ikigai_engine::commands::{Done, Next};
use ikigai_engine::{Desk, INTENTS, Update, Worker};
use ikigai_store::Agent;
use tokio::sync::mpsc;

use crate::support::World;

/// What a line came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Came {
    /// What was printed.
    pub(super) output: String,
    pub(super) warned: bool,
    pub(super) next: Option<Next>,
    /// What else a front end was told.
    pub(super) notices: Vec<String>,
}

/// Types a line.
pub(super) async fn line(worker: &mut Worker, line: &str) -> Came {
    let (done, told) = typed(worker, line).await;
    let mut output = Vec::new();
    let mut next = None;
    let mut notices = Vec::new();
    for update in told {
        match update {
            Update::Stored(row) => {
                if let Shown::Command { output: text, .. } = render(&row) {
                    output.push(text);
                }
            }
            Update::Next(what) => next = Some(what),
            Update::Notice(text) | Update::Warning(text) => notices.push(text),
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

/// Types a line and returns only what was printed.
pub(super) async fn printed(worker: &mut Worker, text: &str) -> String {
    line(worker, text).await.output
}

/// Types a line, with all that a front end is told.
pub(super) async fn typed(worker: &mut Worker, line: &str) -> (Done, Vec<Update>) {
    let (_sender, mut receiver) = mpsc::channel(INTENTS);
    let mut told = Vec::new();
    let mut tell = |update| told.push(update);
    let mut desk = Desk::new(&mut receiver, &mut tell);
    let done = worker.line(line, &mut desk).await.unwrap();
    (done, told)
}

/// What an agent is: what the screen shows of it, its settings, and what it would send.
#[derive(Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) scrollback: Vec<String>,
    agent: Agent,
    pub(super) request: Request,
}

/// Looks at a living agent.
pub(super) async fn seen(world: &World, worker: &Worker) -> Seen {
    see(world, worker.agent().clone()).await
}

/// Looks at the same agent after a restart.
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

/// Sees that a restart changes nothing.
pub(super) async fn survives(world: &World, worker: Worker) {
    let before = seen(world, &worker).await;
    let after = seen_again(world, worker).await;
    assert_eq!(before, after);
}
