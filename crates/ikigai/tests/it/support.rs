//! An empty home, a working directory, and the program in it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ikigai_testkit::ChosenEngine;
use ikigai_testkit::postgres::LentDatabase;
use ikigai_testkit::pty::{self, Pty};
use tempfile::TempDir;

/// The program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_ikigai");

/// Home directory of a new user, and the store.
pub(crate) struct TestUser {
    home: TempDir,
    /// The log, if it is not in the usual file.
    server: Option<LentDatabase>,
}

/// Output and exit code of a command.
#[derive(Debug)]
pub(crate) struct MockAnswer {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: Option<i32>,
}

/// Login name of every user, and the role of every user of the test server.
const LOGIN: &str = "tester";
const ROLE: &str = "postgres";

impl TestUser {
    /// Creates a user whose log is on the store engine of this test run.
    ///
    /// An environment variable selects the store; nothing else differs.
    pub(crate) fn new() -> Self {
        let mut user = Self::with_file();
        user.server = (ChosenEngine::here() == ChosenEngine::Postgres).then(LentDatabase::take);
        user
    }

    /// Creates a user whose log is in a file, for tests that read the file.
    pub(crate) fn with_file() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("project")).unwrap();
        Self { home, server: None }
    }

    /// Creates a user whose log is on a server.
    pub(crate) fn with_server() -> Self {
        Self {
            server: Some(LentDatabase::take()),
            ..Self::with_file()
        }
    }

    /// Returns the database of the log, if it is on a server.
    pub(crate) fn server(&self) -> Option<&LentDatabase> {
        self.server.as_ref()
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.home().join(".local/share/ikigai/ikigai.db")
    }

    /// Returns the name of this user in the log: the role of the test server, else the login name.
    pub(crate) fn person(&self) -> &'static str {
        if self.server.is_some() { ROLE } else { LOGIN }
    }

    /// Returns the program with these arguments, in the project directory.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).stdin(Stdio::null());
        self.at_home(&mut command);
        command
    }

    /// Sets directory and environment of a command to this user's home alone.
    pub(crate) fn at_home<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let log = self
            .server
            .as_ref()
            .map(|server| ("IKIGAI_DB", server.url()));
        command
            .current_dir(self.home().join("project"))
            .env_clear()
            .env("HOME", self.home())
            .env("LOGNAME", LOGIN)
            .env("TZ", "UTC")
            .envs(coverage_file())
            .envs(log)
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
        self.at_home(command.args(arguments))
            .env("LANG", "C.UTF-8")
            .env("PS1", "$ ");
        Pty::start(command, columns, rows)
    }

    pub(crate) fn ikigai(&self, arguments: &[&str]) -> MockAnswer {
        said(self.command(arguments).output().unwrap())
    }
}

/// The variable with which `scripts/coverage` names the file of a program's counters.
fn coverage_file() -> Option<(&'static str, OsString)> {
    let name = "LLVM_PROFILE_FILE";
    env::var_os(name).map(|file| (name, file))
}

pub(crate) fn said(output: Output) -> MockAnswer {
    MockAnswer {
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code(),
    }
}
