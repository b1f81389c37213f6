//! Plain mode in a real terminal: lines that are only appended.

use ikigai_testkit::pty::Pty;
use ikigai_testkit::server::{Script, Server};

use crate::support::{PROGRAM, TestUser};

/// Starts plain mode, and waits until something can be typed.
fn started(user: &TestUser) -> Pty {
    let mut pty = user.in_terminal(PROGRAM, &["--plain"], 100, 50);
    pty.wait_for_text("you: ");
    pty
}

/// Waits until the user is asked for the nth time.
fn wait_for_prompt(pty: &mut Pty, nth: usize) {
    pty.wait_for("the prompt", |screen| {
        screen.contents().matches("you:").count() == nth
    });
}

fn shown(pty: &Pty) -> String {
    String::from_utf8_lossy(pty.output()).into_owned()
}

#[test]
fn plain_mode_appends_lines_with_words_for_signs() {
    let user = TestUser::new();
    std::fs::write(user.home().join("project/main.rs"), "fn main() {}\n").unwrap();
    let mut pty = started(&user);

    pty.send("list the rust files\r");
    pty.wait_for_text("tool glob:");
    pty.wait_for_text("result of glob:");
    pty.wait_for_text("assistant: ");
    wait_for_prompt(&mut pty, 2);
    pty.send("/mark here\r");
    pty.wait_for_text("mark: here");
    wait_for_prompt(&mut pty, 3);
    pty.send("!printf a''b; exit 3\r");
    pty.wait_for_text("exit code 3");
    wait_for_prompt(&mut pty, 4);
    pty.send("/theme dark\r");
    pty.wait_for_text("warning: /theme needs a screen");
    wait_for_prompt(&mut pty, 5);
    pty.send("\x04");
    pty.wait_for_text("Resume with: ikigai --plain --agent project");
    assert!(pty.wait_end().success());

    let shown = shown(&pty);
    assert!(!shown.contains('\x1b'), "{shown:?}");
    assert_eq!(shown.matches("you: ").count(), 5, "{shown}");
    for sign in ["❯", "●", "→", "←", "⚠", "⚑"] {
        assert!(!shown.contains(sign), "{sign} in {shown}");
    }
    assert_eq!(pty.modes(), *pty.modes_at_start());
}

#[test]
fn a_key_is_typed_hidden_in_plain_mode_too() {
    let user = TestUser::new();
    let key = "sk-ant-0123456789abcdefghijkl";
    let server = Server::start([Script::answer(200, &[], r#"{"data":[{"id":"a"}]}"#)]);
    let base = format!("ANTHROPIC_BASE_URL={}", server.url(""));
    let arguments = [base.as_str(), PROGRAM, "--plain"];
    let mut pty = user.in_terminal("env", &arguments, 100, 50);
    pty.wait_for_text("you: ");

    pty.send("/key anthropic\r");
    pty.wait_for_text("API key (hidden): ");
    pty.send("half\x03");
    pty.wait_for_text("Cancelled. Key not saved");
    wait_for_prompt(&mut pty, 2);
    assert_eq!(pty.modes(), *pty.modes_at_start());
    pty.send("/key anthropic\r");
    pty.wait_for("the second question", |screen| {
        screen.contents().matches("API key (hidden):").count() == 2
    });
    pty.send(format!("{key}\r"));
    pty.wait_for_text("accepts the key");
    wait_for_prompt(&mut pty, 3);
    assert_eq!(pty.modes(), *pty.modes_at_start());
    pty.send("\x04");
    assert!(pty.wait_end().success());

    let shown = shown(&pty);
    assert!(
        !shown.contains("sk-ant") && !shown.contains("half"),
        "{shown}"
    );
    let file = user.home().join(".config/ikigai/credentials");
    let kept = std::fs::read_to_string(file).unwrap();
    assert_eq!(kept, format!("anthropic = \"{key}\"\n"));
}

#[test]
fn questions_are_answered_by_number() {
    let user = TestUser::new();
    let mut pty = started(&user);

    pty.send("run `touch made`\r");
    pty.wait_for_text("question: bash in ");
    pty.wait_for_text("answer 1 to 4: ");
    pty.send("yes\r");
    pty.wait_for_text("Type 1, 2, 3 or 4 REASON");
    pty.send("3\r");
    wait_for_prompt(&mut pty, 2);
    assert!(!user.home().join("project/made").exists());
    pty.send("run `touch made`\r");
    // An answer counts only after the question was printed whole.
    pty.wait_for("another question", |screen| {
        screen.contents().matches("answer 1 to 4:").count() == 3
    });
    pty.send("1\r");
    wait_for_prompt(&mut pty, 3);

    assert!(user.home().join("project/made").exists());
}

#[test]
fn ctrl_c_interrupts_and_a_second_one_leaves() {
    let user = TestUser::new();
    let mut pty = started(&user);

    pty.send("run `touch made`\r");
    pty.wait_for_text("answer 1 to 4:");
    pty.send("\x03");
    pty.wait_for_text("Interrupting. Ctrl-C again to quit");
    pty.wait_for_text("interrupted by you");
    wait_for_prompt(&mut pty, 2);
    pty.send("and this is sent\r");
    wait_for_prompt(&mut pty, 3);
    pty.send("\x03");
    pty.wait_for("a warning", |screen| {
        screen.contents().matches("Ctrl-C again to quit").count() == 2
    });
    pty.send("\x03");
    pty.wait_for_text("Everything is saved");

    assert!(pty.wait_end().success());
}

#[test]
fn a_dumb_terminal_is_plain() {
    let user = TestUser::new();
    let arguments = ["TERM=dumb", PROGRAM, "hello"];

    let mut pty = user.in_terminal("env", &arguments, 100, 50);
    pty.wait_for_text("assistant: ");
    pty.send("\x04");
    pty.wait_for_text("Everything is saved");

    assert!(!shown(&pty).contains('\x1b'));
}
