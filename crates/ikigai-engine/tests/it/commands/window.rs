//! `/context`: the parts of the window, and undoing cuts.

use ikigai_core::project::{block_tokens, estimate_tokens};
use ikigai_core::{AgentId, Request, Settings};
use ikigai_engine::{Context, ContextTurn, Worker};

use super::support::{line, printed, seen, survives};
use crate::support::{World, say};

fn message_tokens(request: &Request) -> u64 {
    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
    blocks.map(block_tokens).sum()
}

async fn talk(world: &World, worker: &mut Worker, turns: usize) {
    for turn in 0..turns {
        world
            .provider
            .will_say(&format!("answer {turn} {}", "word ".repeat(20)));
        say(worker, &format!("question {turn}")).await.unwrap();
    }
}

/// Returns the context; checks that live, restored and sent context agree.
async fn told(world: &World, worker: &Worker) -> Context {
    let id: AgentId = worker.agent().state.agent();
    let living = worker.context().await.unwrap();
    let restored = world.engine.context(id).await.unwrap();
    assert_eq!(living, restored);
    let request = world.engine.next_request(id).await.unwrap();
    assert_eq!(living.total_tokens(), message_tokens(&request));
    assert_eq!(living.system, estimate_tokens(&request.system.unwrap()));
    living
}

/// Counts the turns that are sent whole.
fn whole_turns(context: &Context) -> u64 {
    let whole = |turn: &&ContextTurn| !turn.is_summary && turn.title != "rest of a turn";
    context.turns.iter().filter(whole).count() as u64
}

#[tokio::test(start_paused = true)]
async fn context_is_told_as_it_is_sent_through_cuts_and_restarts() {
    let world = World::new();
    let settings = Settings {
        budget_tokens: Some(1200),
        ..Settings::default()
    };
    let mut worker = world.root_with(&settings).await;
    let empty = told(&world, &worker).await;
    assert_eq!(
        (empty.total_tokens(), empty.turns.len(), empty.start_index),
        (0, 0, 0)
    );

    let mut cut = 0;
    for turn in 0..20 {
        talk(&world, &mut worker, 1).await;
        let context = told(&world, &worker).await;
        assert!(context.start_index >= cut, "windows move forward only");
        cut = context.start_index;
        assert_eq!(cut + whole_turns(&context), turn + 1);
        assert_eq!((context.budget, context.window), (1200, 1_000_000));
    }

    assert!(cut > 0, "older turns are cut off");
    let before = told(&world, &worker).await;
    printed(&mut worker, "/context undo").await;
    let undone = told(&world, &worker).await;
    assert!(undone.turns.len() > before.turns.len());
    assert_eq!(undone.start_index + whole_turns(&undone), 20);
    let elsewhere = world.beside();
    let told = elsewhere.engine.context(worker.agent().state.agent());
    assert_eq!(told.await.unwrap(), undone);
    survives(&world, worker).await;
}

#[tokio::test(start_paused = true)]
async fn context_is_shown_as_a_bar_and_a_table() {
    let world = World::new();
    let mut worker = world.root().await;
    printed(&mut worker, "/system Be brief.").await;
    printed(&mut worker, "/context budget 1k").await;
    talk(&world, &mut worker, 12).await;

    let shown = printed(&mut worker, "/context").await;

    let expected = "\
████████████████████████████████████████ 117% of 1.0k
system           3
pins             0
tools          918  fork 321 · recall 225 · wait 178 …
summary         54  replaces 11 earlier turns · /context undo
verbatim       121  11 of your messages word for word
messages        83  2 turns · #48 \"question 11\" 47 · #46 \"rest of a turn\" 36
outputs          0
free             0
window        1.0M  from the table of models or the configuration";
    assert_eq!(shown, expected);
    assert!(shown.lines().all(|line| line.chars().count() <= 80));
    let row = line(&mut worker, "/context sideways").await;
    assert!(row.warned);
}

/// `/context undo` restores the turns of a cut. The next turn over the budget cuts them again.
#[tokio::test(start_paused = true)]
async fn cuts_are_taken_back_one_by_one() {
    let world = World::new();
    let mut worker = world.root().await;
    talk(&world, &mut worker, 4).await;
    let whole = seen(&world, &worker).await.request;
    printed(&mut worker, "/context budget 100").await;
    talk(&world, &mut worker, 1).await;
    let cut = seen(&world, &worker).await.request;
    assert!(cut.messages.len() < whole.messages.len());

    let came = line(&mut worker, "/context undo").await;

    assert!(came.output.starts_with("cut #"), "{}", came.output);
    let back = seen(&world, &worker).await.request;
    assert!(back.messages.starts_with(&whole.messages));
    let none = line(&mut worker, "/context undo").await;
    assert_eq!(none.output, "⚠ no cut or summary to undo");
    talk(&world, &mut worker, 1).await;
    let again = seen(&world, &worker).await.request;
    assert!(again.messages.len() < back.messages.len());
    survives(&world, worker).await;
}

#[tokio::test(start_paused = true)]
async fn the_size_of_requests_is_set_and_taken_off() {
    let world = World::new();
    let mut worker = world.root().await;
    printed(&mut worker, "/system Be brief.").await;
    talk(&world, &mut worker, 3).await;
    let cases = [
        ("/context budget", "⚠ usage: /context [undo | budget N]"),
        (
            "/context budget many",
            "⚠ invalid number of tokens `many` · /context budget 100k or /context budget off",
        ),
        ("/context budget 100k", "Limit set to 100k tokens"),
        (
            "/context budget 2M",
            "Limit set to 2.0M tokens, more than the 1.0M of this model",
        ),
        (
            "/context budget 974",
            "Limit set to 974 tokens. The next turn leaves out the oldest ones",
        ),
        (
            "/context budget 921",
            "Limit set to 921 tokens, but system prompt, pins and tools already need 921",
        ),
        ("/context budget off", "Limit removed"),
    ];

    for (typed, expected) in cases {
        assert_eq!(printed(&mut worker, typed).await, expected);
    }

    assert_eq!(worker.agent().state.settings().budget_tokens, None);
    survives(&world, worker).await;
}
