//! Past requests of any turn are rebuilt exactly.

use ikigai_core::data::{self, AssistantData};
use ikigai_core::{Row, RowRef, Seq};
use ikigai_engine::EngineError;
use ikigai_testkit::is_summary_request;

use crate::fakes::{FakeCall, calling};
use crate::support::{World, say};

fn response_of(row: &Row) -> Option<u64> {
    let is_part = ["assistant", "tool_call"].contains(&row.kind.name());
    let data: AssistantData = data::read(row.data.as_deref());
    data.response.filter(|_| is_part)
}

/// Another process rebuilds each request, despite cuts, new prompts, rewinds, summaries and calls.
#[tokio::test(start_paused = true)]
async fn every_request_that_was_made_can_be_made_again() {
    let (world, _) = World::with_fakes();
    let world = world.equipped(|engine| engine.with_window_tokens(Some(1_800)));
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    let long = "word ".repeat(60);
    let typed = async |worker: &mut _, line: &str| {
        let (_sender, mut receiver) = tokio::sync::mpsc::channel(ikigai_engine::USER_REQUESTS);
        let mut tell = |_| {};
        let mut desk = ikigai_engine::FrontEnd::new(&mut receiver, &mut tell);
        ikigai_engine::Worker::line(worker, ikigai_engine::UserInput::parse(line), &mut desk)
            .await
            .unwrap();
    };
    typed(&mut worker, "/approve all").await;
    for turn in 0..40 {
        match turn % 10 {
            3 => typed(&mut worker, &format!("/system Prompt {turn}.")).await,
            5 => typed(&mut worker, "/undo").await,
            7 => {
                world.provider.will_summarise_as("short");
                typed(&mut worker, "/compact").await;
            }
            _ => {}
        }
        if turn % 3 == 0 {
            let fake = FakeCall::new("look", &format!("at {turn}"));
            world.provider.will(calling(&[fake]));
        }
        world.provider.will_say(&format!("answer {turn} {long}"));
        say(&mut worker, &format!("question {turn} {long}"))
            .await
            .unwrap();
    }
    let mut sent = world.provider.requests();
    sent.retain(|request| !is_summary_request(request));
    let rows = world.rows(id).await;
    let summaries = rows.iter().filter(|row| row.kind.name() == "summary");
    let (written, cuts): (Vec<_>, Vec<_>) = summaries.partition(|row| row.content.is_some());
    assert_eq!(written.len(), 4);
    assert!(cuts.len() > 1, "{}", cuts.len());

    let elsewhere = world.beside();

    let mut numbers: Vec<u64> = rows.iter().filter_map(response_of).collect();
    numbers.dedup();
    assert_eq!(numbers.len(), sent.len());
    for (number, request) in numbers.iter().zip(&sent) {
        for row in rows.iter().filter(|row| response_of(row) == Some(*number)) {
            let asked = elsewhere.engine.request_at(row.at).await.unwrap();
            assert_eq!(
                &asked.request, request,
                "response {number}, row {}",
                row.at.seq
            );
        }
    }
    // For a message it is the request that followed it.
    let first = rows.iter().find(|row| row.kind.name() == "user").unwrap();
    let asked = elsewhere.engine.request_at(first.at).await.unwrap();
    assert_eq!(asked.request, sent[0]);
    let next = elsewhere
        .engine
        .request_at(rows.last().unwrap().at)
        .await
        .unwrap();
    assert_eq!(next.request, world.engine.next_request(id).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_row_that_is_not_there_is_refused() {
    let world = World::new();
    let worker = world.root().await;
    let nowhere = RowRef::new(worker.agent().state.agent(), Seq(99));

    let refused = world.engine.request_at(nowhere).await;

    assert!(matches!(refused, Err(EngineError::NoSuchRow(row)) if row == nowhere));
}
