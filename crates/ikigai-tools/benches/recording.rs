//! Time that the recording of changed files adds to a command, as a ratio in one run.
//!
//!     cargo bench -p ikigai-tools --bench recording
#![expect(
    clippy::unwrap_used,
    reason = "a bench is no part of the program: whatever fails ends it"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ikigai_testkit::stores::rounds::{Case, judge, rounds};
use ikigai_tools::file_history::{RecordingPlan, collect};
use ikigai_tools::process::{ChildEnvironment, Errors, Job, run};
use ikigai_tools::sandbox::{in_force, usual};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

/// Builds take long, so few rounds have to do.
const ROUNDS: usize = 5;

/// Packages and files in each, as `npm install` unpacks them.
const PACKAGES: usize = 500;
const FILES: usize = 40;

/// Files of a large tree, of which a command changes one.
const TREE_FILES: usize = 100_000;

fn main() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    in_force();
    let place = tempfile::tempdir().unwrap();
    compare(
        &runtime,
        place.path(),
        "build of ikigai-core",
        &build(),
        1.15,
    );
    compare(
        &runtime,
        place.path(),
        "unpacked packages",
        &unpack(place.path()),
        1.15,
    );
    large_tree(&runtime, place.path());
}

/// Command that builds our core crate from the beginning.
fn build() -> String {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../ikigai-core/Cargo.toml");
    format!(
        "rm -rf target; CARGO_TARGET_DIR=target cargo build -q --offline --manifest-path {manifest}"
    )
}

/// Command that unpacks packages into an ignored directory.
fn unpack(place: &Path) -> String {
    let source = place.join("source");
    for package in 0..PACKAGES {
        let directory = source.join(format!("node_modules/package-{package}"));
        fs::create_dir_all(&directory).unwrap();
        for file in 0..FILES {
            fs::write(directory.join(format!("{file}.js")), "module.exports = 1\n").unwrap();
        }
    }
    let archive = place.join("packages.tar");
    let status = std::process::Command::new("tar")
        .args([
            "cf".as_ref(),
            archive.as_os_str(),
            "-C".as_ref(),
            source.as_os_str(),
        ])
        .arg("node_modules")
        .status();
    assert!(status.unwrap().success());
    format!("rm -rf node_modules; tar xf {}", archive.display())
}

fn compare(runtime: &Runtime, place: &Path, what: &'static str, line: &str, most: f64) {
    let work = place.join("work");
    fs::create_dir_all(&work).unwrap();
    fs::write(work.join(".gitignore"), "/target\n/node_modules\n").unwrap();
    let recordings = place.join("recordings");
    let figures = rounds(
        ROUNDS,
        vec![
            Case::new(&"not recorded", || timed(runtime, &work, line, None)),
            Case::new(&"recorded", || {
                let _ = fs::remove_dir_all(&recordings);
                timed(runtime, &work, line, Some(&recordings))
            }),
        ],
    );
    figures.print(what);
    let median = |name| figures.median(&name).as_secs_f64();
    judge(what, median("recorded") / median("not recorded"), most, "×");
}

/// A command in a large tree costs no more than in an empty one.
fn large_tree(runtime: &Runtime, place: &Path) {
    let (large, small) = (place.join("large"), place.join("small"));
    for number in 0..TREE_FILES {
        let directory = large.join(format!("{}", number % 1000));
        if number < 1000 {
            fs::create_dir_all(&directory).unwrap();
        }
        fs::write(directory.join(format!("{number}")), "x").unwrap();
    }
    fs::create_dir_all(&small).unwrap();
    let recordings = place.join("recordings");
    let line = "echo changed > file";
    let timed_in = |work: &Path| {
        let _ = fs::remove_dir_all(&recordings);
        timed(runtime, work, line, Some(&recordings))
    };
    let figures = rounds(
        50,
        vec![
            Case::new(&"small tree", || timed_in(&small)),
            Case::new(&"100,000 files", || timed_in(&large)),
        ],
    );
    figures.print("one change");
    let median = |name| figures.median(&name).as_secs_f64();
    judge(
        "large tree",
        median("100,000 files") / median("small tree"),
        1.2,
        "×",
    );
}

fn timed(runtime: &Runtime, work: &Path, line: &str, recording: Option<&PathBuf>) -> Duration {
    let begun = Instant::now();
    let job = Job {
        program: "bash".into(),
        arguments: vec!["-c".into(), line.into()],
        workdir: work.to_path_buf(),
        variables: ChildEnvironment::default().variables(),
        input: None,
        errors: Errors::Together,
        most_bytes: 1 << 20,
        deadline: Duration::from_mins(10),
        cookie: "bench-recording".to_owned(),
        confinement: usual(work, false, Arc::default()),
        recording: recording.map(|directory| RecordingPlan {
            directory: directory.clone(),
            roots: vec![work.to_path_buf()],
        }),
    };
    let stop = CancellationToken::new();
    let ended = runtime.block_on(run(job, &stop, Arc::new(|_: &str| {})));
    let output = ended.unwrap().output;
    assert!(output.is_empty(), "{}", String::from_utf8_lossy(&output));
    if let Some(directory) = recording {
        let changes = collect(directory).unwrap();
        assert!(!changes.is_empty());
    }
    begun.elapsed()
}
