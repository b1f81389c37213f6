//! Streams of a model server, as the built program reads them.

use std::fs;

use ikigai_testkit::framed_server::{EventStream, FramedServer, Framing};
use ikigai_testkit::pty::Pty;
use ikigai_testkit::server::{Script, Server};

use crate::support::{PROGRAM, TestUser};

/// Configures a server as the model, with these limits.
///
/// The window is configured too, so that the program does not query it.
fn configure(user: &TestUser, url: &str, limits: &str) {
    let window = if limits.contains("context_window") {
        ""
    } else {
        "context_window = 128000\n"
    };
    let directory = user.home().join(".config/ikigai");
    fs::create_dir_all(&directory).unwrap();
    let text = format!(
        "model = \"mine:small\"\n[providers.mine]\nbase_url = \"{url}\"\n\
         [models.\"mine:small\"]\n{window}{limits}\n"
    );
    fs::write(directory.join("config.toml"), text).unwrap();
}

fn piece(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

fn events(pieces: &[&str]) -> Vec<String> {
    let end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let mut events: Vec<_> = pieces.iter().map(|text| piece(text)).collect();
    events.extend([end.to_owned(), "data: [DONE]\n\n".to_owned()]);
    events
}

#[test]
fn an_empty_answer_is_named_on_stderr_and_in_the_log() {
    let user = TestUser::new();
    let server = Server::start([Script::stream().send(events(&[]).concat())]);
    configure(&user, &server.url(""), "");

    let said = user.ikigai(&["run", "hello"]);

    assert_eq!((said.out.as_str(), said.code), ("", Some(0)), "{said:?}");
    assert!(
        said.err.contains("the model returned an empty answer"),
        "{said:?}"
    );
    let log = user.ikigai(&["log"]).out;
    assert!(log.contains("● (empty answer)"), "{log}");
}

#[test]
fn half_a_surrogate_pair_does_not_end_a_turn() {
    let user = TestUser::new();
    let pieces = [r"one \ud83d", r"\ude00 two \ud83d", " three"];
    let server = Server::start([Script::stream().send(events(&pieces).concat())]);
    configure(&user, &server.url(""), "");

    let said = user.ikigai(&["run", "hello"]);

    assert_eq!(said.out.trim_end(), "one 😀 two \u{fffd} three");
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn endless_text_ends_at_the_limit_of_the_model() {
    let user = TestUser::new();
    let script = (0..100).fold(Script::stream(), |script, _| {
        script.send(piece(&"many words ".repeat(10)))
    });
    let server = Server::start([script.await_close()]);
    configure(&user, &server.url(""), "max_output = 100");

    let said = user.ikigai(&["run", "hello"]);

    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.err.contains("the answer is longer than 3200 bytes"),
        "{}",
        said.err
    );
    assert!(said.out.len() < 4_000, "{}", said.out.len());
}

#[test]
fn six_turns_on_the_screen_share_connections() {
    let user = TestUser::new();
    let stream = EventStream {
        events: events(&["an ", "answer"]),
        ..EventStream::default()
    };
    let server = FramedServer::start(Framing::Chunks, stream);
    configure(&user, &server.url(), "context_window = 100000");
    let mut pty = user.in_terminal(PROGRAM, &[], 80, 50);
    pty.wait_for_text("❯");

    for turn in 1..=6 {
        pty.send(format!("question {turn}\r"));
        pty.wait_for("the answer", |screen| {
            let contents = screen.contents();
            contents.matches("● an answer").count() == turn
                && !contents.contains("Esc to interrupt")
        });
    }

    // The window is configured, so that no lookup of it opens a connection.
    assert_eq!(server.connections(), 1);
}

/// An answer that counts 1,000 tokens of input.
const COUNTED: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Yes.\"},\
    \"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":10}}\n\n";

#[test]
fn an_export_has_the_cost_of_a_turn() {
    let user = TestUser::new();
    let server = Server::start([Script::stream().send(COUNTED)]);
    configure(&user, &server.url(""), "price_in = 500.0\nprice_out = 0.0");
    user.ikigai(&["run", "hello"]);

    for format in ["md", "html"] {
        let page = user.ikigai(&["export", "--format", format]).out;
        assert!(page.contains(" tokens · $0.50 · 20"), "{page}");
    }
}

#[test]
fn the_status_shows_the_window_of_a_new_model_and_the_cost_after_a_start() {
    let user = TestUser::new();
    let server = Server::start([Script::stream().send(COUNTED)]);
    let models = "price_in = 500.0\nprice_out = 0.0\ncontext_window = 300000\n\
        [models.\"mine:large\"]\ncontext_window = 3000000";
    configure(&user, &server.url(""), models);
    assert_eq!(user.ikigai(&["run", "hello"]).code, Some(0));

    let mut pty = user.in_terminal(PROGRAM, &[], 120, 30);

    wait_for_status(&mut pty, "$0.50");
    wait_for_status(&mut pty, "% of 295k");
    pty.send("/model mine:large\r");
    wait_for_status(&mut pty, "% of 2.9M");
}

/// Waits for a text in the last row.
///
/// Other rows may have the same text: the footer of a turn and the output of a command.
fn wait_for_status(pty: &mut Pty, text: &str) {
    pty.wait_for(text, |screen| {
        let status = screen.rows(0, 120).last();
        status.is_some_and(|row| row.contains(text))
    });
}

#[test]
fn a_mistyped_level_is_refused_before_anything_is_sent() {
    let user = TestUser::new();
    let server = Server::start([]);
    configure(&user, &server.url(""), "");

    let said = user.ikigai(&["run", "hello", "--model", "mine:small/ultra"]);

    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.err
            .contains("`mine:small` has no thinking level `ultra`"),
        "{}",
        said.err
    );
    assert_eq!(server.received(), []);
    configure(&user, &server.url(""), "");
    let file = user.home().join(".config/ikigai/config.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        text.replace("mine:small\"\n[p", "mine:small/hgh\"\n[p"),
    )
    .unwrap();
    let said = user.ikigai(&["run", "hello"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("no thinking level `hgh`"), "{}", said.err);
}
