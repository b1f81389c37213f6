//! A home directory with a project, and the built program in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ikigai_testkit::framed_server::{EventStream, FramedServer, Framing};
use ikigai_testkit::pty::{Pty, command};
use ikigai_testkit::stores::{Sample, SampleEngine};
use rustix::process::Pid;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ikigai");
const COLUMNS: u16 = 120;
const ROWS: u16 = 40;

/// A home with a project in it.
pub(crate) struct Home {
    pub(crate) path: PathBuf,
    pub(crate) db: PathBuf,
}

impl Home {
    pub(crate) fn new(under: &Path, name: &str) -> Self {
        let path = under.join(name);
        fs::create_dir_all(path.join("project")).unwrap();
        let db = path.join("ikigai.db");
        Self { path, db }
    }

    /// Creates a home with an existing store; returns it with the store's agent.
    pub(crate) fn with_store(under: &Path, sample: Sample) -> (Self, String) {
        let kept = sample.copy(SampleEngine::Sqlite, "screen");
        let home = Self {
            db: kept.place.clone().into(),
            ..Self::new(under, &sample.to_string())
        };
        (home, kept.agent.to_string())
    }

    /// Starts a model server, and makes it the model of this home.
    pub(crate) fn serve(&self, framing: Framing, stream: EventStream) -> FramedServer {
        let server = FramedServer::start(framing, stream);
        let directory = self.path.join(".config/ikigai");
        fs::create_dir_all(&directory).unwrap();
        let trusted = server.ca_file();
        let trusted = trusted.map(|file| format!("ca_file = \"{}\"\n", file.display()));
        let text = format!(
            "model = \"loopback:small\"\n[providers.loopback]\nbase_url = \"{}\"\n{}",
            server.url(),
            trusted.unwrap_or_default()
        );
        fs::write(directory.join("config.toml"), text).unwrap();
        server
    }

    /// Starts the screen in a pseudoterminal.
    pub(crate) fn show(&self, arguments: &[&str]) -> Pty {
        let mut command = command(PROGRAM);
        self.prepare(&mut command, arguments);
        Pty::start(command, COLUMNS, ROWS)
    }

    /// Returns the program without a terminal.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        self.prepare(&mut command, arguments);
        command
    }

    fn prepare(&self, command: &mut Command, arguments: &[&str]) {
        command
            .arg("--db")
            .arg(&self.db)
            .args(arguments)
            .current_dir(self.path.join("project"))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", &self.path)
            .env("LANG", "C.UTF-8");
    }

    /// Measures the time from start until a letter typed at once is visible.
    pub(crate) fn start(&self, arguments: &[&str]) -> Duration {
        let begun = Instant::now();
        let mut pty = self.show(arguments);
        pty.send("z");
        pty.wait_for("the letter", |screen| screen.contents().contains("❯ z"));
        let took = begun.elapsed();
        // Quit cleanly, so that the next start has nothing to recover.
        pty.send("\x15\x04");
        pty.wait_end();
        took
    }
}

/// Waits until the turn is over: its token usage is shown and nothing runs.
pub(crate) fn wait_for_end(pty: &mut Pty) {
    pty.wait_for("the end of the turn", |screen| {
        let contents = screen.contents();
        contents.contains(" tokens · ") && !contents.contains("Esc to interrupt")
    });
}

/// Returns the resident memory of a process in MB.
pub(crate) fn resident_mb(process: Pid) -> f64 {
    let path = format!("/proc/{}/status", process.as_raw_nonzero());
    let status = fs::read_to_string(path).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kilobytes = line.split_whitespace().nth(1).unwrap();
    kilobytes.parse::<f64>().unwrap() / 1024.0
}

/// Returns the CPU time of a process in seconds.
pub(crate) fn cpu_seconds(process: Pid) -> f64 {
    let path = format!("/proc/{}/stat", process.as_raw_nonzero());
    let stat = fs::read_to_string(path).unwrap();
    let (_, after) = stat.rsplit_once(')').unwrap();
    let fields: Vec<_> = after.split_whitespace().collect();
    let ticks = |index: usize| fields[index].parse::<f64>().unwrap();
    // User and system time, in hundredths of a second.
    (ticks(11) + ticks(12)) / 100.0
}
