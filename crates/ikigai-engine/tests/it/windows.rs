//! The window moves only by rows.

use ikigai_core::data::{self, SummaryData};
use ikigai_core::message::Message;
use ikigai_core::project::estimate_tokens;
use ikigai_core::{Block, Request};

use crate::support::{World, say};

fn tokens(request: &Request) -> u64 {
    let text = |block: &Block| match block {
        Block::Text { text } => estimate_tokens(text),
        _ => 0,
    };
    request
        .messages
        .iter()
        .flat_map(|message: &Message| message.blocks.iter().map(text))
        .sum()
}

/// E2d: a cut row precedes a request that would exceed the budget. This window is too small for
/// summaries. Between cuts every request begins with the previous one.
#[tokio::test(start_paused = true)]
async fn context_moves_only_by_rows() {
    let window = 3_000;
    let world = World::with_window(window);
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    let long = "word ".repeat(100);

    for turn in 0..40 {
        world.provider.will_say(&format!("answer {turn} {long}"));
        say(&mut worker, &format!("question {turn} {long}"))
            .await
            .unwrap();
    }

    let rows = world.rows(id).await;
    let cuts: Vec<_> = rows
        .iter()
        .filter(|row| row.kind.name() == "summary")
        .collect();
    assert!(cuts.len() > 2, "{} cuts", cuts.len());
    for cut in &cuts {
        let range: SummaryData = data::read(cut.data.as_deref());
        assert_eq!(cut.content, None);
        assert_eq!(range.from, Some(rows[0].at), "a cut begins at the root");
    }
    let requests = world.provider.requests();
    let mut moved = 0;
    for pair in requests.windows(2) {
        let (before, after) = (&pair[0].messages, &pair[1].messages);
        if after.starts_with(before) {
            continue;
        }
        moved += 1;
        assert!(
            tokens(&pair[1]) <= window * 60 / 100,
            "a cut goes down to 60 %"
        );
    }
    assert_eq!(moved, cuts.len());
    assert!(requests.iter().all(|request| tokens(request) <= window));
}

#[tokio::test(start_paused = true)]
async fn the_same_window_is_sent_after_a_restart() {
    let world = World::with_window(2_000);
    let mut worker = world.root().await;
    let long = "word ".repeat(100);
    for turn in 0..15 {
        world.provider.will_say(&format!("answer {turn} {long}"));
        say(&mut worker, &format!("question {turn} {long}"))
            .await
            .unwrap();
    }
    let id = worker.agent().state.agent();
    let live = world.engine.next_request(id).await.unwrap();

    let restarted = world.restarted();
    let again = restarted.engine.next_request(id).await.unwrap();

    assert_eq!(again, live);
    assert!(live.messages.len() < 30, "older turns are cut off");
}
