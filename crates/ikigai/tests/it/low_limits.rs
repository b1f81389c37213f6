//! Low limits of file descriptors: errors, no panics, and a restored terminal.

use std::process::Command;

use crate::support::{PROGRAM, TestUser, said};

const LIMITS: [u32; 12] = [4, 6, 8, 9, 10, 11, 12, 16, 24, 40, 46, 64];

/// Runs the program with a limit on open files.
fn limited(user: &TestUser, limit: u32, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    let line = format!("ulimit -n {limit}; exec \"$0\" \"$@\"");
    command.args(["-c", &line, PROGRAM]).args(arguments);
    user.at_home(&mut command);
    command.stdin(std::process::Stdio::null());
    command
}

#[test]
fn running_out_of_descriptors_is_an_error_and_no_panic() {
    let user = TestUser::new();
    user.ikigai(&["run", "hello"]);
    let commands: [&[&str]; 8] = [
        &["run", "hello"],
        &["run", "!echo shell"],
        &["run", "--approve", "all", "run `echo tool`"],
        &["--plain"],
        &["--headless", "--until-idle"],
        &["log"],
        &["doctor"],
        &["sql", "SELECT 1"],
    ];
    for limit in LIMITS {
        for arguments in commands {
            let said = said(limited(&user, limit, arguments).output().unwrap());

            let case = format!("{limit}: {arguments:?}: {said:?}");
            assert!(!said.err.contains("panicked"), "{case}");
            assert!(said.code.is_some_and(|code| code < 100), "{case}");
            // If no file can be opened, not even the program's libraries load.
            let is_told = said.err.contains("error") || said.out.contains('✗');
            assert!(said.code == Some(0) || is_told, "{case}");
        }
    }
    let after = user.ikigai(&["run", "hello"]);
    assert_eq!(after.code, Some(0), "{}", after.err);
}

#[test]
fn a_screen_without_descriptors_gives_the_terminal_back() {
    let user = TestUser::new();
    user.ikigai(&["run", "hello"]);
    for limit in [8, 16, 40, 44, 46, 48, 52, 64] {
        let line = format!("ulimit -n {limit}; exec \"$0\"");
        let mut pty = user.in_terminal("sh", &["-c", &line, PROGRAM], 100, 30);

        pty.wait_for("a screen or an error", |screen| {
            let is_screen = screen.alternate_screen() && screen.contents().contains('❯');
            is_screen || screen.contents().contains("error")
        });
        pty.send("/mark x\r\x04\x04");
        pty.wait_end();

        let output = String::from_utf8_lossy(pty.output()).into_owned();
        assert!(!output.contains("panicked"), "{limit}: {output}");
        assert_eq!(pty.modes(), *pty.modes_at_start(), "{limit}");
        assert!(!pty.screen().alternate_screen(), "{limit}");
    }
}
