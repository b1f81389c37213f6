//! Mail: shown by the row that consumes it; it starts no turn by itself.

use std::time::Duration;

use ikigai_core::data::{self, UserData, UserOrigin};
use ikigai_core::{AgentId, Micros, RowRef};
use ikigai_engine::{AgentJob, InboxKind, Outcome, UserInput, UserRequest, read_inbox};
use ikigai_store::{
    Batch, Effect, Log, MailEffect, MailId, MailOrigin, MailState, MailTopic, ReadLog,
};
use ikigai_testkit::Step;
use serde_json::json;

use super::support::{after, calls, fork, see_out, send, typed, wait, work, work_and_say};
use crate::fakes::call;
use crate::support::World;

/// Returns the row that consumed each mail of an agent.
async fn shown_by(world: &World, agent: AgentId) -> Vec<Option<RowRef>> {
    let mail = world.log().mail(agent).await.unwrap().into_iter();
    mail.map(|mail| mail.shown_by).collect()
}

/// E10a: mail reaches the model only by the row that consumes it. That is the result of a wait, or
/// a row of origin mail at the start of a turn.
#[tokio::test(start_paused = true)]
async fn mail_is_shown_by_the_row_that_consumes_it() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    world.provider.will_to("go", calls([fork("one", "begin")]));
    world.provider.will_to("go", calls([wait(60, &[])]));
    world.provider.will_say_to("go", "enough");
    world.provider.will_say_to("go", "and the second");
    world.provider.will_say_to("go", "thank you");
    let twice = [send("parent", "the first"), send("parent", "the second")];
    world.provider.will_to("begin", calls(twice));
    world.provider.will_to("begin", after(30, "the last"));

    assert_eq!(work(&mut worker, "go").await, Outcome::Completed);

    let rows = world.rows(root).await;
    let row_of = |at: &Option<RowRef>| rows.iter().find(|row| Some(row.at) == *at).unwrap();
    let by = shown_by(&world, root).await;
    assert_eq!(by.len(), 3);
    assert_eq!(row_of(&by[0]).kind.name(), "tool_result");
    assert_eq!(
        world.outputs(root).await[1],
        "<message from=\"one\" about=\"message\">\nthe first\n</message>"
    );
    for (by, text) in by[1..].iter().zip(["the second", "the last"]) {
        let row = row_of(by);
        let user: UserData = data::read(row.data.as_deref());
        assert_eq!(user.origin, Some(UserOrigin::Mail));
        assert_eq!(user.from, Some(world.id_of("one").await));
        let framed = format!("\n{text}\n</message>");
        assert!(
            row.content.as_deref().unwrap().ends_with(&framed),
            "{row:?}"
        );
    }
    let told = world.mail_of(root).await;
    assert!(told.iter().all(|(_, state)| *state == MailState::Delivered));
}

/// E10b: `/wait` shows the states and mail of other agents without consuming the mail.
#[tokio::test(start_paused = true)]
async fn wait_command_does_not_consume_mail() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    world
        .provider
        .will_to("begin", calls([send("parent", "look here")]));
    world.provider.will_to("begin", after(5, "done"));

    typed(&mut worker, "/fork --name one begin").await;
    typed(&mut worker, "/wait one").await;

    let printed = world.texts(root, "command").await.pop().unwrap();
    assert!(printed.contains("one: message ("), "{printed}");
    assert!(printed.contains("\nlook here\n"), "{printed}");
    assert_eq!(
        world.mail_of(root).await,
        [("look here".to_owned(), MailState::Queued)]
    );
}

/// E10c: mail is delivered once, or bounces when its receiver dies first.
#[tokio::test(start_paused = true)]
async fn mail_of_agents_is_delivered_once_or_bounces() {
    let world = World::new();
    let mut worker = world.root().await;
    for line in [
        "/fork --name one",
        "/fork --name two",
        "/send one hello",
        "/send two hello",
        "/kill two",
    ] {
        typed(&mut worker, line).await;
    }
    let (one, two) = (world.named("one").await, world.named("two").await);
    let mut child = world.engine.open(&one).await.unwrap();
    world.provider.will_say("hello yourself");
    world.provider.will_say("again");

    work(&mut child, "read it").await;
    work(&mut child, "and again").await;

    assert_eq!(
        world.mail_of(one.id).await,
        [("hello".to_owned(), MailState::Delivered)]
    );
    assert_eq!(
        world.texts(one.id, "user").await,
        ["hello", "read it", "and again"]
    );
    assert_eq!(
        world.mail_of(two.id).await,
        [("hello".to_owned(), MailState::Bounced)]
    );
    typed(&mut worker, "/send two are you there").await;
    assert_eq!(
        world.mail_of(two.id).await.len(),
        1,
        "nothing is sent to the dead"
    );
}

/// E10d: mail of its user, its parent or a child starts a turn of an idle agent. Other mail goes
/// with its next turn.
#[tokio::test(start_paused = true)]
async fn family_mail_wakes_an_idle_agent() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    world
        .provider
        .will_to("go", calls([fork("one", "begin"), fork("two", "stroll")]));
    world
        .provider
        .will_to("go", calls([wait(600, &["one", "two"])]));
    world
        .provider
        .will_to("go", calls([send("one", "from the parent")]));
    world.provider.will_say_to("go", "sent");
    world.provider.will_say_to("go", "seen");
    world.provider.will_say_to("begin", "ready");
    world.provider.will_say_to("begin", "answered the parent");
    world.provider.will_say_to("begin", "answered the user");
    world
        .provider
        .will_to("stroll", calls([send("one", "from a sibling")]));
    world.provider.will_say_to("stroll", "strolled");

    assert_eq!(work(&mut worker, "go").await, Outcome::Completed);

    let one = world.id_of("one").await;
    assert_eq!(
        world.texts(one, "assistant").await,
        ["ready", "answered the parent"]
    );
    let said = world.texts(one, "user").await;
    assert!(
        said[1].ends_with("\nfrom a sibling\n</message>"),
        "{said:?}"
    );
    assert!(
        said[2].ends_with("\nfrom the parent\n</message>"),
        "{said:?}"
    );
    assert_eq!(world.texts(root, "assistant").await, ["sent", "seen"]);
    let shown = world.texts(root, "user").await;
    assert!(
        shown
            .last()
            .unwrap()
            .ends_with("\nanswered the parent\n</message>"),
        "{shown:?}"
    );
    typed(&mut worker, "/send one from the user").await;
    see_out(&mut worker).await;
    assert_eq!(
        world.texts(one, "assistant").await[2..],
        ["answered the user"]
    );
    assert!(!world.kinds(one).await.contains(&"interrupted".to_owned()));
}

/// E10d: a question of a child starts a turn of a parent that waits for its children without a call.
#[tokio::test(start_paused = true)]
async fn a_question_wakes_a_parent_whose_children_still_work() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    world
        .provider
        .will_to("go", calls([fork("one", "begin"), fork("two", "stroll")]));
    world.provider.will_say_to("go", "forked");
    world
        .provider
        .will_to("go", calls([send("one", "the left one")]));
    world.provider.will_say_to("go", "answered");
    world.provider.will_say_to("go", "all done");
    let ask = json!({ "to": "parent", "message": "which?", "question": true });
    world.provider.will_to("begin", calls([call("send", &ask)]));
    world
        .provider
        .will_to("begin", after(5, "I wait for the answer"));
    world
        .provider
        .will_to("begin", after(5, "it is the left one"));
    world.provider.will_to("stroll", after(50, "at last"));

    assert_eq!(work(&mut worker, "go").await, Outcome::Completed);

    assert_eq!(
        world.texts(root, "assistant").await,
        ["forked", "answered", "all done"][..]
    );
    let one = world.id_of("one").await;
    let said = world.texts(one, "user").await;
    assert!(said[1].ends_with("\nthe left one\n</message>"), "{said:?}");
}

/// E10d, E9a: an idle agent of another process gets a turn with new mail, and none with mail from
/// before that process took it.
#[tokio::test(start_paused = true)]
async fn the_holder_of_an_idle_agent_starts_its_turn() {
    let world = World::new();
    let worker = world.root().await;
    let root = worker.agent().state.agent();
    worker.release().await.unwrap();
    world.engine.post(root, "old").await.unwrap();
    let other = world.beside();
    other.provider.will_say("heard");
    let mut activity = other.engine.subscribe();
    other.engine.activate(&world.latest().await).await.unwrap();
    let heard = async {
        loop {
            activity.changed().await.unwrap();
            if world.texts(root, "assistant").await == ["heard"] {
                return;
            }
        }
    };

    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(world.texts(root, "user").await.is_empty());
    world.engine.post(root, "new").await.unwrap();
    let in_time = tokio::time::timeout(Duration::from_mins(1), heard).await;
    assert!(in_time.is_ok(), "no turn begins");

    assert_eq!(world.texts(root, "user").await, ["old", "new"]);
}

/// E24b: turns that agents start by mail end after 20, also after a restart. A message of a person
/// begins a new chain.
#[tokio::test(start_paused = true)]
async fn mail_chains_end() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    world.provider.will_to("go", calls([fork("one", "begin")]));
    world.provider.will_say_to("go", "forked");
    for number in 0..60 {
        world
            .provider
            .will_say_to("begin", &format!("report {number}"));
        world.provider.will_to("go", calls([send("one", "again")]));
        world.provider.will_say_to("go", "sent");
    }

    let outcome = work(&mut worker, "go").await;

    let Outcome::Failed(reason) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(reason.starts_with("limit reached: 20 turns"), "{reason}");
    let errors = world.texts(root, "error").await;
    assert_eq!(errors, [reason.as_str()]);
    let waiting = read_inbox(&world.engine).await.unwrap();
    let waiting = waiting.iter().map(|entry| (entry.agent.id, entry.kind));
    assert!(
        waiting
            .into_iter()
            .any(|it| it == (root, InboxKind::Failed))
    );
    let sent = world.texts(root, "assistant").await;
    assert_eq!(sent.iter().filter(|text| *text == "sent").count(), 20);
    let one = world.id_of("one").await;
    assert!(world.texts(one, "error").await.is_empty());

    drop(worker);
    let world = world.restarted();
    world.provider.forget_script();
    let mut worker = world.reopened().await;
    world.provider.will_say_to("go", "one more");
    let late = Effect::Mail(MailEffect::Send {
        mail: MailId(77),
        to: root,
        origin: MailOrigin::Agent,
        from: Some(one),
        about: MailTopic::Message,
        text: "late".to_owned(),
        at: Micros(1),
        author: None,
    });
    let batch = Batch {
        with: vec![late],
        ..Batch::default()
    };
    world.log().commit(batch).await.unwrap();

    let (outcome, _) = work_and_say(&mut worker, AgentJob::Mail, std::future::pending()).await;
    assert!(matches!(outcome.unwrap(), Outcome::Failed(_)));
    assert_eq!(world.texts(root, "error").await.len(), 2);

    assert_eq!(
        work(&mut worker, "a word of mine").await,
        Outcome::Completed
    );
    assert_eq!(world.texts(root, "error").await.len(), 2);
}

/// E10d: waking a busy agent does not end its turn.
#[tokio::test(start_paused = true)]
async fn waking_an_agent_at_work_leaves_its_turn_alone() {
    let world = World::new();
    let mut worker = world.root().await;
    world.provider.will_to("begin", after(20, "done"));
    world.provider.will_say_to("begin", "heard");
    typed(&mut worker, "/fork --name one begin").await;
    tokio::time::sleep(Duration::from_secs(5)).await;

    typed(&mut worker, "/send --wake one listen").await;
    typed(&mut worker, "/resume all").await;
    see_out(&mut worker).await;

    let one = world.id_of("one").await;
    let kinds = world.kinds(one).await;
    assert_eq!(
        kinds[1..],
        ["user", "assistant", "usage", "user", "assistant", "usage"]
    );
    assert_eq!(world.texts(one, "assistant").await, ["done", "heard"]);
}

/// The sender's turn decides what mail is about, not the words of the mail.
#[tokio::test(start_paused = true)]
async fn a_report_is_known_whatever_its_words_are() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    world
        .provider
        .will_to("go", calls([fork("one", "begin"), fork("two", "stroll")]));
    world
        .provider
        .will_to("go", calls([wait(600, &["one", "two"])]));
    world.provider.will_say_to("go", "good");
    world
        .provider
        .will_to("begin", calls([send("parent", "it is done")]));
    world.provider.will_say_to("begin", "it is done");
    world
        .provider
        .will_say_to("stroll", "I could not finish: the end is far");

    work(&mut worker, "go").await;

    let mail = world.log().mail(root).await.unwrap();
    let about = |text: &str| {
        let found = mail.iter().filter(|mail| mail.text.starts_with(text));
        found.map(|mail| mail.about).collect::<Vec<_>>()
    };
    assert_eq!(about("it is done"), [MailTopic::Message, MailTopic::Report]);
    assert_eq!(about("I could not"), [MailTopic::Report]);
    assert!(mail.iter().all(|mail| mail.origin == MailOrigin::Agent));
}

/// E10e: when the last child that the model forked ends, the parent begins one turn. That turn gets
/// the mail of all children.
#[tokio::test(start_paused = true)]
async fn last_child_done_starts_one_turn() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    world
        .provider
        .will_to("go", calls([fork("slow", "stroll"), fork("quick", "run")]));
    world.provider.will_say_to("go", "forked");
    world.provider.will_say_to("go", "both are done");
    world.provider.will_to("stroll", after(50, "at last"));
    world.provider.will_to("run", after(5, "at once"));

    assert_eq!(work(&mut worker, "go").await, Outcome::Completed);

    assert_eq!(
        world.texts(root, "assistant").await,
        ["forked", "both are done"]
    );
    let said = world.texts(root, "user").await;
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(
        said[1].ends_with("\nat once\n</message>") && said[2].ends_with("\nat last\n</message>"),
        "{said:?}"
    );
    assert_eq!(world.provider.requests().len(), 5);
}

/// A message to an agent that waits for its children is answered at once.
#[tokio::test(start_paused = true)]
async fn a_message_meanwhile_is_not_kept_until_the_children_are_done() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    world
        .provider
        .will_to("go", calls([fork("slow", "stroll")]));
    world.provider.will_say_to("go", "forked");
    world.provider.will_say_to("go", "it is noon");
    world.provider.will_say_to("go", "it is done");
    world.provider.will_to("stroll", after(50, "at last"));
    let asking = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        vec![UserRequest::Line(UserInput::Message(
            "what time is it?".to_owned(),
        ))]
    };

    let job = AgentJob::Say("go".to_owned());
    let (outcome, _) = work_and_say(&mut worker, job, asking).await;

    assert_eq!(outcome.unwrap(), Outcome::Completed);
    let said = world.texts(root, "user").await;
    assert_eq!(said[1], "what time is it?");
    assert!(said[2].ends_with("\nat last\n</message>"), "{said:?}");
    assert_eq!(
        world.texts(root, "assistant").await,
        ["forked", "it is noon", "it is done"]
    );
}

/// A panic in one agent's task leaves the other agents running. Its log has an error row, its
/// parent gets mail, and observers get an event.
#[tokio::test(start_paused = true)]
async fn a_panic_in_one_agent_is_contained_recorded_and_reported() {
    let world = World::new();
    let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = told.clone();
    let observer = move |_, name: &str, update: &ikigai_engine::UiEvent| {
        if let ikigai_engine::UiEvent::Warning(text) = update {
            heard.lock().unwrap().push(format!("{name}: {text}"));
        }
    };
    world.engine.observe(std::sync::Arc::new(observer), false);
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    world
        .provider
        .will_to("go", calls([fork("bad", "stumble"), fork("good", "walk")]));
    world
        .provider
        .will_to("go", calls([wait(600, &["bad", "good"])]));
    world.provider.will_say_to("go", "I see");
    world.provider.will_to(
        "stumble",
        [
            Step::Say("I".to_owned()),
            Step::Panic("over a stone".to_owned()),
        ],
    );
    world.provider.will_to("walk", after(30, "arrived"));

    assert_eq!(work(&mut worker, "go").await, Outcome::Completed);

    let bad = world.id_of("bad").await;
    let errors = world.texts(bad, "error").await;
    assert_eq!(errors.len(), 1);
    assert!(errors[0].contains("over a stone"), "{errors:?}");
    let output = &world.outputs(root).await[2];
    assert!(
        output.starts_with("bad: failed (") && output.contains("\nI could not finish"),
        "{output}"
    );
    assert!(output.contains("good: report ("), "{output}");
    assert!(output.ends_with("\narrived\n</message>"), "{output}");
    let told = told.lock().unwrap().clone();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("bad: ") && told[0].contains("over a stone"),
        "{told:?}"
    );
    let bad = world.named("bad").await;
    let opened = world.restarted().engine.open(&bad).await;
    assert!(opened.is_ok(), "its lease was given back");
}

/// A child that has reported goes on with a message of its parent: its next request begins with the
/// bytes of its last one.
#[tokio::test(start_paused = true)]
async fn a_message_continues_a_finished_child() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    world.provider.will_to("go", calls([fork("one", "begin")]));
    world.provider.will_to("go", calls([wait(60, &["one"])]));
    world
        .provider
        .will_to("go", calls([send("one", "and the rest")]));
    world.provider.will_to("go", calls([wait(60, &["one"])]));
    world.provider.will_say_to("go", "thank you");
    world.provider.will_say_to("begin", "a half");
    world.provider.will_say_to("begin", "the other half");

    assert_eq!(work(&mut worker, "go").await, Outcome::Completed);

    let outputs = world.outputs(root).await;
    assert!(outputs[1].starts_with("one: report ("), "{outputs:?}");
    assert!(outputs[1].contains("\na half\n"), "{outputs:?}");
    assert_eq!(outputs[2], "sent to one");
    assert!(outputs[3].starts_with("one: report ("), "{outputs:?}");
    assert!(outputs[3].contains("\nthe other half\n"), "{outputs:?}");
    let requests = world.provider.requests();
    let of_child: Vec<_> = requests
        .iter()
        .filter(|request| format!("{:?}", request.messages[0]).contains("begin"))
        .collect();
    let [first, second] = of_child.as_slice() else {
        panic!("{of_child:?}");
    };
    assert_eq!(second.system, first.system);
    assert_eq!(
        second.messages[..first.messages.len()],
        first.messages[..],
        "the prefix stays"
    );
}

/// A message to an ended agent is refused with what the model can do instead.
#[tokio::test(start_paused = true)]
async fn a_message_to_an_ended_agent_is_refused_with_advice() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    for line in [
        "/fork --name one",
        "/fork --name two",
        "/kill one",
        "/kill two",
        "/reap two",
    ] {
        typed(&mut worker, line).await;
    }
    let both = [send("one", "go on"), send("two", "go on")];
    world.provider.will_to("go", calls(both));
    world.provider.will_say_to("go", "well");

    assert_eq!(work(&mut worker, "go").await, Outcome::Completed);
    typed(&mut worker, "/send one go on").await;

    for (output, name) in world.outputs(root).await.iter().zip(["one", "two"]) {
        let start = format!("agent `{name}` has ended, so it gets no messages. Call `recall` with");
        assert!(output.starts_with(&start), "{output}");
    }
    let printed = world.texts(root, "command").await.pop().unwrap();
    assert!(printed.contains("/switch one shows it"), "{printed}");
}
