//! Questions: the screen shows an approved call exactly and to its end.

use std::time::Duration;

use ikigai_core::{RowRef, Seq};
use ikigai_engine::Question;
use ikigai_tui::key::MouseAction;

use crate::support::{Stage, question};

/// Terminals in which everything of a question can be read.
const SIZES: [(u16, u16); 4] = [(120, 40), (80, 24), (40, 10), (20, 7)];

/// Keys of the answers, as they stand in the smallest terminal too.
const ANSWERS: [&str; 6] = ["y", "a", "e", "n", "r", "Esc"];

async fn asking(size: (u16, u16), ask: impl Fn(Question) -> Question, command: &str) -> Stage {
    let mut stage = Stage::new(size).await;
    let question = question(stage.current(), command);
    stage.asks_about(ask(question));
    stage.pass(Duration::from_secs(5)).await;
    stage
}

fn has_answers(stage: &mut Stage) {
    let text = stage.text();
    for key in ANSWERS {
        let is_there = text.lines().any(|row| {
            let mut words = row.split([' ', '·']);
            row.starts_with("  ") && words.any(|word| word == key)
        });
        assert!(is_there, "{key} is not among the answers of\n{text}");
    }
}

/// Scrolls a question by `key` from start to end; returns the rows that it shows.
async fn read(stage: &mut Stage, key: &str) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    loop {
        has_answers(stage);
        let rows = stage.rows();
        seen.extend(rows.iter().cloned());
        let is_more = |row: &String| row.starts_with("  … ") && row.contains("PgDn");
        if !rows.iter().any(is_more) {
            return seen;
        }
        stage.press(key).await;
        assert!(seen.len() < 100_000, "the question has no end");
    }
}

/// Attack: hide a command behind invisible or control characters.
#[tokio::test]
async fn the_command_that_runs_is_the_one_that_is_shown() {
    let cases = [
        ("touch pwned #\rls -la", "touch pwned #␍ls -la"),
        ("touch x #\u{1b}[2K\u{1b}[1Gls", "touch x #␛[2K␛[1Gls"),
        ("rm x\u{8}\u{8}\u{8}\u{8}ls", "rm x␈␈␈␈ls"),
        ("echo \u{202e}fdp\u{2066}", "echo ⟨U+202E⟩fdp⟨U+2066⟩"),
        ("ls\u{200b}\u{feff}\u{a0}x", "ls⟨U+200B⟩⟨U+FEFF⟩⟨U+00A0⟩x"),
    ];
    for (command, shown) in cases {
        let mut stage = asking((80, 24), |question| question, command).await;

        let text = stage.text();
        assert!(
            text.lines().any(|row| row == format!("  {shown}")),
            "{text}"
        );
    }
}

#[tokio::test]
async fn lines_are_lines_and_wrapped_rows_are_not() {
    let long = "x".repeat(100);
    let command = format!("# only a note\nrm -rf x\n{long} rm -rf y");
    let mut stage = asking((80, 24), |question| question, &command).await;

    let rows = stage.rows();
    assert!(rows.contains(&"  # only a note".to_owned()), "{rows:#?}");
    assert!(rows.contains(&"  rm -rf x".to_owned()), "{rows:#?}");
    let goes_on = format!("↳ {} rm -rf y", "x".repeat(22));
    assert!(rows.contains(&goes_on), "{rows:#?}");
}

/// Attack: hide the end of a command in its prompt.
#[tokio::test]
async fn no_approval_before_the_end_was_shown() {
    for size in SIZES {
        for (key, command) in [
            (
                "page-down",
                format!("ls{}; rm -rf end-of-it", "\nls".repeat(200)),
            ),
            (
                "down",
                format!("echo {} ; rm -rf end-of-it", "a ".repeat(4_000)),
            ),
            (
                "space",
                format!("ls {}; rm -rf end-of-it", " x".repeat(4_000)),
            ),
        ] {
            let mut stage = asking(size, |question| question, &command).await;
            let agent = stage.current();
            for early in ["y", "a", "e"] {
                stage.press(early).await;
                assert_eq!(
                    stage.open_questions(agent),
                    1,
                    "{early} was taken at {size:?}"
                );
                has_answers(&mut stage);
            }
            let hint = stage.text();
            let told = ["scroll to the end first: PgDn", "PgDn first"];
            assert!(told.iter().any(|told| hint.contains(told)), "{hint}");

            let seen = read(&mut stage, key).await;

            assert!(
                seen.concat().replace("↳ ", "").contains("end-of-it"),
                "{seen:#?}"
            );
            stage.press("y").await;
            assert_eq!(
                stage.open_questions(agent),
                0,
                "y was not taken at {size:?}"
            );
        }
    }
}

#[tokio::test]
async fn the_end_key_and_the_wheel_scroll_to_the_end() {
    let command = format!("ls{}; rm -rf x", "\nls".repeat(30));
    let mut stage = asking((80, 24), |question| question, &command).await;
    stage.press("end").await;
    assert!(stage.text().contains("; rm -rf x"), "{}", stage.text());
    stage.press("home").await;
    assert!(stage.text().contains("? bash in"), "{}", stage.text());
    for _ in 0..20 {
        stage.mouse(MouseAction::WheelDown, 3, 3).await;
    }
    assert!(stage.text().contains("; rm -rf x"), "{}", stage.text());
}

#[tokio::test]
async fn blanks_do_not_hide_the_end() {
    let command = format!("ls{}; rm -rf x", " ".repeat(5_000));
    let mut stage = asking((80, 24), |question| question, &command).await;

    let text = stage.text();
    assert!(text.contains("ls⟨U+0020 × 5000⟩; rm -rf x"), "{text}");
}

#[tokio::test]
async fn refusing_needs_no_reading() {
    let command = "ls\n".repeat(500);
    for keys in ["n", "r enter"] {
        let mut stage = asking((80, 24), |question| question, &command).await;
        let agent = stage.current();
        stage.press(keys).await;
        assert_eq!(stage.open_questions(agent), 0, "{keys}");
    }
}

#[tokio::test]
async fn a_long_pattern_is_shown_whole_and_hides_no_answer() {
    let pattern = format!("make{} *\nrm *\u{202e}", " all".repeat(300));
    for size in SIZES {
        let ask = |question: Question| Question {
            pattern: pattern.clone(),
            ..question
        };
        let mut stage = asking(size, ask, "make all").await;
        let agent = stage.current();
        if size.1 < 40 {
            stage.press("a").await;
            assert_eq!(stage.open_questions(agent), 1, "granted unseen at {size:?}");
            has_answers(&mut stage);
        }

        let seen = read(&mut stage, "page-down").await;

        let rows = seen.iter().map(|row| row.trim_start_matches(['↳', ' ']));
        assert!(rows.clone().any(|row| row == "rm *⟨U+202E⟩"), "{seen:#?}");
        stage.press("a").await;
        assert_eq!(stage.open_questions(agent), 0);
    }
}

#[tokio::test]
async fn once_needs_no_pattern_to_be_read() {
    let ask = |question: Question| Question {
        pattern: "make *\n".repeat(100),
        ..question
    };
    let mut stage = asking((80, 24), ask, "make all").await;
    let agent = stage.current();
    stage.press("a").await;
    assert_eq!(stage.open_questions(agent), 1);

    stage.press("y").await;

    assert_eq!(stage.open_questions(agent), 0);
}

#[tokio::test]
async fn an_edited_pattern_that_does_not_fit_is_shown_before_it_is_granted() {
    let mut stage = asking((80, 24), |question| question, "make all").await;
    let agent = stage.current();
    stage.press("e").await;
    stage.letters(&"x".repeat(90)).await;
    stage.press("enter").await;
    assert_eq!(stage.open_questions(agent), 1, "{}", stage.text());
    let text = stage.text();
    assert!(text.contains("pattern for bash:"), "{text}");
    assert!(text.contains(&format!("↳ *{}", "x".repeat(77))), "{text}");
    stage.press("a").await;
    assert_eq!(stage.open_questions(agent), 0);
}

#[tokio::test]
async fn a_diff_is_scrolled_to_its_end_like_a_command() {
    let lines: Vec<String> = (1..=3_000).map(|line| format!("+line {line}\n")).collect();
    let preview = format!("@@ -0,0 +1,3000 @@\n{}", lines.concat());
    let ask = |question: Question| Question {
        tool: "file_write".to_owned(),
        preview: Some(preview.clone()),
        ..question
    };
    let mut stage = asking((80, 24), ask, "file_path=\"a\"").await;
    let agent = stage.current();
    stage.press("y").await;
    assert_eq!(stage.open_questions(agent), 1);

    stage.press("end").await;

    assert!(
        stage.text().contains("3000 + line 3000"),
        "{}",
        stage.text()
    );
    stage.press("y").await;
    assert_eq!(stage.open_questions(agent), 0);
}

#[tokio::test]
async fn a_question_that_changes_is_read_anew() {
    let command = format!("ls{}", "\nls".repeat(100));
    let mut stage = asking((80, 24), |question| question, &command).await;
    let agent = stage.current();
    stage.press("end").await;
    stage.rows();

    stage.asks_about(question(agent, &format!("{command}\nrm -rf x")));
    stage.pass(Duration::from_secs(5)).await;
    stage.press("y").await;

    assert_eq!(stage.open_questions(agent), 1);
}

#[tokio::test]
async fn a_question_behind_help_takes_no_keys() {
    let mut stage = Stage::new((80, 24)).await;
    let agent = stage.current();
    stage.asks(agent, "make all");
    stage.pass(Duration::from_secs(5)).await;
    stage.sees("y once").await;

    stage.press("f1 j n").await;
    assert_eq!(stage.open_questions(agent), 1);
    stage.press("esc").await;
    stage.pass(Duration::from_secs(5)).await;
    stage.press("n").await;

    assert_eq!(stage.open_questions(agent), 0);
}

/// Attack: a held key that answers the next question.
#[tokio::test]
async fn a_held_key_approves_no_question_that_follows() {
    let mut stage = asking((80, 24), |question| question, "make all").await;
    let agent = stage.current();
    let start = stage.now();
    let later = |millis| start + Duration::from_millis(millis);
    stage.press_at("y", later(0)).await;
    assert_eq!(stage.open_questions(agent), 0);

    stage.asks_about(Question {
        call: RowRef::new(agent, Seq(100)),
        ..question(agent, "rm -rf x")
    });
    for millis in [30, 60, 90] {
        stage.press_at("y", later(millis)).await;
        assert_eq!(stage.open_questions(agent), 1);
    }
    stage.pass(Duration::from_secs(5)).await;
    assert_eq!(stage.open_questions(agent), 1);
    stage.press("y").await;
    assert_eq!(stage.open_questions(agent), 0);
}
