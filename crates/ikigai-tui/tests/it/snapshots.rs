//! Snapshots of every screen at 80x24 and of command output, in `tests/it/snapshots`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ikigai_core::render::{Shown, render};
use ikigai_engine::UiEvent;
use ikigai_testkit::{Step, assert_golden};
use ikigai_tui::key::TerminalEvent;
use tokio::time::timeout;

use crate::support::{Stage, question};

const SIZE: (u16, u16) = (80, 24);

impl Stage {
    /// Compares the screen and its cursor with the snapshot of that name.
    async fn matches(&mut self, name: &str) {
        let path = path(name);
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        let end = Instant::now() + patience();
        let mut text = self.snapshot();
        while text != expected && Instant::now() < end {
            let _ = timeout(Duration::from_millis(50), self.driver.came()).await;
            self.until(|_| true).await;
            text = self.snapshot();
        }
        assert_golden(&path, &text);
    }

    /// Returns the screen without values that differ between runs, and its cursor.
    fn snapshot(&mut self) -> String {
        let mut text = redact(&self.text());
        match self.grid().cursor {
            Some((row, column)) => write!(text, "\n--- cursor at row {row}, column {column}\n"),
            None => write!(text, "\n--- no cursor\n"),
        }
        .unwrap();
        text
    }
}

/// Replaces the spinner and times since an event, and drops the state of the sandbox.
fn redact(text: &str) -> String {
    let text = text.replace("·nosandbox", "");
    let mut redacted = String::new();
    for (at, character) in text.char_indices() {
        let rest = &text[at..];
        let unit = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
        let is_time = ["s ", " s ", "s\n", " s\n"]
            .iter()
            .any(|end| unit.starts_with(end));
        redacted.push(match character {
            '0'..='9' if is_time => '0',
            '⠙' | '⠹' | '⠸' | '⠼' | '⠴' | '⠦' | '⠧' | '⠇' | '⠏' => '⠋',
            character => character,
        });
    }
    redacted
}

/// Time within which background reads reach the screen.
fn patience() -> Duration {
    let writes = std::env::var_os("IKIGAI_GOLDEN").is_some();
    Duration::from_millis(if writes { 500 } else { 20_000 })
}

fn path(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/snapshots");
    folder.join(format!("{name}.txt"))
}

/// Returns a screen after two turns.
async fn conversation() -> Stage {
    let mut stage = Stage::new(SIZE).await;
    stage.talk("what is two and two", "It is four.").await;
    stage.talk("and three", "Then it is *seven*.").await;
    stage
}

/// Returns a screen whose agent has a child that is done.
async fn family() -> Stage {
    let mut stage = Stage::new(SIZE).await;
    stage.talk("hello", "Hi.").await;
    stage
        .provider
        .will_say_to("write it", "The docs are there.");
    stage.line("/fork --name docs write it").await;
    stage.sees("✓ docs").await;
    stage
}

#[tokio::test]
async fn the_first_screen_looks_as_before() {
    let mut stage = Stage::with_models(SIZE).await;
    stage.sees("[parser").await;
    stage.matches("first").await;

    stage.letters("half typed").await;
    stage.press("esc").await;
    stage.matches("typed").await;
}

#[tokio::test]
async fn a_conversation_looks_as_before() {
    let mut stage = conversation().await;
    stage.matches("conversation").await;

    stage.press("ctrl-r").await;
    stage.letters("two").await;
    stage.sees("search 1/1").await;
    stage.matches("search-sent").await;
    stage.press("esc").await;

    stage.letters("/ex").await;
    stage.matches("completion").await;
}

#[tokio::test]
async fn a_turn_at_work_looks_as_before() {
    let mut stage = Stage::new(SIZE).await;
    let waits = [Step::Say("Well".to_owned()), Step::Wait, Step::Finish];
    stage.provider.will(waits);
    stage.line("think").await;
    stage.sees("● Well").await;
    stage.line("and then").await;
    stage.sees("queued: and then").await;
    stage.matches("working").await;

    stage.press("ctrl-x q").await;
    stage.matches("quit-while-working").await;
}

#[tokio::test]
async fn a_question_looks_as_before() {
    let mut stage = conversation().await;
    let agent = stage.current();
    stage.letters("half").await;
    stage.asks(agent, "rm -r target");
    stage.matches("question-closed").await;

    stage.press("tab").await;
    stage.matches("question-open").await;
    stage.press("r").await;
    stage.letters("keep it").await;
    stage.matches("question-reason").await;
    stage.press("esc e").await;
    stage.matches("question-pattern").await;
}

#[tokio::test]
async fn a_long_question_looks_as_before() {
    let mut stage = conversation().await;
    let lines: Vec<_> = (1..40).map(|line| format!("echo line {line}")).collect();
    stage.asks_about(question(stage.current(), &lines.join("\n")));
    stage.pass(Duration::from_secs(5)).await;
    stage.matches("question-long").await;

    stage.press("y").await;
    stage.matches("question-hurried").await;
    stage.press("end").await;
    stage.matches("question-end").await;
}

#[tokio::test]
async fn pickers_look_as_before() {
    let mut stage = Stage::with_models(SIZE).await;
    stage.sees("[parser").await;
    stage.line("/theme").await;
    stage.matches("picker-theme").await;
    stage.letters("da").await;
    stage.matches("picker-filtered").await;
    stage.press("esc").await;

    stage.line("/key").await;
    stage.matches("picker-key").await;
    stage.press("enter").await;
    stage.matches("key-entry").await;
    stage
        .happened(TerminalEvent::Paste("sk-123".to_owned()))
        .await;
    stage.matches("key-entry-typed").await;
}

#[tokio::test]
async fn the_board_looks_as_before() {
    let mut stage = family().await;
    stage.press("ctrl-x a").await;
    stage.sees("2 agents").await;
    stage.matches("board").await;

    stage.press("t").await;
    stage.matches("board-tree").await;
    stage.press("j space").await;
    stage.sees("─ docs").await;
    stage.matches("board-peek").await;
    stage.press("x").await;
    stage.matches("board-kill").await;
    stage.press("esc space /").await;
    stage.letters("par").await;
    stage.matches("board-filter").await;
    stage.press("enter s").await;
    stage.letters("look at it").await;
    stage.matches("board-mail").await;
}

#[tokio::test]
async fn a_question_on_the_board_looks_as_before() {
    let mut stage = family().await;
    let roster = stage.driver.app.roster();
    let children: Vec<_> = roster.children(stage.current()).map(|(id, _)| id).collect();
    stage.asks(children[0], "rm -r target");
    stage.matches("question-other").await;

    stage.press("ctrl-x a").await;
    stage.matches("board-question").await;
}

#[tokio::test]
async fn browsing_looks_as_before() {
    let mut stage = conversation().await;
    stage.press("ctrl-t").await;
    stage.matches("browse").await;

    stage.press("[").await;
    stage.matches("browse-message").await;
    stage.press("/").await;
    stage.letters("four").await;
    stage.matches("browse-find").await;
    stage.press("enter").await;
    stage.matches("browse-found").await;
    stage.press("m").await;
    stage.matches("browse-label").await;
}

#[tokio::test]
async fn the_history_looks_as_before() {
    let mut stage = conversation().await;
    stage.line("/undo").await;
    stage.sees("1 turn hidden").await;
    stage.press("ctrl-u").await;
    stage.line("/history").await;
    stage.sees("┊").await;

    stage.matches("history").await;
}

#[tokio::test]
async fn search_hits_look_as_before() {
    let mut stage = conversation().await;
    stage.line("/search four").await;
    stage.sees("Results: ").await;
    stage.matches("hits").await;

    stage.press("enter").await;
    stage.sees("14:03").await;
    stage.matches("hit").await;
}

#[tokio::test]
async fn a_merge_preview_looks_as_before() {
    let mut stage = family().await;
    stage.line("/merge docs").await;
    stage.sees("Merge docs").await;
    stage.matches("merge").await;

    stage.press("esc").await;
    stage.matches("merge-cancelled").await;
}

#[tokio::test]
async fn overlays_look_as_before() {
    let mut stage = Stage::new(SIZE).await;
    stage.sees("[parser").await;
    stage.press("?").await;
    stage.matches("help").await;
    stage.press("G").await;
    stage.matches("help-end").await;
    stage.press("esc").await;
    stage.press("ctrl-x").await;
    stage.matches("prefix").await;
    stage.press("z").await;

    let agent = stage.current();
    let (line, output) = ("/context".to_owned(), "model  demo\nused   12".to_owned());
    stage.told(
        agent,
        &UiEvent::Preview {
            line,
            output,
            severity: ikigai_core::words::Severity::Info,
        },
    );
    stage.matches("overlay").await;
}

/// Commands whose output depends on nothing outside the log.
const COMMANDS: [&str; 11] = [
    "/name reader",
    "/approve edits",
    "/mark first",
    "/undo",
    "/redo",
    "/rewind first",
    "/send missing hello",
    "/fork --name docs --at #1",
    "/kill docs",
    "/mouse off",
    "/copy",
];

#[tokio::test]
async fn command_output_looks_as_before() {
    let mut stage = conversation().await;
    let agent = stage.current();
    for (count, line) in COMMANDS.iter().enumerate() {
        stage.press("ctrl-u").await;
        stage.driver.app.submit((*line).to_owned());
        let end = Instant::now() + Duration::from_secs(20);
        while stage.commands(agent).await.len() <= count {
            assert!(Instant::now() < end, "{line} left no row");
            let _ = timeout(Duration::from_millis(50), stage.driver.came()).await;
            stage.until(|_| true).await;
        }
        stage.driver.app.show_again(agent);
    }

    let entries = stage.driver.app.pane().unwrap().agent.view.entries();
    let mut text = String::new();
    for entry in entries {
        if let Shown::Command {
            echo,
            output,
            severity,
        } = render(&entry.row)
        {
            let output = severity.signed(&output);
            writeln!(text, "{echo}\n{output}\n").unwrap();
        }
    }
    assert_golden(&path("command-output"), &text);
}
