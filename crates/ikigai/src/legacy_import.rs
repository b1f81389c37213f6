//! `ikigai import --from postgres://…`: imports the agents of an older ikigai.

use std::io::{self, BufReader, IsTerminal, PipeReader, PipeWriter, Write};
use std::process::ExitCode;
use std::thread;

use anyhow::{Context, Result, anyhow};
use ikigai_core::SessionId;
use ikigai_core::counts::counted;
use ikigai_core::settings::ModelChoice;
use ikigai_engine::{Environment, System};
use ikigai_providers::Models;
use ikigai_store::legacy::{self, Home, ImportReport, LegacyError};
use ikigai_store::portable::{RestoreError, RestoreMode, Restored};
use ikigai_store::postgres::Url;
use ikigai_store::{Status, StoreError};

use crate::context::ProgramContext;
use crate::output::{print, print_stderr, visible};
use crate::store_location::Here;

/// Lines between two progress reports.
const PROGRESS_ROWS: u64 = 1000;

/// Imports all agents of a database, or none.
pub(crate) fn import(program: &ProgramContext, url: &str) -> Result<ExitCode> {
    let url = Url::parse(url).map_err(|error| anyhow!("{error}"))?;
    let known = |choice: &ModelChoice| known(program, choice);
    let home = home(program, &known)?;
    let (reader, writer) = io::pipe().context("cannot create a pipe")?;
    let (reported, restored) = thread::scope(|scope| {
        let telling = scope.spawn(|| tell_into(writer, url, &home));
        let restored = restore(program, reader);
        (telling.join(), restored)
    });
    let reported = reported.map_err(|_| anyhow!("cannot read the older database"))?;
    match (reported, restored) {
        // The error of the reading side explains why the import ended.
        (Err(error), _) if !matches!(error, LegacyError::Unheard) => Err(explain(error)),
        (_, Err(RestoreError::Store(error))) => Err(error.into()),
        (_, Err(error)) => Err(anyhow!("{error}\nhint: nothing was imported")),
        (Err(error), Ok(_)) => Err(explain(error)),
        (Ok(report), Ok(restored)) => {
            sum_up(&restored, &report)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn restore(program: &ProgramContext, reader: PipeReader) -> Result<Restored, RestoreError> {
    let lines = BufReader::new(reader);
    program.store.restore(lines, RestoreMode::Merge)
}

/// Returns the target of the import: the session of this directory.
fn home<'a>(program: &ProgramContext, known: legacy::ModelLookup<'a>) -> Result<Home<'a>> {
    let here = Here::find()?;
    let store = program.engine.reader();
    let (sessions, agents) = program.block_on(async {
        Ok::<_, StoreError>((store.sessions().await?, store.agents(None).await?))
    })?;
    let mut sessions = sessions.into_iter().rev();
    let session = sessions.find(|session| session.directory == here.session);
    let living = agents
        .into_iter()
        .filter(|agent| agent.status == Status::Running);
    Ok(Home {
        session: session.map_or_else(drawn, |session| session.id),
        name: "imported".to_owned(),
        directory: here.session,
        workdir: here.workdir,
        at: System.now(),
        taken: living.map(|agent| agent.name).collect(),
        model: Models::first_choice(&*program.registry)?,
        known,
    })
}

fn drawn() -> SessionId {
    loop {
        if let Some(session) = SessionId::from_random(System.random()) {
            return session;
        }
    }
}

/// Returns the present name of a model in an older log.
fn known(program: &ProgramContext, choice: &ModelChoice) -> Option<ModelChoice> {
    let model = choice.model.as_deref()?;
    let name = match choice.provider.as_deref() {
        Some(provider) => format!("{provider}:{model}"),
        None => model.to_owned(),
    };
    let level = choice.level.as_deref().filter(|level| !level.is_empty());
    let with_level =
        level.and_then(|level| program.registry.choose(&format!("{name}/{level}")).ok());
    with_level.or_else(|| program.registry.choose(&name).ok())
}

fn tell_into(writer: PipeWriter, url: Url, home: &Home<'_>) -> Result<ImportReport, LegacyError> {
    let mut writer = io::BufWriter::new(writer);
    let shows_progress = io::stderr().is_terminal();
    let mut lines: u64 = 0;
    let report = legacy::read(url, home, &mut |line| {
        lines += 1;
        if shows_progress && lines.is_multiple_of(PROGRESS_ROWS) {
            let _ = write!(io::stderr(), "\r{lines} events\x1b[K");
        }
        writer.write_all(line.as_bytes()).is_ok()
    });
    if shows_progress && lines >= PROGRESS_ROWS {
        let _ = writeln!(io::stderr());
    }
    let report = report?;
    writer.flush().map_err(|_| LegacyError::Unheard)?;
    Ok(report)
}

fn explain(error: LegacyError) -> anyhow::Error {
    match error {
        LegacyError::Store(error) => error.into(),
        LegacyError::None(_) => anyhow!(
            "{error}\nhint: expected a table `messages`; if it is in another schema, add `?schema=NAME`"
        ),
        LegacyError::Current(_) => {
            anyhow!("{error}\nhint: copy it with `ikigai copy --from URL --to STORE`")
        }
        LegacyError::Unheard => anyhow!("{error}"),
    }
}

/// Prints a summary of the import, with everything that was skipped or changed.
fn sum_up(restored: &Restored, report: &ImportReport) -> Result<()> {
    print(&format!(
        "Imported {}, {}, {} between agents\n",
        counted(restored.agents.len(), "agent"),
        counted(restored.rows, "event"),
        counted(report.mail, "message")
    ))?;
    for remark in &report.remarks {
        print_stderr(&format!("⚠ {}", visible(remark)));
    }
    if report.more > 0 {
        print_stderr(&format!("⚠ and {} more like these", report.more));
    }
    Ok(())
}
