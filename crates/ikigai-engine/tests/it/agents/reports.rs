//! Reports in the inbox: whose answers wait for the user.

use ikigai_engine::{InboxKind, Outcome, read_inbox};

use super::support::{calls, fork, see_out, typed, wait, work};
use crate::support::{World, say};

/// Returns the names of the agents in the inbox, with kinds.
async fn waiting(world: &World) -> Vec<(String, InboxKind)> {
    let entries = read_inbox(&world.engine).await.unwrap().into_iter();
    let mut found: Vec<_> = entries.map(|it| (it.agent.name, it.kind)).collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

fn report(name: &str) -> (String, InboxKind) {
    (name.to_owned(), InboxKind::Report)
}

/// A child that a model forked reports to its parent, until the user talks to it.
#[tokio::test(start_paused = true)]
async fn reports_to_a_model_do_not_wait_for_the_user() {
    let world = World::new();
    let mut worker = world.root().await;
    world.provider.will_to("go", calls([fork("one", "begin")]));
    world.provider.will_to("go", calls([wait(60, &["one"])]));
    world.provider.will_say_to("go", "one is done");
    world.provider.will_say_to("begin", "the report");

    assert_eq!(work(&mut worker, "go").await, Outcome::Completed);

    assert_eq!(waiting(&world).await, [report("parser")]);
    let one = world.named("one").await;
    let mut one = world.engine.open(&one).await.unwrap();
    world.provider.will_say_to("begin", "as you ask");
    say(&mut one, "tell me more").await.unwrap();
    assert_eq!(waiting(&world).await, [report("one"), report("parser")]);
}

/// The report of a child that the user forked waits until it is merged or read.
#[tokio::test(start_paused = true)]
async fn reports_of_the_users_forks_wait_until_they_are_merged() {
    let world = World::new();
    let mut worker = world.root().await;
    for name in ["one", "two"] {
        world.provider.will_say_to(name, &format!("{name} is done"));
        typed(&mut worker, &format!("/fork --fresh --name {name} {name}")).await;
    }
    see_out(&mut worker).await;
    assert_eq!(waiting(&world).await, [report("one"), report("two")]);

    typed(&mut worker, "/merge one").await;

    assert_eq!(waiting(&world).await, [report("two")]);
    // The report of an inherited answer is the parent's.
    world.provider.will_say_to("go", "hello");
    say(&mut worker, "go").await.unwrap();
    typed(&mut worker, "/fork --name heir").await;
    assert_eq!(waiting(&world).await, [report("parser"), report("two")]);
}
