//! Options and quotes in command lines.

use ikigai_store::ReadLog as _;

use super::support::{printed, typed};
use crate::support::World;

#[tokio::test(start_paused = true)]
async fn options_behind_the_prompt_of_a_fork_are_options() {
    let world = World::new();
    let mut worker = world.root().await;
    world.provider.will_say("done");

    typed(&mut worker, "/fork \"say hello\" --name greeter").await;

    let agents = world.engine.agents().await.unwrap();
    let names: Vec<_> = agents.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["parser", "greeter"]);
    let rows = world.rows(agents[1].id).await.into_iter();
    let prompts = rows.filter(|row| row.kind.name() == "user");
    let prompts: Vec<_> = prompts.filter_map(|row| row.content).collect();
    assert_eq!(prompts, ["say hello"]);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_option_starts_nothing() {
    let world = World::new();
    let mut worker = world.root().await;
    let lines = [
        "/fork \"one\" \"two\" --modle demo",
        "/fork --fast one",
        "/fork one --name",
        "/send parser --now hello",
        "/wait --till 5",
        "/merge --all",
        "/compact --hide",
    ];

    for line in lines {
        let output = printed(&mut worker, line).await;
        assert!(output.starts_with("⚠ "), "{line}: {output}");
    }

    assert_eq!(world.engine.agents().await.unwrap().len(), 1);
    assert!(world.provider.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn quotes_around_a_text_are_not_part_of_it() {
    let world = World::new();
    let mut worker = world.root().await;

    let mark = printed(&mut worker, "/mark \"x y\"").await;
    let back = printed(&mut worker, "/rewind 'x y'").await;
    let mail = printed(&mut worker, "/send parser \"the text\"").await;
    let part = printed(&mut worker, "/send parser say \"hi\" there").await;
    printed(&mut worker, "/send parser \"one\" or 'two'").await;
    printed(&mut worker, "/send parser \"one\" or \"two\"").await;

    assert_eq!(mark, "⚑ x y · /rewind x y to return");
    assert!(back.starts_with("↶ rewound to ⚑ x y "), "{back}");
    assert_eq!(mail, "Sent to parser");
    assert_eq!(part, "Sent to parser");
    let id = worker.agent().state.agent();
    let sent = world.log().mail(id).await.unwrap().into_iter();
    let texts: Vec<_> = sent.map(|mail| mail.text).collect();
    assert_eq!(
        texts,
        [
            "the text",
            "say \"hi\" there",
            "\"one\" or 'two'",
            "\"one\" or \"two\""
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn redo_refuses_to_jump_away_from_a_new_turn() {
    let world = World::new();
    let mut worker = world.root().await;
    for text in ["one", "two"] {
        world.provider.will_say("ok");
        typed(&mut worker, text).await;
    }
    printed(&mut worker, "/undo").await;
    world.provider.will_say("ok");
    typed(&mut worker, "three").await;

    let refused = printed(&mut worker, "/redo").await;
    printed(&mut worker, "/undo").await;
    let allowed = printed(&mut worker, "/redo").await;
    let again = printed(&mut worker, "/redo").await;

    let reason = "⚠ nothing to redo: you sent a message since · /rewind #";
    assert!(refused.starts_with(reason), "{refused}");
    assert!(allowed.starts_with("↷ redone"), "{allowed}");
    assert!(again.starts_with(reason), "{again}");
}
