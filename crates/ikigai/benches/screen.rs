//! What the screen costs: until it can be used, in memory, and for what streams in. The built program
//! in a real pseudoterminal; `scripts/bench screen` runs it.
#![expect(clippy::unwrap_used, reason = "a bench that cannot measure fails")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ikigai_testkit::pty::{Pty, command};
use ikigai_testkit::stores::rounds::{Case, judge, rounds};
use ikigai_testkit::stores::{self, On, Sample};
use rustix::process::Pid;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ikigai");
const COLUMNS: u16 = 120;
const ROWS: u16 = 40;

/// How often a start is measured.
const STARTS: usize = 60;

/// How many pieces an answer has that streams in.
const DELTAS: usize = 5_000;

/// How long a program must be left alone before its memory is looked at.
const AFTER_CODE: Duration = Duration::from_secs(31);

fn main() {
    let home = tempfile::tempdir_in(stores::directory()).unwrap();
    starts(home.path());
    memory(home.path());
    streams(home.path());
}

/// A home with a project in it.
struct Home {
    path: PathBuf,
    db: PathBuf,
}

impl Home {
    fn new(under: &Path, name: &str) -> Self {
        let path = under.join(name);
        fs::create_dir_all(path.join("project")).unwrap();
        let db = path.join("ikigai.db");
        Self { path, db }
    }

    /// The same with a store that is there already, and the agent in it.
    fn with_store(under: &Path, sample: Sample) -> (Self, String) {
        let kept = sample.copy(On::Sqlite, "screen");
        let home = Self {
            db: kept.place.clone().into(),
            ..Self::new(under, &sample.to_string())
        };
        (home, kept.agent.to_string())
    }

    fn show(&self, arguments: &[&str]) -> Pty {
        let mut command = command(PROGRAM);
        command
            .arg("--db")
            .arg(&self.db)
            .args(arguments)
            .current_dir(self.path.join("project"))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", &self.path)
            .env("LANG", "C.UTF-8");
        Pty::start(command, COLUMNS, ROWS)
    }

    /// How long it takes until a letter that was typed at once is seen.
    fn start(&self, arguments: &[&str]) -> Duration {
        let begun = Instant::now();
        let mut pty = self.show(arguments);
        pty.send("z");
        pty.wait_for("the letter", |screen| screen.contents().contains("❯ z"));
        let took = begun.elapsed();
        // Left properly, so that the next start finds nothing to mend.
        pty.send("\x15\x04");
        pty.wait_end();
        took
    }
}

fn starts(under: &Path) {
    let empty = Home::new(under, "empty");
    empty.start(&[]);
    let new = Home::new(under, "new");
    let (thousand, in_thousand) = Home::with_store(under, Sample::THOUSAND);
    let (million, in_million) = Home::with_store(under, Sample::MILLION);
    let (bent, in_bent) = Home::with_store(under, Sample::BENT);
    let figures = rounds(
        STARTS,
        vec![
            Case::new(&"empty", || empty.start(&[])),
            Case::new(&"new store", || {
                let _ = fs::remove_file(&new.db);
                new.start(&[])
            }),
            Case::new(&"10³", || thousand.start(&["--agent", &in_thousand])),
            Case::new(&"10⁶", || million.start(&["--agent", &in_million])),
            Case::new(&"10⁶ bent", || bent.start(&["--agent", &in_bent])),
        ],
    );
    figures.print("start to a typed letter on the screen");
    let milliseconds = |name: &str| figures.median(&name).as_secs_f64() * 1e3;
    judge(
        "start to a usable frame, empty",
        milliseconds("empty"),
        10.0,
        " ms",
    );
    judge(
        "start, creating the store",
        milliseconds("new store"),
        15.0,
        " ms",
    );
    figures.judge("start", &"10⁶", &"10³", 1.2);
    figures.judge("start", &"10⁶ bent", &"10³", 1.5);
    for (home, agent) in [
        (million, in_million),
        (bent, in_bent),
        (thousand, in_thousand),
    ] {
        let mut pty = home.show(&["--agent", &agent]);
        pty.wait_for_text("❯");
        judge_memory("resident memory, idle", &home.path, &pty);
    }
}

fn judge_memory(what: &str, name: &Path, pty: &Pty) {
    let name = name.file_name().unwrap_or_default().to_string_lossy();
    judge(
        &format!("{what}, {name}"),
        resident_mb(pty.pid()),
        15.0,
        " MB",
    );
}

/// Memory after code was highlighted and nothing happened for a while.
fn memory(under: &Path) {
    let home = Home::new(under, "code");
    let code = "fn main() { let answer = '4'; /* why */ println!(answer, 42); }\\n".repeat(50);
    let pieces = vec![format!("```rust\\n{code}```\\n")];
    let address = serve(pieces, Duration::ZERO);
    configure(&home, &address);
    let mut pty = home.show(&["show some code"]);
    wait_for_end(&mut pty);
    judge_memory("resident memory after highlighted code", &home.path, &pty);
    pty.listen(AFTER_CODE);
    judge_memory("resident memory half a minute later", &home.path, &pty);
}

/// What an answer in many pieces costs: processor time of the whole program, and bytes.
fn streams(under: &Path) {
    let paces = [
        ("as a burst", Duration::ZERO, 0.05, 100.0),
        ("at 1,000 a second", Duration::from_millis(1), 0.20, 500.0),
    ];
    for (pace, pause, seconds, kilobytes) in paces {
        let home = Home::new(under, pace);
        let address = serve(deltas(), pause);
        configure(&home, &address);
        let mut pty = home.show(&[]);
        pty.wait_for_text("❯");
        pty.listen(Duration::from_millis(500));
        let (cpu, bytes) = (cpu_seconds(pty.pid()), pty.output().len());
        pty.send("go\r");
        wait_for_end(&mut pty);
        let used = cpu_seconds(pty.pid()) - cpu;
        let written = pty.output().len() - bytes;
        let what = format!("{DELTAS} deltas {pace}");
        judge(&format!("{what}, processor time"), used, seconds, " s");
        judge(&format!("{what}, written"), kilo(written), kilobytes, " KB");
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn kilo(bytes: usize) -> f64 {
    bytes as f64 / 1024.0
}

/// Waits until the turn is over: what it used is told, and nothing goes on.
fn wait_for_end(pty: &mut Pty) {
    pty.wait_for("the end of the turn", |screen| {
        let contents = screen.contents();
        contents.contains(" tokens · ") && !contents.contains("Esc to interrupt")
    });
}

/// Markdown in small pieces: paragraphs, lists, some code.
fn deltas() -> Vec<String> {
    let words = ["some ", "words ", "of ", "an ", "answer "];
    let piece = |index: usize| match index % 100 {
        0 => "\\n\\n## Part\\n\\n".to_owned(),
        40 => "\\n\\n- a point\\n- **another** one\\n\\n".to_owned(),
        70 => "\\n\\n```rust\\nlet x = 1;\\n```\\n\\n".to_owned(),
        _ => words[index % words.len()].to_owned(),
    };
    (0..DELTAS).map(piece).collect()
}

fn configure(home: &Home, address: &str) {
    let directory = home.path.join(".config/ikigai");
    fs::create_dir_all(&directory).unwrap();
    let text =
        format!("model = \"loopback:small\"\n[providers.loopback]\nbase_url = \"{address}\"\n");
    fs::write(directory.join("config.toml"), text).unwrap();
}

/// A server that answers every request with these pieces, one event each.
fn serve(pieces: Vec<String>, pause: Duration) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            // A client that is gone needs no answer.
            let _ = connection.and_then(|stream| answer(stream, &pieces, pause));
        }
    });
    address
}

fn answer(mut stream: TcpStream, pieces: &[String], pause: Duration) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let length = head.split("content-length:").nth(1).and_then(|rest| {
        let line = rest.lines().next()?;
        line.trim().parse::<u64>().ok()
    });
    std::io::copy(
        &mut (&stream).take(length.unwrap_or(0)),
        &mut std::io::sink(),
    )?;
    stream.set_nodelay(true)?;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes())?;
    let begun = Instant::now();
    let mut due = Duration::ZERO;
    for piece in pieces {
        let event = format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{piece}\"}}}}]}}\n\n"
        );
        stream.write_all(event.as_bytes())?;
        due += pause;
        std::thread::sleep(due.saturating_sub(begun.elapsed()));
    }
    let end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\
        \"usage\":{\"prompt_tokens\":40,\"completion_tokens\":5000,\"total_tokens\":5040}}\n\n\
        data: [DONE]\n\n";
    stream.write_all(end.as_bytes())
}

/// How much memory of a process is in use, in MB.
fn resident_mb(process: Pid) -> f64 {
    let path = format!("/proc/{}/status", process.as_raw_nonzero());
    let status = fs::read_to_string(path).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kilobytes = line.split_whitespace().nth(1).unwrap();
    kilobytes.parse::<f64>().unwrap() / 1024.0
}

/// How much processor time a process has used, in seconds.
fn cpu_seconds(process: Pid) -> f64 {
    let path = format!("/proc/{}/stat", process.as_raw_nonzero());
    let stat = fs::read_to_string(path).unwrap();
    let (_, after) = stat.rsplit_once(')').unwrap();
    let fields: Vec<_> = after.split_whitespace().collect();
    let ticks = |index: usize| fields[index].parse::<f64>().unwrap();
    // User and system time, in hundredths of a second.
    (ticks(11) + ticks(12)) / 100.0
}
