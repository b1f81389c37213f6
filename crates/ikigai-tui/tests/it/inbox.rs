//! The inbox: counted in status and title, answered in place, read in all processes.

use std::time::{Duration, Instant};

use ikigai_core::{AgentId, RowRef, Seq};
use ikigai_engine::{InboxEntry, InboxKind, Question, read_inbox};
use ikigai_testkit::Step;
use ikigai_tui::app::{KnownAgent, TerminalAction};
use ikigai_tui::key::TerminalEvent;

use crate::support::{SIZES, Stage, question};

const SECOND: Duration = Duration::from_secs(1);

fn agent(stage: &Stage, name: &str) -> AgentId {
    let mut all = stage.driver.app.roster().all();
    let found = all.find(|(_, known)| known.branch.agent.name == name);
    found.map(|(id, _)| id).unwrap()
}

/// Waits until the tree has an agent.
async fn knows(stage: &mut Stage, name: &str) {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        stage.settle().await;
        let is_named = |(_, known): (AgentId, &KnownAgent)| known.branch.agent.name == name;
        if stage.driver.app.roster().all().any(is_named) {
            return;
        }
        let came = tokio::time::timeout_at(end.into(), stage.driver.came()).await;
        assert!(came.is_ok(), "{name} never came");
    }
}

/// Creates a root with a child that has finished, and one whose turn failed.
async fn family(size: (u16, u16)) -> Stage {
    let mut stage = Stage::new(size).await;
    stage.talk("hello", "Hi.").await;
    stage
        .provider
        .will_say_to("write it", "The docs are there.");
    stage.line("/fork --name docs write it").await;
    stage.sees("inbox 1").await;
    let fails = [Step::Fail("no luck".to_owned())];
    stage.provider.will_to("measure it", fails);
    stage.line("/fork --name bench measure it").await;
    stage.sees("inbox 2").await;
    knows(&mut stage, "docs").await;
    knows(&mut stage, "bench").await;
    stage
}

/// Reports and failures of other agents are counted, those on the screen are read at once.
#[tokio::test]
async fn what_waits_is_counted_and_listed_newest_first() {
    for size in SIZES {
        let mut stage = family(size).await;
        assert_eq!(stage.driver.app.title(), "(2) ikigai parser");
        // To the terminal a failure matters more than a report.
        assert_eq!(stage.status(), ("error", None, "1 failure".to_owned()));
        if size.0 >= 120 {
            assert!(
                stage.last_row().contains("inbox 2 · Alt-I ·"),
                "{}",
                stage.text()
            );
        }

        stage.press("alt-i").await;

        stage.sees("Inbox · 2 entries").await;
        let (bench, docs) = (stage.row_with("✗ bench"), stage.row_with("✓ docs"));
        assert!(bench < docs, "{}", stage.text());
        assert!(stage.text().contains("no luck"), "{}", stage.text());
        stage.press("alt-i").await;
        stage.sees("● The docs are there.").await;
        // The report was read to its end, the failure waits for the user.
        stage.press("esc").await;
        stage.sees("inbox 1").await;
        stage.line("/inbox").await;
        stage.sees("Inbox · 1 entry").await;
        stage.press("d").await;
        stage.sees("Inbox · nothing waits for you").await;
        stage.press("q").await;
        assert!(!stage.text().contains("inbox"), "{}", stage.text());
        assert_eq!(stage.driver.app.title(), "ikigai parser");
        assert_eq!(stage.status(), ("idle", None, String::new()));
        let left = stage.until_read().await;
        assert_eq!(left, []);
    }
}

impl Stage {
    /// Returns the status for the terminal: its word, the reason of a wait, and counts.
    fn status(&self) -> (&'static str, Option<&'static str>, String) {
        let status = self.driver.app.program_status();
        (status.state, status.kind, status.text)
    }

    /// Returns the stored entries, once the marks of this screen are stored.
    async fn until_read(&mut self) -> Vec<InboxKind> {
        for _ in 0..40 {
            self.settle().await;
            let left = read_inbox(&self.driver.engine).await.unwrap();
            if left.is_empty() {
                return Vec::new();
            }
            let _ = tokio::time::timeout(Duration::from_millis(50), self.driver.came()).await;
        }
        let left = read_inbox(&self.driver.engine).await.unwrap().into_iter();
        left.map(|entry| entry.kind).collect()
    }
}

/// A question is approved in place, only after its end and for a while on the screen.
#[tokio::test]
async fn a_question_is_answered_in_place_after_its_end_was_shown() {
    for size in SIZES {
        let mut stage = family(size).await;
        let docs = agent(&stage, "docs");
        let diff: Vec<String> = (0..90).map(|line| format!("+line {line}")).collect();
        stage.asks_about(Question {
            preview: Some(format!("@@ -0,0 +1,90 @@\n{}", diff.join("\n"))),
            ..question(docs, "write it")
        });
        stage.sees("inbox 3").await;

        let blocked = ("blocked", Some("permission"), "1 question".to_owned());
        assert_eq!(stage.status(), blocked);
        stage.press("alt-i").await;
        stage.sees("? docs").await;
        stage.press("y").await;
        assert!(stage.text().contains("Wait a moment"), "{}", stage.text());
        stage.pass(5 * SECOND).await;
        for key in ["y", "a"] {
            stage.press(key).await;
            assert_eq!(stage.open_questions(docs), 1, "{key} approves unseen");
            assert!(stage.text().contains("PgDn"), "{}", stage.text());
        }
        stage.press("end").await;
        assert!(stage.text().contains("line 89"), "{}", stage.text());
        stage.press("y").await;
        stage.pass(SECOND).await;

        assert_eq!(stage.open_questions(docs), 0);
        // The next entry takes its place, and a key meant for the question does nothing to it.
        stage.sees("Inbox · 2 entries").await;
        stage.press("n").await;
        stage.sees("Inbox · 2 entries").await;
        stage.press("enter").await;
        assert_eq!(stage.current(), agent(&stage, "bench"));
    }
}

/// A question that appears while another one is read takes no answer meant for that one.
#[tokio::test]
async fn an_answer_is_only_for_the_question_on_the_screen() {
    let mut stage = family((80, 24)).await;
    let (docs, bench) = (agent(&stage, "docs"), agent(&stage, "bench"));
    stage.asks(docs, "cargo doc");
    stage.press("alt-i").await;
    stage.sees("cargo doc").await;
    stage.pass(5 * SECOND).await;

    stage.asks(bench, "cargo bench");
    stage.press("n").await;

    assert_eq!(
        (stage.open_questions(docs), stage.open_questions(bench)),
        (0, 1)
    );
    stage.press("n").await;
    assert_eq!(stage.open_questions(bench), 1, "it was only just shown");
    stage.press("r").await;
    stage.pass(5 * SECOND).await;
    stage.press("r").await;
    stage.letters("not now").await;
    stage.press("enter").await;
    assert_eq!(stage.open_questions(bench), 0);
}

/// A report that is read on one screen is read on the other one.
#[tokio::test]
async fn two_screens_agree_on_what_was_read() {
    let (mut stage, _store) = Stage::with_faults(None).await;
    stage.driver.app.set_focused(false);
    let mut beside = stage.beside().await;
    beside.driver.app.set_focused(false);
    stage.talk("hello", "Hi.").await;
    stage.sees("inbox 1").await;
    beside.sees("inbox 1").await;

    beside.happened(TerminalEvent::Focus(true)).await;

    beside.until(|text| !text.contains("inbox 1")).await;
    stage.until(|text| !text.contains("inbox 1")).await;
    assert_eq!(stage.until_read().await, []);
}

/// Entries of agents that no screen holds are notified once, on a screen without focus.
#[tokio::test]
async fn new_entries_of_other_processes_are_notified() {
    let mut stage = family((80, 24)).await;
    let mut entries = read_inbox(&stage.driver.engine).await.unwrap();
    stage.driver.app.set_inbox(entries.clone());
    stage.terminal_actions();
    let known = entries[0].agent.clone();
    let id = ikigai_testkit::IdSource::new(77).agent();
    let mut agent = known;
    (agent.id, agent.owner) = (id, None);
    agent.name = "nightly".to_owned();
    entries.push(InboxEntry {
        agent,
        row: RowRef::new(id, Seq(3)),
        text: "out of credit".to_owned(),
        ..entries[0].clone()
    });
    let told = |stage: &mut Stage| {
        let actions = stage.terminal_actions().into_iter();
        let notices = actions.filter_map(|action| match action {
            TerminalAction::Notify(text) => Some(text),
            _ => None,
        });
        notices.collect::<Vec<_>>()
    };

    stage.driver.app.set_focused(false);
    stage.driver.app.set_inbox(entries.clone());
    stage.settle().await;

    assert_eq!(told(&mut stage), ["nightly failed: out of credit"]);
    stage.driver.app.set_inbox(entries);
    stage.settle().await;
    assert_eq!(told(&mut stage), [""; 0]);
}
