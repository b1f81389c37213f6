//! Waits: results, deadlines and restarts.

use std::time::Duration;

use ikigai_core::data::Verdict;
use ikigai_core::settings::Approve;
use ikigai_engine::{AgentJob, Outcome};
use ikigai_testkit::Step;
use serde_json::json;
use tokio::time::Instant;

use super::support::{after, calls, fork, kill, send, typed, wait, work, work_and_say};
use crate::fakes::call;
use crate::support::World;

/// Removes tokens and durations, which depend on the model, from a result.
fn without_costs(output: &str) -> String {
    let lines = output.lines().map(|line| match line.split_once(" (") {
        Some((before, cost)) if cost.contains(" tokens, ") => before,
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A wait reports the state of each agent: its mail, idle, dead or running. It ends when all
/// are done, or at its deadline.
#[tokio::test(start_paused = true)]
async fn a_fan_in_tells_the_truth_of_each() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    typed(&mut worker, "/fork --name lazy").await;
    let names = ["quick", "doomed", "slow", "lazy"];
    let forks = [
        fork("quick", "run"),
        fork("doomed", "fall"),
        fork("slow", "stroll"),
    ];
    world
        .provider
        .will_to("go", calls(forks.into_iter().chain([kill("doomed")])));
    world.provider.will_to("go", calls([wait(20, &names)]));
    world.provider.will_to("go", calls([wait(600, &names)]));
    world.provider.will_say_to("go", "well");
    world.provider.will_to("run", after(5, "here"));
    world.provider.will_to("fall", after(50, "never"));
    world.provider.will_to("stroll", after(50, "at last"));
    let begun = Instant::now();

    assert_eq!(work(&mut worker, "go").await, Outcome::Completed);

    let outputs = world.outputs(root).await;
    assert_eq!(
        without_costs(&outputs[4]),
        "quick: report\n<message from=\"quick\" about=\"report\">\nhere\n</message>\n\
         doomed: dead\nslow: running (not done within 20 s)\nlazy: idle"
    );
    assert_eq!(
        without_costs(&outputs[5]),
        "quick: idle\ndoomed: dead\nslow: report\n\
         <message from=\"slow\" about=\"report\">\nat last\n</message>\nlazy: idle"
    );
    assert_eq!(begun.elapsed().as_secs(), 50);
}

/// A wait for the next mail ends at its deadline if none arrives.
#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_its_deadline() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    world.provider.will(calls([wait(30, &[])]));
    world.provider.will_say("no messages");
    let begun = Instant::now();

    work(&mut worker, "go").await;

    // The deadline counts from the call's row, and each row advances the log's clock a little.
    let took = begun.elapsed().as_millis();
    assert!((29_900..=30_000).contains(&took), "{took} ms");
    assert_eq!(world.outputs(root).await, ["no message within 30 s"]);
}

/// E9c: after a crash a wait with mail or a passed deadline gets its result. Others stay open. A
/// resumed turn waits for the remaining time; a new message closes the wait.
#[tokio::test(start_paused = true)]
async fn open_wait_resumes_with_what_is_left() {
    /// Creates a world restarted after a crash five seconds into a 60 s wait.
    async fn died() -> World {
        let world = World::new();
        let mut worker = world.root().await;
        world.provider.will_to("go", calls([wait(60, &[])]));
        let job = AgentJob::Say("go".to_owned());
        let work = work_and_say(&mut worker, job, std::future::pending());
        let ended = tokio::time::timeout(Duration::from_secs(5), work).await;
        assert!(ended.is_err(), "it waits");
        let restarted = world.restarted();
        // The clock of the log continues where the first process stopped.
        restarted
            .clock
            .set(world.clock.now().after(Duration::from_secs(5)));
        restarted
    }

    // The resumed wait takes the remaining time.
    let world = died().await;
    let mut worker = world.reopened().await;
    let root = worker.agent().state.agent();
    assert_eq!(
        world.kinds(root).await.pop().as_deref(),
        Some("interrupted")
    );
    assert!(world.results(root).await.is_empty(), "it stays open");
    world.provider.will_say("no messages");
    let begun = Instant::now();
    let (outcome, _) = work_and_say(&mut worker, AgentJob::Resume, std::future::pending()).await;
    assert_eq!(outcome.unwrap(), Outcome::Completed);
    assert_eq!(world.outputs(root).await, ["no message within 60 s"]);
    let left = begun.elapsed().as_secs();
    assert!((54..=55).contains(&left), "{left} s");

    // The deadline has passed.
    let world = died().await;
    world.clock.advance(Duration::from_secs(100));
    let worker = world.reopened().await;
    let root = worker.agent().state.agent();
    assert_eq!(world.outputs(root).await, ["no message within 60 s"]);

    // The mail has arrived.
    let world = died().await;
    let mut other = world.engine.create_root("/other", "/other").await.unwrap();
    // Otherwise a send to another family needs approval.
    other.approve_for_now(Approve::All).await.unwrap();
    world
        .provider
        .will_to("write", calls([super::support::send("parser", "news")]));
    world.provider.will_say_to("write", "sent");
    work(&mut other, "write").await;
    let worker = world.reopened().await;
    let root = worker.agent().state.agent();
    assert_eq!(
        world.outputs(root).await,
        ["<message from=\"other\" about=\"message\">\nnews\n</message>"]
    );

    // The user sends another message.
    let world = died().await;
    let mut worker = world.reopened().await;
    let root = worker.agent().state.agent();
    world.provider.will_say("never mind");
    work(&mut worker, "stop waiting").await;
    let results = world.results(root).await;
    assert_eq!(results.len(), 1);
    assert_eq!(results[0].verdict, Verdict::Interrupted);
}

/// Waits of one answer run in parallel: each ends when its agents are done.
#[tokio::test(start_paused = true)]
async fn waits_go_on_side_by_side() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    world
        .provider
        .will_to("go", calls([fork("one", "stroll"), fork("two", "run")]));
    world
        .provider
        .will_to("go", calls([wait(600, &["one"]), wait(600, &["two"])]));
    world.provider.will_say_to("go", "both");
    world.provider.will_to("stroll", after(50, "slowly"));
    world.provider.will_to(
        "run",
        [
            Step::Sleep(Duration::from_secs(10)),
            Step::Fail("no breath".to_owned()),
        ],
    );
    let begun = Instant::now();

    work(&mut worker, "go").await;

    let outputs = world.outputs(root).await;
    assert_eq!(
        without_costs(&outputs[2]),
        "two: failed\n<message from=\"two\" about=\"failed\">\nI could not finish: no breath\n</message>"
    );
    assert_eq!(
        without_costs(&outputs[3]),
        "one: report\n<message from=\"one\" about=\"report\">\nslowly\n</message>"
    );
    assert_eq!(begun.elapsed().as_secs(), 50);
}

/// Streaming children do not wake a waiting parent. Its reads do not grow with the streams.
#[tokio::test(start_paused = true)]
async fn streaming_children_cost_a_waiting_parent_no_reading() {
    const CHILDREN: usize = 20;
    const WORDS: usize = 100;
    let world = World::new();
    let mut worker = world.root().await;
    let names: Vec<_> = (0..CHILDREN).map(|n| format!("child-{n}")).collect();
    for (name, n) in names.iter().zip(0..) {
        let spoken = [
            Step::Say("word ".to_owned()),
            Step::Sleep(Duration::from_millis(300 + 7 * n)),
        ];
        let spoken = spoken.iter().cycle().take(2 * WORDS).cloned();
        world.provider.will_to(name, spoken.chain([Step::Finish]));
    }
    let forks = names.iter().map(|name| fork(name, name));
    world.provider.will_to("go", calls(forks));
    let all: Vec<_> = names.iter().map(String::as_str).collect();
    world.provider.will_to("go", calls([wait(600, &all)]));
    world.provider.will_say_to("go", "well");
    let before = (world.store.reads(), world.store.commits());

    assert_eq!(work(&mut worker, "go").await, Outcome::Completed);

    let reads = world.store.reads() - before.0;
    let commits = world.store.commits() - before.1;
    assert!(
        commits > (CHILDREN * WORDS / 2) as u64,
        "words were stored as they came: {commits}"
    );
    // About twenty reads per child to open, answer and report, and polls of the log.
    assert!(reads < 2 * commits, "{reads} reads while {commits} commits");
}

/// E9c: a wait for children that a crash stopped, too, stays open. `/resume all` continues the
/// children and the wait, which returns their answers.
#[tokio::test(start_paused = true)]
async fn a_fan_in_outlasts_a_restart_together_with_its_children() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    world
        .provider
        .will_to("go", calls([fork("one", "begin"), wait(600, &["one"])]));
    world.provider.will_to("begin", after(3600, "never said"));
    let job = AgentJob::Say("go".to_owned());
    let dying = work_and_say(&mut worker, job, std::future::pending());
    let ended = tokio::time::timeout(Duration::from_secs(5), dying).await;
    assert!(ended.is_err(), "it waits");

    let restarted = world.restarted();
    restarted
        .clock
        .set(world.clock.now().after(Duration::from_secs(5)));
    restarted.provider.forget_script();
    let one = restarted.named("one").await;
    // The dead process no longer holds its lease.
    let child = restarted.engine.open(&one).await.unwrap();
    child.release().await.unwrap();
    let mut worker = restarted.reopened().await;
    assert_eq!(
        restarted.outputs(root).await.len(),
        1,
        "the wait stays open"
    );
    restarted.provider.will_to("begin", after(5, "at last"));
    restarted.provider.will_to("go", after(0, "well"));
    typed(&mut worker, "/resume all").await;

    let outputs = restarted.outputs(root).await;
    assert_eq!(
        without_costs(&outputs[1]),
        "one: report\n<message from=\"one\" about=\"report\">\nat last\n</message>"
    );
}

/// A question ends a wait for all at once.
#[tokio::test(start_paused = true)]
async fn a_question_ends_a_wait() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    let ask = call(
        "send",
        &json!({ "to": "parent", "message": "Which file?", "question": true }),
    );
    let names = ["asker", "slow"];
    let forks = [fork("asker", "look"), fork("slow", "stroll")];
    world.provider.will_to("go", calls(forks));
    world.provider.will_to("go", calls([wait(600, &names)]));
    world
        .provider
        .will_to("go", calls([send("asker", "lib.rs")]));
    world.provider.will_to("go", calls([wait(600, &["asker"])]));
    world.provider.will_say_to("go", "well");
    world.provider.will_say_to("go", "all done");
    world.provider.will_to("look", calls([ask]));
    world
        .provider
        .will_to("look", calls([wait(600, &["parent"])]));
    world.provider.will_say_to("look", "fixed lib.rs");
    world.provider.will_to("stroll", after(50, "at last"));

    assert_eq!(work(&mut worker, "go").await, Outcome::Completed);

    let outputs = world.outputs(root).await;
    let first = without_costs(&outputs[2]);
    assert!(first.starts_with("asker: question\n"), "{first}");
    // It did not reach its deadline.
    assert!(first.ends_with("\nslow: running"), "{first}");
    let report = without_costs(&outputs[4]);
    assert!(report.starts_with("asker: report\n"), "{report}");
    assert!(report.contains("\nfixed lib.rs\n"), "{report}");
}

/// With `until: any` a wait ends with the first message.
#[tokio::test(start_paused = true)]
async fn a_wait_for_any_ends_with_the_first_message() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    let names = ["quick", "slow"];
    let any = call("wait", &json!({ "agents": names, "until": "any" }));
    let forks = [fork("quick", "run"), fork("slow", "stroll")];
    world.provider.will_to("go", calls(forks));
    world.provider.will_to("go", calls([any]));
    world.provider.will_say_to("go", "well");
    world.provider.will_say_to("go", "all done");
    world.provider.will_to("run", after(5, "here"));
    world.provider.will_to("stroll", after(50, "at last"));

    assert_eq!(work(&mut worker, "go").await, Outcome::Completed);

    let output = without_costs(&world.outputs(root).await[2]);
    assert!(output.starts_with("quick: report\n"), "{output}");
    assert!(output.contains("slow: running"), "{output}");
}
