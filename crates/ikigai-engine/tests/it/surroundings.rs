//! The environment block of a first message, and notes about later changes.

use std::process::Command;

use ikigai_core::data::{self, UserData};
use ikigai_core::message::Block;
use ikigai_core::render::{Shown, render};
use ikigai_core::settings::Approve;
use ikigai_core::{Kind, Message, Request, Row};
use ikigai_engine::Worker;

use crate::agents::support::{calls, fork};
use crate::support::{HERE, World, attended_line, say};

fn text_of(message: &Message) -> &str {
    match message.blocks.first() {
        Some(Block::Text { text }) => text,
        other => panic!("{other:?}"),
    }
}

fn last_text(world: &World) -> String {
    let request: Request = world.provider.requests().pop().unwrap();
    text_of(request.messages.last().unwrap()).to_owned()
}

async fn user_rows(world: &World, worker: &Worker) -> Vec<Row> {
    let mut rows = world.rows(worker.agent().state.agent()).await;
    rows.retain(|row| row.kind.read_as() == Some(Kind::User));
    rows
}

async fn exchange(world: &World, worker: &mut Worker, text: &str) -> String {
    world.provider.will_say("ok");
    say(worker, text).await.unwrap();
    last_text(world)
}

/// The first message has all facts, as rendered in its row; the screen shows the typed text only.
#[tokio::test(start_paused = true)]
async fn first_message_begins_with_the_environment() {
    let world = World::with_platform();
    let mut worker = world.root().await;

    let sent = exchange(&world, &mut worker, "hello").await;

    let rows = user_rows(&world, &worker).await;
    assert_eq!(rows[0].content.as_deref(), Some(sent.as_str()));
    assert!(
        sent.starts_with("<environment>\nagent: `parser`\n"),
        "{sent}"
    );
    assert!(sent.ends_with("\n</environment>\n\nhello"), "{sent}");
    for fact in [
        &format!("working directory: {HERE}\n"),
        "repository: none\n",
        "platform: linux test\n",
        "shell: bash\n",
        "date: 1970-01-01\n",
        "model: scripted:",
        "permission mode: ask (",
        "sandbox: off",
    ] {
        assert!(sent.contains(fact), "{fact}: {sent}");
    }
    let shown = render(&rows[0]);
    assert!(
        matches!(&shown, Shown::User { text, sent: None, .. } if text == "hello"),
        "{shown:?}"
    );
}

/// Facts that did not change are sent once; those that did, as a note with the next message. Every
/// request begins with the one before.
#[tokio::test(start_paused = true)]
async fn later_changes_are_notes() {
    let world = World::with_platform();
    let mut worker = world.root().await;
    exchange(&world, &mut worker, "one").await;

    assert_eq!(exchange(&world, &mut worker, "two").await, "two");
    attended_line(&mut worker, "/approve edits", |_| Vec::new()).await;
    let sent = exchange(&world, &mut worker, "three").await;

    let mode = Approve::Edits.word();
    let note = format!("<note>\nChanged since the last message:\npermission mode: {mode} (");
    assert!(sent.starts_with(&note), "{sent}");
    assert!(sent.ends_with("\n</note>\n\nthree"), "{sent}");
    assert!(!sent.contains("platform"), "{sent}");
    assert_eq!(exchange(&world, &mut worker, "four").await, "four");
    let requests = world.provider.requests();
    for pair in requests.windows(2) {
        assert_eq!(pair[0].system, pair[1].system);
        assert!(pair[1].messages.starts_with(&pair[0].messages));
    }
}

/// After a restart the model still knows the facts; after `/clear` it gets all of them again.
#[tokio::test(start_paused = true)]
async fn known_facts_come_from_the_log() {
    let world = World::with_platform();
    let mut worker = world.root().await;
    exchange(&world, &mut worker, "one").await;
    drop(worker);
    let mut world = world.restarted();
    world.add_platform();
    let mut worker = world.reopened().await;

    assert_eq!(exchange(&world, &mut worker, "two").await, "two");
    attended_line(&mut worker, "/clear", |_| Vec::new()).await;

    let sent = exchange(&world, &mut worker, "three").await;
    assert!(sent.starts_with("<environment>\n"), "{sent}");
}

/// A message of an older program has no facts: it is sent as before, and the next one has them.
#[tokio::test(start_paused = true)]
async fn older_messages_are_sent_as_before() {
    let world = World::new();
    let mut worker = world.root().await;
    assert_eq!(exchange(&world, &mut worker, "one").await, "one");
    drop(worker);
    let mut world = world.restarted();
    world.add_platform();
    let mut worker = world.reopened().await;

    let sent = exchange(&world, &mut worker, "two").await;

    assert!(sent.starts_with("<environment>\n"), "{sent}");
    let request = world.provider.requests().pop().unwrap();
    assert_eq!(text_of(&request.messages[0]), "one");
}

/// A child is given its name, its parent and what is expected of it.
#[tokio::test(start_paused = true)]
async fn a_child_knows_that_it_is_one() {
    let world = World::with_platform();
    let mut worker = world.root().await;
    world
        .provider
        .will_to("fork now", calls([fork("lexer", "fix the lexer")]));
    world.provider.will_say_to("fix the lexer", "fixed");
    world.provider.will_say_to("fork now", "done");
    say(&mut worker, "fork now").await.unwrap();

    let child = world.engine.find("lexer").await.unwrap();
    let rows = world.rows(child.id).await;
    let prompt = rows
        .iter()
        .find(|row| row.kind.read_as() == Some(Kind::User))
        .unwrap();
    let sent = prompt.content.as_deref().unwrap();
    assert!(
        sent.ends_with("\n</environment>\n\nfix the lexer"),
        "{sent}"
    );
    for fact in [
        "agent: `lexer`, a child of agent `parser`.",
        "Your last answer is your report",
        "cannot ask the user",
        "share the working directory",
    ] {
        assert!(sent.contains(fact), "{fact}: {sent}");
    }
    let data: UserData = data::read(prompt.data.as_deref());
    assert_eq!(data.typed.as_deref(), Some("fix the lexer"));
}

/// The status of a repository comes with the first message; later ones do not run git.
#[tokio::test]
async fn the_status_of_a_repository_is_sent_once() {
    let repository = tempfile::tempdir().unwrap();
    let path = repository.path().to_str().unwrap();
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        let done = git.current_dir(path).args(arguments).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q", "-b", "lexer"]);
    std::fs::write(repository.path().join("new.txt"), "text").unwrap();
    let world = World::with_platform();
    let mut worker = world.engine.create_root(path, path).await.unwrap();

    let first = exchange(&world, &mut worker, "one").await;
    std::fs::write(repository.path().join("newer.txt"), "text").unwrap();
    let second = exchange(&world, &mut worker, "two").await;
    git(&["checkout", "-q", "-b", "parser"]);
    let third = exchange(&world, &mut worker, "three").await;

    assert!(
        first.contains(&format!("repository: {path}, branch lexer\n")),
        "{first}"
    );
    assert!(
        first.contains("git status at the start:\n?? new.txt\n"),
        "{first}"
    );
    assert_eq!(second, "two");
    assert!(
        third.contains(&format!("repository: {path}, branch parser\n")),
        "{third}"
    );
    assert!(!third.contains("status"), "{third}");
}
