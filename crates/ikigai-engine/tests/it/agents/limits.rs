//! Limits on families of agents and on requests, and their messages.

use ikigai_engine::{AgentJob, AgentLimits, Outcome, UiEvent};
use ikigai_store::Status;

use super::support::{after, calls, fork, kill, typed, work, work_and_say};
use crate::support::World;

fn small(crowd: AgentLimits) -> World {
    World::new().equipped(move |engine| engine.with_crowd(crowd))
}

/// Depth, children per parent and agents per root are limited. At a limit the fork fails with a
/// message to model or user; a death makes room.
#[tokio::test(start_paused = true)]
async fn families_are_bounded_and_it_is_said() {
    let crowd = AgentLimits {
        depth: 2,
        children: 2,
        family: 4,
        requests: 16,
    };
    let world = small(crowd);
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    let three = ["one", "two", "three"].map(|name| fork(name, "begin"));
    world.provider.will_to("go", calls(three));
    world
        .provider
        .will_to("go", calls([kill("two"), fork("four", "deeper")]));
    world.provider.will_say_to("go", "forked");
    world.provider.will_say_to("go", "thank you");
    world.provider.will_say_to("begin", "I am here");
    world.provider.will_say_to("begin", "and I");
    world.provider.will_to(
        "deeper",
        calls([fork("five", "bottom"), fork("six", "bottom")]),
    );
    world.provider.will_say_to("deeper", "forked");
    world.provider.will_say_to("deeper", "thank you");
    world
        .provider
        .will_to("bottom", calls([fork("seven", "below")]));
    world.provider.will_say_to("bottom", "too deep");

    assert_eq!(work(&mut worker, "go").await, Outcome::Completed);

    let outputs = world.outputs(root).await;
    assert!(
        outputs[2].contains('2') && outputs[2].contains("child"),
        "{outputs:?}"
    );
    assert!(outputs[4].starts_with("forked four"), "{outputs:?}");
    let four = world.outputs(world.id_of("four").await).await;
    assert!(four[0].starts_with("forked five"), "{four:?}");
    assert!(four[1].contains('4'), "no room in the family: {four:?}");
    let five = world.outputs(world.id_of("five").await).await;
    assert!(
        five[0].contains('2') && !five[0].starts_with("forked"),
        "{five:?}"
    );
    let living = world.census().await.into_iter();
    let living = living.filter(|(_, status)| *status == Status::Running);
    assert_eq!(living.count(), 4);
    let told = typed(&mut worker, "/fork --name eight").await;
    let said = format!("{told:?}");
    assert!(said.contains("\\\"severity\\\":\\\"warning\\\""), "{said}");
}

/// The number of parallel requests is limited; an agent that waits shows a notice.
#[tokio::test(start_paused = true)]
async fn requests_are_bounded_and_it_is_said() {
    let crowd = AgentLimits {
        requests: 2,
        ..AgentLimits::default()
    };
    let world = small(crowd);
    let told = std::sync::Arc::new(std::sync::Mutex::new(0));
    let counted = told.clone();
    let observer = move |_, _: &str, update: &UiEvent| {
        if matches!(update, UiEvent::Notice(text) if text.contains("2 requests")) {
            *counted.lock().unwrap() += 1;
        }
    };
    world.engine.observe(std::sync::Arc::new(observer), false);
    let mut worker = world.root().await;
    let four = ["one", "two", "three", "four"].map(|name| fork(name, "begin"));
    world.provider.will_to("go", calls(four));
    world.provider.will_to(
        "go",
        calls([super::support::wait(600, &["one", "two", "three", "four"])]),
    );
    world.provider.will_say_to("go", "all");
    for _ in 0..4 {
        world.provider.will_to("begin", after(10, "done"));
    }
    let begun = tokio::time::Instant::now();

    let job = AgentJob::Say("go".to_owned());
    let (outcome, _) = work_and_say(&mut worker, job, std::future::pending()).await;

    assert_eq!(outcome.unwrap(), Outcome::Completed);
    assert_eq!(begun.elapsed().as_secs(), 20, "two by two");
    assert!(*told.lock().unwrap() > 0);
}
