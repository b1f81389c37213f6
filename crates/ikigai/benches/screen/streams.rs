//! Answers in many pieces: time from the last byte sent to the last word shown, and CPU.

use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use ikigai_testkit::framed_server::{EventStream, FramedServer, Framing};
use ikigai_testkit::stores::rounds::judge;
use rustix::process::Pid;

use crate::home::{Home, cpu_seconds, wait_for_end};

/// Pieces of an answer.
const DELTAS: usize = 5_000;

/// Answers of each kind; the median is judged.
const ANSWERS: usize = 5;

/// The last word of every answer.
const LAST: &str = "theverylastword";

/// Time between pieces, and the budgets: milliseconds until the last word and of CPU, kilobytes.
struct Pace {
    name: &'static str,
    interval: Duration,
    latency: f64,
    cpu: f64,
    written: f64,
}

const PACES: [Pace; 2] = [
    Pace {
        name: "as a burst",
        interval: Duration::ZERO,
        latency: 150.0,
        cpu: 100.0,
        written: 100.0,
    },
    Pace {
        name: "at 1,000 a second",
        interval: Duration::from_millis(1),
        latency: 30.0,
        cpu: 300.0,
        written: 500.0,
    },
];

const FRAMINGS: [(&str, Framing); 2] = [
    ("HTTP/1.1 chunks", Framing::Chunks),
    ("HTTP/2 frames", Framing::Http2Frames),
];

/// Figures of one answer.
struct Figures {
    latency: f64,
    cpu: f64,
    written: f64,
}

pub(crate) fn streams(under: &Path) {
    for (framing_name, framing) in FRAMINGS {
        for pace in PACES {
            let what = format!("{DELTAS} deltas {}, {framing_name}", pace.name);
            let home = Home::new(under, &what.replace(['/', ',', ' '], "-"));
            let stream = EventStream {
                events: chat_events(&deltas()),
                interval: pace.interval,
            };
            let server = home.serve(framing, stream);
            let on_screen: Vec<_> = (0..ANSWERS).map(|_| screen(&home, &server)).collect();
            report(&format!("{what}, screen"), &pace, &on_screen);
            judge(
                &format!("{what}, screen, written"),
                median(on_screen.iter().map(|figures| figures.written)),
                pace.written,
                " KB",
            );
            let in_run: Vec<_> = (0..ANSWERS).map(|_| run(&home, &server)).collect();
            report(&format!("{what}, run"), &pace, &in_run);
        }
    }
}

fn report(what: &str, pace: &Pace, figures: &[Figures]) {
    let latency = median(figures.iter().map(|figures| figures.latency));
    let slowest = figures
        .iter()
        .map(|figures| figures.latency)
        .fold(0.0, f64::max);
    let cpu = median(figures.iter().map(|figures| figures.cpu));
    judge(
        &format!("{what}, last byte to last word (slowest {slowest:.1} ms)"),
        latency,
        pace.latency,
        " ms",
    );
    judge(&format!("{what}, CPU"), cpu, pace.cpu, " ms");
}

fn screen(home: &Home, server: &FramedServer) -> Figures {
    let mut pty = home.show(&["--new"]);
    pty.wait_for_text("❯");
    pty.listen(Duration::from_millis(500));
    let (cpu, bytes) = (cpu_seconds(pty.pid()), pty.output().len());
    pty.send("go\r");
    pty.wait_for_text(LAST);
    let shown = Instant::now();
    let latency = shown.duration_since(server.await_sent()).as_secs_f64() * 1e3;
    wait_for_end(&mut pty);
    Figures {
        latency,
        cpu: (cpu_seconds(pty.pid()) - cpu) * 1e3,
        written: kilo(pty.output().len() - bytes),
    }
}

/// `run`, with its answer read from a pipe. CPU includes the start of the program.
fn run(home: &Home, server: &FramedServer) -> Figures {
    let mut child = home
        .command(&["run", "go"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut text = Vec::new();
    let mut part = vec![0; 64 << 10];
    while !text.ends_with(LAST.as_bytes()) && !text.trim_ascii_end().ends_with(LAST.as_bytes()) {
        let count = output.read(&mut part).unwrap();
        assert_ne!(count, 0, "the answer has its last word");
        text.extend(&part[..count]);
    }
    let shown = Instant::now();
    let latency = shown.duration_since(server.await_sent()).as_secs_f64() * 1e3;
    std::io::copy(&mut output, &mut std::io::sink()).unwrap();
    let pid = Pid::from_child(&child);
    // An ended process can be read until it is waited for.
    let cpu = cpu_seconds(pid) * 1e3;
    assert!(child.wait().unwrap().success());
    Figures {
        latency,
        cpu,
        written: kilo(text.len()),
    }
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<_> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn kilo(bytes: usize) -> f64 {
    bytes as f64 / 1024.0
}

/// Markdown in small pieces: paragraphs, lists, some code.
fn deltas() -> Vec<String> {
    let words = ["some ", "words ", "of ", "an ", "answer "];
    let piece = |index: usize| match index % 100 {
        _ if index + 1 == DELTAS => format!("\\n\\n{LAST}"),
        0 => "\\n\\n## Part\\n\\n".to_owned(),
        40 => "\\n\\n- a point\\n- **another** one\\n\\n".to_owned(),
        70 => "\\n\\n```rust\\nlet x = 1;\\n```\\n\\n".to_owned(),
        _ => words[index % words.len()].to_owned(),
    };
    (0..DELTAS).map(piece).collect()
}

/// Returns an answer of Chat Completions, one event for each piece of JSON text.
pub(crate) fn chat_events(pieces: &[String]) -> Vec<String> {
    let event = |piece: &String| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{piece}\"}}}}]}}\n\n")
    };
    let end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\
        \"usage\":{\"prompt_tokens\":40,\"completion_tokens\":5000,\"total_tokens\":5040}}\n\n";
    let mut events: Vec<_> = pieces.iter().map(event).collect();
    events.extend([end.to_owned(), "data: [DONE]\n\n".to_owned()]);
    events
}
