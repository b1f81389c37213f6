//! Summaries: written by a model in parallel with turns, sent instead of the covered rows.

use std::time::Duration;

use ikigai_core::data::{self, SummaryData, UsageData};
use ikigai_core::summary::SUMMARY_REQUEST;
use ikigai_core::{AgentId, Block, Request};
use ikigai_engine::{
    AgentJob, FrontEnd, Outcome, USER_REQUESTS, UiEvent, UserInput, UserRequest, Worker,
};
use ikigai_providers::AnswerBlock;
use ikigai_testkit::{Step, is_summary_request};
use tokio::sync::mpsc;

use crate::support::{World, attended_line, interrupt, printed_in, say};

/// Heading of a summary in a request.
const HEADING: &str = "Summary of the conversation so far, which is not shown any more:\n\n";

fn long(text: &str) -> String {
    format!("{text} {}", "word ".repeat(100))
}

async fn talk(world: &World, worker: &mut Worker, turns: usize) {
    for turn in 0..turns {
        world.provider.will_say(&long(&format!("answer {turn}")));
        say(worker, &long(&format!("question {turn}")))
            .await
            .unwrap();
    }
}

async fn request(world: &World, worker: &Worker) -> Request {
    let id = worker.agent().state.agent();
    world.engine.next_request(id).await.unwrap()
}

async fn count(world: &World, id: AgentId, kind: &str) -> usize {
    let kinds = world.kinds(id).await;
    kinds.iter().filter(|one| *one == kind).count()
}

fn texts(request: &Request) -> Vec<&str> {
    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
    blocks
        .filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

/// Types a line and returns its output.
async fn printed(worker: &mut Worker, line: &str) -> String {
    let (_, told) = attended_line(worker, line, |_| Vec::new()).await;
    let rows = told.into_iter().filter_map(|update| match update {
        UiEvent::Stored(row) => printed_in(&row),
        _ => None,
    });
    rows.collect::<Vec<_>>().join("\n")
}

/// Checks that the live agent and a restarted one send the same request.
async fn is_the_same_after_a_restart(world: &World, worker: Worker) {
    let live = request(world, &worker).await;
    let id = worker.agent().state.agent();
    drop(worker);
    let restarted = world.restarted();
    assert_eq!(restarted.engine.next_request(id).await.unwrap(), live);
}

/// E2a E2b: a summary replaces everything before it and is shown. Undone, it leaves the request as
/// before, byte for byte; a later summary includes it.
#[tokio::test(start_paused = true)]
async fn a_conversation_is_compacted_and_brought_back() {
    let world = World::new();
    let mut worker = world.root().await;
    talk(&world, &mut worker, 3).await;
    let before = request(&world, &worker).await;
    world
        .provider
        .will_summarise_as("  They talked about words.\n");

    let output = printed(&mut worker, "/compact keep the words").await;

    assert_eq!(
        output,
        "summarising 3 turns\n3 turns summarised: 680 → 431 tokens · /compact --undo"
    );
    let asked = world.provider.requests().pop().unwrap();
    let (last, conversation) = asked.messages.split_last().unwrap();
    assert_eq!(conversation, before.messages, "asked on the same prefix");
    assert_eq!(
        (&asked.system, &asked.tools),
        (&before.system, &before.tools)
    );
    let [Block::Text { text: told }] = last.blocks.as_slice() else {
        panic!("{last:?}")
    };
    assert!(told.starts_with(SUMMARY_REQUEST), "{told}");
    assert!(
        told.ends_with("The user says about the summary: keep the words"),
        "{told}"
    );
    let compacted = request(&world, &worker).await;
    let first = format!("{HEADING}They talked about words.");
    let kept: Vec<_> = (0..3)
        .map(|turn| long(&format!("question {turn}")))
        .collect();
    let newest = long("answer 2");
    assert_eq!(
        texts(&compacted),
        [first.as_str(), &kept[0], &kept[1], &kept[2], &newest],
        "the user's messages and the newest answer stay"
    );
    assert_eq!(
        (&compacted.system, &compacted.tools),
        (&before.system, &before.tools)
    );
    let context = printed(&mut worker, "/context").await;
    assert!(
        context.contains("3 of your messages word for word"),
        "{context}"
    );
    let shown = printed(&mut worker, "/compact --show").await;
    assert!(shown.ends_with(&first), "{shown}");

    talk(&world, &mut worker, 1).await;
    let grown = request(&world, &worker).await;
    assert_eq!(texts(&grown).len(), 7);
    world.provider.will_summarise_as("All of it.");
    printed(&mut worker, "/compact").await;
    let asked = world.provider.requests().pop().unwrap();
    assert!(
        texts(&asked)[0].contains("They talked about words."),
        "a summary is summarised"
    );
    let second = request(&world, &worker).await;
    assert_eq!(texts(&second)[0], format!("{HEADING}All of it."));
    assert_eq!(
        texts(&second).len(),
        6,
        "four messages and the newest answer"
    );

    let undone = printed(&mut worker, "/compact --undo").await;
    assert!(undone.starts_with("summary #"), "{undone}");
    assert_eq!(request(&world, &worker).await, grown);
    printed(&mut worker, "/undo").await;
    printed(&mut worker, "/compact --undo").await;
    assert_eq!(
        serde_json::to_string(&request(&world, &worker).await).unwrap(),
        serde_json::to_string(&before).unwrap()
    );
    let none = printed(&mut worker, "/compact --undo").await;
    assert_eq!(none, "⚠ no summary yet");
    is_the_same_after_a_restart(&world, worker).await;
}

/// A summary's cost has a usage row, which does not correct the token estimates.
#[tokio::test(start_paused = true)]
async fn a_summary_costs_and_leaves_the_estimates_alone() {
    let world = World::new();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    world.provider.will_count(1000);
    talk(&world, &mut worker, 3).await;
    let before = worker.context().await.unwrap();
    world.provider.will_summarise_as(&"long ".repeat(10_000));

    printed(&mut worker, "/compact").await;

    let rows = world.rows(id).await;
    let usage: Vec<UsageData> = rows
        .iter()
        .filter(|row| row.kind.name() == "usage")
        .map(|row| data::read(row.data.as_deref()))
        .collect();
    let numbers: Vec<_> = usage.iter().map(|usage| usage.response.unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    assert_eq!(usage[3].sum.as_ref().unwrap().cost_nano_usd, Some(28));
    assert_eq!(
        worker.context().await.unwrap(),
        before,
        "a summary that is too long is none"
    );
    talk(&world, &mut worker, 1).await;
    assert_eq!(count(&world, id, "usage").await, 5);
    is_the_same_after_a_restart(&world, worker).await;
}

/// A failed, empty, truncated or too long summary changes nothing and reports the reason.
#[tokio::test(start_paused = true)]
async fn a_summary_that_is_none_leaves_everything_as_it_was() {
    let say = |text: &str| Step::Say(text.to_owned());
    let call = AnswerBlock::Call {
        id: None,
        name: "bash".to_owned(),
        arguments: "{}".to_owned(),
        item: None,
    };
    let announced = AnswerBlock::Text {
        text: "Let me look at the files first.".to_owned(),
        item: None,
    };
    let cases = [
        (vec![Step::Fail("overloaded".to_owned())], "overloaded", 0),
        (vec![say("half")], "the answer was cut off", 0),
        (
            vec![say(" \n"), Step::Finish],
            "the model returned no text",
            1,
        ),
        (
            vec![Step::FinishWith(vec![call.clone()])],
            "the model returned no text",
            1,
        ),
        (
            vec![Step::FinishWith(vec![announced, call])],
            "the model called tools instead",
            1,
        ),
        (
            vec![say("much"), Step::RunOut],
            "the summary is too long",
            1,
        ),
        (
            vec![say(&"much ".repeat(2_000)), Step::Finish],
            "the summary is not shorter than the original",
            1,
        ),
        (
            vec![Step::Hang],
            "stopped: no content from the provider for 600 s",
            0,
        ),
        (
            vec![Step::Panic("broken".to_owned())],
            "internal error in ikigai (please report)",
            0,
        ),
    ];
    for (steps, reason, usage) in cases {
        let world = World::new();
        let mut worker = world.root().await;
        let id = worker.agent().state.agent();
        talk(&world, &mut worker, 2).await;
        let before = request(&world, &worker).await;
        world.provider.will_summarise(steps);

        let (done, told) = attended_line(&mut worker, "/compact", |_| Vec::new()).await;

        let expected = format!("⚠ no summary: {reason} · conversation unchanged");
        assert_eq!(outputs(&told), ["summarising 2 turns", &expected]);
        assert!(done.warned, "{reason}");
        assert_eq!(request(&world, &worker).await, before, "{reason}");
        assert_eq!(count(&world, id, "summary").await, 0, "{reason}");
        assert_eq!(count(&world, id, "usage").await, 2 + usage, "{reason}");
        world.provider.will_say("yes");
        let outcome = crate::support::say(&mut worker, "go on").await.unwrap();
        assert_eq!(outcome, Outcome::Completed, "{reason}");
        is_the_same_after_a_restart(&world, worker).await;
    }
}

/// Returns the outputs of commands.
fn outputs(told: &[UiEvent]) -> Vec<String> {
    let rows = told.iter().filter_map(|update| match update {
        UiEvent::Stored(row) => printed_in(row),
        _ => None,
    });
    rows.collect()
}

#[tokio::test(start_paused = true)]
async fn nothing_is_summarised_where_nothing_is_to_be() {
    let world = World::new();
    let mut worker = world.root().await;
    let nothing = "⚠ nothing to summarise";
    assert_eq!(printed(&mut worker, "/compact").await, nothing);
    talk(&world, &mut worker, 1).await;
    world.provider.will_summarise_as("short");
    printed(&mut worker, "/compact").await;

    assert_eq!(printed(&mut worker, "/compact").await, nothing);
    assert_eq!(
        printed(&mut worker, "/compact --sideways").await,
        "⚠ /compact has no option --sideways (quote text that begins with --) · \
         /compact [--edit] [instructions] | --show | --undo"
    );
    printed(&mut worker, "/budget 0.001k").await;
    let refused = printed(&mut worker, "/compact").await;
    assert!(
        refused.starts_with("⚠ the budget of this agent"),
        "{refused}"
    );
    let (done, _) = attended_line(&mut worker, "/resume", |_| Vec::new()).await;
    assert!(done.warned, "a summary is nothing to be answered");
}

/// An interrupt stops a summary; a message typed meanwhile is queued.
#[tokio::test(start_paused = true)]
async fn a_summary_is_interrupted() {
    let world = World::new();
    let mut worker = world.root().await;
    talk(&world, &mut worker, 2).await;
    let before = request(&world, &worker).await;
    world.provider.will_summarise([Step::Hang]);
    let is_begun =
        |update: &UiEvent| matches!(update, UiEvent::Stored(row) if row.kind.name() == "command");
    let mut said = false;

    let (_, told) = attended_line(&mut worker, "/compact", |update| {
        if is_begun(update) && !std::mem::replace(&mut said, true) {
            return vec![
                UserRequest::Line(UserInput::Message("later".to_owned())),
                interrupt(),
            ];
        }
        Vec::new()
    })
    .await;

    let queued = told
        .iter()
        .any(|update| matches!(update, UiEvent::Queued { text, .. } if text == "later"));
    assert!(queued, "{told:?}");
    let Some(UiEvent::Stored(last)) = told.last() else {
        panic!("{told:?}")
    };
    assert_eq!(
        printed_in(last).as_deref(),
        Some("⚠ interrupted · conversation unchanged")
    );
    assert_eq!(request(&world, &worker).await, before);
}

/// Creates a world with summaries at 32 % of the window. Five turns of [`fill`] reach that, four do
/// not.
fn crowded() -> World {
    let world = World::with_window(20_000);
    world.equipped(|engine| engine.with_summaries_at(Some(32)))
}

/// Runs turns of about 1,270 tokens each.
async fn fill(world: &World, worker: &mut Worker, turns: usize) {
    for turn in 0..turns {
        let answer = format!("answer {turn} {}", "word ".repeat(1000));
        world.provider.will_say(&answer);
        say(worker, &format!("question {turn}")).await.unwrap();
    }
}

/// A summary runs in parallel with the turn that reaches the limit. It applies from the next
/// request on.
#[tokio::test(start_paused = true)]
async fn a_full_window_is_summarised_beside_the_turn() {
    let world = crowded();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    fill(&world, &mut worker, 5).await;
    assert_eq!(count(&world, id, "summary").await, 0);
    world.provider.will_summarise([
        Step::Sleep(Duration::from_secs(100)),
        Step::Say("five turns".to_owned()),
        Step::Finish,
    ]);
    world.provider.will_say(&long("answer 5"));

    let (done, told) = attended_line(&mut worker, "question 5", |_| Vec::new()).await;

    assert_eq!(done.outcome, Some(Outcome::Completed));
    let notices: Vec<_> = told
        .iter()
        .filter_map(|update| match update {
            UiEvent::Notice(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let [begun, ended] = notices[..] else {
        panic!("{notices:?}")
    };
    assert!(begun.starts_with("Context 4"), "{begun}");
    assert!(
        begun.ends_with("% full (20k tokens): summarising 5 turns"),
        "{begun}"
    );
    assert!(ended.starts_with("5 turns summarised: "), "{ended}");
    let rows = world.rows(id).await;
    let kinds: Vec<_> = rows
        .iter()
        .rev()
        .take(5)
        .map(|row| row.kind.name())
        .collect();
    assert_eq!(kinds, ["summary", "usage", "usage", "assistant", "user"]);
    let range: SummaryData = data::read(rows.last().unwrap().data.as_deref());
    assert_eq!(range.from, Some(rows[0].at));
    let requests = world.provider.requests();
    assert_eq!(requests.len(), 7);
    let sent = request(&world, &worker).await;
    let sent = texts(&sent);
    // The summary, five questions, the newest earlier answer, and the new turn.
    assert_eq!(sent.len(), 9);
    assert_eq!(sent[0], format!("{HEADING}five turns"));
    assert!(sent[1].starts_with("question 0"));
    assert!(sent[6].starts_with("answer 4"));
    assert!(sent[7].starts_with("question 5"));
    is_the_same_after_a_restart(&world, worker).await;
}

/// Messages are answered while a summary is written; the summary is stored afterwards.
#[tokio::test(start_paused = true)]
async fn turns_go_on_while_a_summary_is_written() {
    let world = crowded();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    fill(&world, &mut worker, 5).await;
    world
        .provider
        .will_summarise([Step::Wait, Step::Say("five".to_owned()), Step::Finish]);
    world.provider.will_say("answer 5");
    world
        .provider
        .will([Step::Say("answer 6".to_owned()), Step::Finish]);
    let mut said = false;

    let (done, _) = attended_line(&mut worker, "question 5", |update| match update {
        UiEvent::Stored(row) if row.content.as_deref() == Some("answer 5") => {
            assert!(!std::mem::replace(&mut said, true));
            vec![UserRequest::Line(UserInput::Message(
                "question 6".to_owned(),
            ))]
        }
        UiEvent::Stored(row) if row.content.as_deref() == Some("answer 6") => {
            world.provider.go_on();
            Vec::new()
        }
        _ => Vec::new(),
    })
    .await;

    assert_eq!(done.outcome, Some(Outcome::Completed));
    let sent = request(&world, &worker).await;
    let expected = format!("{HEADING}five");
    let sent = texts(&sent);
    assert_eq!(sent[0], expected);
    assert_eq!(
        sent[sent.len() - 4..],
        ["question 5", "answer 5", "question 6", "answer 6"]
    );
    assert_eq!(count(&world, id, "summary").await, 1);
    is_the_same_after_a_restart(&world, worker).await;
}

/// Ends a turn while its summary is still being written.
async fn leave_a_summary_behind(world: &World, worker: &mut Worker) {
    fill(world, worker, 5).await;
    let sleep = Step::Sleep(Duration::from_secs(100));
    world
        .provider
        .will_summarise([sleep, Step::Say("five".to_owned()), Step::Finish]);
    world.provider.will_say("answer 5");
    let (sender, mut receiver) = mpsc::channel(USER_REQUESTS);
    let mut tell = |update: UiEvent| {
        if matches!(update, UiEvent::Notice(_)) {
            sender.try_send(UserRequest::Do(AgentJob::Mail)).unwrap();
        }
    };
    let mut desk = FrontEnd::new(&mut receiver, &mut tell);
    worker.turn("question 5", &mut desk).await.unwrap();
}

/// E2c: a summary is dropped if its rows have left the path meanwhile.
#[tokio::test(start_paused = true)]
async fn late_summary_is_thrown_away() {
    for (bend, kept) in [("/clear", 0), ("/rewind early", 0), ("/rewind late", 1)] {
        let world = crowded();
        let mut worker = world.root().await;
        let id = worker.agent().state.agent();
        printed(&mut worker, "/mark early").await;
        leave_a_summary_behind(&world, &mut worker).await;
        printed(&mut worker, "/mark late").await;
        assert_eq!(count(&world, id, "summary").await, 0);

        printed(&mut worker, bend).await;
        tokio::time::sleep(Duration::from_secs(200)).await;
        world.provider.will_say("anew!");
        say(&mut worker, "anew").await.unwrap();

        assert_eq!(count(&world, id, "summary").await, kept, "{bend}");
        assert_eq!(
            count(&world, id, "usage").await,
            8,
            "{bend}: it cost all the same"
        );
        let sent = request(&world, &worker).await;
        let told = texts(&sent).iter().any(|text| text.contains("five"));
        assert_eq!(told, kept == 1, "{bend}");
        is_the_same_after_a_restart(&world, worker).await;
    }
}

/// A failed summary is not retried with every turn; cuts keep requests within the budget.
#[tokio::test(start_paused = true)]
async fn without_summaries_the_oldest_turns_are_cut_off() {
    let world = crowded();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    for turn in 0..40 {
        world
            .provider
            .will_summarise([Step::Fail("overloaded".to_owned())]);
        world
            .provider
            .will_say(&format!("answer {turn} {}", "word ".repeat(1000)));
        let outcome = say(&mut worker, &format!("question {turn}")).await;
        assert_eq!(outcome.unwrap(), Outcome::Completed);
    }

    assert!(count(&world, id, "summary").await > 1);
    let requests = world.provider.requests();
    let asked = requests
        .iter()
        .filter(|one| is_summary_request(one))
        .count();
    let cuts = count(&world, id, "summary").await;
    assert!(asked <= 3 * (cuts + 1), "{asked} tries, {cuts} cuts");
    is_the_same_after_a_restart(&world, worker).await;
}

/// A crash while a summary is written leaves no trace in later requests.
#[tokio::test(start_paused = true)]
async fn a_restart_in_the_middle_of_a_summary_leaves_a_clean_state() {
    let world = World::new();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    talk(&world, &mut worker, 2).await;
    let before = request(&world, &worker).await;
    world.provider.will_summarise([Step::Hang]);
    let compact = attended_line(&mut worker, "/compact", |_| Vec::new());
    assert!(
        tokio::time::timeout(Duration::from_secs(10), compact)
            .await
            .is_err()
    );
    drop(worker);

    let world = world.restarted();
    let mut worker = world.reopened().await;

    assert_eq!(request(&world, &worker).await, before);
    let kinds = world.kinds(id).await;
    assert_eq!(kinds.last().unwrap(), "command");
    world.provider.forget_script();
    world.provider.will_say("yes");
    say(&mut worker, "go on").await.unwrap();
    world.provider.will_summarise_as("short");
    printed(&mut worker, "/compact").await;
    let sent = request(&world, &worker).await;
    assert_eq!(
        texts(&sent).len(),
        5,
        "a summary, three messages, an answer"
    );
}
