//! Grants belong to a user on a machine. The log records them, but they apply only there.

use ikigai_core::data::{self, AnsweredBy, CommandData, ForkContext, ForkData};
use ikigai_core::settings::{Approve, Rule};
use ikigai_core::{AgentId, Event, Micros, Settings};
use ikigai_engine::{
    Answer, ChildSeat, ForkRequest, FrontEnd, USER_REQUESTS, UiEvent, UserInput, UserRequest,
    Worker,
};
use ikigai_testkit::CommitFault;
use tokio::sync::mpsc;

use crate::fakes::{FakeCall, calling};
use crate::support::{TestJob, World, active_agents};

/// Lets the model call `act` once; returns true if the user was asked.
async fn is_asked(world: &World, worker: &mut Worker, label: &str) -> bool {
    world.provider.will(calling(&[FakeCall::new("act", label)]));
    world.provider.will_say("done");
    let refuse = |update: &UiEvent| match update {
        UiEvent::Question(question) => vec![UserRequest::Answer {
            call: question.call,
            answer: Answer::No(None),
            by: AnsweredBy::User,
        }],
        _ => Vec::new(),
    };
    let (outcome, told) = active_agents(worker, TestJob::Say("go"), refuse).await;
    outcome.unwrap();
    let is_question = |update: &UiEvent| matches!(update, UiEvent::Question(_));
    told.iter().any(is_question)
}

/// Types a line; returns the offers and the output.
async fn type_line(worker: &mut Worker, line: &str) -> (Vec<String>, String) {
    let (_sender, mut receiver) = mpsc::channel(USER_REQUESTS);
    let mut told = Vec::new();
    let mut tell = |update| told.push(update);
    let mut desk = FrontEnd::new(&mut receiver, &mut tell);
    worker.offer_grants(&mut desk);
    worker
        .line(UserInput::parse(line), &mut desk)
        .await
        .unwrap();
    let mut offers = Vec::new();
    let mut output = String::new();
    for update in told {
        match update {
            UiEvent::GrantOffer(text) => offers.push(text),
            UiEvent::Stored(row) => output = row.content.unwrap_or_default(),
            _ => {}
        }
    }
    (offers, output)
}

fn rule(pattern: &str) -> Rule {
    Rule {
        tool: Some("act".to_owned()),
        pattern: Some(pattern.to_owned()),
    }
}

fn mode(mode: Approve) -> Settings {
    Settings {
        approve: Some(mode),
        ..Settings::default()
    }
}

/// E22: a granted mode applies to its user, also after a restart. Another user of the log is
/// offered it once and can grant it.
#[tokio::test(start_paused = true)]
async fn a_mode_holds_only_for_the_user_who_granted_it() {
    let (world, call_log) = World::with_fakes();
    let mut worker = world.root().await;
    type_line(&mut worker, "/approve all").await;
    assert!(!is_asked(&world, &mut worker, "own").await);
    worker.release().await.unwrap();
    let world = world.restarted();
    let mut worker = world.reopened().await;
    assert!(!is_asked(&world, &mut worker, "own, later").await);
    worker.release().await.unwrap();

    let other = world.of_another_user();
    let mut worker = other.reopened().await;
    assert_eq!(
        other.engine.mode_in_force(&worker.agent().state),
        Approve::Ask
    );
    let (offers, output) = type_line(&mut worker, "/approve").await;
    assert!(is_asked(&other, &mut worker, "foreign").await);
    let (again, _) = type_line(&mut worker, "/mark").await;
    type_line(&mut worker, "/approve grant").await;
    assert!(!is_asked(&other, &mut worker, "granted").await);

    assert_eq!(call_log.began(), ["own", "own, later", "granted"]);
    assert_eq!(
        offers,
        [
            "Not in force here: mode all, granted by another user or machine. /approve grant to apply"
        ]
    );
    assert!(output.contains("Not in force here: mode all"), "{output}");
    assert_eq!(again, [] as [&str; 0], "it is offered once");
    // The log still records the mode.
    assert_eq!(worker.agent().state.settings().approve, Some(Approve::All));
}

/// E22: *always* grants its own rule, and neither mode nor rules that came from elsewhere.
#[tokio::test(start_paused = true)]
async fn an_answer_grants_its_own_rule_and_nothing_from_elsewhere() {
    let (world, call_log) = World::with_fakes();
    let settings = Settings {
        rules: Some(vec![rule("foreign*")]),
        ..mode(Approve::All)
    };
    let worker = world.root_with(&settings).await;
    worker.release().await.unwrap();
    let other = world.of_another_user();
    let mut worker = other.reopened().await;
    other
        .provider
        .will(calling(&[FakeCall::new("act", "test one")]));
    other.provider.will_say("done");
    let always = |update: &UiEvent| match update {
        UiEvent::Question(question) => vec![UserRequest::Answer {
            call: question.call,
            answer: Answer::Always("test*".to_owned()),
            by: AnsweredBy::User,
        }],
        _ => Vec::new(),
    };
    let (outcome, _) = active_agents(&mut worker, TestJob::Say("go"), always).await;
    outcome.unwrap();

    assert!(!is_asked(&other, &mut worker, "test two").await);
    assert!(is_asked(&other, &mut worker, "foreign one").await);
    assert!(is_asked(&other, &mut worker, "anything").await);

    assert_eq!(call_log.began(), ["test one", "test two"]);
    assert_eq!(
        worker.agent().state.settings().rules,
        Some(vec![rule("test*")])
    );
}

/// E22: rows of older stores have no tag. Their mode and rules are offered and not in force.
#[tokio::test(start_paused = true)]
async fn rows_of_older_stores_are_offered_and_not_in_force() {
    let (world, call_log) = World::with_fakes();
    let worker = world.root().await;
    let settings = Settings {
        rules: Some(vec![rule("*")]),
        ..mode(Approve::All)
    };
    let set = Event::set("approve", settings.as_set());
    let row = set.into_row(worker.agent().state.agent(), Micros(9));
    world.write(&worker, vec![row]).await;
    worker.release().await.unwrap();

    let mut worker = world.reopened().await;
    let (offers, output) = type_line(&mut worker, "/approve").await;
    assert!(is_asked(&world, &mut worker, "anything").await);
    type_line(&mut worker, "/approve grant").await;
    assert!(!is_asked(&world, &mut worker, "everything").await);
    let (_, nothing) = type_line(&mut worker, "/approve grant").await;

    assert_eq!(
        offers,
        [
            "Not in force here: mode all and 1 rule, granted by another user or machine. \
          /approve grant to apply"
        ]
    );
    assert!(output.contains("(not in force here)"), "{output}");
    assert_eq!(call_log.began(), ["everything"]);
    assert!(nothing.contains("nothing to grant"), "{nothing}");
}

/// E22: the tag is made for the position that the row really gets.
#[tokio::test(start_paused = true)]
async fn a_grant_counts_when_other_rows_were_stored_first() {
    let (world, _) = World::with_fakes();
    let mut worker = world.root().await;
    let wish = ForkRequest {
        name: Some("other".to_owned()),
        prompt: None,
        context: ForkContext::Fresh,
        at: None,
        model: None,
        call: None,
        worktree: None,
        seat: ChildSeat::default(),
    };
    // A fork by another process appends a row that the worker has not read.
    let id = worker.agent().state.agent();
    let beside = world.beside();
    let child = beside.engine.fork_held(id, &wish).await.unwrap();
    drop(child.release().await);

    type_line(&mut worker, "/approve all").await;

    let granting = worker.agent().state.grants().mode.clone().unwrap();
    assert_eq!(granting.seq, worker.agent().state.head());
    assert_eq!(
        world.engine.mode_in_force(&worker.agent().state),
        Approve::All
    );
    // A commit of unknown outcome is read back with the tag that was stored.
    world.store.fail_commit(1, CommitFault::WrittenUnknown);
    type_line(&mut worker, "/approve edits").await;
    let rows = world.rows(id).await.into_iter();
    let edits = rows.filter(|row| {
        row.data
            .as_deref()
            .is_some_and(|data| data.contains("edits"))
    });
    assert_eq!(edits.count(), 1, "it is stored once");
    worker.release().await.unwrap();
    let worker = world.reopened().await;
    assert_eq!(
        world.engine.mode_in_force(&worker.agent().state),
        Approve::Edits
    );
}

/// Reads the data of a child's first row.
async fn fork_data(world: &World, child: AgentId) -> ForkData {
    let rows = world.rows(child).await;
    data::read(rows[0].data.as_deref())
}

/// E22: the mode of a process is in force for it alone, and grants nothing in a child's log.
#[tokio::test(start_paused = true)]
async fn a_mode_of_this_process_ends_with_it() {
    let (world, _) = World::with_fakes();
    let worker = world.root_with(&mode(Approve::All)).await;
    worker.release().await.unwrap();
    let other = world.of_another_user();
    let mut worker = other.reopened().await;
    let parent = worker.agent().state.agent();

    worker.approve_for_now(Approve::All).await.unwrap();
    let in_force = other.engine.mode_in_force(&worker.agent().state);
    let wish = ForkRequest {
        name: Some("child".to_owned()),
        prompt: None,
        context: ForkContext::Fresh,
        at: None,
        model: None,
        call: None,
        worktree: None,
        seat: ChildSeat::default(),
    };
    let child = other.engine.fork_held(parent, &wish).await.unwrap();
    let data = fork_data(&other, child.agent().state.agent()).await;
    worker.release().await.unwrap();
    let worker = other.reopened().await;

    assert_eq!(in_force, Approve::All);
    assert_eq!(data.settings.unwrap().approve, Some(Approve::Ask));
    assert_eq!(data.grant, None);
    let state = &worker.agent().state;
    assert_eq!(other.engine.mode_in_force(state), Approve::Ask);
}

/// E22: a child inherits the grants that apply to its parent here, with its own tag.
#[tokio::test(start_paused = true)]
async fn a_child_inherits_what_is_in_force_for_its_parent() {
    let (world, _) = World::with_fakes();
    let settings = Settings {
        rules: Some(vec![rule("test*")]),
        ..mode(Approve::Edits)
    };
    let worker = world.root_with(&settings).await;
    let parent = worker.agent().state.agent();
    let wish = ForkRequest {
        name: Some("child".to_owned()),
        prompt: None,
        context: ForkContext::Fresh,
        at: None,
        model: None,
        call: None,
        worktree: None,
        seat: ChildSeat::default(),
    };

    let own = world.engine.fork_held(parent, &wish).await.unwrap();
    let other = world.of_another_user();
    let foreign = other.engine.fork_held(parent, &wish).await.unwrap();

    let state = &own.agent().state;
    assert_eq!(world.engine.mode_in_force(state), Approve::Edits);
    let data = fork_data(&world, state.agent()).await;
    assert!(data.grant.is_some());
    assert_eq!(other.engine.mode_in_force(state), Approve::Ask);
    let state = &foreign.agent().state;
    assert_eq!(other.engine.mode_in_force(state), Approve::Ask);
    let data = fork_data(&world, state.agent()).await;
    assert_eq!(data.grant, None);
    let settings = data.settings.unwrap();
    assert_eq!(
        (settings.approve, settings.rules),
        (Some(Approve::Ask), Some(Vec::new()))
    );
}

/// Rows that narrow a mode or revoke a rule have no tag.
#[tokio::test(start_paused = true)]
async fn narrowing_rows_have_no_tag_and_keep_the_rest_in_force() {
    let (world, _) = World::with_fakes();
    let settings = Settings {
        rules: Some(vec![rule("one*"), rule("two*")]),
        ..mode(Approve::Edits)
    };
    let mut worker = world.root_with(&settings).await;

    type_line(&mut worker, "/approve -1").await;
    type_line(&mut worker, "/approve ask").await;

    let id = worker.agent().state.agent();
    let rows = world.rows(id).await;
    let tags = rows.iter().rev().take(2).map(|row| {
        let command: CommandData = data::read(row.data.as_deref());
        command.grant
    });
    assert_eq!(tags.collect::<Vec<_>>(), [None, None]);
    assert!(is_asked(&world, &mut worker, "one").await);
    assert!(!is_asked(&world, &mut worker, "two").await);
}
