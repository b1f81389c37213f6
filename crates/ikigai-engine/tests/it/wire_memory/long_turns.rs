//! A turn of many calls with long outputs forgets nothing.

use std::collections::VecDeque;

use ikigai_core::Kind;
use ikigai_engine::{Outcome, UiEvent, UserInput, UserRequest, Worker};
use ikigai_testkit::mock::MockAnswer;
use ikigai_testkit::{cases, tell};

use super::support::{DIALECTS, MAX_OUTPUT, Sent, SentRequest, Wire, is_kind, run, say};
use crate::support::{TestJob, active_agents, is_stored};

const RULE: &str = "Never touch prod.db. Find out why rows are doubled.";
const FIX: &str = "Fix: dedupe in loader.rs:88";
const NEXT: &str = "Apply it.";
const ADDED: &str = "The table is called orders_2026, and never drop it.";

const WINDOWS: [u64; 3] = [24_000, 32_000, 200_000];

/// Returns a command that prints 32 KB and ends with its outcome.
fn command(call: usize, fails: bool) -> String {
    let end = if fails { "exit 3" } else { "true" };
    format!(
        "echo 'call {call} begins'; seq -f 'row %05g of call {call} is here twice' 1 900; \
         echo 'The outcome of call {call} is {} doubled rows.'; {end}",
        1_000 + call
    )
}

fn outcome(call: usize) -> String {
    format!(
        "The outcome of call {call} is {} doubled rows.",
        1_000 + call
    )
}

/// Returns the model's answers: a response per group of calls, then the fix.
fn answers(groups: &[Vec<String>]) -> VecDeque<MockAnswer> {
    let calls = groups.iter().map(|group| run(None, group));
    calls.chain([say(FIX), say("Done.")]).collect()
}

fn wire(dialect: &str, window: u64, groups: &[Vec<String>]) -> (Wire, Sent) {
    let mut answers = answers(groups);
    Wire::scripted(dialect, window, move |_| {
        answers.pop_front().unwrap_or_else(|| say("Nothing more."))
    })
}

/// Sends the rule, and another message once `add_after` results are stored.
async fn long_turn(worker: &mut Worker, add_after: Option<usize>) {
    let mut results = 0;
    let (outcome, _) = active_agents(worker, TestJob::Say(RULE), |update: &UiEvent| {
        results += usize::from(is_stored(update, "tool_result"));
        let adds = is_stored(update, "tool_result") && Some(results) == add_after;
        adds.then(|| UserRequest::Line(UserInput::Message(ADDED.to_owned())))
            .into_iter()
            .collect()
    })
    .await;
    assert_eq!(outcome.unwrap(), Outcome::Completed);
}

/// Checks that all requests fit and have the rule and the newest results whole.
fn check_requests(
    name: &str,
    window: u64,
    sent: &[SentRequest],
    stored: &[String],
    sizes: &[usize],
) {
    let mut groups = sizes.iter();
    let mut seen = 0;
    for (index, request) in sent.iter().enumerate() {
        let total = request.tokens + MAX_OUTPUT;
        assert!(total <= window, "{name}: request {index} has {total}");
        if request.is_summary {
            continue;
        }
        let is_there = request.prompt.user_texts().any(|text| text == RULE);
        assert!(is_there, "{name}: request {index} lacks the rule");
        let results: Vec<_> = request.prompt.results().collect();
        let Some(size) = groups.next().filter(|_| index > 0) else {
            continue;
        };
        seen += size;
        let newest = &stored[seen - size..seen];
        assert!(results.len() >= *size, "{name}: request {index}");
        for (result, whole) in results[results.len() - size..].iter().zip(newest) {
            let result = result.strip_prefix("error: ").unwrap_or(result);
            assert_eq!(result, whole, "{name}: request {index}: a newest result");
        }
    }
    assert_eq!(seen, stored.len(), "{name}");
}

/// Checks that the next request has the rule, the answer and the calls' outcomes.
fn check_next(name: &str, request: &SentRequest, calls: usize) {
    let texts: Vec<_> = request.prompt.texts().collect();
    for said in [RULE, FIX, NEXT] {
        assert!(texts.contains(&said), "{name}: `{said}` is missing");
    }
    for call in 0..calls {
        let outcome = outcome(call);
        let is_there = texts.iter().any(|text| text.contains(&outcome));
        assert!(is_there, "{name}: `{outcome}` is missing");
    }
}

/// Returns the windows of further variants; the large one takes long.
fn small_windows() -> &'static [u64] {
    let is_long = cases(0, 1) == 1;
    if is_long { &WINDOWS } else { &WINDOWS[..2] }
}

async fn play(groups: &[Vec<String>], windows: &[u64], add_after: Option<usize>) {
    let sizes: Vec<usize> = std::iter::once(0)
        .chain(groups.iter().map(Vec::len))
        .collect();
    let calls: usize = sizes.iter().sum();
    for (_, dialect) in DIALECTS {
        for window in windows.iter().copied() {
            let name = format!("{dialect} {window}");
            let (wire, sent) = wire(dialect, window, groups);
            let mut worker = wire.root().await;
            let id = worker.agent().state.agent();

            long_turn(&mut worker, add_after).await;
            let asked = sent.all().len();
            crate::support::say(&mut worker, NEXT).await.unwrap();

            let stored = wire.outputs(id).await;
            assert_eq!(stored.len(), calls, "{name}");
            let sent = sent.all().clone();
            check_requests(&name, window, &sent[..asked], &stored, &sizes);
            let next = sent.iter().rfind(|request| !request.is_summary).unwrap();
            check_next(&name, next, calls);
            if add_after.is_some() {
                assert!(next.prompt.user_texts().any(|text| text == ADDED), "{name}");
            }
            assert_eq!(wire.mock.faults(), Vec::<String>::new(), "{name}");
            let rows = wire.world.rows(id).await;
            let context = rows
                .iter()
                .filter(|row| is_kind(row, Kind::Summary))
                .count();
            let largest = sent.iter().map(|request| request.tokens).max().unwrap();
            let summaries = sent.iter().filter(|request| request.is_summary).count();
            tell(&format!(
                "{name}: {} requests, {summaries} for summaries, {context} context rows, largest \
                 {largest} of {} tokens",
                sent.len(),
                window - MAX_OUTPUT,
            ));

            let live = wire.world.engine.next_request(id).await.unwrap();
            drop(worker);
            let restarted = wire.world.restarted();
            assert_eq!(
                restarted.engine.next_request(id).await.unwrap(),
                live,
                "{name}"
            );
        }
    }
}

/// S2-19 E2d E2e: a turn of 34 `bash` calls with 32 KB each forgets nothing. The next request has
/// the user's rule, the answer and the calls' outcomes. This holds in every dialect and window.
#[tokio::test]
async fn a_long_turn_forgets_nothing_on_the_wire() {
    let groups: Vec<_> = (0..34).map(|call| vec![command(call, false)]).collect();
    play(&groups, &WINDOWS, None).await;
}

/// The same holds for parallel calls with failures and a message typed during the turn.
#[tokio::test]
async fn parallel_calls_with_failures_forget_nothing_on_the_wire() {
    let mut calls = 0;
    let mut groups = Vec::new();
    for size in [3, 1, 5, 2, 4, 1, 6, 3, 4, 5] {
        let group = (calls..calls + size).map(|call| command(call, call % 4 == 1));
        groups.push(group.collect());
        calls += size;
    }
    play(&groups, small_windows(), Some(9)).await;
}

/// A turn with long arguments is summarised inside, since arguments cannot be elided.
#[tokio::test]
async fn long_arguments_are_summarised_inside_the_turn_on_the_wire() {
    let text = "a line of a long file without an end\n".repeat(160);
    let write = |call: usize| {
        let outcome = outcome(call);
        vec![format!("cat > file <<'END'\n{text}END\necho '{outcome}'")]
    };
    let groups: Vec<_> = (0..34).map(write).collect();
    play(&groups, small_windows(), Some(20)).await;
}
