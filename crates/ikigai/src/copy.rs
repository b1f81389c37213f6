//! `ikigai copy`: copies a store into an empty one, and compares both.

use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::thread;

use anyhow::{Context, Result};
use ikigai_store::StoreError;
use ikigai_store::portable::{RestoreError, RestoreMode};
use ikigai_store::tally::LogTally;
use tokio::sync::mpsc;

use crate::arguments::{CopyOrder, exit};
use crate::context::this_process;
use crate::output::{print, print_stderr};
use crate::runtime::runtime;
use crate::store::{AnyStore, StoreUse};
use crate::store_location::{self, StoreLocation};

/// Most lines in the channel.
const LINES: usize = 256;

/// Rows between two progress reports.
const PROGRESS_ROWS: u64 = 1000;

pub(crate) fn copy(order: &CopyOrder) -> Result<ExitCode> {
    let (from, to) = (
        store_location::parse(&order.from)?,
        store_location::parse(&order.to)?,
    );
    if from.to_string() == to.to_string() {
        print_stderr("error: --from and --to are the same database\nhint: choose another --to");
        return Ok(exit::USAGE.into());
    }
    // Opening a missing store would create it.
    if from.file().is_some_and(|path| !path.exists()) {
        print_stderr(&format!("error: no database at {from}"));
        return Ok(exit::STORE.into());
    }
    let source = AnyStore::open(&from, this_process(None), StoreUse::Reading)?;
    let was_there = to.file().is_none_or(Path::exists);
    let target = AnyStore::open(&to, this_process(None), StoreUse::Work)?;
    let copied = carry_over(&source, &target);
    target.close();
    source.close();
    if copied.is_err() && !was_there {
        remove_new(&to);
    }
    let refused = match copied? {
        Ok(tally) => {
            print(&format!(
                "Copied and verified: {tally}\nDigest of both: {}\n",
                tally.digest()
            ))?;
            return Ok(ExitCode::SUCCESS);
        }
        Err(refused) => refused,
    };
    if !was_there {
        remove_new(&to);
    }
    match refused {
        RestoreError::NotEmpty => {
            print_stderr(&format!("error: {to} is not empty"));
            print_stderr("hint: nothing was changed; choose an empty or new database");
            Ok(exit::STORE.into())
        }
        RestoreError::Store(error) => Err(error.into()),
        refused => Err(refused).context("nothing was copied"),
    }
}

/// Removes the files that were created for the copy.
fn remove_new(place: &StoreLocation) {
    for path in place.file().into_iter().flat_map(crate::tools::files_of) {
        let _ = std::fs::remove_file(&path);
        let _ = std::fs::remove_dir_all(&path);
    }
}

/// Copies everything and compares it. A failed copy leaves the target empty.
fn carry_over(source: &AnyStore, target: &AnyStore) -> Result<Result<LogTally, RestoreError>> {
    let runtime = runtime()?;
    let (from, to) = (source.log(), target.log());
    let all = runtime.block_on(from.agents(None))?;
    let all = all.iter().map(|agent| agent.head.0).sum();
    let (sender, lines) = mpsc::channel(LINES);
    let mut pipe = Pipe {
        lines,
        line: String::new(),
        read: 0,
        tally: LogTally::default(),
        progress: Progress::new("copied", all),
    };
    let (dumped, restored) = thread::scope(|scope| {
        let dumping = scope.spawn(|| runtime.block_on(from.dump(None, sender)));
        let restored = target.restore(&mut pipe, RestoreMode::EmptyOnly);
        // The dumping thread then stops, because its channel is closed.
        pipe.lines.close();
        let dumped = dumping.join().map_err(|_| StoreError::Closed);
        (dumped.and_then(|dumped| dumped), restored)
    });
    pipe.progress.end();
    // An error of the source explains an incomplete target.
    dumped?;
    if let Err(refused) = restored {
        return Ok(Err(refused));
    }
    let mut progress = Progress::new("compared", all);
    let there = runtime.block_on(LogTally::of(&*to, |rows| progress.report(rows)))?;
    progress.end();
    if there != pipe.tally {
        anyhow::bail!(
            "the copy differs: {} copied, {there} found\n\
             hint: another process may have written to it; do not use it, and copy again",
            pipe.tally
        );
    }
    Ok(Ok(there))
}

/// Progress line on a terminal.
struct Progress {
    what: &'static str,
    all: u64,
    reported: u64,
    is_shown: bool,
}

impl Progress {
    fn new(what: &'static str, all: u64) -> Self {
        Self {
            what,
            all,
            reported: 0,
            is_shown: io::stderr().is_terminal(),
        }
    }

    fn report(&mut self, rows: u64) {
        let is_due =
            rows >= self.reported + PROGRESS_ROWS || rows == self.all && rows != self.reported;
        if self.is_shown && is_due {
            self.reported = rows;
            let Self { what, all, .. } = self;
            let _ = write!(io::stderr(), "\r{rows} of {all} events {what}\x1b[K");
        }
    }

    fn end(&self) {
        if self.is_shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// Reader of the dumped lines, which counts them.
struct Pipe {
    lines: mpsc::Receiver<String>,
    line: String,
    read: usize,
    tally: LogTally,
    progress: Progress,
}

impl BufRead for Pipe {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.read == self.line.len() {
            self.read = 0;
            self.line = self.lines.blocking_recv().unwrap_or_default();
            if !self.line.is_empty() {
                self.tally.add(&self.line);
                self.progress.report(self.tally.count("row"));
            }
        }
        Ok(self.line.as_bytes().get(self.read..).unwrap_or_default())
    }

    fn consume(&mut self, bytes: usize) {
        self.read = self.line.len().min(self.read + bytes);
    }
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}
