//! Commands that only a screen can carry out.

use std::time::Duration;

use ikigai_engine::commands::THEMES;
use ikigai_tui::app::TerminalAction;
use ikigai_tui::paint::Theme;

use crate::support::Stage;

#[test]
fn every_theme_that_can_be_typed_is_one() {
    let names: Vec<_> = Theme::NAMES.iter().map(|(name, _)| *name).collect();

    assert_eq!(names, THEMES);
}

#[tokio::test]
async fn commands_of_the_screen_leave_rows() {
    let mut stage = Stage::new((100, 40)).await;
    let agent = stage.current();

    stage.line("/keys").await;
    stage.sees("send the message").await;
    stage.press("esc").await;
    stage.line("/theme").await;
    stage.sees("no red or green").await;
    stage.letters("dark").await;
    stage.press("enter").await;
    stage.sees("/theme dark").await;
    stage.line("/mouse off").await;
    stage
        .sees("Mouse off: your terminal handles selection")
        .await;
    stage.line("/theme pink").await;
    stage.sees("no theme pink").await;
    stage.letters("half typed").await;
    stage.press("ctrl-a").await;
    let expected = [
        TerminalAction::SetTheme("dark".to_owned()),
        TerminalAction::SetMouse(false),
    ];
    assert_eq!(stage.terminal_actions(), expected);

    let said = stage.commands(agent).await;
    assert_eq!(said, ["/keys", "/theme dark", "/mouse off", "/theme pink"]);
}

#[tokio::test]
async fn a_refresh_reads_anew_and_keeps_what_is_typed() {
    let mut stage = Stage::new((100, 40)).await;
    stage.talk("what is two and two", "It is four.").await;

    stage.line("/refresh").await;
    stage.letters("half typed").await;
    stage.sees("/refresh").await;
    while !stage.terminal_actions().contains(&TerminalAction::Redraw) {
        let came = tokio::time::timeout(Duration::from_secs(20), stage.driver.came());
        came.await.unwrap();
        stage.sees("half typed").await;
    }

    assert_eq!(stage.input(), "half typed");
    assert!(stage.text().contains("It is four."));
}

#[tokio::test]
async fn answers_and_their_code_are_copied_counted_from_the_newest() {
    let mut stage = Stage::new((100, 40)).await;
    stage.talk("one", "First.\n```\nlet a = 1;\n```").await;
    stage.talk("two", "Second.").await;

    let cases = [
        ("/copy", "Copied 7 characters", Some("Second.")),
        (
            "/copy 2",
            "Copied 25 characters",
            Some("First.\n```\nlet a = 1;\n```"),
        ),
        ("/copy code", "Copied 11 characters", Some("let a = 1;\n")),
        ("/copy code 2", "fewer than 2 code blocks so far", None),
        ("/copy 0", "usage: /copy [N] (1 = latest)", None),
    ];
    for (line, says, copied) in cases {
        stage.line(line).await;
        stage.sees(says).await;

        let copied = copied.map(|text| TerminalAction::Copy(text.to_owned()));
        assert_eq!(stage.terminal_actions(), Vec::from_iter(copied), "{line}");
    }
}

#[tokio::test]
async fn all_that_is_shown_is_unfolded_and_folded() {
    let mut stage = Stage::new((100, 60)).await;
    let prompt = "No praise, no apologies";

    assert!(!stage.text().contains(prompt));
    stage.line("/view open").await;
    stage.sees(prompt).await;
    stage.line("/view").await;
    stage.until(|text| !text.contains(prompt)).await;
}

/// The status shows the size of the next request, also when no turn has ended since.
#[tokio::test]
async fn what_fills_the_window_is_counted_anew_when_it_moves() {
    let mut stage = Stage::new((100, 24)).await;
    stage.provider.will_say("Yes.");
    stage.driver.app.submit("word ".repeat(50_000));
    stage.until(|text| text.contains("6% of 1.0M")).await;

    stage.line("/clear").await;

    stage.until(|text| text.contains("0% of 1.0M")).await;
}

#[tokio::test]
async fn whoever_is_reaped_keeps_the_name_in_the_rows_that_mention_it() {
    let mut stage = Stage::new((90, 24)).await;
    stage.talk("hello", "Good day.").await;
    stage.line("/fork --name docs").await;
    stage.sees("[docs").await;
    let child = stage.current();
    stage.line("/switch parser").await;
    stage.sees("[parser").await;
    stage.line("/kill docs").await;
    stage.sees("✗ killed docs").await;
    stage.line("/reap docs").await;
    stage.sees("Hidden: docs in /home/margaret/parser").await;
    let live = stage
        .until(|text| !text.contains("↓1") && !text.contains(&child.to_string()))
        .await;

    let engine = stage.driver.engine.clone();
    let mut later = stage.again(engine).await;
    let restored = later.sees("[parser").await;

    for shown in [live, restored] {
        assert_eq!(shown.matches("✗ killed docs").count(), 1, "{shown}");
        assert!(!shown.contains(&child.to_string()), "{shown}");
    }
}

/// An ended agent is read and forked; a message to it names what continues.
#[tokio::test]
async fn an_ended_agent_is_forked_on_the_screen() {
    let mut stage = Stage::new((100, 24)).await;
    stage.talk("hello", "Good day.").await;
    stage.line("/fork --name docs").await;
    stage.sees("[docs").await;
    stage.talk("what is it", "A lexer.").await;
    stage.line("/switch parser").await;
    stage.sees("[parser").await;
    stage.line("/kill docs").await;
    stage.sees("✗ killed docs").await;
    stage.line("/switch docs").await;
    stage.sees("A lexer.").await;

    stage.line("go on").await;
    stage.sees("docs has ended. /fork continues from it").await;
    // The line stays in the input.
    stage.press("ctrl-u").await;
    stage.line("/fork --name more").await;

    stage.sees("[more").await;
    stage.sees("A lexer.").await;
    stage.talk("go on", "With tokens.").await;
}

#[tokio::test]
async fn what_was_said_for_a_moment_goes_with_the_next_line_that_is_sent() {
    let mut stage = Stage::new((90, 24)).await;
    stage.talk("hello", "Good day.").await;
    stage.press("ctrl-t").await;
    stage.press("y").await;
    stage.sees("Copied 9 characters").await;
    stage.press("esc").await;
    stage.sees("Copied 9 characters").await;

    stage.line("/mark a").await;
    let marked = stage.sees("⚑ a").await;

    assert!(!marked.contains("Copied"), "{marked}");
}

#[tokio::test]
async fn what_undo_put_back_gives_way_to_a_command_and_to_nothing_else() {
    let mut stage = Stage::new((90, 24)).await;
    stage.talk("one", "First.").await;
    stage.talk("two", "Second.").await;
    stage.line("/undo").await;
    stage.sees("rewound to before").await;
    assert_eq!(stage.input(), "two");

    stage.letters("/und").await;
    let offered = stage.text();
    let replaced = stage.input();
    stage.letters("o").await;
    stage.press("enter").await;
    stage
        .until(|text| text.contains("❯ one") && !text.contains("● First."))
        .await;
    let further = stage.input();
    stage.letters("!/x").await;
    let appended = stage.input();
    stage.press("ctrl-u").await;
    stage.line("/redo").await;
    stage.sees("● First.").await;

    assert_eq!((replaced.as_str(), further.as_str()), ("/und", "one"));
    assert!(offered.contains("> undo"), "{offered}");
    assert_eq!(appended, "one!/x");
}

/// The first frame after `/fork` shows the child's name, before the tree is read.
#[tokio::test]
async fn a_fork_shows_the_child_by_its_name_at_once() {
    let mut stage = Stage::new((90, 24)).await;
    stage.talk("hello", "Good day.").await;

    stage.line("/fork --name docs").await;
    let first = stage.until(|text| text.contains("forked from")).await;

    assert!(first.contains("[docs"), "{first}");
}

/// A line in the scrollback marks the rows above it that a summary replaces.
///
/// The line is there after a restart, and goes with the summary.
#[tokio::test]
async fn the_scrollback_marks_where_a_summary_replaces_the_rows_above() {
    let mut stage = Stage::new((80, 40)).await;
    for turn in 0..3 {
        let answer = format!("Answer {turn} {}", "word ".repeat(60));
        stage.talk(&format!("question {turn}"), answer.trim()).await;
    }
    stage.provider.will_summarise_as("They talked.");

    stage.line("/compact").await;
    stage.sees("turns summarised").await;
    let mark = "── context ── above: replaced by summary #";
    let screen = stage.sees(mark).await;
    assert!(screen.contains(" · /compact --show ──"), "{screen}");
    let line = screen.lines().position(|line| line.contains(mark));
    let question = screen.lines().position(|line| line.contains("question 2"));
    let answer = screen.lines().position(|line| line.contains("Answer 2"));
    assert!(question < line && line < answer, "{screen}");

    stage.line("/refresh").await;
    stage.sees(mark).await;
    stage.line("/compact --undo").await;
    let screen = stage.until(|screen| !screen.contains(mark)).await;
    assert!(screen.contains("undone"), "{screen}");
}

/// The row of an event and the row of its command are one; five forks are five lines.
#[tokio::test]
async fn a_command_that_makes_an_event_is_shown_once() {
    let mut stage = Stage::new((80, 40)).await;
    stage.talk("what is two and two", "It is four.").await;
    for prompt in ["write it", "test it"] {
        stage.provider.will_say_to(prompt, "Done.");
    }

    stage.line("/mark here").await;
    stage.sees("⚑ here").await;
    stage.line("/fork \"write it\" \"test it\"").await;
    stage.sees("· test it").await;
    let forked = stage
        .until(|text| text.matches('├').count() == 2 && text.contains("· write it"))
        .await;
    stage.line("/undo").await;
    let undone = stage.sees("1 turn hidden").await;

    assert_eq!(forked.matches("⚑").count(), 1, "{forked}");
    assert_eq!(forked.matches("├ forked").count(), 2, "{forked}");
    assert_eq!(undone.matches('↶').count(), 1, "{undone}");
    assert!(!undone.contains("/undo"), "{undone}");
}

/// A cleared page begins with one line about it.
#[tokio::test]
async fn a_clear_is_shown_once() {
    let mut stage = Stage::new((80, 24)).await;
    stage.talk("what is two and two", "It is four.").await;

    stage.line("/clear").await;
    let screen = stage.sees("cleared").await;

    assert!(screen.contains("/undo to restore ──"), "{screen}");
    assert!(!screen.contains("/clear"), "{screen}");
}
