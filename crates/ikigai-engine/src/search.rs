//! Finding what was ever said, done or printed, by any agent: for people, screens and models.

mod typed;

use std::collections::HashMap;
use std::path::Path;

use ikigai_core::{AgentId, RowRef};
use ikigai_store::{AgentRecord, Cursor, Hit, Order, SearchPage, SearchQuery};

use crate::{Engine, EngineError};

pub use typed::SYNTAX;
use typed::{Filters, Moments, read};

/// How many hits are told if nobody says.
pub const USUAL_HITS: usize = 20;

/// How a search is to be answered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// How many hits are wanted; 0 is the usual number.
    pub limit: usize,
    /// In which order.
    pub order: Order,
    /// Where an earlier answer ended.
    pub cursor: Option<Cursor>,
    /// The directory that relative paths begin at.
    pub workdir: Option<&'a Path>,
    /// How long the line of a hit is; 0 is the usual length.
    pub line_chars: usize,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The hits, in the order of `order`.
    pub hits: Vec<Named>,
    /// In which order they are told.
    pub order: Order,
    /// Where the next page begins; none if this is the last one.
    pub next: Option<Cursor>,
    /// What a person should know about the answer.
    pub notes: Vec<&'static str>,
}

/// A hit, and how the agent is called whose row it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The row.
    pub hit: Hit,
    /// Its agent's name.
    pub agent: String,
}

impl Named {
    /// How the row is shown and typed: `#name.12`, or `#12` where the agent itself looks.
    pub fn reference(&self, own: Option<AgentId>) -> String {
        let RowRef { agent, seq } = self.hit.at;
        if own == Some(agent) {
            format!("#{seq}")
        } else {
            format!("#{}.{seq}", self.agent)
        }
    }
}

impl Engine {
    /// Looks for what somebody typed: words, `"several words"`, `begin*`, and the filters
    /// `agent: kind: model: before: after: path:`. The inner error says what is wrong with it.
    pub async fn search(
        &self,
        typed: &str,
        asked: Asked<'_>,
    ) -> Result<Result<Found, String>, EngineError> {
        let moments = Moments {
            now: self.environment.now(),
            zone: self.environment.zone(),
        };
        let (words, filters) = match read(typed, &moments) {
            Ok(read) => read,
            Err(reason) => return Ok(Err(reason)),
        };
        let agents = self.store.agents(None).await?;
        let query = SearchQuery {
            words,
            agents: match named(&agents, &filters) {
                Ok(agents) => agents,
                Err(reason) => return Ok(Err(reason)),
            },
            directory: self.directory(&filters, asked.workdir),
            kinds: filters.kinds,
            model: filters.model,
            before: filters.before,
            after: filters.after,
            order: asked.order,
            cursor: asked.cursor,
            limit: if asked.limit == 0 {
                USUAL_HITS
            } else {
                asked.limit
            },
            line_chars: asked.line_chars,
        };
        let page = self.store.search(query).await?;
        Ok(Ok(found(page, asked.order, &agents)))
    }

    /// A directory as it is stored.
    fn directory(&self, filters: &Filters, workdir: Option<&Path>) -> Option<String> {
        let typed = filters.path.as_deref()?;
        let home = self.environment.home();
        let path = match (typed.strip_prefix('~'), home) {
            (Some(below), Some(home)) => home.join(below.trim_start_matches('/')),
            _ => workdir.unwrap_or(Path::new("/")).join(typed),
        };
        Some(plain(&path))
    }
}

/// A path without `.` and `..`, as far as its text tells.
fn plain(path: &Path) -> String {
    use std::path::Component;
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => parts.push(part.to_string_lossy()),
            Component::ParentDir => {
                parts.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    format!("/{}", parts.join("/"))
}

/// Everybody who is or was called so; none if nobody in particular is meant.
fn named(agents: &[AgentRecord], filters: &Filters) -> Result<Option<Vec<AgentId>>, String> {
    let Some(name) = filters.agent.as_deref() else {
        return Ok(None);
    };
    let is_called = |agent: &&AgentRecord| {
        agent.name == name || name.len() >= 4 && agent.id.to_string().starts_with(name)
    };
    // The newest first, because only so many can be looked for.
    let found = agents.iter().rev().filter(is_called);
    let found: Vec<AgentId> = found.map(|agent| agent.id).collect();
    if found.is_empty() {
        return Err(format!("no agent is or was called {name}"));
    }
    Ok(Some(found))
}

fn found(page: SearchPage, asked: Order, agents: &[AgentRecord]) -> Found {
    let names: HashMap<AgentId, &str> = agents
        .iter()
        .map(|agent| (agent.id, agent.name.as_str()))
        .collect();
    let mut notes = Vec::new();
    if page.whole_words {
        notes.push("too many words begin so: only whole words were looked for");
    }
    if page.cut {
        notes.push("not everything was looked at: there may be more");
    }
    if asked == Order::Relevance && page.order == Order::Newest && !page.hits.is_empty() {
        notes.push("too many hits to rank: the newest come first");
    }
    let name = |hit: Hit| {
        let agent = names.get(&hit.at.agent).copied().unwrap_or_default();
        Named {
            agent: agent.to_owned(),
            hit,
        }
    };
    Found {
        hits: page.hits.into_iter().map(name).collect(),
        order: page.order,
        next: page.next,
        notes,
    }
}
