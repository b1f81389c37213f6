//! `ikigai workspace`: directories of machines, and the adoption of another one's agents.

use std::process::ExitCode;

use anyhow::{Result, bail};
use ikigai_core::spelling::clean_line;
use ikigai_engine::{Engine, SessionEntry, adopt_session};
use ikigai_store::SessionRecord;
use serde_json::json;

use crate::arguments::{WorkspaceOrder, WorkspaceVerb};
use crate::context::ProgramContext;
use crate::output::{local_time, print, print_json, print_stderr};
use crate::store_location::Here;

pub(crate) fn workspace(db: Option<String>, order: &WorkspaceOrder) -> Result<ExitCode> {
    match &order.verb {
        None => list(db, order.json)?,
        Some(WorkspaceVerb::Adopt { old }) => adopt(db, old)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(db: Option<String>, as_json: bool) -> Result<()> {
    let program = ProgramContext::open_reading(db)?;
    let engine = &program.engine;
    let entries = program.block_on(engine.session_entries())?;
    if entries.is_empty() && !as_json {
        print_stderr("No workspaces yet. Try: ikigai run \"hello\"");
    }
    for entry in &entries {
        let SessionEntry {
            session,
            living,
            touched_at,
            ..
        } = entry;
        let is_here = engine.is_here(session);
        if as_json {
            print_json(&json!({
                "id": session.id,
                "name": session.name,
                "directory": session.directory,
                "host": session.host,
                "machine": session.machine,
                "here": is_here,
                "running": living,
                "touched_at": touched_at,
            }))?;
            continue;
        }
        print(&format!(
            "{:<24} {living:>5} running  {}  {}\n",
            clean_line(&session.name),
            local_time(*touched_at),
            place_of(session, is_here)
        ))?;
    }
    Ok(())
}

/// Returns the directory of a session, after the host if it is on another machine.
pub(crate) fn place_of(session: &SessionRecord, is_here: bool) -> String {
    let directory = clean_line(&session.directory).into_owned();
    match session.host.as_deref().filter(|_| !is_here) {
        None if is_here => directory,
        None => format!("another machine:{directory}"),
        Some(host) => format!("{}:{directory}", clean_line(host)),
    }
}

fn adopt(db: Option<String>, old: &str) -> Result<()> {
    let program = ProgramContext::open(db)?;
    let here = Here::find()?;
    program.block_on(async {
        let engine = &program.engine;
        let session = named(engine, old).await?;
        if engine.is_here(&session) && session.directory == here.session {
            bail!("`{old}` is the workspace of this directory already");
        }
        let agents = adopt_session(engine, &session, &here.session).await?;
        let count = agents.len();
        let agents = if count == 1 { "agent" } else { "agents" };
        print(&format!(
            "Adopted {}: {count} {agents} of {} now in {}\n",
            clean_line(&session.name),
            place_of(&session, engine.is_here(&session)),
            clean_line(&here.session)
        ))?;
        anyhow::Ok(())
    })
}

/// Finds a workspace by its name, its id, or its directory.
async fn named(engine: &Engine, old: &str) -> Result<SessionRecord> {
    let sessions = engine.sessions().await?;
    let exact = |it: &&SessionRecord| it.id.to_string() == old;
    if let Some(found) = sessions.iter().find(exact) {
        return Ok(found.clone());
    }
    let mut found: Vec<_> = sessions
        .into_iter()
        .filter(|it| it.name == old || it.directory == old)
        .collect();
    match (found.pop(), found.as_slice()) {
        (Some(only), []) => Ok(only),
        (None, _) => bail!("no workspace `{old}`\nhint: `ikigai workspace` lists them"),
        (Some(last), others) => {
            let ids = others.iter().chain([&last]).map(|it| it.id.to_string());
            let ids: Vec<_> = ids.collect();
            bail!(
                "`{old}` is ambiguous: {}\nhint: name one by its id",
                ids.join(", ")
            )
        }
    }
}
