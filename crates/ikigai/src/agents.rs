//! `ikigai agents`: tree of the agents.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use ikigai_core::spelling::clean_line;
use ikigai_engine::{Branch, Engine};
use ikigai_store::{AgentRecord, SessionRecord};
use serde_json::{Value, json};

use crate::arguments::AgentsOrder;
use crate::context::ProgramContext;
use crate::output::{local_time, print, print_exact, print_json, print_stderr};
use crate::workspace::place_of;

/// Shortest interval between two updates of the tree.
const EVERY: Duration = Duration::from_millis(250);

pub(crate) fn agents(db: Option<String>, order: &AgentsOrder) -> Result<ExitCode> {
    let program = ProgramContext::open_reading(db)?;
    program.block_on(async {
        show(&program.engine, order).await?;
        if order.watch {
            watch(&program.engine, order).await?;
        }
        anyhow::Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the tree after every change, until interrupted.
async fn watch(engine: &Engine, order: &AgentsOrder) -> Result<()> {
    let mut watch = engine.reader().watch()?;
    while watch.changed().await {
        if io::stdout().is_terminal() && !order.json {
            // Moving home and clearing to the end avoids flicker.
            print_exact("\x1b[H\x1b[J")?;
        } else {
            print("\n")?;
        }
        show(engine, order).await?;
        tokio::time::sleep(EVERY).await;
    }
    Ok(())
}

async fn show(engine: &Engine, order: &AgentsOrder) -> Result<()> {
    let tree = engine.tree().await?;
    if tree.is_empty() {
        print_stderr("No agents yet. Try: ikigai run \"hello\"");
    }
    if order.json {
        let sessions = engine.sessions().await?;
        let workspace = |branch: &Branch| {
            let mut sessions = sessions.iter();
            sessions.find(|it| it.id == branch.agent.session).cloned()
        };
        let mut lines = tree.iter().map(|branch| {
            let workspace = workspace(branch);
            json_of(engine, branch, workspace.as_ref())
        });
        return Ok(lines.try_for_each(|line| print_json(&line))?);
    }
    for session in engine.sessions().await? {
        let members = tree
            .iter()
            .filter(|branch| branch.agent.session == session.id);
        let mut lines = members.map(line_of).peekable();
        if lines.peek().is_some() {
            print(&format!("{}\n", heading(engine, &session)))?;
        }
        lines.try_for_each(|line| print(&line))?;
    }
    Ok(())
}

/// Returns the line above a session's agents.
fn heading(engine: &Engine, session: &SessionRecord) -> String {
    let is_here = engine.is_here(session);
    let place = place_of(session, is_here);
    if is_here {
        return place;
    }
    format!("{place}  (workspace {})", clean_line(&session.name))
}

fn line_of(branch: &Branch) -> String {
    let AgentRecord {
        name,
        head,
        id,
        owner,
        touched_at,
        ..
    } = &branch.agent;
    let touched = touched_at.map_or_else(|| "never".to_owned(), local_time);
    let owner = owner.as_ref().map_or_else(String::new, |owner| {
        let person = owner.person.as_ref();
        let person = person.map_or_else(String::new, |person| format!(" by {person}"));
        let host = clean_line(&owner.host);
        format!(
            "  open in pid {} on {host}{}",
            owner.pid,
            clean_line(&person)
        )
    });
    let name = format!("{}{}", "  ".repeat(branch.depth + 1), clean_line(name));
    let state = branch.state();
    format!("{name:<32} {state:<10} {head:>6} events  {touched}  {id}{owner}\n")
}

fn json_of(engine: &Engine, branch: &Branch, workspace: Option<&SessionRecord>) -> Value {
    let agent = &branch.agent;
    json!({
        "id": agent.id,
        "name": agent.name,
        "session": agent.session,
        "workspace": workspace.map(|it| &it.name),
        "here": workspace.is_some_and(|it| engine.is_here(it)),
        "parent": agent.parent,
        "fork_point": agent.fork_point,
        "status": agent.status.word(),
        "working": branch.works,
        "stopped": branch.has_stopped(),
        "failed": branch.has_failed(),
        "created_at": agent.created_at,
        "head": agent.head,
        "touched_at": agent.touched_at,
        "owner": agent.owner.as_ref().map(|owner| json!({
            "host": owner.host,
            "pid": owner.pid,
            "person": owner.person,
        })),
    })
}
