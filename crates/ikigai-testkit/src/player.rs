//! A second process of the test program, with a part in a test.

use std::env;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

/// Environment variable with the part of a child process.
const PART: &str = "IKIGAI_TEST_PART";

/// Prefix of a player's messages: the test harness writes into the same pipe.
const REPORT: &str = "\u{1}report ";

/// Returns the part of this process in another process's test, split at spaces.
pub fn part() -> Option<Vec<String>> {
    let part = env::var(PART).ok()?;
    Some(part.split(' ').map(str::to_owned).collect())
}

/// Copies this test program to `to`, where another user can start it.
///
/// Another process writes the copy: a descriptor of this process would pass to processes that other
/// threads start, and a program that is open for writing cannot be started.
pub fn copy_program(to: &Path) {
    let program = env::current_exe().unwrap();
    let copied = Command::new("cp").arg("-p").arg(program).arg(to).status();
    assert!(copied.unwrap().success(), "cp to {}", to.display());
}

/// Sends a message to the parent in one write.
pub fn tell(what: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{REPORT}{what}\n").as_bytes())
        .unwrap();
    out.flush().unwrap();
}

/// Waits until the parent closes its end, or dies.
pub fn wait_for_parent() {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Another process of this program that plays a part; it ends with the test.
#[derive(Debug)]
pub struct Player {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Player {
    /// Starts the ignored test `name`, which reads its part.
    pub fn start(name: &str, part: &str) -> Self {
        Self::run(Command::new(env::current_exe().unwrap()), name, part)
    }

    /// Starts it with a command of the caller.
    pub fn run(mut command: Command, name: &str, part: &str) -> Self {
        let mut child = command
            .args([name, "--exact", "--ignored", "--nocapture"])
            .env(PART, part)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the test program starts again");
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns its next message, or none if it has ended.
    pub fn hear(&mut self) -> Option<String> {
        loop {
            let line = self.lines.next()?.ok()?;
            if let Some((_, told)) = line.split_once(REPORT) {
                return Some(told.to_owned());
            }
        }
    }

    /// Kills it without warning and returns its remaining messages.
    pub fn kill(&mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::iter::from_fn(|| self.hear()).collect()
    }

    /// Waits for its end, successful or not; returns its messages and status.
    pub fn end(mut self) -> (Vec<String>, ExitStatus) {
        drop(self.child.stdin.take());
        let told = std::iter::from_fn(|| self.hear()).collect();
        (told, self.child.wait().unwrap())
    }

    /// Waits for its end and asserts success.
    pub fn finish(self) -> Vec<String> {
        let (told, status) = self.end();
        assert!(status.success(), "the other process failed: {status}");
        told
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
