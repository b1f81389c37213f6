//! Agent tools commit their effect and their result together. A store failure leaves both or
//! neither.

use ikigai_engine::{AgentJob, Outcome, Worker};
use ikigai_providers::AnswerBlock;
use ikigai_store::{MailState, ReadLog, Status, StoreError};
use ikigai_testkit::CommitFault;

use super::support::{calls, fork, kill, see_out, send, typed, wait, work, work_and_say};
use crate::support::World;

fn full() -> StoreError {
    StoreError::Full("no room".into())
}

/// Agent tool under test.
#[derive(Clone, Copy, Debug)]
enum Case {
    Fork,
    Kill,
    Send,
    Wait,
}

const CASES: [Case; 4] = [Case::Fork, Case::Kill, Case::Send, Case::Wait];

impl Case {
    fn call(self) -> AnswerBlock {
        match self {
            Self::Fork => fork("two", "begin"),
            Self::Kill => kill("one"),
            Self::Send => send("one", "hello"),
            Self::Wait => wait(60, &["two"]),
        }
    }

    /// Returns true if the call had its effect.
    async fn is_done(self, world: &World) -> bool {
        let root = world.id_of("parser").await;
        let one = world.named("one").await;
        match self {
            Self::Fork => world.census().await.iter().any(|(name, _)| name == "two"),
            Self::Kill => one.status == Status::Dead,
            Self::Send => !world.mail_of(one.id).await.is_empty(),
            Self::Wait => {
                let mail = world.mail_of(root).await;
                mail.iter().any(|(_, state)| *state == MailState::Delivered)
            }
        }
    }

    /// Returns true if the call has its result.
    async fn is_answered(self, world: &World) -> bool {
        let root = world.id_of("parser").await;
        let before = usize::from(matches!(self, Self::Wait));
        world.outputs(root).await.len() > before
    }
}

/// Creates a root with a child, whose model will make the call.
async fn about_to(case: Case) -> (World, Worker) {
    let world = World::new();
    let mut worker = world.root().await;
    typed(&mut worker, "/fork --name one").await;
    if matches!(case, Case::Wait) {
        world.provider.will_to("go", calls([fork("two", "begin")]));
    }
    world.provider.will_to("go", calls([case.call()]));
    world.provider.will_say_to("go", "well");
    world.provider.will_say_to("go", "thank you");
    world.provider.will_say_to("begin", "done");
    (world, worker)
}

/// Dumps agents, rows and mail without times and ids.
async fn all_told(world: &World) -> Vec<String> {
    let mut told = Vec::new();
    let agents = world.log().agents(None).await.unwrap();
    for agent in agents.clone() {
        told.push(format!("{} {:?}", agent.name, agent.status));
        for row in world.rows(agent.id).await {
            told.push(format!("{} {:?}", row.kind.name(), row.content));
        }
        told.extend(
            world
                .mail_of(agent.id)
                .await
                .iter()
                .map(|mail| format!("{mail:?}")),
        );
    }
    for line in &mut told {
        for agent in &agents {
            *line = line.replace(&agent.id.to_string(), &agent.name);
        }
    }
    told
}

/// E6: a call has its effect and its result exactly once. This holds after a temporary store
/// failure or a commit of unknown outcome, at any commit.
#[tokio::test(start_paused = true)]
async fn agent_tools_commit_effect_with_result() {
    for case in CASES {
        let (world, mut worker) = about_to(case).await;
        let before = world.store.commits();
        assert_eq!(work(&mut worker, "go").await, Outcome::Completed);
        let commits = world.store.commits() - before;
        let whole = all_told(&world).await;
        assert!(case.is_done(&world).await, "{case:?}");

        for nth in 2..=commits {
            for fault in [
                CommitFault::Refused(full()),
                CommitFault::WrittenUnknown,
                CommitFault::LostUnknown,
            ] {
                let shown = format!("{case:?}, commit {nth}: {fault:?}");
                let (world, mut worker) = about_to(case).await;
                world.store.fail_commit(nth, fault);
                world.store.fail_read_after_commit(nth, full());

                assert_eq!(work(&mut worker, "go").await, Outcome::Completed, "{shown}");
                see_out(&mut worker).await;

                assert_eq!(all_told(&world).await, whole, "{shown}");
            }
        }
    }
}

/// E6, N6a: after a permanent store failure a call has effect and result, or neither. This holds
/// for a failure at any commit.
#[tokio::test(start_paused = true)]
async fn agent_tools_without_a_store_do_nothing() {
    for case in CASES {
        let (world, mut worker) = about_to(case).await;
        let before = world.store.commits();
        work(&mut worker, "go").await;
        let commits = world.store.commits() - before;

        let mut done = Vec::new();
        for nth in 2..=commits {
            let (world, mut worker) = about_to(case).await;
            for later in 0..4000 {
                let refused = CommitFault::Refused(full());
                world.store.fail_commit(nth + later, refused);
            }
            let job = AgentJob::Say("go".to_owned());
            let (_, told) = work_and_say(&mut worker, job, std::future::pending()).await;

            let is_done = case.is_done(&world).await;
            let shown = format!("{case:?}, commit {nth}");
            assert_eq!(is_done, case.is_answered(&world).await, "{shown}");
            assert!(!told.is_empty(), "{shown}");
            done.push(is_done);
        }
        assert!(done.contains(&false) && done.contains(&true), "{case:?}");
    }
}
