//! Limits of the context that a configuration sets.

use ikigai_core::project::{ContextLimits, estimate_tokens, prefix_within};
use ikigai_core::{Block, Kind};
use ikigai_engine::{Safety, Tools, Worker};

use crate::fakes::{CallLog, FakeCall, calling};
use crate::support::{World, say};

fn world(window: u64, limits: ContextLimits) -> World {
    let tools: std::sync::Arc<dyn Tools> = std::sync::Arc::new(CallLog::default().tools());
    World::with_window(window).equipped(move |engine| {
        engine
            .with_tools(tools.clone(), Safety::default())
            .with_context_limits(limits)
    })
}

async fn look(world: &World, worker: &mut Worker, output: &str) {
    let fake = FakeCall::new("look", "x").printing(output);
    world.provider.will(calling(&[fake]));
    world.provider.will_say("seen");
    say(worker, "look").await.unwrap();
}

fn newest_result(world: &World) -> String {
    let requests = world.provider.requests();
    let blocks = requests.last().unwrap().messages.iter();
    let blocks = blocks.flat_map(|message| &message.blocks);
    let mut results = blocks.filter_map(|block| match block {
        Block::ToolResult { content, .. } => Some(content.clone()),
        _ => None,
    });
    results.next_back().unwrap()
}

#[tokio::test]
async fn one_result_has_at_most_the_configured_bytes() {
    let output = "line\n".repeat(10_000);
    for (result_bytes, is_whole) in [(4096, false), (32 * 1024, false), (64 * 1024, true)] {
        let limits = ContextLimits {
            result_bytes,
            ..ContextLimits::default()
        };
        let world = world(1_000_000, limits);
        let mut worker = world.root().await;

        look(&world, &mut worker, &output).await;

        let result = newest_result(&world);
        assert!(result.len() <= result_bytes, "{}", result.len());
        assert_eq!(result == output, is_whole, "{result_bytes}");
    }
}

#[tokio::test]
async fn results_of_one_response_share_the_configured_part_of_the_budget() {
    let limits = ContextLimits {
        results: 10,
        ..ContextLimits::default()
    };
    let world = world(40_000, limits);
    let mut worker = world.root().await;

    look(&world, &mut worker, &"line\n".repeat(10_000)).await;

    let length = newest_result(&world).len();
    assert!((12_000..=16_000).contains(&length), "{length}");
}

/// Scripts of two and three bytes per character have more tokens in the same bytes.
#[tokio::test]
async fn results_in_any_script_share_the_same_part_of_the_budget() {
    for line in ["line\n", "строка\n", "行\n", "漢字かな"] {
        let world = world(40_000, ContextLimits::default());
        let mut worker = world.root().await;

        // The fake tool has its output in the arguments, which must fit too.
        let output = line.repeat(9_000);
        look(&world, &mut worker, prefix_within(&output, 15_000)).await;

        let result = newest_result(&world);
        let tokens = estimate_tokens(&result);
        assert!((2_000..=10_000).contains(&tokens), "{line}: {tokens}");
        assert!(result.len() <= 32 * 1024, "{line}");
    }
}

#[tokio::test]
async fn outputs_are_shortened_above_the_configured_share() {
    for (elide_above, elisions) in [(70, 0), (20, 1)] {
        let limits = ContextLimits {
            elide_above,
            elide_to: 10,
            newest_outputs: 5,
            ..ContextLimits::default()
        };
        let world = world(40_000, limits);
        let mut worker = world.root().await;
        for _ in 0..2 {
            look(&world, &mut worker, &"line\n".repeat(4_000)).await;
        }

        let rows = world.rows(worker.agent().state.agent()).await;
        let summaries = rows
            .iter()
            .filter(|row| row.kind.read_as() == Some(Kind::Summary));
        assert_eq!(summaries.count(), elisions, "{elide_above}");
    }
}

/// The parts of `/context` add up to the messages of the request. Full and elided outputs are
/// separate parts.
#[tokio::test]
async fn parts_of_the_context_add_up_to_what_is_sent() {
    let limits = ContextLimits {
        elide_above: 30,
        elide_to: 20,
        newest_outputs: 15,
        ..ContextLimits::default()
    };
    let world = world(40_000, limits);
    let mut worker = world.root().await;
    for _ in 0..4 {
        look(&world, &mut worker, &"line\n".repeat(4_000)).await;
    }

    let context = worker.context().await.unwrap();

    let parts = context.parts;
    let sum = [
        parts.summaries,
        parts.verbatim,
        parts.messages,
        parts.whole_outputs,
        parts.elided_outputs,
    ];
    let sum: u64 = sum.iter().map(|part| part.tokens).sum();
    assert_eq!(sum, context.total_tokens());
    let outputs = (parts.whole_outputs.number, parts.elided_outputs.number);
    assert_eq!(outputs.0 + outputs.1, 4);
    assert!(outputs.0 >= 1 && outputs.1 >= 1, "{outputs:?}");
    assert!(parts.elided_outputs.tokens < 200 * outputs.1 as u64);
    assert_eq!(parts.messages.number, 12, "4 questions, 4 calls, 4 answers");
}
