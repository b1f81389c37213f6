//! Calls of a response: all stored before the first runs, each with one result row. Results are
//! sent in call order.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ikigai_core::data::Verdict;
use ikigai_core::project::FileChanges;
use ikigai_core::settings::Approve;
use ikigai_core::{Block, EffectClass, Request, Role, Settings};
use ikigai_engine::{Outcome, UiEvent};
use ikigai_store::ReadLog;
use ikigai_testkit::{CommitFault, block_on, check_request};

use crate::fakes::{FakeCall, Moment, calling};
use crate::support::{
    CallInputs, TestJob, World, active_agents, all_rows, dies_after, is_stored, say, target_of,
};

/// Outputs of the results at the end of a request, in order.
fn results_sent(request: &Request) -> Vec<String> {
    let last = request.messages.last().unwrap();
    assert_eq!(last.role, Role::Tool);
    let texts = last.blocks.iter().map(|block| match block {
        Block::ToolResult { content, .. } => content.clone(),
        other => panic!("{other:?} among results"),
    });
    texts.collect()
}

fn ran(call: &str, success: bool, output: &str) -> CallInputs {
    CallInputs {
        call: call.to_owned(),
        success,
        verdict: Verdict::Ran,
        output: output.to_owned(),
    }
}

/// N3a: each call of a response gets a row, in response order, before any call runs. Calls that do
/// more than read are in the journal, too.
#[tokio::test(start_paused = true)]
async fn parallel_calls_durable_before_any_runs() {
    let (world, call_log) = World::with_fakes();
    let mut worker = world.root().await;
    worker.approve_for_now(Approve::All).await.unwrap();
    let id = worker.agent().state.agent();
    let fakes = [
        FakeCall::new("look", "one"),
        FakeCall::new("act", "two"),
        FakeCall::new("change", "three"),
    ];
    world.provider.will(calling(&fakes));
    world.provider.will_say("done");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (log, notes) = (world.log().clone(), seen.clone());
    call_log.look_when_one_begins(move |label| {
        let rows = block_on(log.page(all_rows(id))).unwrap();
        let calls = rows
            .into_iter()
            .filter(|row| row.kind.name() == "tool_call");
        let calls: Vec<_> = calls.filter_map(|row| row.content).collect();
        let runs = block_on(log.open_runs(id)).unwrap();
        let classes: Vec<_> = runs.iter().map(|run| run.class).collect();
        notes
            .lock()
            .unwrap()
            .push((label.to_owned(), calls, classes));
    });

    say(&mut worker, "go").await.unwrap();

    let all = ["one", "two", "three"].map(str::to_owned).to_vec();
    let both = [EffectClass::Execute, EffectClass::Write];
    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 3);
    for (label, calls, classes) in seen {
        assert_eq!(calls, all, "when {label} began");
        let own = fakes.iter().position(|fake| fake.label() == label).unwrap();
        let journalled = &both[..own.max(classes.len())];
        assert_eq!(classes, journalled, "when {label} began");
    }
    assert!(world.log().open_runs(id).await.unwrap().is_empty());
}

/// N3b N1c: each call gets its result row when it ends, in any order. A call that fails, panics or
/// cannot be parsed does not affect the others. Results are sent in call order.
#[tokio::test(start_paused = true)]
async fn each_call_gets_own_result_row() {
    let (world, _) = World::with_fakes();
    let mut worker = world.root().await;
    worker.approve_for_now(Approve::All).await.unwrap();
    let id = worker.agent().state.agent();
    let slow = |label, seconds| FakeCall::new("look", label).taking(Duration::from_secs(seconds));
    world.provider.will(calling(&[
        slow("slow", 9),
        slow("broken", 5).that("panics"),
        FakeCall::new("nonesuch", "strange"),
        slow("quick", 1),
        slow("failing", 3).that("fails"),
    ]));
    world.provider.will_say("I see");

    let outcome = say(&mut worker, "go").await.unwrap();

    assert_eq!(outcome, Outcome::Completed);
    let broken = "internal error in ikigai (please report)";
    let strange =
        "There is no tool `nonesuch`. You have: act, change, fork, kill, look, recall, send, wait.";
    let refused = CallInputs {
        verdict: Verdict::Refused,
        ..ran("", false, strange)
    };
    let came = [
        refused,
        ran("quick", true, "quick"),
        ran("failing", false, "failing failed"),
        ran("broken", false, broken),
        ran("slow", true, "slow"),
    ];
    assert_eq!(world.results(id).await, came);
    let request = &world.provider.requests()[1];
    check_request(request, &target_of(&worker)).unwrap();
    let sent = ["slow", broken, strange, "quick", "failing failed"];
    assert_eq!(results_sent(request), sent);
}

/// S3-6: rows of a call belong to its caller, even while the user views another agent.
#[tokio::test(start_paused = true)]
async fn tool_rows_owned_by_caller_after_switch() {
    let (world, _) = World::with_fakes();
    let mut one = world.root().await;
    let mut other = world.root().await;
    let ids = [&one, &other].map(|worker| worker.agent().state.agent());
    let slow = FakeCall::new("look", "slow").taking(Duration::from_mins(1));
    world
        .provider
        .will(calling(&[FakeCall::new("look", "quick"), slow]));
    world.provider.will_say("hello from the other");
    world.provider.will_say("done");

    let work = say(&mut one, "work");
    let switch = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        say(&mut other, "hello").await
    };
    let (worked, switched) = tokio::join!(work, switch);

    assert_eq!(
        (worked.unwrap(), switched.unwrap()),
        (Outcome::Completed, Outcome::Completed)
    );
    let calls = [
        "tool_call",
        "tool_call",
        "usage",
        "tool_result",
        "tool_result",
    ];
    let kinds = world.kinds(ids[0]).await;
    assert_eq!(kinds[3..8], calls);
    let kinds = world.kinds(ids[1]).await;
    assert_eq!(kinds[2..], ["user", "assistant", "usage"]);
}

#[tokio::test(start_paused = true)]
async fn calls_are_shown_as_they_begin_print_and_end() {
    let (world, call_log) = World::with_fakes();
    let mut worker = world.root().await;
    let fakes = [
        FakeCall::new("look", "one"),
        FakeCall::new("look", "two").taking(Duration::from_secs(3)),
    ];
    world.provider.will(calling(&fakes));
    world.provider.will_say("done");

    let (_, told) = active_agents(&mut worker, TestJob::Say("go"), |_| Vec::new()).await;

    let steps: Vec<String> = told
        .iter()
        .filter_map(|update| match update {
            UiEvent::Running(call) => Some(format!("running {}", call.seq)),
            UiEvent::Progress { call, line } => Some(format!("{} prints {line}", call.seq)),
            UiEvent::Stored(_) if is_stored(update, "tool_result") => Some("result".to_owned()),
            _ => None,
        })
        .collect();
    assert_eq!(
        steps,
        [
            "running 4",
            "running 5",
            "4 prints one",
            "result",
            "5 prints two",
            "result"
        ]
    );
    assert_eq!(call_log.moments().len(), 4);
    assert!(matches!(&call_log.moments()[3], Moment::Ended(label) if label == "two"));
}

/// Requests offer the agent's toolset, and calls of other tools are refused.
#[tokio::test(start_paused = true)]
async fn a_toolset_bounds_what_is_offered_and_what_can_be_called() {
    let (world, call_log) = World::with_fakes();
    let settings = Settings {
        toolset: Some(vec!["look".to_owned()]),
        approve: Some(Approve::All),
        ..Settings::default()
    };
    let mut worker = world.root_with(&settings).await;
    let id = worker.agent().state.agent();
    world.provider.will(calling(&[
        FakeCall::new("act", "a"),
        FakeCall::new("look", "l"),
    ]));
    world.provider.will_say("I see");

    say(&mut worker, "go").await.unwrap();

    let requests = world.provider.requests();
    let offered: Vec<_> = requests[0].tools.iter().map(|tool| &tool.name).collect();
    assert_eq!(offered, ["look"]);
    assert_eq!(call_log.began(), ["l"]);
    assert_eq!(
        world.results(id).await[0].output,
        "There is no tool `act`. You have: look."
    );
}

/// E5: each request of a turn begins with the previous one. This holds across a restart at any
/// commit of the turn.
#[tokio::test(start_paused = true)]
async fn requests_of_a_turn_extend_each_other_across_a_restart_at_any_commit() {
    let script = |world: &World| {
        for round in ["a", "b", "c"] {
            let fakes = [
                FakeCall::new("look", round).taking(Duration::from_secs(4)),
                FakeCall::new("act", round),
            ];
            world.provider.will(calling(&fakes));
        }
    };
    let (unbroken, _) = World::with_fakes();
    script(&unbroken);
    unbroken.provider.will_say("done");
    let mut worker = unbroken.root().await;
    worker.approve_for_now(Approve::All).await.unwrap();
    let before = unbroken.store.commits();
    say(&mut worker, "go").await.unwrap();
    let commits = unbroken.store.commits() - before;
    let whole = unbroken.provider.requests();
    assert_eq!(whole.len(), 4);
    for pair in whole.windows(2) {
        assert_extends(&pair[1], &pair[0]);
    }

    for nth in 1..=commits {
        let (world, _) = World::with_fakes();
        script(&world);
        let mut worker = world.root().await;
        worker.approve_for_now(Approve::All).await.unwrap();
        world.store.fail_commit(nth, CommitFault::WrittenAndSilent);
        dies_after(1000, &mut worker, TestJob::Say("go")).await;
        let sent = world.provider.requests();
        let restarted = world.restarted();
        let mut worker = restarted.reopened().await;
        world.provider.forget_script();
        world.provider.will_say("as you say");
        say(&mut worker, "well?").await.unwrap();

        let requests = restarted.provider.requests();
        assert_eq!(whole[..sent.len()], sent, "died at commit {nth}");
        let last = requests.last().unwrap();
        check_request(last, &target_of(&worker)).unwrap();
        if let Some(before) = sent.last() {
            assert_extends(last, before);
        }
    }
}

fn assert_extends(later: &Request, earlier: &Request) {
    assert_eq!(later.system, earlier.system);
    assert_eq!(later.tools, earlier.tools);
    let blocks = |request: &Request| -> Vec<(Role, Block)> {
        let messages = request.messages.iter();
        messages
            .flat_map(|message| {
                message
                    .blocks
                    .iter()
                    .map(|block| (message.role, block.clone()))
            })
            .collect()
    };
    let (earlier, later) = (blocks(earlier), blocks(later));
    assert_eq!(later[..earlier.len()], earlier);
}

/// Calls that start or end together share a commit, since each commit flushes the disk.
#[tokio::test(start_paused = true)]
async fn calls_that_start_or_end_together_share_commits() {
    const CALLS: usize = 64;
    let second = Duration::from_secs(1);
    let labels: Vec<_> = (0..CALLS).map(|number| format!("c{number}")).collect();
    let writing = |label: &String| {
        let path = format!("/work/{label}");
        FakeCall::new("change", label)
            .writing(&[&path])
            .taking(second)
    };
    let reading = |label: &String| FakeCall::new("look", label).taking(second);
    let refused = |label: &String| FakeCall::new("nonesuch", label);
    let cases: [(&str, Vec<FakeCall>, u64); 3] = [
        ("writing", labels.iter().map(writing).collect(), 16),
        ("reading", labels.iter().map(reading).collect(), 8),
        ("refused", labels.iter().map(refused).collect(), 1),
    ];
    for (what, fakes, most) in cases {
        let (world, _) = World::with_fakes();
        let mut worker = world.root().await;
        worker.approve_for_now(Approve::All).await.unwrap();
        let id = worker.agent().state.agent();
        world.provider.will(calling(&fakes));
        world.provider.will_say("done");
        let before = world.store.commits();

        say(&mut worker, "go").await.unwrap();

        // The message, the calls and the last answer take one commit each.
        let commits = world.store.commits() - before;
        assert!(commits <= most + 6, "{what}: {commits} commits");
        assert_eq!(world.results(id).await.len(), CALLS, "{what}");
    }
}

#[test]
fn a_stored_call_of_a_missing_tool_may_have_changed_any_file() {
    let changes = |tool| ikigai_engine::tool_facts(tool).changes;

    assert_eq!(changes("removed_tool"), FileChanges::Unknown);
    assert_eq!(changes("file_write"), FileChanges::Listed);
    assert_eq!(changes("fork"), FileChanges::None);
}
