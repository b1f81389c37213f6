//! Memory: a long turn forgets nothing, and no request exceeds its budget.

mod windows;

use ikigai_core::data::{self, SummaryData};
use ikigai_core::project::estimate_request;
use ikigai_core::{Block, Kind, Request, Row};
use ikigai_engine::{Outcome, UiEvent, Worker};
use ikigai_providers::{AnswerBlock, WindowSource};
use ikigai_testkit::{Step, is_summary_request};
use serde_json::json;

use crate::fakes::{FakeCall, calling};
use crate::support::{TestJob, World, active_agents, attended_line, say};

const RULE: &str = "Never touch prod.db. Find out why rows are doubled.";
const FIX: &str = "Fix: dedupe in loader.rs:88";

/// Creates a world with the fake tools, a window and summaries at 80 %.
fn world(window: u64) -> World {
    let tools: std::sync::Arc<dyn ikigai_engine::Tools> =
        std::sync::Arc::new(crate::fakes::CallLog::default().tools());
    World::with_window(window).equipped(move |engine| {
        engine
            .with_tools(tools.clone(), ikigai_engine::Safety::default())
            .with_summaries_at(Some(80))
    })
}

/// Returns the output of one call: its number first and last, 32 KB between.
fn output(call: usize) -> String {
    let middle = format!("row {call} is here twice\n").repeat(1_400);
    format!("outcome of call {call} begins\n{middle}outcome of call {call} ends\n")
}

/// Runs a turn of many calls with long outputs and a short answer.
async fn long_turn(world: &World, worker: &mut Worker, calls: usize) {
    for call in 0..calls {
        let fake = FakeCall::new("look", &format!("{call}")).printing(&output(call));
        world.provider.will(calling(&[fake]));
        for _ in 0..2 {
            world
                .provider
                .will_summarise_as("The user's rule: never touch prod.db. Rows are doubled.");
        }
    }
    world.provider.will_say(FIX);
    say(worker, RULE).await.unwrap();
}

fn texts(request: &Request) -> Vec<&str> {
    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
    let texts = blocks.filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        Block::ToolResult { content, .. } => Some(content.as_str()),
        _ => None,
    });
    texts.collect()
}

fn results(request: &Request) -> Vec<&str> {
    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
    let results = blocks.filter_map(|block| match block {
        Block::ToolResult { content, .. } => Some(content.as_str()),
        _ => None,
    });
    results.collect()
}

fn is_kind(row: &Row, kind: Kind) -> bool {
    row.kind.read_as() == Some(kind)
}

/// S2-19 E2d E2e: a turn of 34 calls with 32 KB each forgets nothing. The next request has the
/// user's rule, the answer and the outcomes of the calls. Every request fits and has its newest
/// result whole.
#[tokio::test(start_paused = true)]
async fn a_long_turn_forgets_nothing() {
    for window in [20_000, 24_000, 32_000, 200_000] {
        let world = world(window);
        let mut worker = world.root().await;
        let id = worker.agent().state.agent();

        long_turn(&world, &mut worker, 34).await;
        world.provider.will_say("Done.");
        say(&mut worker, "Apply it.").await.unwrap();

        let rows = world.rows(id).await;
        let stored: Vec<String> = rows
            .iter()
            .filter(|row| is_kind(row, Kind::ToolResult))
            .map(|row| data::read::<data::ToolResultData>(row.data.as_deref()))
            .filter_map(|result| result.output)
            .collect();
        assert_eq!(stored.len(), 34);
        let mut seen = 0;
        for request in world.provider.requests() {
            let size = estimate_request(&request);
            assert!(size <= window, "{size} of {window}");
            if is_summary_request(&request) {
                continue;
            }
            assert!(texts(&request).contains(&RULE), "the rule in every request");
            if let Some(newest) = results(&request).last()
                && seen < stored.len()
            {
                assert_eq!(*newest, stored[seen], "the newest result is whole");
                seen += 1;
            }
        }
        assert_eq!(seen, 34);
        let last = world.provider.requests().pop().unwrap();
        let said = texts(&last);
        assert!(said.contains(&FIX), "{window}: the answer");
        assert!(said.contains(&"Apply it."), "{window}");
        let outcome = said.iter().any(|text| text.contains("outcome of call 33"));
        let summary = said.iter().any(|text| text.contains("Rows are doubled."));
        assert!(outcome || summary, "{window}: what came of the calls");

        let live = world.engine.next_request(id).await.unwrap();
        drop(worker);
        let restarted = world.restarted();
        assert_eq!(restarted.engine.next_request(id).await.unwrap(), live);
    }
}

/// S2-19: long arguments and long outputs together are summarised; the newest result stays whole.
#[tokio::test(start_paused = true)]
async fn the_newest_result_is_whole_beside_long_arguments() {
    for window in [20_000, 24_000, 32_000] {
        let world = world(window);
        let mut worker = world.root().await;
        let id = worker.agent().state.agent();
        for call in 0..24 {
            let argument = format!("{call} {}", "long argument ".repeat(800));
            let fake = FakeCall::new("look", &argument).printing(&output(call));
            world.provider.will(calling(&[fake]));
            for _ in 0..4 {
                world.provider.will_summarise_as("Rows are doubled.");
            }
        }
        world.provider.will_say(FIX);

        say(&mut worker, RULE).await.unwrap();

        let stored = world.results(id).await;
        assert_eq!(stored.len(), 24);
        let requests = world.provider.requests();
        let sent = requests.iter().filter(|one| !is_summary_request(one));
        for (call, request) in sent.skip(1).enumerate() {
            let size = estimate_request(request);
            assert!(size <= window, "{size} of {window}");
            assert!(texts(request).contains(&RULE), "{window}: the rule");
            let newest = results(request).pop().unwrap();
            assert_eq!(newest, stored[call].output, "{window}: result {call}");
        }
        assert!(requests.iter().any(is_summary_request), "{window}");
    }
}

/// A range of only verbatim messages is not summarised: that would free nothing.
#[tokio::test(start_paused = true)]
async fn messages_that_stay_are_not_summarised() {
    // The second message leaves too little room for the result of the call.
    for (details, is_whole) in [(2_000, true), (2_800, false)] {
        let world = world(24_000);
        let mut worker = world.root().await;
        let id = worker.agent().state.agent();
        let message = format!("{RULE} {}", "Some detail. ".repeat(details));
        let fake = FakeCall::new("look", "the rows").printing(&output(0));
        world.provider.will(calling(&[fake]));
        for _ in 0..4 {
            world.provider.will_summarise_as("Rows are doubled.");
        }
        world.provider.will_say(FIX);

        say(&mut worker, &message).await.unwrap();

        let requests = world.provider.requests();
        let asked = requests.iter().filter(|one| is_summary_request(one));
        assert_eq!(asked.count(), 0, "summaries asked for");
        let last = requests.last().unwrap();
        let size = estimate_request(last);
        assert!((19_200..=24_000).contains(&size) || !is_whole, "{size}");
        assert!(texts(last).contains(&message.as_str()), "the message");
        let result = results(last)[0];
        let stored = &world.results(id).await[0].output;
        assert_eq!(result == stored, is_whole, "{details}");
        assert!(
            is_whole || result.contains("left out: recall #"),
            "{result}"
        );
    }
}

/// The model's counts correct the estimates after any number of successive context rows.
#[tokio::test(start_paused = true)]
async fn context_rows_at_every_request_keep_the_scale() {
    let window = 24_000;
    let world = world(window);
    world.provider.will_count(1_800);
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    for call in 0..60 {
        let output = format!("row {call} is here twice\n").repeat(500);
        let fake = FakeCall::new("look", &format!("{call}")).printing(&output);
        world.provider.will(calling(&[fake]));
        for _ in 0..4 {
            world.provider.will_summarise_as("Rows are doubled.");
        }
    }
    world.provider.will_say(FIX);

    say(&mut worker, RULE).await.unwrap();

    for (number, request) in world.provider.requests().iter().enumerate().skip(4) {
        let counted = estimate_request(request) * 1_800 / 1_000;
        assert!(counted <= window, "request {number}: {counted}");
    }
    let live = world.engine.next_request(id).await.unwrap();
    drop(worker);
    let restarted = world.restarted();
    assert_eq!(restarted.engine.next_request(id).await.unwrap(), live);
}

/// S2-19: a result is bounded once, when it is stored. Requests have it as stored, or elided with a
/// note that names its row.
#[tokio::test(start_paused = true)]
async fn tool_result_is_bounded_once() {
    let world = world(24_000);
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();

    long_turn(&world, &mut worker, 8).await;

    let stored = world.results(id).await;
    let share = 24_000;
    assert!(stored.iter().all(|given| given.output.len() <= share));
    let is_stored = |content: &str| stored.iter().any(|given| given.output == content);
    for request in world.provider.requests() {
        for content in results(&request) {
            let is_elided = content.contains(" left out: recall #") && content.len() < 2_000;
            assert!(is_stored(content) || is_elided, "{content}");
        }
    }
}

/// E2e: if a request does not fit a smaller budget, the engine first writes context rows.
#[tokio::test(start_paused = true)]
async fn smaller_window_writes_context_rows() {
    let world = world(200_000);
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    long_turn(&world, &mut worker, 10).await;
    let kinds = world.kinds(id).await;
    assert!(!kinds.iter().any(|kind| kind == "summary"));
    let asked = world.provider.requests().len();
    for _ in 0..12 {
        world
            .provider
            .will_summarise_as("The user's rule: never touch prod.db.");
    }
    attended_line(&mut worker, "/context budget 24k", |_| Vec::new()).await;
    world.provider.will_say("Done.");

    say(&mut worker, "Apply it.").await.unwrap();

    let rows = world.rows(id).await;
    assert!(rows.iter().any(|row| is_kind(row, Kind::Summary)));
    for request in &world.provider.requests()[asked..] {
        assert!(estimate_request(request) <= 24_000);
        assert!(is_summary_request(request) || texts(request).contains(&RULE));
    }
}

/// E5 E2d: between two context rows each request begins with the one before.
#[tokio::test(start_paused = true)]
async fn requests_change_only_at_context_rows() {
    let world = world(32_000);
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();

    long_turn(&world, &mut worker, 30).await;

    let rows = world.rows(id).await;
    let context = rows
        .iter()
        .filter(|row| is_kind(row, Kind::Summary))
        .count();
    let requests = world.provider.requests();
    let sent: Vec<_> = requests
        .iter()
        .filter(|one| !is_summary_request(one))
        .collect();
    let moved = sent
        .windows(2)
        .filter(|pair| !pair[1].messages.starts_with(&pair[0].messages))
        .count();
    assert!(context > 1 && moved <= context, "{moved} of {context}");
}

/// A summary request extends the conversation as sent, with the same tools. The provider's cache
/// then has all but the last message.
#[tokio::test(start_paused = true)]
async fn a_summary_is_asked_for_on_the_same_prefix() {
    let world = world(40_000);
    let mut worker = world.root().await;
    for turn in 0..20 {
        world.provider.will_summarise_as("They talked about words.");
        world
            .provider
            .will_say(&format!("answer {turn} {}", "word ".repeat(1_600)));
        say(&mut worker, &format!("question {turn}")).await.unwrap();
    }

    let requests = world.provider.requests();
    let asked: Vec<_> = requests
        .iter()
        .filter(|one| is_summary_request(one))
        .collect();
    assert!(!asked.is_empty());
    for request in asked {
        let (_, prefix) = request.messages.split_last().unwrap();
        let is_sent = |other: &&Request| {
            other.messages == prefix
                && (&other.tools, &other.system) == (&request.tools, &request.system)
        };
        assert!(
            requests.iter().any(|other| is_sent(&other)),
            "the same prefix"
        );
    }
}

/// `recall` with a row returns all of it, page by page.
#[tokio::test(start_paused = true)]
async fn a_row_is_opened_in_pages() {
    let world = world(200_000);
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    long_turn(&world, &mut worker, 1).await;
    let rows = world.rows(id).await;
    let result = rows
        .iter()
        .find(|row| is_kind(row, Kind::ToolResult))
        .unwrap();
    let name = format!("#{}", result.at.seq);
    let recall = |arguments: serde_json::Value| AnswerBlock::Call {
        id: None,
        name: "recall".to_owned(),
        arguments: arguments.to_string(),
        item: None,
    };
    let asked = [
        json!({"row": name}),
        json!({"row": name, "page": 2}),
        json!({"row": name, "page": 9}),
        json!({"row": "nothing"}),
        json!({}),
    ];
    let calls = asked.into_iter().map(recall).collect();
    world.provider.will([Step::FinishWith(calls)]);
    world.provider.will_say("read");

    say(&mut worker, "what did it say?").await.unwrap();

    let results = world.results(id).await;
    let pages: Vec<_> = results[1..]
        .iter()
        .map(|given| given.output.as_str())
        .collect();
    let heading = format!("{name} (tool_result), page 1 of 2; continue with page 2\n");
    let first = pages[0].strip_prefix(&heading).unwrap();
    let second = pages[1].split_once('\n').unwrap().1;
    assert_eq!(format!("{first}{second}"), output(0), "all of it");
    assert_eq!(pages[2], format!("{name} has 2 pages"));
    assert!(
        pages[3].starts_with("`nothing` is not a row"),
        "{}",
        pages[3]
    );
    assert_eq!(pages[4], "`query` or `row` is missing");
}

/// E2d: without a summary the conversation is cut, with a note and a warning. The note is for the
/// model, the warning for the user. The user's messages and the newest exchange stay.
#[tokio::test(start_paused = true)]
async fn a_cut_leaves_a_note_and_the_users_messages() {
    let world = world(7_000);
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    world.provider.will_say("Understood.");
    say(&mut worker, RULE).await.unwrap();
    for turn in 0..4 {
        world
            .provider
            .will_say(&format!("answer {turn} {}", "word ".repeat(1_200)));
        say(&mut worker, &format!("question {turn}")).await.unwrap();
    }
    world.provider.will_say("the last");

    let (_, told) = active_agents(&mut worker, TestJob::Say("question 4"), |_| Vec::new()).await;

    let warned = told.iter().any(
        |update| matches!(update, UiEvent::Warning(text) if text.starts_with("Context full: ")),
    );
    assert!(warned, "{told:?}");
    let rows = world.rows(id).await;
    let cut = rows
        .iter()
        .rfind(|row| is_kind(row, Kind::Summary))
        .unwrap();
    let data: SummaryData = data::read(cut.data.as_deref());
    assert_eq!((data.cut, cut.content.as_deref()), (Some(true), None));
    let last = world.provider.requests().pop().unwrap();
    let said = texts(&last);
    assert!(said[0].contains("`recall`"), "{said:?}");
    assert_eq!(&said[1..4], [RULE, "question 0", "question 1"]);
    assert!(said.iter().any(|text| text.starts_with("answer 3")));
}

/// E2b: an elision can be undone like a summary.
#[tokio::test(start_paused = true)]
async fn an_elision_names_the_row_and_is_taken_back() {
    let world = world(40_000).equipped(|engine| engine.with_summaries_at(None));
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    long_turn(&world, &mut worker, 4).await;
    let rows = world.rows(id).await;
    let first = rows
        .iter()
        .find(|row| is_kind(row, Kind::ToolResult))
        .unwrap();
    let elisions: Vec<_> = rows
        .iter()
        .filter(|row| is_kind(row, Kind::Summary))
        .collect();
    let shortened = world.engine.next_request(id).await.unwrap();
    let elided = results(&shortened)[0].to_owned();
    assert!(elided.starts_with("outcome of call 0 begins\n"), "{elided}");
    assert!(elided.ends_with("outcome of call 0 ends"), "{elided}");
    assert!(
        elided.contains(&format!("left out: recall #{}]", first.at.seq)),
        "{elided}"
    );

    let undo = |row: &&Row| {
        let data = SummaryData {
            undo: Some(row.at),
            ..SummaryData::default()
        };
        let event = ikigai_core::Event::Summary { text: None, data };
        event.into_row(id, ikigai_core::Micros(9))
    };
    world
        .write(&worker, elisions.iter().map(undo).collect())
        .await;
    drop(worker);

    let whole = world.restarted().engine.next_request(id).await.unwrap();
    assert!(results(&whole)[0].len() > elided.len());
}
