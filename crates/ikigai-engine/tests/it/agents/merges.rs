//! Merges: results of children enter their parent's conversation once.

use ikigai_engine::{FrontEnd, MergeOf, Outcome, USER_REQUESTS, UiEvent};
use ikigai_testkit::Step;
use tokio::sync::mpsc;

use super::support::{see_out, typed, work};
use crate::support::World;

/// Returns the output of the last command.
fn output(told: &[UiEvent]) -> String {
    let mut rows = told.iter().rev().filter_map(|update| match update {
        UiEvent::Stored(row) if row.kind.name() == "command" => crate::support::printed_in(row),
        _ => None,
    });
    rows.next().unwrap_or_else(|| panic!("a command has a row"))
}

async fn states(world: &World) -> Vec<(String, &'static str)> {
    let tree = world.engine.tree().await.unwrap().into_iter();
    tree.map(|branch| (branch.agent.name.clone(), branch.state()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn children_that_are_done_are_merged_once() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    for name in ["one", "two"] {
        world.provider.will_say_to(name, &format!("{name} is done"));
        typed(&mut worker, &format!("/fork --fresh --name {name} {name}")).await;
    }
    see_out(&mut worker).await;

    let several = output(&typed(&mut worker, "/merge").await);
    let all = output(&typed(&mut worker, "/merge --done").await);
    let again = output(&typed(&mut worker, "/merge one").await);
    let none = output(&typed(&mut worker, "/merge --done").await);
    let resumed = output(&typed(&mut worker, "/resume").await);
    let bad = output(&typed(&mut worker, "/merge --fast").await);

    assert_eq!(
        several,
        "⚠ several are done: one, two · name one, or use /merge --done"
    );
    let titles: Vec<_> = all
        .lines()
        .map(|line| &line[..line.find(" ·").unwrap_or(line.len())])
        .collect();
    assert_eq!(titles, ["⇐ merged one #3–#5", "⇐ merged two #3–#5"]);
    assert_eq!(again, "⚠ one has nothing new to merge");
    assert_eq!(none, "⚠ nothing to merge");
    assert_eq!(
        resumed,
        "⚠ no interrupted turn to resume · /switch opens another agent"
    );
    assert_eq!(
        bad,
        "⚠ /merge has no option --fast · /merge [AGENT …] [--summary] [--done]"
    );
    assert_eq!(
        world.texts(root, "user").await,
        [
            "Result of the child agent one:\none is done",
            "Result of the child agent two:\ntwo is done"
        ]
    );
    let merged = states(&world).await;
    assert_eq!(
        merged[1..],
        [("one".into(), "✓ merged"), ("two".into(), "✓ merged")]
    );

    typed(&mut worker, "/undo").await;
    assert_eq!(
        states(&world).await[2],
        ("two".into(), "· idle"),
        "it is taken back"
    );
}

#[tokio::test(start_paused = true)]
async fn a_child_that_went_on_is_merged_from_where_it_was() {
    let world = World::new();
    let mut worker = world.root().await;
    world.provider.will_say_to("begin", "first");
    typed(&mut worker, "/fork --fresh --name one begin").await;
    see_out(&mut worker).await;
    world.engine.dismiss().await;
    typed(&mut worker, "/merge one").await;
    let mut one = world.engine.open(&world.named("one").await).await.unwrap();
    world.provider.will_say("second");
    assert_eq!(work(&mut one, "and more").await, Outcome::Completed);
    one.release().await.unwrap();
    assert_eq!(states(&world).await[1].1, "· idle");

    let child = world.named("one").await;
    let last = world
        .engine
        .merge_preview(&child, MergeOf::LastAnswer)
        .await;
    let turns = world.engine.merge_preview(&child, MergeOf::Turns).await;
    let (last, turns) = (last.unwrap().unwrap(), turns.unwrap().unwrap());
    let (_sender, mut receiver) = mpsc::channel(USER_REQUESTS);
    let mut tell = |_| {};
    let mut desk = FrontEnd::new(&mut receiver, &mut tell);
    worker
        .merge(&turns, "in my words", &mut desk)
        .await
        .unwrap();

    assert_eq!(last.text, "second");
    assert_eq!(turns.text, "❯ and more\n\n● second");
    assert_eq!(turns.title(), "⇐ merged one #6–#8");
    let root = worker.agent().state.agent();
    let said = world.texts(root, "user").await;
    assert_eq!(said[1], "Result of the child agent one:\nin my words");
    assert_eq!(states(&world).await[1].1, "✓ merged");
}

#[tokio::test(start_paused = true)]
async fn a_child_whose_turn_failed_is_shown_as_failed() {
    let world = World::new();
    let mut worker = world.root().await;
    world
        .provider
        .will_to("bad", [Step::Fail("no such model".to_owned())]);
    world.provider.will_say_to("good", "done");
    for name in ["bad", "good"] {
        typed(&mut worker, &format!("/fork --fresh --name {name} {name}")).await;
    }
    see_out(&mut worker).await;

    let live = states(&world).await;
    drop(worker);
    let restarted = states(&world.restarted()).await;

    let expected = [("bad".into(), "✗ failed"), ("good".into(), "· idle")];
    assert_eq!(live[1..], expected);
    assert_eq!(restarted[1..], expected);
}
