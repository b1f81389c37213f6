//! A restart keeps stored rows, settles unfinished turns and sends nothing.

use ikigai_core::Row;
use ikigai_core::data::{self, AssistantData, Cause, ErrorData};
use ikigai_core::load::Loaded;
use ikigai_engine::{Engine, Outcome, UiEvent};
use ikigai_providers::AnswerBlock;
use ikigai_store::{Agent, Batch, Effect, Log, ReadLog};
use ikigai_testkit::Step;

use crate::support::{World, interrupt_after, say, say_until};

fn says(text: &str) -> Step {
    Step::Say(text.to_owned())
}

/// S0-1 S3-1: after ask, quit and restart the exchange is there. The next request equals that of an
/// unbroken run.
#[tokio::test(start_paused = true)]
async fn restart_preserves_next_request() {
    let unbroken = World::new();
    let broken = World::new();
    for world in [&unbroken, &broken] {
        world.provider.will_say("four");
        world.provider.will_say("six");
    }
    let mut worker = unbroken.root().await;
    say(&mut worker, "2 + 2").await.unwrap();
    let mut first = broken.root().await;
    say(&mut first, "2 + 2").await.unwrap();

    let restarted = broken.restarted();
    let mut second = restarted
        .engine
        .open(&restarted.latest().await)
        .await
        .unwrap();
    say(&mut worker, "3 + 3").await.unwrap();
    say(&mut second, "3 + 3").await.unwrap();

    assert_eq!(restarted.provider.requests(), unbroken.provider.requests());
    let id = second.agent().state.agent();
    assert_eq!(
        second.agent().view,
        worker_view(&restarted.engine, id).await
    );
    assert_eq!(
        restarted.kinds(id).await,
        [
            "system",
            "command",
            "user",
            "assistant",
            "usage",
            "user",
            "assistant",
            "usage"
        ]
    );
}

async fn worker_view(engine: &Engine, id: ikigai_core::AgentId) -> ikigai_core::View {
    let mut agent = ikigai_store::Agent::restore(engine.reader(), id)
        .await
        .unwrap();
    agent.read_all(engine.reader()).await.unwrap();
    agent.view
}

/// N2b: the first request after an interrupt is the same live and after a restart.
#[tokio::test(start_paused = true)]
async fn interrupted_turn_same_after_restart() {
    let live = World::new();
    let restarted = World::new();
    for world in [&live, &restarted] {
        world.provider.will([says("I begin"), Step::Hang]);
        world.provider.will_say("done");
    }
    let mut worker = live.root().await;
    let mut other = restarted.root().await;
    for worker in [&mut worker, &mut other] {
        let (outcome, _) = say_until(worker, "work", interrupt_after(2)).await;
        assert_eq!(outcome.unwrap(), Outcome::Interrupted(Cause::User));
    }

    say(&mut worker, "go on").await.unwrap();
    let again = restarted.restarted();
    let mut other = again.engine.open(&again.latest().await).await.unwrap();
    say(&mut other, "go on").await.unwrap();

    assert_eq!(again.provider.requests(), live.provider.requests());
    let id = other.agent().state.agent();
    let kinds = again.kinds(id).await;
    assert_eq!(kinds[2..6], ["user", "assistant", "interrupted", "user"]);
}

/// E9g: the process that takes the lease settles a draft; one that only reads does not.
#[tokio::test(start_paused = true)]
async fn lease_taker_settles_the_draft() {
    let world = World::new();
    let id = half_answered(&world).await;
    let restarted = world.restarted();

    restarted.engine.next_request(id).await.unwrap();
    restarted.engine.agents().await.unwrap();
    let found = restarted.kinds(id).await;
    restarted
        .engine
        .open(&restarted.latest().await)
        .await
        .unwrap();
    let settled = restarted.kinds(id).await;

    assert_eq!(found, ["system", "command", "user"]);
    assert_eq!(
        settled,
        ["system", "command", "user", "assistant", "interrupted"]
    );
    assert_eq!(restarted.store.draft(id).await.unwrap(), None);
    assert_eq!(
        restarted.provider.requests().len(),
        1,
        "nothing is sent by itself"
    );
}

/// E14b: a settled draft's text becomes the assistant row; the rest of it is dropped.
#[tokio::test(start_paused = true)]
async fn settled_draft_keeps_text_only() {
    let world = World::new();
    let id = half_answered(&world).await;
    let restarted = world.restarted();

    let worker = restarted
        .engine
        .open(&restarted.latest().await)
        .await
        .unwrap();

    let rows = restarted.rows(id).await;
    assert_eq!(rows[3].content.as_deref(), Some("half of it"));
    let entry = &worker.agent().view.entries()[3];
    let Ok(Loaded::Message(part)) = &entry.loaded else {
        panic!("it is a message")
    };
    assert_eq!(part.message.blocks.len(), 1);
    assert_eq!(part.response, Some(1));
}

/// E14a: a draft is not state: fold and projection never see it.
#[tokio::test(start_paused = true)]
async fn draft_is_not_state() {
    let world = World::new();
    let id = half_answered(&world).await;
    let restarted = world.restarted();
    let with_draft = restarted.engine.next_request(id).await.unwrap();
    let mut agent = ikigai_store::Agent::restore(&*restarted.store, id)
        .await
        .unwrap();
    agent.read_all(&*restarted.store).await.unwrap();

    let draft = restarted.store.draft(id).await.unwrap();
    let said = serde_json::to_string(&with_draft).unwrap();

    assert_eq!(draft.unwrap().text, "half of it");
    assert!(!said.contains("half of it"));
    assert_eq!(agent.view.entries().len(), 3);
}

/// Kills the process in the middle of an answer whose draft is partly stored.
async fn half_answered(world: &World) -> ikigai_core::AgentId {
    world
        .provider
        .will([says("half "), says("of it"), Step::Hang]);
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    let turn = say(&mut worker, "say it");
    // Dropping the turn simulates a crash; the draft was stored before.
    tokio::time::timeout(std::time::Duration::from_secs(2), turn)
        .await
        .unwrap_err();
    id
}

#[tokio::test(start_paused = true)]
async fn a_turn_without_an_answer_is_settled_as_a_crash() {
    let world = World::new();
    world.provider.will([Step::Hang]);
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    let turn = say(&mut worker, "anybody?");
    tokio::time::timeout(std::time::Duration::from_secs(2), turn)
        .await
        .unwrap_err();

    let restarted = world.restarted();
    restarted
        .engine
        .open(&restarted.latest().await)
        .await
        .unwrap();
    let again = restarted.restarted();
    again.engine.open(&again.latest().await).await.unwrap();

    let rows = again.rows(id).await;
    let kinds: Vec<_> = rows.iter().map(|row| row.kind.name()).collect();
    assert_eq!(
        kinds,
        ["system", "command", "user", "interrupted"],
        "and only once"
    );
    assert_eq!(rows[3].data.as_deref(), Some(r#"{"cause":"crash"}"#));
}

#[tokio::test(start_paused = true)]
async fn a_killed_agents_rows_by_others_are_applied_before_the_next_append() {
    let world = World::new();
    world.provider.will_say("one");
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    let killed = ikigai_core::data::AgentKilledData {
        target: Some(id),
        ..Default::default()
    };
    let row = ikigai_core::Event::AgentKilled(killed).into_row(id, ikigai_core::Micros(5));
    let head = ikigai_store::HeadClaim {
        agent: id,
        lease: None,
    };
    let batch = Batch {
        heads: vec![head],
        rows: vec![row],
        with: Vec::<Effect>::new(),
    };
    world.store.commit(batch).await.unwrap();

    say(&mut worker, "still here?").await.unwrap();

    let kinds = world.kinds(id).await;
    assert_eq!(
        kinds,
        [
            "system",
            "command",
            "agent_killed",
            "user",
            "assistant",
            "usage"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_provider_failure_is_a_row_and_the_partial_text_is_kept() {
    let world = World::new();
    world
        .provider
        .will([says("well, "), Step::Fail("overloaded".to_owned())]);
    world.provider.will_say("now");
    let mut worker = world.root().await;

    let (outcome, told) = say_until(&mut worker, "go", std::future::pending()).await;

    assert_eq!(outcome.unwrap(), Outcome::Failed("overloaded".to_owned()));
    let rows = world.rows(worker.agent().state.agent()).await;
    let kinds: Vec<_> = rows.iter().map(|row| row.kind.name()).collect();
    assert_eq!(kinds[2..], ["user", "assistant", "error"]);
    assert_eq!(rows[4].content.as_deref(), Some("overloaded"));
    let stored = told
        .iter()
        .filter(|update| matches!(update, UiEvent::Stored(_)))
        .count();
    assert_eq!(stored, 3);
    assert_eq!(say(&mut worker, "again").await.unwrap(), Outcome::Completed);
}

#[tokio::test(start_paused = true)]
async fn responses_are_numbered_and_costs_summed_across_restarts() {
    let world = World::new();
    world.provider.will_say("one");
    world.provider.will_say("two");
    let mut worker = world.root().await;
    say(&mut worker, "a").await.unwrap();
    let restarted = world.restarted();
    let mut worker = restarted
        .engine
        .open(&restarted.latest().await)
        .await
        .unwrap();
    say(&mut worker, "b").await.unwrap();

    let rows = restarted.rows(worker.agent().state.agent()).await;

    let usage: ikigai_core::data::UsageData = ikigai_core::data::read(rows[7].data.as_deref());
    assert_eq!(usage.response, Some(2));
    assert_eq!(usage.amounts.input, Some(10));
    assert_eq!(usage.sum.unwrap().input, Some(20));
}

/// Law 8: a request has a deadline; a provider that stays silent ends the turn.
#[tokio::test(start_paused = true)]
async fn a_silent_provider_is_given_up() {
    let world = World::new();
    world.provider.will([says("wait "), Step::Hang]);
    let mut worker = world.root().await;

    let turn = say(&mut worker, "hello");
    let outcome = tokio::time::timeout(std::time::Duration::from_hours(1), turn).await;

    let outcome = outcome.expect("the turn ends by itself").unwrap();
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    let kinds = world.kinds(worker.agent().state.agent()).await;
    assert_eq!(kinds[2..], ["user", "assistant", "error"]);
}

/// A provider configured with a longer timeout gets it.
#[tokio::test(start_paused = true)]
async fn a_slow_provider_is_waited_for_as_long_as_it_is_configured() {
    let world = World::with_patience(std::time::Duration::from_mins(12));
    world.provider.will([Step::Hang]);
    let mut worker = world.root().await;

    let outcome = say(&mut worker, "hello").await.unwrap();

    let words = "stopped: no content from the provider for 720 s".to_owned();
    assert_eq!(outcome, Outcome::Failed(words));
}

/// Thinking is stored with the block that follows it, in response order. This holds without other
/// text and after a restart.
#[tokio::test(start_paused = true)]
async fn thinking_is_stored_with_the_block_that_follows_it() {
    let thought = |text: &str| AnswerBlock::Thinking {
        text: text.to_owned(),
        payload: Some(format!("signature of {text}")),
    };
    let said = |text: &str| AnswerBlock::Text {
        text: text.to_owned(),
        item: None,
    };
    let world = World::new();
    world.provider.will([Step::FinishWith(vec![
        thought("one"),
        said("hello"),
        thought("two"),
        thought("three"),
    ])]);
    let mut worker = world.root().await;

    say(&mut worker, "think").await.unwrap();

    let rows = world.rows(worker.agent().state.agent()).await;
    let kinds: Vec<_> = rows.iter().map(|row| row.kind.name()).collect();
    assert_eq!(kinds[2..], ["user", "assistant", "assistant", "usage"]);
    let thoughts = |row: &Row| -> Vec<String> {
        let data: AssistantData = data::read(row.data.as_deref());
        let thinking = data.opaque.unwrap_or_default().thinking.unwrap_or_default();
        thinking
            .into_iter()
            .filter_map(|thought| thought.payload)
            .collect()
    };
    assert_eq!(thoughts(&rows[3]), ["signature of one"]);
    assert_eq!(rows[4].content.as_deref(), Some(""));
    assert_eq!(
        thoughts(&rows[4]),
        ["signature of two", "signature of three"]
    );
    let restarted = world.restarted();
    let mut again = Agent::restore(&*restarted.store, rows[0].at.agent)
        .await
        .unwrap();
    again.read_all(&*restarted.store).await.unwrap();
    assert_eq!(again.view, worker.agent().view);
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_tool_that_is_not_there_is_answered_and_the_turn_goes_on() {
    let call = |name: &str| AnswerBlock::Call {
        id: None,
        name: name.to_owned(),
        arguments: "{}".to_owned(),
        item: None,
    };
    let world = World::new();
    world
        .provider
        .will([Step::FinishWith(vec![call("glob"), call("bash")])]);
    world.provider.will_say("then not");
    let mut worker = world.root().await;

    let outcome = say(&mut worker, "list the files").await.unwrap();

    assert_eq!(outcome, Outcome::Completed);
    let kinds = world.kinds(worker.agent().state.agent()).await;
    let turn = [
        "user",
        "tool_call",
        "tool_call",
        "usage",
        "tool_result",
        "tool_result",
    ];
    assert_eq!(kinds[2..8], turn);
    assert_eq!(kinds[8..], ["assistant", "usage"]);
    let sent = serde_json::to_string(&world.provider.requests()[1]).unwrap();
    assert!(
        sent.contains("There is no tool `bash`. You have: fork, kill, recall, send, wait."),
        "{sent}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_begins_anew_is_stored_once() {
    let world = World::new();
    world.provider.will([
        says("first try"),
        Step::TryAgain("503".to_owned()),
        says("second try"),
        Step::Finish,
    ]);
    let mut worker = world.root().await;

    let (outcome, told) = say_until(&mut worker, "go", std::future::pending()).await;

    assert_eq!(outcome.unwrap(), Outcome::Completed);
    let rows = world.rows(worker.agent().state.agent()).await;
    assert_eq!(rows[3].content.as_deref(), Some("second try"));
    assert!(
        told.iter()
            .any(|update| matches!(update, UiEvent::Waiting(wait) if wait.attempt == 2))
    );
    assert!(told.contains(&UiEvent::Again));
}

/// E21: an item named in a provider's refusal is listed in an error row's `omit`. Later requests
/// omit it and the turn continues; a second refusal of the same item ends the turn.
#[tokio::test(start_paused = true)]
async fn named_item_is_omitted_and_turn_goes_on() {
    let world = World::new();
    let signed = AnswerBlock::Thinking {
        text: "hm".to_owned(),
        payload: Some("a signature that will be refused".to_owned()),
    };
    let said = AnswerBlock::Text {
        text: "four".to_owned(),
        item: None,
    };
    world.provider.will([Step::FinishWith(vec![signed, said])]);
    let mut worker = world.root().await;
    say(&mut worker, "2 + 2").await.unwrap();
    world.provider.will([Step::Refuse(1)]);
    world.provider.will_say("six");

    let outcome = say(&mut worker, "3 + 3").await.unwrap();

    assert_eq!(outcome, Outcome::Completed);
    let id = worker.agent().state.agent();
    let rows = world.rows(id).await;
    let kinds: Vec<_> = rows.iter().map(|row| row.kind.name()).collect();
    assert_eq!(kinds[5..], ["user", "error", "assistant", "usage"]);
    let error: ErrorData = data::read(rows[6].data.as_deref());
    assert_eq!(error.omit, Some(vec![rows[3].at]));
    let sent: Vec<_> = world
        .provider
        .requests()
        .iter()
        .map(|request| serde_json::to_string(request).unwrap())
        .collect();
    assert!(sent[1].contains("will be refused"));
    assert!(!sent[2].contains("will be refused"));
    assert!(sent[2].contains("four"), "the words stay");
    world.provider.will([Step::Refuse(1)]);
    world.provider.will([Step::Refuse(1)]);
    let again = say(&mut worker, "and now?").await.unwrap();
    assert!(matches!(again, Outcome::Failed(_)), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_cut_at_its_longest_is_kept_and_is_no_success() {
    let world = World::new();
    world.provider.will([says("and so on and"), Step::RunOut]);
    let mut worker = world.root().await;

    let outcome = say(&mut worker, "tell me all").await.unwrap();

    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    let kinds = world.kinds(worker.agent().state.agent()).await;
    assert_eq!(kinds[2..], ["user", "assistant", "usage", "error"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_person_said_is_not_left_out_when_a_provider_refuses_it() {
    let world = World::new();
    world.provider.will([Step::Refuse(0)]);
    let mut worker = world.root().await;

    let outcome = say(&mut worker, "something").await.unwrap();

    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    let kinds = world.kinds(worker.agent().state.agent()).await;
    assert_eq!(kinds[2..], ["user", "error"]);
    assert_eq!(world.provider.requests().len(), 1);
}

/// Pings and empty deltas are not content: they do not keep a turn alive.
#[tokio::test(start_paused = true)]
async fn a_stream_without_content_ends_after_ten_minutes() {
    let world = World::new();
    let minute = std::time::Duration::from_mins(1);
    let pings = (0..60).flat_map(|_| [Step::Sleep(minute), says("")]);
    world.provider.will(
        [says("words")]
            .into_iter()
            .chain(pings)
            .chain([Step::Finish]),
    );
    let mut worker = world.root().await;
    let begun = tokio::time::Instant::now();

    let outcome = say(&mut worker, "hello").await.unwrap();

    let words = "stopped: no content from the provider for 600 s".to_owned();
    assert_eq!(outcome, Outcome::Failed(words));
    assert_eq!(begun.elapsed().as_secs() / 60, 10);
    let kinds = world.kinds(worker.agent().state.agent()).await;
    assert_eq!(kinds[2..], ["user", "assistant", "error"]);
}

/// Content that comes slowly keeps a turn alive.
#[tokio::test(start_paused = true)]
async fn a_slow_stream_of_content_is_read_to_its_end() {
    let world = World::new();
    let minutes = std::time::Duration::from_mins(9);
    let slow = (0..3).flat_map(|_| [Step::Sleep(minutes), says("word ")]);
    world.provider.will(slow.chain([Step::Finish]));
    let mut worker = world.root().await;

    let outcome = say(&mut worker, "hello").await.unwrap();

    assert_eq!(outcome, Outcome::Completed);
}
