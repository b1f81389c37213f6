//! Questions about calls: asked once, answered durably, open until they are answered.

use std::time::Duration;

use ikigai_core::data::{AnsweredBy, Verdict};
use ikigai_core::grants::GrantScope;
use ikigai_core::settings::{Approve, Rule};
use ikigai_core::{AgentId, RowRef, Settings};
use ikigai_engine::{Answer, FrontEnd, Outcome, Question, UiEvent, UserRequest};
use ikigai_store::{ReadLog, StoreError};
use ikigai_testkit::{CommitFault, Step, block_on, check_request};
use ikigai_tools::builtin;
use ikigai_tools::process::ChildEnvironment;
use serde_json::json;
use tempfile::TempDir;

use crate::fakes::{FakeCall, call, calling};
use crate::support::{
    OWN_KEY, TestJob, World, active_agents, all_rows, dies_after, interrupt, say, target_of,
};

fn answer(call: RowRef, answer: Answer) -> Vec<UserRequest> {
    let by = AnsweredBy::User;
    vec![UserRequest::Answer { call, answer, by }]
}

/// Answers the question about each call by its label and ignores other events.
fn answering<'a>(
    answers: impl Fn(&str) -> Answer + Send + 'a,
) -> impl FnMut(&UiEvent) -> Vec<UserRequest> + Send + 'a {
    move |update| match update {
        UiEvent::Question(question) => answer(question.call, answers(&question.shown)),
        _ => Vec::new(),
    }
}

fn asked(told: &[UiEvent]) -> Vec<&Question> {
    let questions = told.iter().filter_map(|update| match update {
        UiEvent::Question(question) => Some(question),
        _ => None,
    });
    questions.collect()
}

/// Returns the data of the `answer` rows, in order.
async fn answer_rows(world: &World, id: AgentId) -> Vec<String> {
    let rows = world.rows(id).await.into_iter();
    let data = rows
        .filter(|row| row.kind.name() == "command")
        .filter_map(|row| row.data);
    data.filter(|data| data.contains(r#""command":"answer""#))
        .collect()
}

/// E22: the answer to a question is a `command` row, durable before the call runs. It has `args`,
/// `of` and `by`. *Always* sets `rules` in the same row, and the next call runs unasked.
#[tokio::test(start_paused = true)]
async fn permission_answer_durable_before_the_call() {
    let (world, call_log) = World::with_fakes();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    let log = world.log().clone();
    call_log.look_when_one_begins(move |label| {
        let rows = block_on(log.page(all_rows(id))).unwrap();
        let call = rows
            .iter()
            .find(|row| row.content.as_deref() == Some(label))
            .unwrap()
            .at;
        let about = format!(r#""of":{{"agent":"{}","seq":{}}}"#, call.agent, call.seq);
        let answers = rows.iter().filter_map(|row| row.data.as_deref());
        let durable = answers
            .clone()
            .any(|data| data.contains(&about) && data.contains("answer"));
        let by_rule = label == "test again";
        assert!(
            durable || by_rule,
            "{label} runs before its answer is stored"
        );
    });
    let fakes = ["look around", "test one", "delete all", "delete some"]
        .map(|label| FakeCall::new("act", label));
    world.provider.will(calling(&fakes));
    world
        .provider
        .will(calling(&[FakeCall::new("act", "test again")]));
    world.provider.will_say("done");

    let (outcome, told) = active_agents(
        &mut worker,
        TestJob::Say("go"),
        answering(|label| match label {
            "look around" => Answer::Once,
            "test one" => Answer::Always("test*".to_owned()),
            "delete all" => Answer::No(None),
            _ => Answer::No(Some("not these".to_owned())),
        }),
    )
    .await;

    assert_eq!(outcome.unwrap(), Outcome::Completed);
    assert_eq!(call_log.began(), ["look around", "test one", "test again"]);
    let of = |seq: u64| format!(r#""of":{{"agent":"{id}","seq":{seq}}},"by":"user""#);
    let row = |word: &str, set: &str, seq: u64, grant: &str| {
        let of = of(seq);
        format!(r#"{{"command":"answer","args":"{word}",{set}{of}{grant}}}"#)
    };
    let given = Rule {
        tool: Some("act".to_owned()),
        pattern: Some("test*".to_owned()),
    };
    let state = &worker.agent().state;
    assert_eq!(state.settings().rules, Some(vec![given.clone()]));
    let scope = GrantScope {
        approve: None,
        rules: Some(vec![given]),
    };
    let granting = state.grants().rules.as_ref().unwrap();
    let tag = OWN_KEY.tag(id, granting.seq, &scope);
    let rule = r#""set":{"rules":[{"pattern":"test*","tool":"act"}]},"#;
    assert_eq!(
        answer_rows(&world, id).await,
        [
            row("once", "", 4, ""),
            row("always", rule, 5, &format!(r#","grant":"{tag}""#)),
            row("no", "", 6, ""),
            row("no", "", 7, "")
        ]
    );
    let refused: Vec<_> = world
        .results(id)
        .await
        .into_iter()
        .filter(|came| came.verdict == Verdict::Refused)
        .map(|came| came.output)
        .collect();
    assert_eq!(
        refused,
        ["The user said no.", "The user said no: not these"]
    );
    let questions = asked(&told);
    assert_eq!(questions.len(), 4, "`test again` is not asked about");
    assert_eq!(
        (&*questions[1].tool, &*questions[1].pattern),
        ("act", "test*")
    );
}

/// *Always* also allows the other waiting calls that match the rule.
#[tokio::test(start_paused = true)]
async fn always_lets_go_what_else_waits_and_fits() {
    let (world, call_log) = World::with_fakes();
    let mut worker = world.root().await;
    let fakes = ["test one", "test two", "other"].map(|label| FakeCall::new("act", label));
    world.provider.will(calling(&fakes));

    let (outcome, told) = active_agents(&mut worker, TestJob::Say("go"), |update| match update {
        UiEvent::Question(question) if question.shown == "other" => {
            let first = RowRef::new(question.call.agent, ikigai_core::Seq(4));
            answer(first, Answer::Always("test*".to_owned()))
        }
        UiEvent::Progress { line, .. } if line == "test two" => vec![interrupt()],
        _ => Vec::new(),
    })
    .await;

    assert!(matches!(outcome.unwrap(), Outcome::Interrupted(_)));
    assert_eq!(call_log.began(), ["test one", "test two"]);
    let moot = told.iter().filter_map(|update| match update {
        UiEvent::Unasked(call) => Some(call.seq.0),
        _ => None,
    });
    assert_eq!(
        moot.collect::<Vec<_>>(),
        [5, 6],
        "one by the rule, one with the turn"
    );
}

/// An edited pattern that does not match the call allows it once, with a warning.
#[tokio::test(start_paused = true)]
async fn a_pattern_that_does_not_fit_lets_the_call_run_once_and_says_so() {
    let (world, call_log) = World::with_fakes();
    let mut worker = world.root().await;
    for label in ["one", "two"] {
        world.provider.will(calling(&[FakeCall::new("act", label)]));
    }
    world.provider.will_say("done");

    let (outcome, told) = active_agents(
        &mut worker,
        TestJob::Say("go"),
        answering(|_| Answer::Always("two*".to_owned())),
    )
    .await;

    assert_eq!(outcome.unwrap(), Outcome::Completed);
    assert_eq!(call_log.began(), ["one", "two"]);
    assert_eq!(asked(&told).len(), 1);
    let warned = told.iter().filter_map(|update| match update {
        UiEvent::Warning(text) => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(
        warned.collect::<Vec<_>>(),
        ["\"two*\" does not match this call: allowed once"]
    );
}

/// E22: no call runs whose answer could not be stored.
#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_stored_lets_nothing_run() {
    let (world, call_log) = World::with_fakes();
    let mut worker = world.root().await;
    world
        .provider
        .will(calling(&[FakeCall::new("act", "asked")]));
    let store = world.store.clone();

    let (outcome, told) = active_agents(&mut worker, TestJob::Say("go"), |update| match update {
        UiEvent::Question(question) => {
            store.go_away(|| StoreError::Full("no room".into()));
            answer(question.call, Answer::Once)
        }
        UiEvent::StoreAway(_) => vec![interrupt()],
        _ => Vec::new(),
    })
    .await;

    assert!(outcome.is_err());
    assert!(
        told.iter()
            .any(|update| matches!(update, UiEvent::StoreAway(_)))
    );
    assert!(call_log.began().is_empty());
}

/// E9d: a call that awaits approval stays open across restarts and is asked about again. Allowed,
/// it runs once and its result is sent; a new message closes it as not run.
#[tokio::test(start_paused = true)]
async fn permission_question_survives_restart() {
    let (world, call_log) = World::with_fakes();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    let fakes = [FakeCall::new("look", "free"), FakeCall::new("act", "asked")];
    world.provider.will(calling(&fakes));
    dies_after(100, &mut worker, TestJob::Say("go")).await;
    let once = world.restarted();
    let mut worker = once.reopened().await;
    dies_after(100, &mut worker, TestJob::Resume).await;
    let twice = once.restarted();
    let mut worker = twice.reopened().await;
    let open = twice.results(id).await;

    twice.provider.will_say("done");
    let (outcome, told) =
        active_agents(&mut worker, TestJob::Resume, answering(|_| Answer::Once)).await;

    assert_eq!(open.len(), 1, "only the free call has a result: {open:?}");
    assert_eq!(
        twice.provider.requests().len(),
        2,
        "nothing is sent by itself"
    );
    assert_eq!(outcome.unwrap(), Outcome::Completed);
    assert_eq!(asked(&told).len(), 1);
    assert_eq!(call_log.began(), ["free", "asked"]);
    let request = twice.provider.requests().pop().unwrap();
    check_request(&request, &target_of(&worker)).unwrap();
    let verdicts: Vec<_> = twice
        .results(id)
        .await
        .into_iter()
        .map(|came| came.verdict)
        .collect();
    assert_eq!(verdicts, [Verdict::Ran, Verdict::Ran]);

    // The same up to the restart; then the user sends another message.
    let (world, call_log) = World::with_fakes();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    world
        .provider
        .will(calling(&[FakeCall::new("act", "asked")]));
    dies_after(100, &mut worker, TestJob::Say("go")).await;
    let restarted = world.restarted();
    let mut worker = restarted.reopened().await;
    restarted.provider.will_say("as you like");
    say(&mut worker, "leave it").await.unwrap();

    let came = restarted.results(id).await;
    assert_eq!(came.len(), 1);
    assert_eq!(came[0].verdict, Verdict::Interrupted);
    assert_eq!(
        came[0].output,
        "not run: the user said something else instead"
    );
    assert!(call_log.began().is_empty());
    let kinds = restarted.kinds(id).await;
    assert_eq!(
        kinds[3..8],
        ["tool_call", "usage", "interrupted", "tool_result", "user"]
    );
}

/// A call approved but not started before a crash is closed as not run. The approval was for that
/// turn only.
#[tokio::test(start_paused = true)]
async fn an_answered_call_that_had_not_started_is_closed() {
    let (world, call_log) = World::with_fakes();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    world
        .provider
        .will(calling(&[FakeCall::new("act", "asked")]));
    // Commits: the message, the model's answer, the user's answer.
    world.store.fail_commit(3, CommitFault::WrittenAndSilent);
    let turn = active_agents(&mut worker, TestJob::Say("go"), answering(|_| Answer::Once));
    tokio::time::timeout(Duration::from_secs(100), turn)
        .await
        .unwrap_err();

    let restarted = world.restarted();
    restarted.reopened().await;

    let came = restarted.results(id).await;
    assert_eq!(came.len(), 1);
    assert_eq!(came[0].verdict, Verdict::Interrupted);
    assert!(call_log.began().is_empty());
}

#[tokio::test(start_paused = true)]
async fn where_nobody_can_answer_what_would_be_asked_is_refused() {
    let (world, call_log) = World::with_fakes();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    world.provider.will(calling(&[
        FakeCall::new("act", "asked"),
        FakeCall::new("look", "free"),
    ]));
    world.provider.will_say("I see");
    let (_sender, mut receiver) = tokio::sync::mpsc::channel(1);
    let mut tell = |_| {};
    let mut desk = FrontEnd::new(&mut receiver, &mut tell).without_answers();

    let turn = worker.turn("go", &mut desk);
    let ended = tokio::time::timeout(Duration::from_hours(1000), turn).await;

    let outcome = ended.expect("no question is open").unwrap();
    assert_eq!(outcome, Outcome::Completed);
    assert_eq!(call_log.began(), ["free"]);
    let refused = &world.results(id).await[0];
    assert_eq!(refused.verdict, Verdict::Refused);
    assert_eq!(
        refused.output,
        "act needs approval and there is no terminal to ask on. Use --approve edits or --approve all"
    );
}

/// Each mode decides which calls run, need approval or are refused.
#[tokio::test(start_paused = true)]
async fn a_mode_decides_what_is_asked() {
    // Columns: read, write in the working directory, write elsewhere, execute.
    let table = [
        (Approve::Read, "ran refused refused refused"),
        (Approve::Ask, "ran asked asked asked"),
        (Approve::Edits, "ran ran asked asked"),
        (Approve::All, "ran ran ran ran"),
    ];
    for (mode, expected) in table {
        let (world, call_log) = World::with_fakes();
        let settings = Settings {
            approve: Some(mode),
            ..Settings::default()
        };
        let mut worker = world.root_with(&settings).await;
        let fakes = [
            FakeCall::new("look", "read").reading(&["a"]),
            FakeCall::new("change", "within").writing(&["b"]),
            FakeCall::new("change", "outside").writing(&["/elsewhere/c"]),
            FakeCall::new("act", "execute"),
        ];
        world.provider.will(calling(&fakes));
        world.provider.will_say("done");

        let no = answering(|_| Answer::No(None));
        let (outcome, told) = active_agents(&mut worker, TestJob::Say("go"), no).await;

        assert_eq!(outcome.unwrap(), Outcome::Completed);
        let questions: Vec<_> = asked(&told)
            .iter()
            .map(|question| question.shown.clone())
            .collect();
        let came = fakes.map(|fake| match fake.label().to_owned() {
            label if call_log.began().contains(&label) => "ran",
            label if questions.contains(&label) => "asked",
            _ => "refused",
        });
        assert_eq!(came.join(" "), expected, "{mode:?}");
    }
}

/// An approval for now is recorded in a row and ends with the worker.
#[tokio::test(start_paused = true)]
async fn approval_for_now_leaves_a_row_and_ends_with_the_worker() {
    let (world, call_log) = World::with_fakes();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    worker.approve_for_now(Approve::All).await.unwrap();
    world
        .provider
        .will(calling(&[FakeCall::new("act", "free")]));
    world.provider.will_say("done");
    say(&mut worker, "go").await.unwrap();
    worker.release().await.unwrap();
    let mut worker = world.reopened().await;
    world
        .provider
        .will(calling(&[FakeCall::new("act", "asked")]));
    world.provider.will_say("done");

    let no = answering(|_| Answer::No(None));
    let (_, told) = active_agents(&mut worker, TestJob::Say("again"), no).await;

    assert_eq!(call_log.began(), ["free"]);
    assert_eq!(asked(&told).len(), 1);
    let row = &world.rows(id).await[2];
    assert_eq!(
        row.data.as_deref(),
        Some(r#"{"command":"approve","args":"all for now"}"#)
    );
    assert_eq!(worker.agent().state.settings().approve, None);
}

/// A tool called by the name that other programs use runs, and its question and rule have ours.
#[tokio::test(start_paused = true)]
async fn calls_by_names_of_other_programs_run() {
    let directory = TempDir::new().unwrap();
    let world = World::with_tools(builtin::all(ChildEnvironment::default()));
    let workdir = directory.path().to_str().unwrap();
    let mut worker = world.engine.create_root(workdir, workdir).await.unwrap();
    let write = |content: &str| json!({"file_path": "a.txt", "content": content});
    world
        .provider
        .will([Step::FinishWith(vec![call("Write", &write("one"))])]);
    world
        .provider
        .will([Step::FinishWith(vec![call("Write", &write("two"))])]);
    world.provider.will_say("done");

    let always = answering(|_| Answer::Always("a.txt".to_owned()));
    let (outcome, events) = active_agents(&mut worker, TestJob::Say("go"), always).await;

    assert_eq!(outcome.unwrap(), Outcome::Completed);
    let tools: Vec<_> = asked(&events)
        .iter()
        .map(|asked| asked.tool.as_str())
        .collect();
    assert_eq!(tools, ["file_write"]);
    let rule = Rule {
        tool: Some("file_write".to_owned()),
        pattern: Some("a.txt".to_owned()),
    };
    assert_eq!(worker.agent().state.settings().rules, Some(vec![rule]));
    let text = std::fs::read_to_string(directory.path().join("a.txt")).unwrap();
    assert_eq!(text, "two");
}
