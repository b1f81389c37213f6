//! Agent tools are judged like all other tools.

use std::sync::Arc;

use ikigai_core::data::{AnsweredBy, ForkContext, Verdict};
use ikigai_core::settings::{Approve, Rule};
use ikigai_core::{AgentId, Settings};
use ikigai_engine::{Answer, ChildSeat, ForkRequest, Safety, Tools, UiEvent, UserRequest, Worker};
use ikigai_providers::AnswerBlock;
use ikigai_store::Status;
use ikigai_testkit::docs::table_of;
use serde_json::json;

use super::support::{calls, fork, kill, send, wait};
use crate::fakes::{CallLog, call};
use crate::support::{TestJob, World, active_agents, dies_after, say};

/// Columns of the table.
const MODES: [Approve; 4] = [Approve::Read, Approve::Ask, Approve::Edits, Approve::All];

fn answering(answer: Answer) -> impl FnMut(&UiEvent) -> Vec<UserRequest> + Send {
    move |update| match update {
        UiEvent::Question(question) => vec![UserRequest::Answer {
            call: question.call,
            answer: answer.clone(),
            by: AnsweredBy::User,
        }],
        _ => Vec::new(),
    }
}

/// Runs a call of the model; returns if it was asked about, verdict and output.
async fn make(
    world: &World,
    worker: &mut Worker,
    block: AnswerBlock,
    answer: Answer,
) -> (bool, Verdict, String) {
    world.provider.will(calls([block]));
    world.provider.will_say("done");
    let (outcome, told) = active_agents(worker, TestJob::Say("go"), answering(answer)).await;
    outcome.unwrap();
    let is_asked = told
        .iter()
        .any(|update| matches!(update, UiEvent::Question(_)));
    let results = world.results(worker.agent().state.agent()).await;
    let result = results.into_iter().next_back().unwrap();
    (is_asked, result.verdict, result.output)
}

async fn child_of(world: &World, parent: AgentId, name: &str) -> AgentId {
    let wish = ForkRequest {
        name: Some(name.to_owned()),
        prompt: None,
        context: ForkContext::Fresh,
        at: None,
        model: None,
        call: None,
        worktree: None,
        seat: ChildSeat::default(),
    };
    let child = world.engine.fork_held(parent, &wish).await.unwrap();
    let id = child.agent().state.agent();
    child.release().await.unwrap();
    id
}

/// Creates a root `parser` with a child `kin`, and another root with a child `stranger`.
async fn two_families(world: &World, settings: &Settings) -> Worker {
    let mut other = world.engine.create_root("/other", "/other").await.unwrap();
    world.provider.will_say("noted");
    say(&mut other, "the word is heron").await.unwrap();
    child_of(world, other.agent().state.agent(), "stranger").await;
    other.release().await.unwrap();
    let worker = world.root_with(settings).await;
    child_of(world, worker.agent().state.agent(), "kin").await;
    worker
}

fn in_mode(mode: Approve) -> Settings {
    Settings {
        approve: Some(mode),
        ..Settings::default()
    }
}

/// Returns the call that a row of the table describes.
fn described(tool: &str, what: &str) -> AnswerBlock {
    match (tool, what) {
        ("fork", "") => fork("scout", "look around"),
        ("send", "to the same family") => send("kin", "hello"),
        ("send", "to another family") => send("stranger", "hello"),
        ("kill", "in the same family") => kill("kin"),
        ("kill", "in another family") => kill("stranger"),
        ("wait", "") => wait(1, &[]),
        ("recall", "of the same project") => {
            call("recall", &json!({ "query": "go", "kind": "user" }))
        }
        ("recall", "of another project") => {
            call("recall", &json!({ "query": "heron", "kind": "user" }))
        }
        _ => panic!("the table has a row `{tool}` `{what}`, which no test knows"),
    }
}

/// Checks every cell about agent tools in `docs/permissions.md`.
#[tokio::test(start_paused = true)]
async fn every_cell_about_agent_tools_is_what_happens() {
    let mut checked = 0;
    for row in table_of("permissions.md", "tools and modes") {
        let [tool, what, cells @ ..] = row.as_slice() else {
            panic!("a short row: {row:?}");
        };
        let tool = tool.trim_matches('`');
        if !["fork", "kill", "recall", "send", "wait"].contains(&tool) {
            continue;
        }
        checked += 1;
        let mut found = Vec::new();
        for mode in MODES {
            let world = World::new();
            let mut worker = two_families(&world, &in_mode(mode)).await;
            let block = described(tool, what);
            if tool == "fork" && mode != Approve::Read {
                world.provider.will_say_to("look around", "I see nothing");
            }
            let no = Answer::No(None);
            let (is_asked, verdict, output) = make(&world, &mut worker, block, no).await;
            found.push(match verdict {
                _ if is_asked => "asked",
                Verdict::Refused => "refused",
                Verdict::Ran if output.starts_with("Nothing found") => "finds nothing",
                Verdict::Ran => "runs",
                other => panic!("{tool} {what}: {other:?} {output}"),
            });
        }
        assert_eq!(found, cells, "{tool} {what}");
    }
    assert_eq!(checked, 8);
}

/// A refusal in the configuration applies to agent tools in every mode.
#[tokio::test(start_paused = true)]
async fn a_refusal_of_the_configuration_counts_for_agent_tools() {
    let refusals = [
        ("fork", None, fork("scout", "look around"), true),
        ("f*k", None, fork("scout", "look around"), true),
        ("kill", Some("kin"), kill("kin"), true),
        ("kill", Some("other"), kill("kin"), false),
        ("send", None, send("kin", "hello"), true),
        ("wait", None, wait(1, &[]), true),
        (
            "recall",
            None,
            call("recall", &json!({ "query": "go" })),
            true,
        ),
        ("*", Some("*"), fork("scout", "look around"), true),
    ];
    for (tool, pattern, block, is_refused) in refusals {
        let tools: Arc<dyn Tools> = Arc::new(CallLog::default().tools());
        let refuse = Rule {
            tool: Some(tool.to_owned()),
            pattern: pattern.map(str::to_owned),
        };
        let world = World::new().equipped(move |engine| {
            let safety = Safety {
                refuse: vec![refuse.clone()],
                ..Safety::default()
            };
            engine.with_tools(tools.clone(), safety)
        });
        let mut worker = two_families(&world, &in_mode(Approve::All)).await;

        let (is_asked, verdict, output) = make(&world, &mut worker, block, Answer::Once).await;

        assert!(!is_asked, "{tool}");
        assert_eq!(verdict == Verdict::Refused, is_refused, "{tool}: {output}");
        assert_eq!(
            output.contains("configuration refuses"),
            is_refused,
            "{output}"
        );
    }
}

/// An approval runs the call; *always* also stores a rule for the next one.
#[tokio::test(start_paused = true)]
async fn an_approved_call_to_another_family_is_carried_out() {
    let world = World::new();
    let mut worker = two_families(&world, &Settings::default()).await;
    let stranger = world.id_of("stranger").await;

    let always = Answer::Always("stranger".to_owned());
    let first = make(&world, &mut worker, send("stranger", "one"), always).await;
    let second = make(
        &world,
        &mut worker,
        send("stranger", "two"),
        Answer::No(None),
    )
    .await;
    let killed = make(&world, &mut worker, kill("stranger"), Answer::Once).await;
    let again = make(&world, &mut worker, kill("stranger"), Answer::Once).await;

    assert_eq!((first.0, first.1), (true, Verdict::Ran));
    assert_eq!((second.0, second.1), (false, Verdict::Ran));
    assert_eq!((killed.0, killed.1), (true, Verdict::Ran));
    assert_eq!((again.0, again.1), (false, Verdict::Refused), "it is dead");
    let mail = world.mail_of(stranger).await;
    let texts: Vec<_> = mail.iter().map(|(text, _)| text.as_str()).collect();
    assert_eq!(texts, ["one", "two"]);
    assert_eq!(world.named("stranger").await.status, Status::Dead);
}

/// E9d: a question about another family is asked again after a restart, and nothing was sent.
#[tokio::test(start_paused = true)]
async fn a_question_about_another_family_survives_a_restart() {
    let world = World::new();
    let mut worker = two_families(&world, &Settings::default()).await;
    world.provider.will(calls([send("stranger", "hello")]));
    dies_after(100, &mut worker, TestJob::Say("go")).await;
    let stranger = world.id_of("stranger").await;
    assert_eq!(world.mail_of(stranger).await, []);

    let world = world.restarted();
    let mut worker = world.reopened().await;
    world.provider.will_say("done");
    let once = answering(Answer::Once);
    let (outcome, told) = active_agents(&mut worker, TestJob::Resume, once).await;

    outcome.unwrap();
    let is_question = |update: &&UiEvent| matches!(update, UiEvent::Question(_));
    assert_eq!(told.iter().filter(is_question).count(), 1);
    assert_eq!(world.mail_of(stranger).await.len(), 1);
}
