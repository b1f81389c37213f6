//! Nothing typed is lost: pending messages, queued ones, and drafts.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use ikigai_engine::{StoreError, UiEvent};
use ikigai_testkit::Step;
use ikigai_tui::app::{EngineRequest, TerminalAction, UiEffect};
use ikigai_tui::key::TerminalEvent;

use crate::support::Stage;

fn full() -> StoreError {
    StoreError::Full("no room".into())
}

/// Returns the contents of the draft files of one kind, once there are this many.
async fn files(stage: &mut Stage, directory: &Path, kind: &str, count: usize) -> Vec<String> {
    for _ in 0..400 {
        stage.pass(Duration::ZERO).await;
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let paths = paths.filter(|path| path.extension().is_some_and(|end| end == kind));
        let found: Vec<_> = paths
            .filter_map(|path| fs::read_to_string(path).ok())
            .collect();
        if found.len() == count {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("there are never {count} files of kind {kind}");
}

#[tokio::test]
async fn a_message_that_cannot_be_stored_stays_visible_and_is_stored_once() {
    let place = tempfile::tempdir().unwrap();
    let (mut stage, store) = Stage::with_faults(Some(place.path())).await;
    stage.talk("first", "Yes.").await;
    store.go_away(full);

    stage.line("hello there").await;
    let seen = stage.sees("pending: store is away").await;
    let saved = files(&mut stage, place.path(), "pending", 1).await;
    stage.press("ctrl-d").await;
    let asked = stage.text();
    stage.press("esc").await;
    store.come_back();
    stage.provider.will_say("Hello yourself.");
    stage.sees("Hello yourself.").await;
    stage.until(|screen| !screen.contains("pending")).await;
    files(&mut stage, place.path(), "pending", 0).await;

    assert!(seen.contains("hello there"), "{seen}");
    assert!(!seen.contains("in memory only"), "{seen}");
    assert_eq!(stage.input(), "");
    assert!(saved[0].contains("hello there"), "{saved:?}");
    assert!(asked.contains("1 message not sent"), "{asked}");
    assert!(!stage.terminal_actions().contains(&TerminalAction::Quit));
    assert_eq!(stage.messages().await, ["first", "hello there"]);
    stage.press("ctrl-d").await;
    assert!(stage.terminal_actions().contains(&TerminalAction::Quit));
}

#[tokio::test]
async fn a_message_that_can_be_kept_nowhere_says_so() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    fs::write(&file, "").unwrap();
    let (mut stage, store) = Stage::with_faults(Some(&file.join("drafts"))).await;
    stage.talk("first", "Yes.").await;
    store.go_away(full);

    stage.line("hello").await;
    stage.sees("in memory only").await;
    stage.press("ctrl-d").await;

    let asked = stage.text();
    assert!(asked.contains("not sent:  q quit and lose it"), "{asked}");
}

#[tokio::test]
async fn a_pending_message_survives_its_process_and_is_stored_once() {
    let place = tempfile::tempdir().unwrap();
    let (mut stage, store) = Stage::with_faults(Some(place.path())).await;
    stage.talk("first", "Yes.").await;
    store.go_away(full);
    stage.line("hello").await;
    stage.line("and more").await;
    stage.sees("hello").await;
    files(&mut stage, place.path(), "pending", 2).await;
    store.come_back();
    stage.provider.will_say("Good.");
    stage.provider.will_say("Good.");

    let (mut stage, _) = stage.killed(place.path()).await;
    files(&mut stage, place.path(), "pending", 0).await;
    stage.sees("and more").await;
    stage.sees("Good.").await;

    assert_eq!(stage.messages().await, ["first", "hello", "and more"]);
}

#[tokio::test]
async fn a_pending_message_can_be_taken_back_into_the_input() {
    let (mut stage, store) = Stage::with_faults(None).await;
    stage.talk("first", "Yes.").await;
    store.go_away(full);
    stage.line("hello").await;
    stage.sees("pending: store is away").await;

    stage.until(|_| true).await;
    for _ in 0..100 {
        stage.press("up").await;
        if stage.input() == "hello" {
            break;
        }
        stage.press("ctrl-u").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    assert_eq!(stage.input(), "hello");
    assert!(!stage.text().contains("pending"));
    store.come_back();
    assert_eq!(stage.messages().await, ["first"]);
}

#[tokio::test]
async fn a_command_that_cannot_be_stored_is_back_in_the_input() {
    let (mut stage, store) = Stage::with_faults(None).await;
    stage.talk("first", "Yes.").await;
    store.go_away(full);

    stage.line("/mark x").await;
    stage.sees("not done: ").await;

    assert_eq!(stage.input(), "/mark x");
}

#[tokio::test]
async fn a_message_that_names_a_missing_file_is_back_in_the_input() {
    let (mut stage, _) = Stage::with_faults(None).await;

    stage.letters("read @./missing.txt").await;
    stage.press("esc enter").await;
    stage.sees("cannot be read").await;

    assert_eq!(stage.input(), "read @./missing.txt");
    assert_eq!(stage.messages().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_draft_survives_its_process_and_is_gone_once_it_is_sent() {
    let place = tempfile::tempdir().unwrap();
    let (mut stage, _) = Stage::with_faults(Some(place.path())).await;
    stage.letters("half a sen").await;
    assert!(!place.path().join("anything").exists());
    stage.pass(Duration::from_secs(3)).await;
    let saved = files(&mut stage, place.path(), "draft", 1).await;

    let (mut stage, _) = stage.killed(place.path()).await;
    stage.until(|screen| screen.contains("half a sen")).await;
    stage.talk("tence", "Yes.").await;
    stage.pass(Duration::from_secs(3)).await;
    files(&mut stage, place.path(), "draft", 0).await;

    assert_eq!(saved, ["half a sen"]);
    assert_eq!(stage.messages().await, ["half a sentence"]);
}

#[tokio::test]
async fn an_unchanged_input_is_not_written_again() {
    let place = tempfile::tempdir().unwrap();
    let (mut stage, _) = Stage::with_faults(Some(place.path())).await;
    stage.letters("text").await;
    stage.pass(Duration::from_secs(3)).await;
    files(&mut stage, place.path(), "draft", 1).await;
    let agent = stage.current();
    let saves = |stage: &mut Stage, seconds| -> Vec<UiEffect> {
        let app = &mut stage.driver.app;
        app.tick(Instant::now() + Duration::from_secs(seconds));
        let effects = app.take_effects().into_iter();
        effects
            .filter(|effect| matches!(effect, UiEffect::Engine(EngineRequest::SaveDraft(..))))
            .collect()
    };

    stage.press("left right").await;
    let unchanged = saves(&mut stage, 60);
    stage.letters("s").await;
    let changed = saves(&mut stage, 120);

    assert_eq!(unchanged, []);
    let save = EngineRequest::SaveDraft(agent, "texts".to_owned());
    assert_eq!(changed, [UiEffect::Engine(save)]);
}

#[tokio::test]
async fn of_two_equal_queued_messages_only_the_one_taken_back_goes() {
    let (mut stage, _) = Stage::with_faults(None).await;
    let agent = stage.current();
    let now = Instant::now();
    let mails: Vec<_> = (1..3).map(ikigai_engine::MailId).collect();
    for mail in &mails {
        let (mail, text) = (*mail, "same".to_owned());
        stage
            .driver
            .app
            .handle_event(agent, &UiEvent::Queued { mail, text }, now);
    }

    let (mail, text) = (mails[0], "same".to_owned());
    stage
        .driver
        .app
        .handle_event(agent, &UiEvent::TakenBack { mail, text }, now);

    let seen = stage.text();
    assert_eq!(seen.matches("queued: same").count(), 1, "{seen}");
    stage
        .driver
        .app
        .handle_event(agent, &UiEvent::Delivered(mails[1]), now);
    assert!(!stage.text().contains("queued"));
}

#[tokio::test]
async fn a_running_shell_command_has_a_busy_line_and_esc_stops_it() {
    let (mut stage, _) = Stage::with_faults(None).await;
    stage.letters("/cd /tmp").await;
    stage.press("esc enter").await;
    stage.sees("Directory: /tmp").await;

    stage.line("!echo begun; sleep 60").await;
    stage.sees("begun").await;
    let busy = stage.sees("Esc to stop").await;
    stage.line("after that").await;
    stage.sees("queued: after that").await;
    stage.provider.will_say("Yes.");
    stage.press("esc").await;
    stage.sees("(stopped)").await;
    stage.sees("Yes.").await;

    assert!(busy.contains("!echo begun; sleep 60"), "{busy}");
}

#[tokio::test]
async fn a_message_over_half_of_the_budget_stays_in_the_input() {
    let mut stage = Stage::new((60, 16)).await;
    stage.line("/context budget 4k").await;
    stage.sees("Limit set to 4.0k").await;
    let long = "many words ".repeat(1000);

    stage.happened(TerminalEvent::Paste(long.clone())).await;
    stage.press("enter").await;
    stage.sees("half of the budget").await;

    assert_eq!(stage.input().trim(), long.trim());
    assert_eq!(stage.messages().await, Vec::<String>::new());
}

/// Returns a screen whose process died while two messages were queued.
async fn with_queued_messages(drafts: &Path) -> Stage {
    let (mut stage, _) = Stage::with_faults(Some(drafts)).await;
    let waits = [Step::Say("Looking".to_owned()), Step::Wait, Step::Finish];
    stage.provider.will_to("begin", waits);
    stage.line("begin").await;
    stage.sees("Looking").await;
    stage.line("second").await;
    stage.line("third").await;
    stage.sees("queued: third").await;
    let (stage, _) = stage.killed(drafts).await;
    stage
}

#[tokio::test]
async fn messages_queued_by_a_former_process_are_shown_and_sent_on_demand() {
    let place = tempfile::tempdir().unwrap();
    let mut stage = with_queued_messages(place.path()).await;
    stage.sees("queued: third").await;
    let seen = stage.text();

    stage.provider.will_say("Good.");
    stage.press("ctrl-s").await;
    stage.sees("Good.").await;

    assert_eq!(seen.matches("queued: second").count(), 1, "{seen}");
    assert_eq!(stage.messages().await, ["begin", "second", "third"]);
    assert!(!stage.text().contains("queued"));
}

#[tokio::test]
async fn a_message_queued_by_a_former_process_can_be_taken_back() {
    let place = tempfile::tempdir().unwrap();
    let mut stage = with_queued_messages(place.path()).await;
    stage.sees("queued: third").await;

    stage.press("up").await;
    let seen = stage.until(|text| !text.contains("queued: third")).await;

    assert_eq!(stage.input(), "third");
    assert!(seen.contains("queued: second"), "{seen}");
    assert_eq!(stage.messages().await, ["begin"]);
}
