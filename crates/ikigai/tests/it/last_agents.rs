//! Agent and settings that a start shows.

use rustix::process::Signal;

use crate::control::{ctl, start};
use crate::support::{MockAnswer, PROGRAM, TestUser};

/// Runs plain mode with empty input; its first lines name the agent.
fn plain(user: &TestUser, arguments: &[&str]) -> MockAnswer {
    user.ikigai(&[&["--plain"], arguments].concat())
}

#[test]
fn a_start_shows_the_agent_that_was_used_last_also_a_child() {
    let user = TestUser::new();
    user.ikigai(&["run", "hello"]);
    user.ikigai(&["run", "/fork --name kid"]);

    let forked = plain(&user, &[]).out;
    plain(&user, &["--agent", "kid"]);
    let child = plain(&user, &[]).out;
    user.ikigai(&["run", "--agent", "project", "hello"]);
    let root = plain(&user, &[]).out;
    user.ikigai(&["run", "--agent", "kid", "hello"]);
    let again = plain(&user, &[]).out;
    user.ikigai(&["run", "--agent", "project", "/kill kid"]);
    user.ikigai(&["run", "--agent", "project", "hello"]);
    let killed = plain(&user, &[]).out;

    assert!(forked.contains("agent project in"), "{forked}");
    assert!(child.contains("agent kid in"), "{child}");
    assert!(root.contains("agent project in"), "{root}");
    assert!(again.contains("agent kid in"), "{again}");
    assert!(killed.contains("agent project in"), "{killed}");
}

/// A child that died since it was used is not shown.
#[test]
fn a_start_shows_the_root_when_the_agent_used_last_is_dead() {
    let user = TestUser::new();
    user.ikigai(&["run", "hello"]);
    user.ikigai(&["run", "/fork --name kid"]);
    user.ikigai(&["run", "--agent", "kid", "hello"]);
    let path = user.home().join(".local/state/ikigai/last-agents");
    let files: Vec<_> = std::fs::read_dir(path).unwrap().collect();
    let kept = files[0].as_ref().unwrap().path();
    let stored = std::fs::read(&kept).unwrap();
    user.ikigai(&["run", "--agent", "project", "/kill kid"]);
    std::fs::write(&kept, stored).unwrap();

    let shown = plain(&user, &[]).out;

    assert_eq!(files.len(), 1);
    assert!(shown.contains("agent project in"), "{shown}");
}

#[test]
fn continue_needs_an_agent_and_model_and_approval_are_set_at_the_start() {
    let user = TestUser::new();

    for arguments in [&["-c", "--plain"][..], &["run", "-c", "hello"]] {
        let refused = user.ikigai(arguments);
        assert_eq!(refused.code, Some(4), "{}", refused.err);
        assert!(refused.err.contains("no agent to continue"), "{refused:?}");
    }
    assert_eq!(user.ikigai(&["agents"]).out.matches("project").count(), 0);
    let wrong = plain(&user, &["-m", "no-such-model"]);
    assert_eq!(wrong.code, Some(1), "{}", wrong.err);
    plain(&user, &["-m", "demo", "-a", "edits"]);
    plain(&user, &["-c", "-a", "read"]);
    let log = user.ikigai(&["log", "--all", "--json"]).out;
    user.ikigai(&["run", "-c", "-m", "demo", "-a", "all", "hello"]);
    let before_verb = user.ikigai(&["-m", "demo", "run", "hello"]);

    assert!(log.contains("edits for now"), "{log}");
    assert!(log.contains("read for now"), "{log}");
    assert_eq!(before_verb.code, Some(2), "{}", before_verb.err);
}

/// A typed line makes its agent the last used one.
///
/// A start, a switch and `run` do so too; this test uses only typed lines.
#[test]
fn a_line_makes_its_agent_the_one_used_last() {
    let user = TestUser::new();
    user.ikigai(&["run", "hello"]);
    user.ikigai(&["run", "/fork --name kid"]);
    let program = start(&user, &["--agent", "project"]);

    let before = plain(&user, &[]).out;
    ctl(&user, &["submit", "--agent", "kid", "hello"]);
    let submitted = plain(&user, &[]).out;
    ctl(&user, &["send_keys", "hello\\r"]);
    ctl(&user, &["wait_idle", "60000"]);
    let typed = plain(&user, &[]).out;
    program.end().unwrap();

    assert!(before.contains("agent project in"), "{before}");
    assert!(submitted.contains("agent kid in"), "{submitted}");
    assert!(typed.contains("agent project in"), "{typed}");
}

/// A typed line counts, although another program used another agent after the screen's start.
#[test]
fn a_line_typed_on_an_open_screen_counts_after_another_program_used_another_agent() {
    let user = TestUser::new();
    user.ikigai(&["run", "hello"]);
    user.ikigai(&["run", "/fork --name kid"]);
    let mut pty = user.in_terminal(PROGRAM, &["--agent", "project"], 80, 24);
    pty.wait_for("the screen", |screen| {
        screen.alternate_screen() && screen.contents().contains('❯')
    });
    user.ikigai(&["run", "--agent", "kid", "hello"]);

    pty.send("/mark here\r");
    pty.wait_for_text("⚑ here");
    pty.signal(Signal::TERM);
    pty.wait_end();

    let shown = plain(&user, &[]).out;
    assert!(shown.contains("agent project in"), "{shown}");
}
