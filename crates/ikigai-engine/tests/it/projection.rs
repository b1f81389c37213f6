//! Consumers of the log: turns, counts and summaries see only the projected request.

use ikigai_core::project::{FillingParts, estimate_request};
use ikigai_core::summary::SUMMARY_PROMPT;
use ikigai_core::{Block, Request};
use ikigai_engine::Worker;

use crate::support::{World, attended_line, say};

/// Word in every row that the projection leaves out.
const LEFT_OUT: &str = "left-out";

/// Tokens left by the conversation, fewer than the order to summarise it needs.
const ROOM_LEFT: u64 = 60;

/// Rows that no request contains, between those of the conversation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Between {
    Nothing,
    LeftOutRows,
}

/// Requests and counts of one conversation.
#[derive(Debug, PartialEq)]
struct Consumed {
    requests: Vec<Request>,
    /// Tokens of `/context` before and after the summary, by parts.
    counts: Vec<(u64, u64, FillingParts)>,
    next: Request,
}

async fn line(worker: &mut Worker, line: &str) {
    attended_line(worker, line, |_| Vec::new()).await;
}

/// Adds a turn that is undone, a mark and commands with output.
async fn add_left_out(world: &World, worker: &mut Worker) {
    world.provider.will_say(LEFT_OUT);
    say(worker, &format!("{LEFT_OUT} turn")).await.unwrap();
    line(worker, "/undo").await;
    line(worker, &format!("/mark {LEFT_OUT}")).await;
    line(worker, &format!("/{LEFT_OUT}")).await;
    line(worker, &format!("!!echo {LEFT_OUT}")).await;
    line(worker, "/help").await;
}

async fn count(worker: &Worker) -> (u64, u64, FillingParts) {
    let context = worker.context().await.unwrap();
    (
        context.fixed_tokens(),
        context.total_tokens(),
        context.parts,
    )
}

async fn consume(between: Between, window: u64) -> Consumed {
    let world = World::with_window(window);
    let mut worker = world.root().await;
    if between == Between::LeftOutRows {
        world.provider.will_say("cleared");
        say(&mut worker, LEFT_OUT).await.unwrap();
        line(&mut worker, "/clear").await;
    }
    for turn in 0..3 {
        if between == Between::LeftOutRows {
            add_left_out(&world, &mut worker).await;
        }
        let long = format!("answer {turn} {}", "word ".repeat(200));
        world.provider.will_say(&long);
        say(&mut worker, &format!("question {turn}")).await.unwrap();
    }
    if between == Between::LeftOutRows {
        add_left_out(&world, &mut worker).await;
    }
    let mut counts = vec![count(&worker).await];
    let id = worker.agent().state.agent();
    let next = world.engine.next_request(id).await.unwrap();
    assert_eq!(counts[0].0 + counts[0].1, estimate_request(&next));
    world.provider.will_summarise_as("short");
    line(&mut worker, "/compact").await;
    counts.push(count(&worker).await);
    let mut requests = world.provider.requests();
    requests.retain(|request| !asks_in_left_out_turn(request));
    Consumed {
        requests,
        counts,
        next: world.engine.next_request(id).await.unwrap(),
    }
}

/// Reports whether a request belongs to a turn that was undone or cleared later.
fn asks_in_left_out_turn(request: &Request) -> bool {
    let last = request.messages.last().and_then(|last| last.blocks.last());
    matches!(last, Some(Block::Text { text }) if text.contains(LEFT_OUT))
}

/// S4-15: turns, counts and summaries use the projection alone.
///
/// Rows that it leaves out change no request and no count, in both forms of a summary.
#[tokio::test(start_paused = true)]
async fn every_consumer_uses_the_projection() {
    let mut window = 200_000;
    for is_in_chunks in [false, true] {
        let expected = consume(Between::Nothing, window).await;
        let consumed = consume(Between::LeftOutRows, window).await;

        assert!(!format!("{consumed:?}").contains(LEFT_OUT), "{consumed:#?}");
        assert_eq!(consumed, expected);
        assert_eq!(expected.requests.len(), 4, "three turns and a summary");
        let summary = expected.requests.last().unwrap();
        let is_text = summary.system.as_deref() == Some(SUMMARY_PROMPT);
        assert_eq!(is_text, is_in_chunks);
        // The next window has room for the conversation, but not for the order after it.
        let (fixed, turns, _) = expected.counts[0];
        window = fixed + turns + ROOM_LEFT;
    }
}
