//! Several processes on one log: takeovers, and operations without the lease.

use std::time::Duration;

use ikigai_core::settings::Approve;
use ikigai_core::{Row, Seq};
use ikigai_engine::{AgentJob, EngineError, Outcome, UserInput};
use ikigai_store::{AgentRecord, CommitError, MailState};
use tokio::time::Instant;

use super::support::{after, calls, fork, see_out, send, typed, wait, work, work_and_say};
use crate::support::World;

/// Returns true if no process holds the agent's lease.
async fn is_free(world: &World, name: &str) -> bool {
    let third = world.beside();
    match third.engine.open(&world.named(name).await).await {
        Ok(worker) => {
            worker.release().await.unwrap();
            true
        }
        Err(EngineError::Commit(CommitError::Held { .. })) => false,
        Err(error) => panic!("{error}"),
    }
}

/// E9f: reading takes no lease, and working with an agent takes only its own lease. Other agents of
/// a dead process stay as they are until `/resume`.
#[tokio::test(start_paused = true)]
async fn only_supervisors_take_over_agents() {
    let world = World::new();
    let mut worker = world.root().await;
    world
        .provider
        .will_to("go", calls([fork("one", "begin"), wait(3600, &["one"])]));
    world.provider.will_to("begin", after(3000, "never said"));
    let job = AgentJob::Say("go".to_owned());
    let dying = work_and_say(&mut worker, job, std::future::pending());
    assert!(
        tokio::time::timeout(Duration::from_secs(5), dying)
            .await
            .is_err()
    );
    let one = world.id_of("one").await;
    let before = world.rows(one).await;

    let second = world.restarted();
    second.provider.forget_script();
    second.engine.agents().await.unwrap();
    second.engine.find("one").await.unwrap();
    second.engine.next_request(one).await.unwrap();
    let mut worker = second.reopened().await;
    second.provider.will_say("I go on alone");
    assert_eq!(work(&mut worker, "never mind it").await, Outcome::Completed);

    assert_eq!(second.rows(one).await, before, "it is not settled");
    second.provider.will_say_to("begin", "at last");
    second.provider.will_say("at last");
    typed(&mut worker, "/resume all").await;
    assert!(!is_free(&second, "one").await, "who is resumed is held");
    see_out(&mut worker).await;
    assert_eq!(second.texts(one, "assistant").await, ["at last"]);
}

/// N5c: a process without an agent's lease can read and mail it. It cannot write the agent's rows.
/// The holder delivers the mail.
#[tokio::test(start_paused = true)]
async fn another_process_reads_and_mails_and_does_not_write() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    world.provider.will_to("go", calls([wait(600, &[])]));
    world.provider.will_say_to("go", "I see");
    let other = world.beside();
    other
        .provider
        .will_to("write", calls([send("parser", "from afar")]));
    other.provider.will_say_to("write", "sent");
    let writing = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let mut stranger = other.engine.create_root("/other", "/other").await.unwrap();
        // Otherwise a send to another family needs approval.
        stranger.approve_for_now(Approve::All).await.unwrap();
        let refused = other.engine.open(&other.named("parser").await).await;
        assert!(
            matches!(refused, Err(EngineError::Commit(CommitError::Held { .. }))),
            "it is held"
        );
        let seen = other.engine.next_request(root).await.unwrap();
        assert!(!seen.messages.is_empty());
        typed(&mut stranger, "/send parser from a person").await;
        work(&mut stranger, "write").await;
        std::future::pending().await
    };

    let job = AgentJob::Say("go".to_owned());
    let (outcome, _) = work_and_say(&mut worker, job, Box::pin(writing)).await;

    assert_eq!(outcome.unwrap(), Outcome::Completed);
    assert_eq!(
        world.outputs(root).await,
        ["<message from=\"other\" about=\"message\">\nfrom afar\n</message>"]
    );
    assert_eq!(world.texts(root, "user").await, ["go", "from a person"]);
    let states = world.mail_of(root).await.into_iter().map(|mail| mail.1);
    assert_eq!(states.collect::<Vec<_>>(), [MailState::Delivered; 2]);
}

/// N5c N5d: a process without an agent's lease can fork it and follow its rows. It gets each row
/// once and in order; the holder is not disturbed.
#[tokio::test(start_paused = true)]
async fn a_held_agent_is_forked_and_followed() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    world.provider.will_to("go", calls([wait(10, &[])]));
    world.provider.will_say_to("go", "I went on");
    let other = world.beside();
    other.provider.will_say_to("look at it", "I looked");
    let mut follow = other.engine.follow(root, Seq(0)).unwrap();
    let mut seen = Vec::new();
    let forking = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let held = other.named("parser").await;
        let line = "/fork --name one look at it";
        let mut forked = other
            .engine
            .fork_line(&held, &UserInput::parse(line))
            .await
            .unwrap()
            .unwrap();
        let no_mark = other
            .engine
            .fork_line(&held, &UserInput::parse("/fork --at nowhere x"))
            .await;
        assert!(matches!(no_mark, Err(EngineError::Refused(_))));
        assert!(
            other
                .engine
                .fork_line(&held, &UserInput::parse("/mark"))
                .await
                .unwrap()
                .is_none()
        );
        let mut child = forked.children.pop().unwrap();
        assert_eq!(forked.output, "├ forked one · look at it\n");
        let (done, _) = work_and_say(&mut child, AgentJob::Answer, std::future::pending()).await;
        assert_eq!(done.unwrap(), Outcome::Completed);
        std::future::pending().await
    };
    let following = async {
        while !seen
            .iter()
            .any(|row: &Row| row.content.as_deref() == Some("I went on"))
        {
            seen.extend(follow.next().await.unwrap());
        }
    };

    let job = AgentJob::Say("go".to_owned());
    let working = work_and_say(&mut worker, job, Box::pin(forking));
    let ((outcome, _), ()) = tokio::join!(working, following);
    while let Ok(more) = tokio::time::timeout(Duration::from_secs(1), follow.next()).await {
        seen.extend(more.unwrap());
    }

    assert_eq!(outcome.unwrap(), Outcome::Completed);
    let log = world.rows(root).await;
    assert_eq!(seen, log, "each row once, in order");
    let forks = log.iter().filter(|row| row.kind.name() == "fork").count();
    assert_eq!(forks, 1);
    let one = world.named("one").await;
    assert_eq!(one.parent, Some(root));
    assert_eq!(one.fork_point.map(|row| row.agent), Some(root));
    assert_eq!(world.texts(one.id, "assistant").await, ["I looked"]);
    let holds = |agent: AgentRecord| agent.owner.map(|owner| owner.id);
    assert_ne!(holds(one), holds(world.named("parser").await));
}

/// A wait for an agent ends when its process dies, though that stores nothing.
#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_the_process_of_whom_it_waits_for_has_died() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    let other = world.beside();
    let mut stranger = other.engine.create_root("/x/far", "/x/far").await.unwrap();
    world.provider.will_to("begin", after(3000, "never said"));
    world.provider.will_to("go", calls([wait(600, &["far"])]));
    world.provider.will_say_to("go", "so it is");
    let works = tokio::spawn(async move {
        let job = AgentJob::Say("begin".to_owned());
        let _ = work_and_say(&mut stranger, job, std::future::pending()).await;
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let begun = Instant::now();
    let dying = async {
        tokio::time::sleep(Duration::from_secs(7)).await;
        assert!(!works.is_finished(), "it works when it dies");
        works.abort();
        other.log().die();
        std::future::pending().await
    };

    let go = AgentJob::Say("go".to_owned());
    let (outcome, _) = work_and_say(&mut worker, go, Box::pin(dying)).await;

    assert_eq!(outcome.unwrap(), Outcome::Completed);
    let took = begun.elapsed();
    assert!((7..12).contains(&took.as_secs()), "{took:?}");
    assert_eq!(world.outputs(root).await, ["far: idle"]);
}
