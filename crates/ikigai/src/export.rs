//! `ikigai export` and `ikigai import`: histories as files.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::ExitCode;

use anyhow::{Context, Result};
use ikigai_core::counts::counted;
use ikigai_core::spelling::escape_json;
use ikigai_engine::export::{ExportError, Format, Whose};
use ikigai_store::portable::{RestoreError, RestoreMode};

use crate::arguments::{ExportOrder, ImportOrder, exit};
use crate::context::ProgramContext;
use crate::legacy_import;
use crate::output::{print, print_exact, print_stderr, visible};
use crate::progress_reader::ProgressReader;

/// Rows between two progress reports.
const PROGRESS_ROWS: u64 = 1000;

pub(crate) fn export(db: Option<String>, order: &ExportOrder) -> Result<ExitCode> {
    let program = ProgramContext::open_reading(db)?;
    let whose = if order.all {
        Whose::All
    } else {
        let Some(agent) = program.find(order.agent.as_deref())? else {
            print_stderr(
                "error: no agent in this directory yet\nhint: start one with `ikigai run \"hello\"`",
            );
            return Ok(exit::AGENT.into());
        };
        if order.tree {
            Whose::Tree(agent.id)
        } else {
            Whose::Agent(agent.id)
        }
    };
    let format = Format::from_name(&order.format).unwrap_or(Format::Markdown);
    let mut out: Box<dyn Write + Send> = match &order.output {
        Some(path) => Box::new(BufWriter::new(
            // Readable only by its owner, like the store.
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path)
                .with_context(|| format!("cannot write `{path}`"))?,
        )),
        None if io::stdout().is_terminal() => Box::new(CleanLines::default()),
        None => Box::new(BufWriter::new(io::stdout())),
    };
    let shows_progress = io::stderr().is_terminal() && !io::stdout().is_terminal();
    let mut tell_progress = |done: u64, all: u64| {
        if shows_progress && (done.is_multiple_of(PROGRESS_ROWS) || done == all) {
            let _ = write!(io::stderr(), "\r{done} of {all} events\x1b[K");
        }
    };
    let exported = program
        .engine
        .export(whose, format, &mut *out, &mut tell_progress);
    let exported = program.block_on(exported);
    if shows_progress {
        let _ = writeln!(io::stderr());
    }
    match exported {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(ExportError::Engine(error)) => Err(error.into()),
        Err(ExportError::Write(error)) => Err(error.into()),
    }
}

pub(crate) fn import(db: Option<String>, order: &ImportOrder) -> Result<ExitCode> {
    let program = ProgramContext::open(db)?;
    if let Some(url) = &order.from {
        return legacy_import::import(&program, url);
    }
    let reported = io::stderr().is_terminal().then(io::stderr);
    let restored = match order.file.as_deref() {
        None | Some("-") => {
            let lines = ProgressReader::new(io::stdin().lock(), None, reported);
            program.store.restore(lines, RestoreMode::Merge)
        }
        Some(path) => {
            let file = File::open(path).with_context(|| format!("cannot read `{path}`"))?;
            let all = file.metadata().ok().map(|about| about.len());
            let lines = ProgressReader::new(BufReader::new(file), all, reported);
            program.store.restore(lines, RestoreMode::Merge)
        }
    };
    match restored {
        Ok(restored) => {
            print(&format!(
                "Imported {}, {}\n",
                counted(restored.agents.len(), "agent"),
                counted(restored.rows, "event")
            ))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(RestoreError::Store(error)) => Err(error.into()),
        Err(error) => {
            print_stderr(&format!("error: {}", visible(&error.to_string())));
            print_stderr(
                "hint: nothing was imported; the file must come from `ikigai export --format json`",
            );
            Ok(exit::FAILED.into())
        }
    }
}

/// Writer of whole lines to a terminal; escapes hidden characters as JSON does.
#[derive(Default)]
struct CleanLines {
    line: Vec<u8>,
}

impl Write for CleanLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(bytes.len(), |end| end + 1);
        self.line.extend_from_slice(&bytes[..taken]);
        if end.is_some() {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        print_exact(&escape_json(&String::from_utf8_lossy(&line)))
    }
}
