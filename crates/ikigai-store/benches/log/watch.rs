//! Latency until another process sees a commit, and the cost of watching.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ikigai_core::{AgentId, Seq};
use ikigai_testkit::stores::rounds::{Case, judge, rounds};
use ikigai_testkit::stores::{Sample, SampleEngine, StoredSample, open_log, this_process};
use tokio::runtime::Builder;

use crate::measured::{Appender, World, event_row};

const COMMITS: usize = 500;

const PAUSED: &str = "after a pause";

/// Pauses between commits: as with users and models, and a burst.
///
/// During a burst the store sends fewer notifications to other processes.
const PAUSE: Duration = Duration::from_millis(30);
const HASTE: Duration = Duration::from_millis(2);

/// Idle time over which the watcher's cost is measured: two heartbeats on a server.
const IDLE: Duration = Duration::from_secs(10);
const COUNTED: Duration = Duration::from_secs(12);

/// The other process: prints the newest row after each change.
///
/// It prints its CPU time for each line of input.
pub(crate) fn watcher(place: &str, agent: AgentId) {
    let runtime = Builder::new_current_thread().build().unwrap();
    let store = open_log(place, this_process()).unwrap();
    let mut watch = store.watch().unwrap();
    thread::spawn(|| {
        for _ in std::io::stdin().lines() {
            tell(&format!("worked {}", worked().as_micros()));
        }
        std::process::exit(0);
    });
    let mut newest = None;
    loop {
        let head = runtime.block_on(store.head(agent));
        let seq = head.unwrap().map(|head| head.seq);
        if seq != newest {
            newest = seq;
            tell(&seq.unwrap_or_default().to_string());
        }
        runtime.block_on(watch.changed());
    }
}

fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}

/// Returns the CPU time of all threads of this process.
fn worked() -> Duration {
    let threads = fs::read_dir("/proc/self/task").unwrap();
    let nanos = threads.map(|thread| -> u64 {
        let stat = fs::read_to_string(thread.unwrap().path().join("schedstat")).unwrap_or_default();
        let first = stat.split(' ').next().unwrap_or_default();
        first.parse().unwrap_or(0)
    });
    Duration::from_nanos(nanos.sum())
}

/// Returns the number of transactions in the database of a store.
fn statements(kept: &StoredSample) -> u64 {
    let told = kept.sql(
        "SELECT xact_commit + xact_rollback FROM pg_stat_database
         WHERE datname = current_database()",
    );
    told[0][0].as_deref().unwrap().parse().unwrap()
}

/// Measures the time from a commit call until another process has read the row.
pub(crate) fn compare(on: SampleEngine) {
    let world = World::new(Sample::THOUSAND.copy(on, "watch"));
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg("watcher")
        .args([&world.kept.place, &world.kept.agent.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut asks = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut line = || lines.next().unwrap().unwrap();
    // Its first line says that it listens.
    line();

    let mut appender = Appender::new(&world);
    let mut seen_after = |pause| {
        thread::sleep(pause);
        let begun = Instant::now();
        let seq = appender.append(event_row(world.kept.agent));
        while line().parse().map(Seq) != Ok(seq) {}
        begun.elapsed()
    };
    for (name, pause, count) in [("in a flood", HASTE, COMMITS), (PAUSED, PAUSE, COMMITS / 5)] {
        let figures = rounds(count, vec![Case::new(&name, || seen_after(pause))]);
        figures.print(&format!("another process sees a commit, {on}"));
        if name == PAUSED {
            let millis = figures.median(&PAUSED).as_secs_f64() * 1e3;
            judge("another process sees a commit after", millis, 5.0, " ms");
        }
    }

    let mut worked = || -> u64 {
        writeln!(asks).unwrap();
        line().trim_start_matches("worked ").parse().unwrap()
    };
    // End the idle work of the appender's store before the measurement.
    drop(appender);
    let statements = || match on {
        SampleEngine::Sqlite => 0,
        SampleEngine::Postgres => statements(&world.kept),
    };
    if on == SampleEngine::Postgres {
        // A server updates its statistics up to ten seconds later.
        thread::sleep(COUNTED);
    }
    // The query itself counts too.
    let cost = statements().abs_diff(statements());
    let before = (worked(), statements());
    thread::sleep(IDLE);
    let spent = worked() - before.0;
    let asked = (statements() - before.1).saturating_sub(cost);
    println!(
        "      idle watcher: {spent} µs of processor time and {asked} statements in {} s",
        IDLE.as_secs()
    );
    drop(asks);
    child.wait().unwrap();
    world.kept.remove();
}
