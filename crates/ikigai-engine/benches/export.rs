//! Costs of exporting 10⁵ rows as Markdown, HTML and JSON, and of importing the JSON.
//!
//!     cargo bench -p ikigai-engine --bench export
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench is no part of the program: whatever fails ends it, and it prints figures"
)]

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ikigai_engine::export::{Format, Whose};
use ikigai_engine::{Engine, System};
use ikigai_store::portable::RestoreMode;
use ikigai_store::sqlite::SqliteOptions;
use ikigai_store::{Admin, SqliteStore};
use ikigai_testkit::ScriptedProvider;
use ikigai_testkit::stores::{Sample, SampleEngine, StoredSample, directory, this_process};
use tokio::runtime::Builder;

/// Limit of the time ratio for ten times the rows: export reads each row once.
const MOST_RATIO: f64 = 13.0;

/// Limit of the additional memory: rows are read in pages.
const MOST_MB: f64 = 24.0;

fn main() {
    let small = measure(Sample::TEN_THOUSAND);
    let large = measure(Sample::HUNDRED_THOUSAND);
    for (small, large) in small.iter().zip(&large) {
        let ratio = large.time.as_secs_f64() / small.time.as_secs_f64();
        let what = large.what;
        judge(&format!("{what}, 10⁵ rows to 10⁴"), ratio, MOST_RATIO, "×");
        judge(&format!("{what}, memory"), large.peak_mb, MOST_MB, " MB");
    }
}

struct Figure {
    what: &'static str,
    time: Duration,
    peak_mb: f64,
}

fn measure(sample: Sample) -> Vec<Figure> {
    let kept = sample.kept(SampleEngine::Sqlite);
    println!("\nexport of {} rows", sample.rows());
    let mut figures = Vec::new();
    let json = directory().join("exported.json");
    for (what, format) in [
        ("Markdown", Format::Markdown),
        ("HTML", Format::Html),
        ("JSON", Format::Json),
    ] {
        let path = if format == Format::Json {
            json.clone()
        } else {
            PathBuf::from("/dev/null")
        };
        figures.push(figure(what, || export(&kept, format, &path)));
    }
    figures.push(figure("taking the JSON in", || import(&json)));
    fs::remove_file(json).unwrap();
    figures
}

/// Measures `run`, which returns the number of bytes that it wrote or read.
fn figure(what: &'static str, run: impl FnOnce() -> u64) -> Figure {
    let before = forget_peak();
    let begun = Instant::now();
    let bytes = run();
    let time = begun.elapsed();
    let peak_mb = (peak_kb() - before).max(0.0) / 1024.0;
    let (megabytes, ms) = (bytes >> 20, time.as_millis());
    println!("  {what:<20} {ms:>6} ms  {megabytes:>5} MB  {peak_mb:>6.1} MB of memory more");
    Figure {
        what,
        time,
        peak_mb,
    }
}

fn export(kept: &StoredSample, format: Format, path: &Path) -> u64 {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let engine = Engine::new(
        kept.open(),
        Arc::new(System),
        Arc::new(ScriptedProvider::default()),
    );
    let mut out = Counting {
        inner: BufWriter::new(File::create(path).unwrap()),
        bytes: 0,
    };
    let mut progress = |_, _| {};
    let exported = engine.export(Whose::Agent(kept.agent), format, &mut out, &mut progress);
    runtime.block_on(exported).unwrap();
    out.flush().unwrap();
    out.bytes
}

fn import(json: &Path) -> u64 {
    let path = directory().join("imported.db");
    ikigai_testkit::stores::remove_database(&path);
    let store = SqliteStore::open(SqliteOptions::new(&path, this_process())).unwrap();
    let file = File::open(json).unwrap();
    let bytes = file.metadata().unwrap().len();
    let mut lines = BufReader::new(file);
    store.restore(&mut lines, RestoreMode::Merge).unwrap();
    store.close();
    ikigai_testkit::stores::remove_database(&path);
    bytes
}

struct Counting<W> {
    inner: W,
    bytes: u64,
}

impl<W: Write> Write for Counting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Resets the peak of resident memory and returns the current value.
fn forget_peak() -> f64 {
    fs::write("/proc/self/clear_refs", "5").unwrap();
    status_kb("VmRSS:")
}

fn peak_kb() -> f64 {
    status_kb("VmHWM:")
}

fn status_kb(name: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn judge(what: &str, figure: f64, most: f64, unit: &str) {
    let verdict = if figure <= most { "PASS" } else { "over" };
    println!("{verdict}  {what}: {figure:.1}{unit}, at most {most}{unit}");
}
