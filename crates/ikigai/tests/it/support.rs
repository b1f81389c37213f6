//! An empty home, a working directory, and the program in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ikigai_testkit::pty::{self, Pty};
use tempfile::TempDir;

/// The program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_ikigai");

/// Somebody who has just installed ikigai.
pub(crate) struct Newcomer {
    home: TempDir,
}

/// What a command printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: Option<i32>,
}

impl Newcomer {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("project")).unwrap();
        Self { home }
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.home().join(".local/share/ikigai/ikigai.db")
    }

    /// The program with these arguments, in the project directory.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .args(arguments)
            .current_dir(self.home().join("project"))
            .env_clear()
            .env("HOME", self.home())
            .env("TZ", "UTC")
            .stdin(Stdio::null());
        command
    }

    /// Starts a program in a terminal, in the project directory.
    pub(crate) fn in_terminal(
        &self,
        program: &str,
        arguments: &[&str],
        columns: u16,
        rows: u16,
    ) -> Pty {
        let mut command = pty::command(program);
        command
            .args(arguments)
            .current_dir(self.home().join("project"))
            .env_clear()
            .env("HOME", self.home())
            .env("TZ", "UTC")
            .env("LANG", "C.UTF-8")
            .env("PS1", "$ ");
        Pty::start(command, columns, rows)
    }

    pub(crate) fn ikigai(&self, arguments: &[&str]) -> Said {
        said(self.command(arguments).output().unwrap())
    }
}

pub(crate) fn said(output: Output) -> Said {
    Said {
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code(),
    }
}
