//! Time until the screen can be used, and memory.

use std::fs;
use std::path::Path;
use std::time::Duration;

use ikigai_testkit::framed_server::{EventStream, Framing};
use ikigai_testkit::pty::Pty;
use ikigai_testkit::stores::Sample;
use ikigai_testkit::stores::rounds::{Case, judge, rounds};

use crate::home::{Home, resident_mb, wait_for_end};
use crate::streams::chat_events;

/// Rounds of each start.
const STARTS: usize = 60;

/// Budget of the idle screen; `scripts/bench` has the same for one-shot runs.
const MEMORY_BUDGET_MB: f64 = 16.0;

/// Time without input before memory is measured again.
const AFTER_CODE: Duration = Duration::from_secs(31);

pub(crate) fn starts(under: &Path) {
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
        MEMORY_BUDGET_MB,
        " MB",
    );
}

/// Memory after code was highlighted and nothing happened for a while.
pub(crate) fn memory(under: &Path) {
    let home = Home::new(under, "code");
    let code = "fn main() { let answer = '4'; /* why */ println!(answer, 42); }\\n".repeat(50);
    let pieces = vec![format!("```rust\\n{code}```\\n")];
    let stream = EventStream {
        events: chat_events(&pieces),
        interval: Duration::ZERO,
    };
    let _server = home.serve(Framing::Chunks, stream);
    let mut pty = home.show(&["show some code"]);
    wait_for_end(&mut pty);
    judge_memory("resident memory after highlighted code", &home.path, &pty);
    pty.listen(AFTER_CODE);
    judge_memory("resident memory half a minute later", &home.path, &pty);
}
