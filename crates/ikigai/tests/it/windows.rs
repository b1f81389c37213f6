//! Windows of models that are in no table, as the built program learns and shows them.

use std::fs;

use ikigai_testkit::mock::{Mock, MockAnswer};
use serde_json::json;

use crate::support::{PROGRAM, TestUser};

/// Tokens of the window that the server states.
const WINDOW: usize = 24_576;

/// Tokens that are kept for an answer of unknown length.
const RESERVE: usize = 4_096;

fn configured(mock: &Mock) -> TestUser {
    let user = TestUser::new();
    let directory = user.home().join(".config/ikigai");
    fs::create_dir_all(&directory).unwrap();
    let url = mock.url();
    let config = format!("model = \"mine:local\"\n[providers.mine]\nbase_url = \"{url}\"\n");
    fs::write(directory.join("config.toml"), config).unwrap();
    user
}

fn says(text: &str) -> MockAnswer {
    MockAnswer {
        content: Some(text.to_owned()),
        ..MockAnswer::default()
    }
}

fn states(mock: &Mock, tokens: usize) {
    let list = json!({"data": [{"id": "local", "owned_by": "vllm", "max_model_len": tokens}]});
    mock.will_serve("GET /v1/models", 200, &list.to_string());
}

#[test]
fn requests_stay_within_the_window_that_the_server_states() {
    let mock = Mock::start();
    states(&mock, WINDOW);
    let user = configured(&mock);
    // Summaries and answers alike.
    mock.expect((0..40).map(|_| says(&format!("Goal: words. {}", "word ".repeat(200)))));

    for turn in 0..6 {
        let prompt = format!("question {turn} {}", "more words ".repeat(1_500));
        let said = user.ikigai(&["run", &prompt]);
        assert_eq!(said.code, Some(0), "{}", said.err);
    }

    let asked = mock.asked();
    assert!(asked.len() > 6, "something had to be summarised");
    for request in &asked {
        let tokens = request.body.to_string().len() / 4;
        assert!(tokens <= WINDOW - RESERVE, "{tokens} tokens");
        assert!(
            request.body.get("max_tokens").is_none(),
            "the server decides"
        );
    }
    assert_eq!(mock.faults(), Vec::<String>::new());
    let lookups = mock.looked_up().into_iter().map(|request| request.line);
    assert_eq!(
        lookups.collect::<Vec<_>>(),
        ["GET /v1/models"; 6],
        "once a process"
    );
    let context = user.ikigai(&["run", "/context"]).out;
    assert!(context.contains("% of 20k"), "{context}");
    let window = context.lines().find(|line| line.starts_with("window"));
    let window = window.unwrap_or_else(|| panic!("{context}"));
    assert!(window.contains("24k  from the server"), "{window}");
}

#[test]
fn a_refusal_corrects_an_assumed_window_and_the_screen_names_the_source() {
    let mock = Mock::start();
    let user = configured(&mock);
    let refusal = "request (99999 tokens) exceeds the available context size (16384 tokens), try \
                   increasing it";
    let refused = MockAnswer {
        failure: Some((400, refusal.to_owned())),
        ..MockAnswer::default()
    };
    mock.expect([says("an answer"), refused]);
    // Summaries, and the answer after them.
    mock.expect((0..8).map(|_| says("Goal: words.")));
    let mut pty = user.in_terminal(PROGRAM, &[], 120, 30);
    pty.wait_for_text("❯");
    let paste = |word: &str| format!("\x1b[200~{}\x1b[201~\r", word.repeat(3_000));

    pty.send(paste("first word "));
    pty.wait_for_text("● an answer");
    pty.wait_for_text("% of 123k (assumed)");
    pty.send(paste("next words "));
    pty.wait_for_text("● Goal: words.");

    pty.wait_for_text("% of 13k (corrected)");
    let asked = mock.asked();
    for request in asked.iter().skip(2) {
        let tokens = request.body.to_string().len() / 4;
        assert!(tokens <= 16_384, "{tokens} tokens");
    }
}
