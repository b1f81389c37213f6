//! Marks, rewinds, undo, redo, retry, clear.

use ikigai_core::data::{self, RewindData, UserData, Via};
use ikigai_engine::commands::Next;
use ikigai_testkit::Step;
use ikigai_tools::{builtin, process};
use serde_json::json;

use super::support::{agent_in_a_directory, line, printed, seen, survives, texts};
use crate::fakes::call;
use crate::support::{World, say};

async fn three_turns() -> (World, ikigai_engine::Worker) {
    let world = World::new();
    let mut worker = world.root().await;
    for turn in ["one", "two", "three"] {
        world.provider.will_say(&format!("{turn}!"));
        say(&mut worker, turn).await.unwrap();
    }
    (world, worker)
}

/// E12a: a rewind to a user message returns its text to the input line.
#[tokio::test]
async fn rewind_to_user_message_returns_its_text() {
    let (world, mut worker) = three_turns().await;

    let came = line(&mut worker, "/rewind #6").await;

    assert_eq!(
        came.output,
        "↶ rewound to before \"two\": 2 turns hidden. /redo to reverse"
    );
    assert_eq!(came.next, Some(Next::Input("two".to_owned())));
    assert_eq!(texts(&world, &worker).await, ["one", "one!"]);

    let came = line(&mut worker, "/rewind #4").await;
    assert_eq!(came.output, "↶ rewound to #4. /redo to reverse");
    assert_eq!(came.next, None);
    survives(&world, worker).await;
}

/// E12a D11e: an impossible rewind prints a warning and stores no rewind row.
#[tokio::test]
async fn rewinds_that_cannot_be_done_warn_and_leave_no_rewind_row() {
    let (world, mut worker) = three_turns().await;
    let cases = [
        (
            "/rewind",
            "⚠ no mark yet · /mark sets one, /rewind #ID goes to an event",
        ),
        (
            "/rewind nowhere",
            "⚠ no mark \"nowhere\" · /rewind #ID goes to an event",
        ),
        (
            "/rewind #99",
            "⚠ no event #99 in this agent · /history lists them",
        ),
        (
            "/rewind #0",
            "⚠ no event #0 in this agent · /history lists them",
        ),
        (
            "/rewind #x",
            "⚠ invalid event #x: use #12, or #name.12 of an ancestor",
        ),
        (
            "/rewind #missing.3",
            "⚠ no event #missing.3 in this agent · /history lists them",
        ),
        ("/redo", "⚠ nothing to redo"),
        ("/mark #3", "⚠ a label cannot begin with #"),
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
            "↶ rewound to before \"three\": 1 turn hidden. /redo to reverse",
            4,
        ),
        (
            "/undo",
            "↶ rewound to before \"two\": 1 turn hidden. /redo to reverse",
            2,
        ),
        ("/redo", "↷ redone: 1 turn restored", 4),
        ("/redo", "↷ redone: 1 turn restored", 6),
        ("/redo", "⚠ nothing to redo", 6),
        (
            "/undo",
            "↶ rewound to before \"three\": 1 turn hidden. /redo to reverse",
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
        assert_eq!(
            to_newest,
            "↶ rewound to ⚑ #5: 1 turn hidden. /redo to reverse"
        );
    }

    let to_label = printed(&mut worker, "/rewind \"first try\"").await;

    assert_eq!(to_label, "↶ rewound to ⚑ first try #3. /redo to reverse");
    assert_eq!(worker.agent().state.marks().count(), 1);
    survives(&world, worker).await;
}

#[tokio::test]
async fn a_new_page_is_taken_back_like_a_turn() {
    let (world, mut worker) = three_turns().await;
    let before = texts(&world, &worker).await;

    let cleared = printed(&mut worker, "/clear").await;
    assert_eq!(
        cleared,
        "Cleared. Settings and pinned files kept. /undo to restore"
    );
    let page = seen(&world, &worker).await;
    assert_eq!(page.request.messages.len(), 0);
    assert_eq!(page.scrollback[0], "── cleared ──");
    assert!(page.request.system.is_some());
    let undone = printed(&mut worker, "/undo").await;

    assert_eq!(undone, "↶ undid /clear: 3 turns restored. /redo to reverse");
    assert_eq!(texts(&world, &worker).await, before);
    survives(&world, worker).await;
}

#[tokio::test]
async fn there_is_nothing_to_undo_where_nothing_was_said() {
    let world = World::new();
    let mut worker = world.root().await;

    assert_eq!(printed(&mut worker, "/undo").await, "⚠ nothing to undo");
    assert_eq!(
        printed(&mut worker, "/retry").await,
        "⚠ no message to send again"
    );
    assert_eq!(
        printed(&mut worker, "/resume").await,
        "⚠ no interrupted turn to resume · /switch opens another agent"
    );
    survives(&world, worker).await;
}

/// E12b: a rewind names files that are not restored. It does so on screen, in its row and to the
/// model. If the message with that note is undone, the next message repeats it.
#[tokio::test]
async fn rewind_names_unrestored_files_to_user_and_model() {
    let world = World::with_tools(builtin::all(process::ChildEnvironment::default()));
    let (place, mut worker) = agent_in_a_directory(&world).await;
    let file = json!({"file_path": "a.txt", "content": "one\ntwo\n"});
    world
        .provider
        .will([Step::FinishWith(vec![call("file_write", &file)])]);
    let shell = json!({"command": "true"});
    world
        .provider
        .will([Step::FinishWith(vec![call("bash", &shell)])]);
    world.provider.will_say("done");
    say(&mut worker, "write").await.unwrap();

    let undone = printed(&mut worker, "/undo --conversation").await;

    let named = "a.txt +2 −0 (plus changes made by shell commands)";
    assert_eq!(
        undone,
        format!(
            "↶ rewound to before \"write\": 1 turn hidden. Files keep their changes: {named}. /redo to reverse"
        )
    );
    let rows = world.rows(worker.agent().state.agent()).await;
    let rewind = rows.iter().find(|row| row.kind.name() == "rewind").unwrap();
    let rewind: RewindData = data::read(rewind.data.as_deref());
    let path = place.path().join("a.txt").to_str().unwrap().to_owned();
    assert_eq!(rewind.files, Some(vec![path]));
    for _ in 0..2 {
        world.provider.will_say("I see");
        say(&mut worker, "go on").await.unwrap();
        let told = format!(
            "[The user went back to an earlier point of this conversation. Files that were \
             changed since then and are NOT restored: {named}.]\n\ngo on"
        );
        assert_eq!(texts(&world, &worker).await, [told, "I see".to_owned()]);
        let rows = world.rows(worker.agent().state.agent()).await;
        let user = rows.iter().rev().find(|row| row.kind.name() == "user");
        let user: UserData = data::read(user.unwrap().data.as_deref());
        assert_eq!(user.typed.as_deref(), Some("go on"));
        let undone = line(&mut worker, "/undo").await;
        assert_eq!(undone.next, Some(Next::Input("go on".to_owned())));
    }
    world.provider.will_say("I see");
    world.provider.will_say("yes");
    say(&mut worker, "go on").await.unwrap();
    say(&mut worker, "once more").await.unwrap();
    assert_eq!(texts(&world, &worker).await[2], "once more");
    survives(&world, worker).await;
}

/// E11c: `/retry` sends the last message again; `/redo` restores the first answer.
#[tokio::test]
async fn retry_sends_the_last_message_again_and_redo_brings_the_first_answer_back() {
    let (world, mut worker) = three_turns().await;
    line(&mut worker, "!true").await;
    world.provider.will_say("another");

    let output = printed(&mut worker, "/retry").await;

    assert_eq!(
        output,
        "↻ retrying \"three\". /redo restores the previous answer"
    );
    let said = texts(&world, &worker).await;
    assert_eq!(said[4..], ["three", "another"]);
    let rows = world.rows(worker.agent().state.agent()).await;
    let rewind = rows.iter().find(|row| row.kind.name() == "rewind").unwrap();
    let rewind: RewindData = data::read(rewind.data.as_deref());
    assert_eq!(rewind.via, Some(Via::Retry));
    line(&mut worker, "/redo").await;
    assert_eq!(texts(&world, &worker).await[4..6], ["three", "three!"]);
    survives(&world, worker).await;
}

/// E12c D11h: row ids name rows of the agent and of its ancestors. A rewind of a child does not
/// change its parent.
#[tokio::test]
async fn row_ids_name_own_and_ancestor_rows() {
    let (world, mut parent) = three_turns().await;
    drop(world.root().await);
    line(&mut parent, "/fork --name lexer").await;
    let child = world.engine.find("lexer").await.unwrap();
    let mut worker = world.engine.open(&child).await.unwrap();
    let before = seen(&world, &parent).await;
    world.provider.will_say("four!");
    say(&mut worker, "four").await.unwrap();
    let id = parent.agent().state.agent().to_string();

    let cases = [
        (
            "/rewind #2".to_owned(),
            "↶ rewound to before \"four\": 1 turn hidden. /redo to reverse",
        ),
        (
            "/rewind #parser.6".to_owned(),
            "↶ rewound to before \"two\": 2 turns hidden. /redo to reverse",
        ),
        (
            format!("/rewind #{}.4", &id[..6]),
            "↶ rewound to #parser.4. /redo to reverse",
        ),
        (
            format!("/rewind #{id}.3"),
            "↶ rewound to before \"one\": 1 turn hidden. /redo to reverse",
        ),
        (
            "/rewind #parser.99".to_owned(),
            "⚠ no event #parser.99 in this agent · /history lists them",
        ),
        (
            "/rewind #parser-2.1".to_owned(),
            "⚠ no event #parser-2.1 in this agent · /history lists them",
        ),
    ];
    for (typed, expected) in cases {
        assert_eq!(printed(&mut worker, &typed).await, expected, "{typed}");
    }

    assert_eq!(seen(&world, &parent).await, before);
    drop(parent);
    survives(&world, worker).await;
}

#[tokio::test]
async fn history_shows_what_is_remembered_and_what_is_not() {
    let (world, mut worker) = three_turns().await;
    line(&mut worker, "/undo").await;

    let shown = printed(&mut worker, "/history 5").await;

    assert_eq!(
        shown,
        "┊ #9    ❯ three\n\
         ┊ #10   ● three!\n\
         ┊ #11   10 tokens in, 2 out\n  \
         #12   ↶ rewound to #8\n  \
         #13   /undo ↶ rewound to before \"three\": 1 turn hidden. /redo to reverse"
    );
    assert_eq!(
        printed(&mut worker, "/history x").await,
        "⚠ x is not a number from 1 to 1000"
    );
    survives(&world, worker).await;
}

/// E12b: files of turns that a redo restores are no longer named.
#[tokio::test]
async fn files_of_turns_that_come_back_are_not_named() {
    let world = World::with_tools(builtin::all(process::ChildEnvironment::default()));
    let (_place, mut worker) = agent_in_a_directory(&world).await;
    for name in ["a.txt", "b.txt"] {
        let file = json!({"file_path": name, "content": "one\n"});
        world
            .provider
            .will([Step::FinishWith(vec![call("file_write", &file)])]);
        world.provider.will_say("done");
        say(&mut worker, name).await.unwrap();
    }
    let not_restored = ". Files keep their changes: ";

    let one = printed(&mut worker, "/undo --conversation").await;
    let two = printed(&mut worker, "/undo --conversation").await;
    let forward = printed(&mut worker, "/redo").await;

    assert!(
        one.contains(&format!("{not_restored}b.txt +1 −0. /redo")),
        "{one}"
    );
    assert!(
        two.contains(&format!("{not_restored}a.txt +1 −0, b.txt. /redo")),
        "{two}"
    );
    assert!(!forward.contains("changes"), "{forward}");
    world.provider.will_say("I see");
    say(&mut worker, "go on").await.unwrap();
    let said = texts(&world, &worker).await;
    assert!(said[2].contains("NOT restored: b.txt +1 −0.]"), "{said:#?}");
    survives(&world, worker).await;
}

/// `/undo` returns all messages that began the turn, queued ones included.
#[tokio::test(start_paused = true)]
async fn undo_returns_all_that_was_said_at_once() {
    let world = World::new();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    world.engine.post(id, "first").await.unwrap();
    world.engine.post(id, "second").await.unwrap();
    world.provider.will_say("yes");
    say(&mut worker, "third").await.unwrap();

    let undone = line(&mut worker, "/undo").await;

    let all = "first\nsecond\nthird".to_owned();
    assert_eq!(undone.next, Some(Next::Input(all)));
    assert!(undone.output.contains("1 turn hidden"), "{}", undone.output);
}
