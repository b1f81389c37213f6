//! The inbox: what waits for the user, read from the rows of all agents.

use ikigai_core::AgentId;
use ikigai_engine::{InboxEntry, InboxKind, Outcome, mark_read, read_inbox};
use ikigai_testkit::Step;

use super::support::{child_of, line, printed};
use crate::fakes::{FakeCall, calling};
use crate::support::{TestJob, World, dies_after, front_end, interrupt_after, say, say_until};

const EMPTY: &str = "Nothing waits for you";

async fn entries(world: &World) -> Vec<(AgentId, InboxKind, String)> {
    let entries = read_inbox(&world.engine).await.unwrap().into_iter();
    let part = |entry: InboxEntry| (entry.agent.id, entry.kind, entry.text);
    entries.map(part).collect()
}

/// An open question is listed in every process, also after its process died, until it is closed.
#[tokio::test(start_paused = true)]
async fn questions_wait_in_the_inbox_of_every_process() {
    let (world, _diary) = World::with_fakes();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    let calls = [
        FakeCall::new("look", "read it"),
        FakeCall::new("act", "build it"),
    ];
    world.provider.will(calling(&calls));
    assert!(entries(&world).await.is_empty());

    dies_after(100, &mut worker, TestJob::Say("go")).await;

    let expected = [(id, InboxKind::Question, "act: build it".to_owned())];
    assert_eq!(entries(&world).await, expected);
    assert_eq!(entries(&world.beside()).await, expected);
    drop(worker);
    let world = world.restarted();
    assert_eq!(entries(&world).await, expected);
    let mut worker = world.reopened().await;
    assert_eq!(entries(&world).await, expected);
    world.provider.will_say("as you like");
    assert_eq!(
        say(&mut worker, "never mind").await.unwrap(),
        Outcome::Completed
    );
    worker.mark_read().await.unwrap();
    assert!(entries(&world).await.is_empty());
}

/// Failed turns and budget stops are listed, newest first, until the agent goes on.
#[tokio::test(start_paused = true)]
async fn failures_leave_the_inbox_when_the_path_goes_on() {
    let world = World::new();
    let mut root = world.root().await;
    let id = root.agent().state.agent();
    printed(&mut root, "/fork --fresh --name child").await;
    let child = world.engine.find("child").await.unwrap();
    let mut child = world.engine.open(&child).await.unwrap();
    let child_id = child.agent().state.agent();
    assert_eq!(printed(&mut root, "/inbox").await, EMPTY);
    world.provider.will([Step::Fail("no luck".to_owned())]);
    say(&mut root, "try").await.unwrap();
    let failed = (id, InboxKind::Failed, "no luck".to_owned());
    assert_eq!(entries(&world).await, vec![failed.clone()]);
    printed(&mut child, "/budget 0.012k").await;
    world.provider.will_say("yes");
    say(&mut child, "one").await.unwrap();
    say(&mut child, "two").await.unwrap();

    let found = entries(&world).await;

    assert_eq!((found[0].0, found[0].1), (child_id, InboxKind::Budget));
    assert_eq!(found[1..].to_vec(), vec![failed.clone()]);
    let listed = printed(&mut root, "/inbox").await;
    let lines: Vec<_> = listed.lines().collect();
    assert!(lines[0].starts_with("$ child "), "{listed}");
    assert!(
        lines[0].contains("budget: the budget of this agent"),
        "{listed}"
    );
    assert!(lines[1].starts_with("✗ parser "), "{listed}");
    assert!(lines[1].ends_with("failed: no luck"), "{listed}");
    assert_eq!(lines.len(), 3);
    // Commands of the user are no work of the agent.
    printed(&mut root, "/mark here").await;
    assert_eq!(entries(&world).await.len(), 2);
    printed(&mut child, "/clear").await;
    assert_eq!(entries(&world).await, [failed]);
    printed(&mut root, "/undo").await;
    assert!(entries(&world).await.is_empty());
    world.provider.will([Step::Fail("again".to_owned())]);
    say(&mut root, "try").await.unwrap();
    assert_eq!(entries(&world).await.len(), 1);
    world.provider.will_say("yes");
    say(&mut root, "more").await.unwrap();
    root.mark_read().await.unwrap();
    assert_eq!(printed(&mut root, "/inbox").await, EMPTY);
    world.provider.will([Step::Fail("gone with it".to_owned())]);
    say(&mut child, "three").await.unwrap();
    assert_eq!(entries(&world).await.len(), 1);
    printed(&mut root, "/kill child").await;
    assert!(entries(&world).await.is_empty());
}

/// A turn that stopped with its process is listed, before and after another process settles it.
/// One that the user stopped is not.
#[tokio::test(start_paused = true)]
async fn interrupted_turns_wait_in_the_inbox() {
    let (world, _diary) = World::with_fakes();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    world.provider.will([Step::Hang]);
    let (outcome, _) = say_until(&mut worker, "go", interrupt_after(3)).await;
    assert!(matches!(outcome.unwrap(), Outcome::Interrupted(_)));
    assert!(entries(&world).await.is_empty());
    world.provider.forget_script();
    world.provider.will([Step::Hang]);

    dies_after(100, &mut worker, TestJob::Say("go")).await;

    drop(worker);
    let world = world.restarted();
    let expected = [(id, InboxKind::Interrupted, "its process ended".to_owned())];
    assert_eq!(entries(&world).await, expected);
    let mut worker = world.reopened().await;
    assert_eq!(entries(&world).await, expected);
    world.provider.forget_script();
    world.provider.will_say("done");
    let outcome = worker_resumes(&mut worker).await;
    assert_eq!(outcome, Outcome::Completed);
    let report = (id, InboxKind::Report, "done".to_owned());
    assert_eq!(entries(&world).await, [report]);
}

async fn worker_resumes(worker: &mut ikigai_engine::Worker) -> Outcome {
    let nothing = std::future::pending();
    let (outcome, _) = front_end(worker, TestJob::Resume, nothing).await;
    outcome.unwrap()
}

/// An answer waits until the user has read it, in every process and after a restart.
#[tokio::test(start_paused = true)]
async fn reports_wait_until_they_are_read() {
    let world = World::new();
    let mut root = world.root().await;
    let id = root.agent().state.agent();
    world.provider.will_say("first");
    say(&mut root, "go").await.unwrap();
    let report = |text: &str| (id, InboxKind::Report, text.to_owned());
    assert_eq!(entries(&world).await, [report("first")]);
    let beside = world.beside();
    assert_eq!(entries(&beside).await, [report("first")]);

    let read = read_inbox(&beside.engine).await.unwrap()[0].row;
    mark_read(&beside.engine, read).await.unwrap();

    assert!(entries(&world).await.is_empty());
    // A command is no new report.
    printed(&mut root, "/mark here").await;
    drop(root);
    let world = world.restarted();
    assert!(entries(&world).await.is_empty());
    let mut root = world.reopened().await;
    assert!(entries(&world).await.is_empty());
    world.provider.will_say("second");
    say(&mut root, "go").await.unwrap();
    assert_eq!(entries(&world).await, [report("second")]);
    let listed = printed(&mut root, "/inbox").await;
    assert!(listed.starts_with("✓ parser "), "{listed}");
    // A rewind takes the report away with its turn, and an older one stays read.
    printed(&mut root, "/undo").await;
    assert!(entries(&world).await.is_empty());
}

/// The user removes entries; a later failure is listed again.
#[tokio::test(start_paused = true)]
async fn the_user_clears_the_inbox() {
    let world = World::new();
    let mut root = world.root().await;
    let mut child = child_of(&world, &mut root, "child").await;
    world.provider.will([Step::Fail("no luck".to_owned())]);
    say(&mut root, "try").await.unwrap();
    world.provider.will_say("done");
    say(&mut child, "go").await.unwrap();
    root.mark_read().await.unwrap();
    assert_eq!(entries(&world).await.len(), 2, "reading settles no failure");

    let cleared = printed(&mut root, "/inbox clear").await;

    assert_eq!(cleared, "Removed 2 entries");
    assert!(entries(&world).await.is_empty());
    assert!(entries(&world.beside()).await.is_empty());
    world.provider.will([Step::Fail("again".to_owned())]);
    say(&mut root, "try").await.unwrap();
    let again = entries(&world).await;
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].2, "again");
    let refused = line(&mut root, "/inbox all").await;
    assert!(refused.warned);
    assert_eq!(refused.output, "⚠ usage: /inbox [clear], not `all`");
}
