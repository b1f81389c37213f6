//! One answer for identical questions of siblings.

use std::sync::Arc;
use std::time::Duration;

use ikigai_core::data::AnsweredBy;
use ikigai_engine::{Answer, Question, UiEvent, UserRequest};
use tokio::sync::mpsc::UnboundedReceiver;

use super::support::typed;
use crate::fakes::{FakeCall, calling};
use crate::support::World;

/// Timeout for each event.
const PATIENCE: Duration = Duration::from_mins(1);

async fn next(told: &mut UnboundedReceiver<UiEvent>) -> UiEvent {
    let update = tokio::time::timeout(PATIENCE, told.recv()).await;
    update.unwrap().unwrap()
}

async fn answer_rows(world: &World, name: &str) -> usize {
    let rows = world.rows(world.id_of(name).await).await;
    let data = rows.iter().filter_map(|row| row.data.as_deref());
    data.filter(|data| data.contains(r#""command":"answer""#))
        .count()
}

#[tokio::test]
async fn always_settles_identical_questions_of_siblings() {
    let (world, call_log) = World::with_fakes();
    let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
    let observer = move |_, _: &str, update: &UiEvent| drop(sender.send(update.clone()));
    world.engine.observe(Arc::new(observer), true);
    let mut root = world.root().await;
    let children = [
        ("alpha", "test it"),
        ("beta", "test it"),
        ("gamma", "test that"),
    ];
    for (name, label) in children {
        let fake = FakeCall::new("act", label);
        world.provider.will_to(name, calling(&[fake]));
        world.provider.will_say_to(name, "done");
        typed(&mut root, &format!("/fork --fresh --name {name} {name}")).await;
    }
    let mut questions: Vec<Question> = Vec::new();
    while questions.len() < 3 {
        if let UiEvent::Question(question) = next(&mut told).await {
            questions.push(question);
        }
    }

    let alpha = questions.iter().find(|question| question.agent == "alpha");
    let alpha = alpha.unwrap();
    let answer = UserRequest::Answer {
        call: alpha.call,
        answer: Answer::Always(alpha.pattern.clone()),
        by: AnsweredBy::User,
    };
    assert!(world.engine.send_request(alpha.call.agent, answer));
    let mut notices = Vec::new();
    let mut ended = 0;
    while ended < 2 {
        match next(&mut told).await {
            UiEvent::Notice(text) => notices.push(text),
            UiEvent::Ended(_) => ended += 1,
            _ => {}
        }
    }

    assert_eq!(notices, ["also answered 1 identical question: beta"]);
    assert_eq!(call_log.began(), ["test it", "test it"]);
    let rows = [
        answer_rows(&world, "alpha").await,
        answer_rows(&world, "beta").await,
        answer_rows(&world, "gamma").await,
    ];
    assert_eq!(rows, [1, 1, 0]);
}
