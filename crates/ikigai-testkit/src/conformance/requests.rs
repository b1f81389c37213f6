//! Checks of requests to the processes that hold agents.

use ikigai_core::AgentId;
use ikigai_store::{
    CommitError, Committed, Effect, RequestEffect, RequestId, RequestRecord, RequestState,
};

use super::Rig;
use super::samples::at;
use super::workbench::Workbench;

fn sent(number: u128, agent: AgentId) -> RequestRecord {
    RequestRecord {
        id: RequestId(number),
        agent,
        author: "ben".parse().ok(),
        sent_at: at(1),
        expires_at: at(20),
        state: RequestState::Waiting,
        body: r#"{"type":"interrupt"}"#.to_owned(),
        answer: None,
    }
}

fn assert_bad(outcome: &Result<Committed, CommitError>) {
    assert!(
        matches!(outcome, Err(CommitError::BadBatch(_))),
        "{outcome:?}"
    );
}

/// A request is taken once, by the holder of its agent, and then answered once.
pub(super) async fn a_request_is_taken_by_the_holder_and_answered_once(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let other = desk.second(rig);
    let (here, there) = (
        desk.agent("here").await.agent,
        other.agent("there").await.agent,
    );
    let request = sent(1, there);
    let send = |request: &RequestRecord| Effect::Request(RequestEffect::Send(request.clone()));
    let take = |request, agent| Effect::Request(RequestEffect::Take { request, agent });
    let answer = |request| {
        let answer = "done".to_owned();
        Effect::Request(RequestEffect::Answer { request, answer })
    };
    let id = request.id;

    desk.effects([send(&request)]).await.unwrap();
    assert_bad(&desk.effects([send(&request)]).await);
    let unknown = sent(2, desk.ids.agent());
    let lost = desk.effects([send(&unknown)]).await;
    assert!(matches!(lost, Err(CommitError::NoAgent(_))), "{lost:?}");
    assert_eq!(desk.store.waiting_requests().await.unwrap(), []);
    let waiting = other.store.waiting_requests().await.unwrap();
    assert_eq!(waiting, std::slice::from_ref(&request));

    let fenced = desk.effects([take(id, there)]).await;
    assert!(
        matches!(fenced, Err(CommitError::Fenced { .. })),
        "{fenced:?}"
    );
    assert_bad(&other.effects([answer(id)]).await);
    other.effects([take(id, there)]).await.unwrap();
    assert_bad(&other.effects([take(id, there)]).await);
    let expire = Effect::Request(RequestEffect::Expire { request: id });
    assert_bad(&desk.effects([expire]).await);
    assert_eq!(other.store.waiting_requests().await.unwrap(), []);
    other.effects([answer(id)]).await.unwrap();
    assert_bad(&other.effects([answer(id)]).await);

    let answered = RequestRecord {
        state: RequestState::Answered,
        answer: Some("done".to_owned()),
        ..request
    };
    assert_eq!(desk.store.request(id).await.unwrap(), Some(answered));
    let late = sent(3, here);
    let expire = Effect::Request(RequestEffect::Expire { request: late.id });
    other.effects([send(&late)]).await.unwrap();
    other.effects([expire]).await.unwrap();
    assert_bad(&desk.effects([take(late.id, here)]).await);
    let kept = other.store.request(late.id).await.unwrap().unwrap();
    assert_eq!(kept.state, RequestState::Expired);
    let none = other.store.request(RequestId(9)).await.unwrap();
    assert_eq!(none, None);
}
