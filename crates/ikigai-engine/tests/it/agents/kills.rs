//! Kills: owner of the row, stopped agents, and waits for them.

use std::time::Duration;

use ikigai_core::data::{self, AgentKilledData, AnsweredBy, Cause, KilledBy};
use ikigai_core::{AgentId, RowRef, Seq};
use ikigai_engine::{
    AgentJob, Answer, FrontEnd, Outcome, Stop, USER_REQUESTS, UserInput, UserRequest,
};
use ikigai_store::{MailState, Status};
use ikigai_testkit::Step;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::support::{after, calls, fork, kill, send, typed, wait, work, work_and_say};
use crate::fakes::{FakeCall, Moment};
use crate::support::World;

/// Returns target, killed agents and origin of each kill in an agent's log.
async fn kills(world: &World, agent: AgentId) -> Vec<(AgentId, Vec<AgentId>, KilledBy)> {
    let rows = world.rows(agent).await.into_iter();
    let told = rows.filter(|row| row.kind.name() == "agent_killed");
    told.map(|row| {
        let data: AgentKilledData = data::read(row.data.as_deref());
        (data.target.unwrap(), data.killed.unwrap(), data.by.unwrap())
    })
    .collect()
}

/// S3-11, S3-13: the killer's log has the row, for one agent and for a whole family. This holds for
/// kills by the model and by the user.
#[tokio::test(start_paused = true)]
async fn agent_killed_owned_by_killer() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    for line in ["/fork --name one", "/fork --name two"] {
        typed(&mut worker, line).await;
    }
    let two = world.named("two").await;
    let mut child = world.engine.open(&two).await.unwrap();
    typed(&mut child, "/fork --name three").await;
    child.release().await.unwrap();
    let (one, three) = (world.id_of("one").await, world.id_of("three").await);

    world.provider.will(calls([kill("one")]));
    world.provider.will_say("it is dead");
    work(&mut worker, "kill one").await;
    typed(&mut worker, "/kill two").await;

    assert_eq!(
        kills(&world, root).await,
        [
            (one, vec![one], KilledBy::Model),
            (two.id, vec![two.id, three], KilledBy::User),
        ]
    );
    for killed in [one, two.id, three] {
        assert!(kills(&world, killed).await.is_empty());
    }
    let dead = world.census().await.into_iter().skip(1);
    assert!(
        dead.map(|(_, status)| status)
            .all(|status| status == Status::Dead)
    );
}

/// S3-12, D6: if an agent kills itself or an ancestor, the topmost victim's parent gets the row.
#[tokio::test(start_paused = true)]
async fn self_kill_row_owned_by_parent() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    world
        .provider
        .will_to("go", calls([fork("one", "end yourself")]));
    world.provider.will_to("go", calls([wait(60, &["one"])]));
    world.provider.will_say_to("go", "so it is");
    world.provider.will_to("end", calls([kill("one")]));

    assert_eq!(work(&mut worker, "go").await, Outcome::Completed);

    let one = world.id_of("one").await;
    assert_eq!(
        kills(&world, root).await,
        [(one, vec![one], KilledBy::Model)]
    );
    assert!(kills(&world, one).await.is_empty());
    assert_eq!(world.outputs(root).await[1], "one: dead");
    let last = world.kinds(one).await.pop();
    assert_eq!(last.as_deref(), Some("interrupted"));

    // The user types in a grandchild and kills its parent.
    typed(&mut worker, "/fork --name upper").await;
    let upper = world.named("upper").await;
    let mut above = world.engine.open(&upper).await.unwrap();
    typed(&mut above, "/fork --name lower").await;
    let lower = world.named("lower").await;
    let mut below = world.engine.open(&lower).await.unwrap();
    typed(&mut below, "/kill upper").await;

    let told = kills(&world, root).await.pop().unwrap();
    assert_eq!(told, (upper.id, vec![upper.id, lower.id], KilledBy::User));
    assert!(kills(&world, lower.id).await.is_empty());
    assert!(kills(&world, upper.id).await.is_empty());
}

/// Roots cannot be killed, and the model cannot kill an ancestor.
#[tokio::test(start_paused = true)]
async fn roots_and_ancestors_are_not_killed() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    world
        .provider
        .will_to("go", calls([kill("parser"), fork("one", "begin")]));
    world.provider.will_say_to("go", "well");
    world.provider.will_say_to("go", "thank you");
    world
        .provider
        .will_to("begin", calls([kill("parent"), fork("two", "deeper")]));
    world.provider.will_say_to("begin", "well");
    world.provider.will_say_to("begin", "thank you");
    world
        .provider
        .will_to("deeper", calls([kill("one"), kill("parser")]));
    world.provider.will_say_to("deeper", "no");

    work(&mut worker, "go").await;
    typed(&mut worker, "/kill").await;

    let living = world.census().await;
    assert!(
        living.iter().all(|(_, status)| *status == Status::Running),
        "{living:?}"
    );
    let root_said = world.outputs(root).await;
    assert!(root_said[0].contains("root"), "{root_said:?}");
    let deep = world.results(world.id_of("two").await).await;
    assert!(deep[0].output.contains("ancestor"), "{deep:?}");
    assert!(deep.iter().all(|result| !result.success), "{deep:?}");
}

/// A kill stops requests and tools of all killed agents within the grace period. Mail to them
/// bounces, and waits for them end at once.
#[tokio::test(start_paused = true)]
async fn a_kill_stops_a_whole_family_at_once() {
    let (world, call_log) = World::with_fakes();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    world.provider.will_to(
        "go",
        calls([fork("one", "begin"), fork("killer", "murder")]),
    );
    world.provider.will_to("go", calls([wait(600, &["one"])]));
    world
        .provider
        .will_to("go", calls([send("one", "too late")]));
    world.provider.will_say_to("go", "so it is");
    world.provider.will_say_to("go", "thank you");
    let long = FakeCall::new("look", "long").taking(Duration::from_hours(1));
    world
        .provider
        .will_to("begin", calls([fork("two", "deeper"), long.block()]));
    world
        .provider
        .will_to("deeper", [Step::Say("half a".to_owned()), Step::Hang]);
    world.provider.will_to(
        "murder",
        [
            Step::Sleep(Duration::from_secs(5)),
            Step::FinishWith(vec![send("one", "last words"), kill("one")]),
        ],
    );
    world.provider.will_say_to("murder", "done");
    let begun = Instant::now();

    assert_eq!(work(&mut worker, "go").await, Outcome::Completed);

    let took = begun.elapsed();
    assert!(
        took >= Duration::from_secs(5) && took < Duration::from_secs(7),
        "{took:?}"
    );
    let (one, two) = (world.id_of("one").await, world.id_of("two").await);
    assert_eq!(
        call_log.moments(),
        [
            Moment::Began("long".to_owned()),
            Moment::Stopped("long".to_owned())
        ]
    );
    assert_eq!(world.outputs(root).await[2], "one: dead");
    let late = &world.results(root).await[3];
    assert!(
        !late.success && late.output.contains("has ended"),
        "{late:?}"
    );
    assert_eq!(
        world.mail_of(one).await,
        [("last words".to_owned(), MailState::Bounced)]
    );
    for killed in [one, two] {
        let last = world.rows(killed).await.pop().unwrap();
        assert_eq!(last.kind.name(), "interrupted");
        let data: ikigai_core::data::InterruptedData = data::read(last.data.as_deref());
        assert_eq!(data.cause, Some(Cause::Kill));
    }
    assert_eq!(world.texts(two, "assistant").await, ["half a"]);
}

/// A kill stops an agent that a front end drives, too.
#[tokio::test(start_paused = true)]
async fn an_agent_driven_by_a_front_end_is_stopped_by_a_kill() {
    let world = World::new();
    let mut root = world.root().await;
    typed(&mut root, "/fork --name one").await;
    let one = world.named("one").await;
    let mut driven = world.engine.open(&one).await.unwrap();
    world
        .provider
        .will_to("hello", [Step::Say("half".to_owned()), Step::Hang]);
    let killing = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        typed(&mut root, "/kill one").await;
        std::future::pending().await
    };

    let job = AgentJob::Say("hello".to_owned());
    let (outcome, _) = work_and_say(&mut driven, job, Box::pin(killing)).await;

    assert_eq!(outcome.unwrap(), Outcome::Interrupted(Cause::Kill));
    assert_eq!(world.texts(one.id, "assistant").await, ["half"]);
}

/// N5c: a kill by another process stops the agent in the process that holds its lease. It takes
/// effect as soon as that process reads the row.
#[tokio::test(start_paused = true)]
async fn a_kill_by_another_process_stops_the_holder() {
    let world = World::new();
    let mut worker = world.root().await;
    world.provider.will_to("go", calls([fork("one", "begin")]));
    world.provider.will_to("go", calls([wait(3600, &["one"])]));
    world.provider.will_say_to("go", "so it is");
    world.provider.will_to("begin", after(3000, "never said"));
    let other = world.beside();
    let begun = Instant::now();
    let killing = async {
        tokio::time::sleep(Duration::from_secs(7)).await;
        let mut stranger = other
            .engine
            .create_root("/elsewhere", "/elsewhere")
            .await
            .unwrap();
        typed(&mut stranger, "/kill one").await;
        std::future::pending().await
    };

    let job = AgentJob::Say("go".to_owned());
    let (outcome, _) = work_and_say(&mut worker, job, Box::pin(killing)).await;

    assert_eq!(outcome.unwrap(), Outcome::Completed);
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
    let root = worker.agent().state.agent();
    assert_eq!(world.outputs(root).await[1], "one: dead");
    let one = world.id_of("one").await;
    assert_eq!(world.kinds(one).await.pop().as_deref(), Some("interrupted"));
}

/// A person forks an ended agent. The child continues from it, also if its parent was the last
/// agent of its family that lived.
#[tokio::test(start_paused = true)]
async fn an_ended_agent_is_forked() {
    let world = World::new();
    let mut worker = world.root().await;
    typed(&mut worker, "/fork --name one").await;
    let one = world.named("one").await;
    let mut child = world.engine.open(&one).await.unwrap();
    world
        .provider
        .will_say_to("the number", "the number is seven");
    work(&mut child, "the number").await;
    child.release().await.unwrap();
    typed(&mut worker, "/kill one").await;
    let one = world.named("one").await;
    assert!(world.engine.open(&one).await.is_err());
    let before = world.rows(one.id).await.len();

    let line = UserInput::parse("/fork --name two go on");
    let forked = world.engine.fork_line(&one, &line).await.unwrap();

    let mut two = forked.unwrap().children.pop().unwrap();
    world.provider.will_say_to("go on", "eight");
    let (done, _) = work_and_say(&mut two, AgentJob::Answer, std::future::pending()).await;
    assert_eq!(done.unwrap(), Outcome::Completed);
    let request = world.provider.requests().pop().unwrap();
    let text = format!("{request:?}");
    assert!(text.contains("the number is seven"), "{text}");
    let two = world.named("two").await;
    assert_eq!(two.parent, Some(one.id));
    assert_eq!(two.fork_point.unwrap().agent, one.id);
    // The fork is a row of the ended agent, which stays ended.
    assert_eq!(world.rows(one.id).await.len(), before + 1);
    assert_eq!(world.named("one").await.status, Status::Dead);
    assert!(world.engine.open(&one).await.is_err());
    // It is killed with its family.
    let events = typed(&mut worker, "/kill one").await;
    let killed = world.named("two").await.status;
    assert_eq!(killed, Status::Dead, "{events:#?}");
}

/// A kill interrupts an agent that only waits for its children to end.
#[tokio::test(start_paused = true)]
async fn a_kill_is_heard_while_children_are_seen_out() {
    let world = World::new();
    let mut root = world.root().await;
    typed(&mut root, "/fork --name middle").await;
    let middle = world.named("middle").await;
    let mut middle = world.engine.open(&middle).await.unwrap();
    world.provider.will_to("long", after(3600, "never"));
    typed(&mut middle, "/fork --fresh --name low long").await;
    let (_sender, mut receiver) = mpsc::channel(USER_REQUESTS);
    let mut tell = |_| {};
    let mut desk = FrontEnd::new(&mut receiver, &mut tell);
    let killing = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        typed(&mut root, "/kill middle").await;
    };

    let (left, ()) = tokio::join!(middle.see_children_out(&mut desk), killing);

    assert_eq!(left.unwrap(), Some(Stop::Interrupt(Cause::Kill)));
}

/// An answer to an agent with a full queue waits for room.
#[tokio::test]
async fn an_answer_is_not_lost_when_much_is_said_before_it() {
    let world = World::new();
    let mut root = world.root().await;
    world.provider.will_to("long", [Step::Hang]);
    typed(&mut root, "/fork --fresh --name low long").await;
    let low = world.id_of("low").await;
    // The agent reads nothing until this task yields.
    let say = || {
        world
            .engine
            .send_request(low, UserRequest::Stop(Stop::Interrupt(Cause::User)))
    };
    let said = std::iter::repeat_with(say)
        .take_while(|heard| *heard)
        .count();
    let answer = UserRequest::Answer {
        call: RowRef::new(low, Seq(1)),
        answer: Answer::Once,
        by: AnsweredBy::User,
    };
    assert!(
        !world.engine.send_request(low, answer.clone()),
        "there is no room"
    );

    let engine = world.engine.clone();
    let told = tokio::task::spawn_blocking(move || engine.tell_waiting(low, answer));

    assert_eq!(said, USER_REQUESTS);
    assert!(told.await.unwrap());
}
