//! How soon another process sees a commit, and what waiting for one costs it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ikigai_core::Seq;
use ikigai_store::Store;
use ikigai_testkit::stores::rounds::{Case, judge, rounds};
use ikigai_testkit::stores::{Kept, Sample};

use crate::measured::{Appender, World};

const COMMITS: usize = 500;

/// How long the watcher is left alone to see what that costs.
const IDLE: Duration = Duration::from_secs(5);

/// The other process: says which row is the newest, each time that it changes, and how long it was
/// at work when asked by any line.
pub(crate) fn watcher(path: &Path) {
    let kept = Kept {
        path: path.to_owned(),
        ..Sample::THOUSAND.kept()
    };
    let world = World::new(kept);
    let store = world.kept.open();
    let mut watch = store.watch().unwrap();
    thread::spawn(|| {
        for _ in std::io::stdin().lines() {
            tell(&format!("worked {}", worked().as_micros()));
        }
        std::process::exit(0);
    });
    let mut newest = None;
    loop {
        let head = world.runtime.block_on(store.head(world.kept.agent));
        let seq = head.unwrap().map(|head| head.seq);
        if seq != newest {
            newest = seq;
            tell(&seq.unwrap_or_default().to_string());
        }
        world.runtime.block_on(watch.changed());
    }
}

fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}

/// How long all threads of this process were on a processor.
fn worked() -> Duration {
    let threads = fs::read_dir("/proc/self/task").unwrap();
    let nanos = threads.map(|thread| -> u64 {
        let stat = fs::read_to_string(thread.unwrap().path().join("schedstat")).unwrap_or_default();
        let first = stat.split(' ').next().unwrap_or_default();
        first.parse().unwrap_or(0)
    });
    Duration::from_nanos(nanos.sum())
}

/// Measures from the call of a commit until another process says that it has read it.
pub(crate) fn compare() {
    let world = World::new(Sample::THOUSAND.copy("watch"));
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg("watcher")
        .arg(&world.kept.path)
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
    let figures = rounds(
        COMMITS,
        vec![Case::new(&"from commit to seen", || {
            // A commit after a pause, as when people and models write.
            thread::sleep(Duration::from_millis(2));
            let begun = Instant::now();
            let seq = appender.append();
            while line().parse().map(Seq) != Ok(seq) {}
            begun.elapsed()
        })],
    );
    figures.print("another process sees a commit");
    let millis = figures.median(&"from commit to seen").as_secs_f64() * 1e3;
    judge("another process sees a commit after", millis, 5.0, " ms");

    let mut worked = || -> u64 {
        writeln!(asks).unwrap();
        line().trim_start_matches("worked ").parse().unwrap()
    };
    let before = worked();
    thread::sleep(IDLE);
    let spent = worked() - before;
    println!(
        "      idle watcher: {spent} µs of processor time in {} s",
        IDLE.as_secs()
    );
    drop(asks);
    child.wait().unwrap();
    drop(appender);
    world.kept.remove();
}
