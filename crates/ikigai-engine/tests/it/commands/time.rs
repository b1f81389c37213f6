//! Marks, rewinds, undo, redo, retry, clear.

use ikigai_engine::commands::Next;

use super::support::{line, printed, seen, survives};
use crate::support::{World, say};

async fn texts(world: &World, worker: &ikigai_engine::Worker) -> Vec<String> {
    let request = seen(world, worker).await.request;
    let messages = request.messages.iter();
    let texts = messages.flat_map(|message| &message.blocks);
    texts
        .map(|block| match block {
            ikigai_core::Block::Text { text } => text.clone(),
            other => format!("{other:?}"),
        })
        .collect()
}

async fn three_turns() -> (World, ikigai_engine::Worker) {
    let world = World::new();
    let mut worker = world.root().await;
    for turn in ["one", "two", "three"] {
        world.provider.will_say(&format!("{turn}!"));
        say(&mut worker, turn).await.unwrap();
    }
    (world, worker)
}

/// E12a
#[tokio::test]
async fn rewind_to_user_message_returns_its_text() {
    let (world, mut worker) = three_turns().await;

    let came = line(&mut worker, "/rewind #6").await;

    assert_eq!(
        came.output,
        "↶ back before #6 \"two\" · 2 turns folded · /redo"
    );
    assert_eq!(came.next, Some(Next::Input("two".to_owned())));
    assert_eq!(texts(&world, &worker).await, ["one", "one!"]);

    let came = line(&mut worker, "/rewind #4").await;
    assert_eq!(came.output, "↶ back to #4 · /redo");
    assert_eq!(came.next, None);
    survives(&world, worker).await;
}

/// E12a D11e
#[tokio::test]
async fn rewinds_that_cannot_be_done_warn_and_leave_no_rewind_row() {
    let (world, mut worker) = three_turns().await;
    let cases = [
        (
            "/rewind",
            "⚠ there is no mark · /mark makes one, /rewind #id goes to a row",
        ),
        (
            "/rewind nowhere",
            "⚠ no mark is called nowhere · /rewind #id goes to a row",
        ),
        (
            "/rewind #99",
            "⚠ this agent has no row #99 · /history lists them",
        ),
        (
            "/rewind #0",
            "⚠ this agent has no row #0 · /history lists them",
        ),
        (
            "/rewind #x",
            "⚠ #x is no row: #12, or #name.12 of an ancestor",
        ),
        (
            "/rewind #nobody.3",
            "⚠ this agent has no row #nobody.3 · /history lists them",
        ),
        ("/redo", "⚠ there is nothing to redo"),
        (
            "/mark #3",
            "⚠ a label cannot begin with #: that names a row",
        ),
    ];

    for (typed, expected) in cases {
        let came = line(&mut worker, typed).await;
        assert_eq!((came.output.as_str(), came.warned), (expected, true));
    }

    let kinds = world.kinds(worker.agent().state.agent()).await;
    assert!(!kinds.iter().any(|kind| kind == "rewind" || kind == "mark"));
    survives(&world, worker).await;
}

#[tokio::test]
async fn undo_goes_back_turn_by_turn_and_redo_forward_again() {
    let (world, mut worker) = three_turns().await;

    for (typed, output, left) in [
        (
            "/undo",
            "↶ back before #9 \"three\" · 1 turn folded · /redo",
            4,
        ),
        (
            "/undo",
            "↶ back before #6 \"two\" · 1 turn folded · /redo",
            2,
        ),
        ("/redo", "↷ forward to #13 · 1 turn back · /undo", 4),
        ("/redo", "↷ forward to #11 · 1 turn back · /undo", 6),
        ("/redo", "⚠ there is nothing to redo", 6),
        (
            "/undo",
            "↶ back before #9 \"three\" · 1 turn folded · /redo",
            4,
        ),
    ] {
        assert_eq!(printed(&mut worker, typed).await, output);
        assert_eq!(texts(&world, &worker).await.len(), left, "{typed}");
    }
    survives(&world, worker).await;
}

#[tokio::test]
async fn a_mark_is_come_back_to_as_often_as_wanted() {
    let world = World::new();
    let mut worker = world.root().await;
    line(&mut worker, "/mark first try").await;
    line(&mut worker, "/mark").await;
    for turn in ["one", "two"] {
        world.provider.will_say(turn);
        say(&mut worker, turn).await.unwrap();
        let to_newest = printed(&mut worker, "/rewind").await;
        assert_eq!(to_newest, "↶ back to ⚑ #5 · 1 turn folded · /redo");
    }

    let to_label = printed(&mut worker, "/rewind \"first try\"").await;

    assert_eq!(to_label, "↶ back to ⚑ first try #3 · /redo");
    assert_eq!(worker.agent().state.marks().count(), 1);
    survives(&world, worker).await;
}

#[tokio::test]
async fn a_new_page_is_taken_back_like_a_turn() {
    let (world, mut worker) = three_turns().await;
    let before = texts(&world, &worker).await;

    let cleared = printed(&mut worker, "/clear").await;
    assert_eq!(cleared, "new page · settings and pins stay · /undo");
    let page = seen(&world, &worker).await;
    assert_eq!(page.request.messages.len(), 0);
    assert_eq!(page.scrollback[0], "── cleared ──");
    assert!(page.request.system.is_some());
    let undone = printed(&mut worker, "/undo").await;

    assert_eq!(undone, "↶ back to the page before · 3 turns back · /redo");
    assert_eq!(texts(&world, &worker).await, before);
    survives(&world, worker).await;
}

#[tokio::test]
async fn there_is_nothing_to_undo_where_nothing_was_said() {
    let world = World::new();
    let mut worker = world.root().await;

    assert_eq!(
        printed(&mut worker, "/undo").await,
        "⚠ there is nothing to undo"
    );
    assert_eq!(
        printed(&mut worker, "/retry").await,
        "⚠ there is no turn to repeat"
    );
    assert_eq!(
        printed(&mut worker, "/resume").await,
        "⚠ there is no stopped turn to go on with"
    );
    survives(&world, worker).await;
}
