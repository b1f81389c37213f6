//! Sessions of the store: load, resume, list, close, delete.

use std::collections::HashMap;

use ikigai_core::{AgentId, Micros, SessionId};
use ikigai_engine::{Agent, AgentRecord, CommitError, EngineError, Status, mark_all_read};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::calls::directory_of;
use super::methods::{ListParams, LoadParams, SessionParams};
use super::server::AcpServer;
use super::session::AcpSession;
use super::wire::{RpcError, parameters};

/// Sessions of one page.
const PAGE_SESSIONS: usize = 100;

/// Opens a session of the store. With `replays`, the client gets its history first.
pub(super) async fn load_session(
    server: &mut AcpServer,
    params: Value,
    replays: bool,
) -> Result<Value, RpcError> {
    let params: LoadParams = parameters(params)?;
    directory_of(&params.cwd)?;
    let record = living_agent(server, &params.session_id).await?;
    let id = record.id;
    let agent = Agent::restore(server.engine.reader(), id).await;
    let mut agent = agent.map_err(RpcError::failed)?;
    let workdir = agent.state.settings().workdir.clone();
    let workdir = workdir.unwrap_or_else(|| params.cwd.clone());
    let head = agent.state.head();
    let is_open = server.sessions.contains_key(&id);
    server
        .sessions
        .entry(id)
        .or_insert_with(|| AcpSession::new(id, workdir, head));
    // An agent of no session may be below this one.
    server.children.retain(|_, child| child.is_some());
    let opened = async {
        if replays {
            server.replay(&mut agent).await?;
        }
        server.take_or_follow(id).await
    };
    if let Err(error) = opened.await {
        if !is_open {
            server.sessions.remove(&id);
        }
        return Err(RpcError::failed(error));
    }
    // The client shows all of it.
    let _ = mark_all_read(&server.engine, id).await;
    server.engine.note_use(id);
    server.note_servers(id, &params.mcp_servers).await;
    Ok(json!({}))
}

async fn living_agent(server: &AcpServer, id: &str) -> Result<AgentRecord, RpcError> {
    let record = match id.parse::<AgentId>() {
        Ok(id) => server.engine.reader().agent(id).await,
        Err(_) => Ok(None),
    };
    let record = record.map_err(RpcError::failed)?;
    let living = record.filter(|record| record.status == Status::Running);
    living.ok_or_else(|| {
        let id: String = id.chars().take(80).collect();
        RpcError::not_found(format!("no session `{id}`"))
    })
}

/// Lists the living roots, the last used one first.
pub(super) async fn list_sessions(server: &AcpServer, params: Value) -> Result<Value, RpcError> {
    let params: ListParams = parameters(params)?;
    // A directory that is gone may have sessions all the same.
    let session_of = |cwd: &String| directory_of(cwd).map_or(cwd.clone(), |here| here.session);
    let directory = params.cwd.as_ref().map(session_of);
    let sessions = server.engine.sessions().await.map_err(RpcError::failed)?;
    let directories: HashMap<SessionId, String> = sessions
        .into_iter()
        // A shared log has directories of other machines.
        .filter(|session| server.engine.is_here(session))
        .map(|session| (session.id, session.directory))
        .collect();
    let mut agents = server.engine.agents().await.map_err(RpcError::failed)?;
    agents.retain(|agent| {
        let is_root = agent.parent.is_none() && agent.status == Status::Running;
        let found = directories.get(&agent.session);
        is_root && found.is_some_and(|found| directory.as_ref().is_none_or(|it| it == found))
    });
    agents.sort_by_key(|agent| std::cmp::Reverse(list_key(agent)));
    let cursor = params.cursor.as_deref().map(parse_cursor).transpose()?;
    let mut page: Vec<_> = agents
        .into_iter()
        .filter(|agent| {
            cursor
                .as_ref()
                .is_none_or(|cursor| list_key(agent) < *cursor)
        })
        .take(PAGE_SESSIONS + 1)
        .collect();
    let has_more = page.len() > PAGE_SESSIONS;
    page.truncate(PAGE_SESSIONS);
    let next = page.last().filter(|_| has_more).map(cursor_of);
    let entry = |agent: &AgentRecord| {
        json!({
            "sessionId": agent.id.to_string(),
            "cwd": directories.get(&agent.session),
            "title": agent.name,
            "updatedAt": time_of(agent),
        })
    };
    let entries: Vec<Value> = page.iter().map(entry).collect();
    let mut answer = json!({"sessions": entries});
    if let Some(next) = next {
        answer["nextCursor"] = next.into();
    }
    Ok(answer)
}

/// Pauses the agents of a session and gives their leases back.
pub(super) async fn close_session(
    server: &mut AcpServer,
    params: Value,
) -> Result<Value, RpcError> {
    let params: SessionParams = parameters(params)?;
    let id = server.session(&params.session_id)?.agent;
    close(server, id).await;
    Ok(json!({}))
}

/// Ends a session of this client, if it is open: its prompts are cancelled.
async fn close(server: &mut AcpServer, id: AgentId) {
    let Some(session) = server.sessions.get_mut(&id) else {
        return;
    };
    session.cancel_prompts();
    let children = server.children.iter();
    let below = children.filter(|(_, child)| {
        let session = child.as_ref().map(|child| child.session);
        session == Some(id)
    });
    let below: Vec<AgentId> = below.map(|(agent, _)| *agent).collect();
    server.engine.release(id).await;
    for child in &below {
        server.engine.release(*child).await;
    }
    server.advance().await;
    server.finish_prompts(id).await;
    server.withdraw_questions(id, &below).await;
    server.sessions.remove(&id);
    for child in below {
        server.children.remove(&child);
    }
}

/// Ends a session and hides it. Its events stay in the log.
pub(super) async fn delete_session(
    server: &mut AcpServer,
    params: Value,
) -> Result<Value, RpcError> {
    let params: SessionParams = parameters(params)?;
    let record = match living_agent(server, &params.session_id).await {
        Ok(record) => record,
        // Deleting again is no failure.
        Err(_) if params.session_id.parse::<AgentId>().is_ok() => return Ok(json!({})),
        Err(error) => return Err(error),
    };
    if record.parent.is_some() {
        return Err(RpcError::invalid(
            "only sessions of root agents are deleted",
        ));
    }
    close(server, record.id).await;
    match Box::pin(server.engine.hide_family(&record)).await {
        Ok(()) => Ok(json!({})),
        Err(EngineError::Commit(CommitError::Held { owner, .. })) => {
            Err(RpcError::failed(format!(
                "the agent is open in another ikigai (pid {} on {}): close it there first",
                owner.pid, owner.host
            )))
        }
        Err(error) => Err(RpcError::failed(error)),
    }
}
/// Order of the list: time of the last event, then the id.
fn list_key(agent: &AgentRecord) -> (i64, String) {
    let touched = agent.touched_at.unwrap_or(agent.created_at);
    (touched.0, agent.id.to_string())
}

fn cursor_of(agent: &AgentRecord) -> String {
    let (touched, id) = list_key(agent);
    format!("{touched}.{id}")
}

fn parse_cursor(cursor: &str) -> Result<(i64, String), RpcError> {
    let parts = cursor.split_once('.');
    let parsed = parts.and_then(|(touched, id)| Some((touched.parse().ok()?, id.to_owned())));
    parsed.ok_or_else(|| RpcError::invalid("`cursor` is none of ours"))
}

fn time_of(agent: &AgentRecord) -> Option<String> {
    let Micros(touched) = agent.touched_at.unwrap_or(agent.created_at);
    let time = Timestamp::from_microsecond(touched).ok()?;
    Some(time.to_string())
}
