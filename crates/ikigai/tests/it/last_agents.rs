//! Agent and settings that a start shows.

use rustix::process::Signal;

use crate::control::{ctl, start};
use crate::support::{MockAnswer, Newcomer, PROGRAM};

/// Runs plain mode with empty input; its first lines name the agent.
fn plain(newcomer: &Newcomer, arguments: &[&str]) -> MockAnswer {
    newcomer.ikigai(&[&["--plain"], arguments].concat())
}

#[test]
fn a_start_shows_the_agent_that_was_used_last_also_a_child() {
    let newcomer = Newcomer::new();
    newcomer.ikigai(&["run", "hello"]);
    newcomer.ikigai(&["run", "/fork --name kid"]);

    let forked = plain(&newcomer, &[]).out;
    plain(&newcomer, &["--agent", "kid"]);
    let child = plain(&newcomer, &[]).out;
    newcomer.ikigai(&["run", "--agent", "project", "hello"]);
    let root = plain(&newcomer, &[]).out;
    newcomer.ikigai(&["run", "--agent", "kid", "hello"]);
    let again = plain(&newcomer, &[]).out;
    newcomer.ikigai(&["run", "--agent", "project", "/kill kid"]);
    newcomer.ikigai(&["run", "--agent", "project", "hello"]);
    let killed = plain(&newcomer, &[]).out;

    assert!(forked.contains("agent project in"), "{forked}");
    assert!(child.contains("agent kid in"), "{child}");
    assert!(root.contains("agent project in"), "{root}");
    assert!(again.contains("agent kid in"), "{again}");
    assert!(killed.contains("agent project in"), "{killed}");
}

/// A child that died since it was used is not shown.
#[test]
fn a_start_shows_the_root_when_the_agent_used_last_is_dead() {
    let newcomer = Newcomer::new();
    newcomer.ikigai(&["run", "hello"]);
    newcomer.ikigai(&["run", "/fork --name kid"]);
    newcomer.ikigai(&["run", "--agent", "kid", "hello"]);
    let path = newcomer.home().join(".local/state/ikigai/last-agents");
    let files: Vec<_> = std::fs::read_dir(path).unwrap().collect();
    let kept = files[0].as_ref().unwrap().path();
    let used = std::fs::read(&kept).unwrap();
    newcomer.ikigai(&["run", "--agent", "project", "/kill kid"]);
    std::fs::write(&kept, used).unwrap();

    let shown = plain(&newcomer, &[]).out;

    assert_eq!(files.len(), 1);
    assert!(shown.contains("agent project in"), "{shown}");
}

#[test]
fn continue_needs_an_agent_and_model_and_approval_are_set_at_the_start() {
    let newcomer = Newcomer::new();

    for arguments in [&["-c", "--plain"][..], &["run", "-c", "hello"]] {
        let refused = newcomer.ikigai(arguments);
        assert_eq!(refused.code, Some(4), "{}", refused.err);
        assert!(refused.err.contains("no agent to continue"), "{refused:?}");
    }
    assert_eq!(
        newcomer.ikigai(&["agents"]).out.matches("project").count(),
        0
    );
    let wrong = plain(&newcomer, &["-m", "no-such-model"]);
    assert_eq!(wrong.code, Some(1), "{}", wrong.err);
    plain(&newcomer, &["-m", "demo", "-a", "edits"]);
    plain(&newcomer, &["-c", "-a", "read"]);
    let log = newcomer.ikigai(&["log", "--all", "--json"]).out;
    newcomer.ikigai(&["run", "-c", "-m", "demo", "-a", "all", "hello"]);
    let before_verb = newcomer.ikigai(&["-m", "demo", "run", "hello"]);

    assert!(log.contains("edits for now"), "{log}");
    assert!(log.contains("read for now"), "{log}");
    assert_eq!(before_verb.code, Some(2), "{}", before_verb.err);
}

/// A typed line makes its agent the last used one.
///
/// A start, a switch and `run` do so too; this test uses only typed lines.
#[test]
fn a_line_makes_its_agent_the_one_used_last() {
    let newcomer = Newcomer::new();
    newcomer.ikigai(&["run", "hello"]);
    newcomer.ikigai(&["run", "/fork --name kid"]);
    let program = start(&newcomer, &["--agent", "project"]);

    let before = plain(&newcomer, &[]).out;
    ctl(&newcomer, &["submit", "--agent", "kid", "hello"]);
    let submitted = plain(&newcomer, &[]).out;
    ctl(&newcomer, &["send_keys", "hello\\r"]);
    ctl(&newcomer, &["wait_idle", "60000"]);
    let typed = plain(&newcomer, &[]).out;
    program.end().unwrap();

    assert!(before.contains("agent project in"), "{before}");
    assert!(submitted.contains("agent kid in"), "{submitted}");
    assert!(typed.contains("agent project in"), "{typed}");
}

/// A typed line counts, although another program used another agent after the screen's start.
#[test]
fn a_line_typed_on_an_open_screen_counts_after_another_program_used_another_agent() {
    let newcomer = Newcomer::new();
    newcomer.ikigai(&["run", "hello"]);
    newcomer.ikigai(&["run", "/fork --name kid"]);
    let mut pty = newcomer.in_terminal(PROGRAM, &["--agent", "project"], 80, 24);
    pty.wait_for("the screen", |screen| {
        screen.alternate_screen() && screen.contents().contains('❯')
    });
    newcomer.ikigai(&["run", "--agent", "kid", "hello"]);

    pty.send("/mark here\r");
    pty.wait_for_text("⚑ here");
    pty.signal(Signal::TERM);
    pty.wait_end();

    let shown = plain(&newcomer, &[]).out;
    assert!(shown.contains("agent project in"), "{shown}");
}
