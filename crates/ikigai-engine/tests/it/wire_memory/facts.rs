//! Facts of early turns survive three summaries that a script writes from the prompt alone.

use std::collections::VecDeque;

use ikigai_core::{AgentId, Kind};
use ikigai_engine::Worker;
use ikigai_testkit::mock::MockAnswer;
use ikigai_testkit::tell;

use super::support::{DIALECTS, Sent, SentRequest, Wire, is_kind, run, say};
use crate::support::attended_line;

/// Returns facts of the user, facts from commands, and decisions of the model.
fn facts() -> (Vec<String>, Vec<String>, Vec<String>) {
    let stated = (0..10).map(|n| format!("The service number {n} listens on port {}.", 7_000 + n));
    let found = (0..5).map(|n| format!("The outcome of check {n} is {} failures.", 300 + n));
    let decided = (0..5).map(|n| {
        let pages = 40 + n;
        format!("Decision {n}: read {pages} pages at once because smaller reads were slower.")
    });
    (stated.collect(), found.collect(), decided.collect())
}

const FILLER: &str = "words that say nothing about anything and go on and on\n";

/// Returns the answers of ten turns: each runs a command and states a decision.
fn early_answers() -> VecDeque<MockAnswer> {
    let (_, found, decided) = facts();
    let mut answers = VecDeque::new();
    for turn in 0..10 {
        let said = found.get(turn).map_or("", String::as_str);
        let command =
            format!("for i in $(seq 40); do echo 'some line of a log'; done; echo '{said}'");
        answers.push_back(run(None, &[command]));
        let decision = decided.get(turn % 5).map_or("", String::as_str);
        answers.push_back(say(&format!("{decision}\n{}", FILLER.repeat(10))));
    }
    answers
}

fn wire(dialect: &str, window: u64) -> (Wire, Sent) {
    let mut answers = early_answers();
    Wire::scripted(dialect, window, move |_| {
        let later = || say(&format!("It goes on.\n{}", FILLER.repeat(40)));
        answers.pop_front().unwrap_or_else(later)
    })
}

async fn state_facts(worker: &mut Worker) {
    let (stated, ..) = facts();
    for fact in stated {
        let text = format!("{fact}\n{}", FILLER.repeat(30));
        crate::support::say(worker, &text).await.unwrap();
    }
}

async fn summaries(wire: &Wire, id: AgentId) -> usize {
    let rows = wire.world.rows(id).await;
    let summaries = rows.iter().filter(|row| is_kind(row, Kind::Summary));
    summaries.filter(|row| row.content.is_some()).count()
}

/// Checks that the request has all facts, the user's not in verbatim messages.
fn check_facts(name: &str, request: &SentRequest) {
    let (stated, found, decided) = facts();
    let texts: Vec<_> = request.prompt.texts().collect();
    let all = stated.iter().chain(&found).chain(&decided);
    let missing: Vec<_> = all
        .filter(|fact| !texts.iter().any(|text| text.contains(*fact)))
        .collect();
    assert!(missing.is_empty(), "{name}: {missing:#?}");
    let is_summary = |text: &str| text.starts_with("Summary of the conversation so far");
    for fact in &stated {
        let mut typed = request.prompt.user_texts().filter(|text| !is_summary(text));
        assert!(!typed.any(|text| text.contains(fact)), "{name}: {fact}");
    }
}

/// After three summaries the request has 20 of 20 facts. Ten were stated by the user before the
/// verbatim part, ten are from tool results and the model's decisions.
#[tokio::test]
async fn facts_outlive_three_summaries() {
    for (_, dialect) in DIALECTS {
        for window in [24_000, 48_000] {
            let name = format!("{dialect} {window}");
            let (wire, sent) = wire(dialect, window);
            let mut worker = wire.root().await;
            let id = worker.agent().state.agent();
            state_facts(&mut worker).await;
            let mut turns = 0;
            while summaries(&wire, id).await < 3 {
                turns += 1;
                assert!(turns < 300, "{name}: no three summaries");
                let text = format!("Go on.\n{}", FILLER.repeat(20));
                crate::support::say(&mut worker, &text).await.unwrap();
            }

            crate::support::say(
                &mut worker,
                "Which ports, outcomes and decisions do you know?",
            )
            .await
            .unwrap();

            let sent = sent.all();
            let forms = sent.iter().filter(|request| request.is_summary);
            let texts = forms.filter(|request| request.prompt.tools.starts_with("[null"));
            tell(&format!(
                "{name}: {turns} more turns, {} requests in text form",
                texts.count()
            ));
            let last = sent.iter().rfind(|request| !request.is_summary).unwrap();
            check_facts(&name, last);
            assert_eq!(wire.mock.faults(), Vec::<String>::new(), "{name}");
        }
    }
}

/// Facts survive summaries in chunks, too. The budget is so small that the conversation is
/// summarised in chunks three times.
#[tokio::test]
async fn facts_outlive_summaries_in_chunks() {
    let (wire, sent) = wire("chat", 200_000);
    let mut worker = wire.root().await;
    let id = worker.agent().state.agent();
    state_facts(&mut worker).await;
    for (turn, budget) in ["20k", "16k", "12k"].iter().enumerate() {
        for _ in 0..30 {
            let text = format!("Go on.\n{}", FILLER.repeat(20));
            crate::support::say(&mut worker, &text).await.unwrap();
        }
        attended_line(&mut worker, &format!("/context budget {budget}"), |_| {
            Vec::new()
        })
        .await;
        crate::support::say(&mut worker, "Go on with less.")
            .await
            .unwrap();
        assert!(summaries(&wire, id).await > turn, "{budget}");
        attended_line(&mut worker, "/context budget 180k", |_| Vec::new()).await;
    }

    crate::support::say(
        &mut worker,
        "Which ports, outcomes and decisions do you know?",
    )
    .await
    .unwrap();

    let sent = sent.all();
    let last = sent.iter().rfind(|request| !request.is_summary).unwrap();
    check_facts("chunks", last);
    let is_chunk = |one: &&SentRequest| one.is_summary && one.prompt.tools.starts_with("[null");
    assert!(sent.iter().filter(is_chunk).count() > 3, "in chunks");
}
