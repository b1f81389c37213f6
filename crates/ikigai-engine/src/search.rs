//! Full-text search over all agents: for users, screens and models.

mod query_syntax;

use std::collections::HashMap;
use std::path::Path;

use ikigai_core::{AgentId, RowRef, SessionId};
use ikigai_store::{AgentRecord, Hit, SearchPage, SearchQuery, SessionRecord, SortOrder, Status};

use crate::{EngineError, EngineReader};

pub use ikigai_store::SearchCursor;
pub use query_syntax::SYNTAX;
use query_syntax::{Filters, Moments, read};

/// Default number of hits.
pub const USUAL_HITS: usize = 20;

/// Minimum number of characters of an id prefix.
const PREFIX_CHARS: usize = 8;

/// Options of a search.
#[derive(Clone, Copy, Debug, Default)]
pub struct SearchOptions<'a> {
    /// Maximum number of hits; 0 for the default.
    pub limit: usize,
    /// Order of the hits.
    pub order: SortOrder,
    /// Cursor of an earlier page.
    pub cursor: Option<SearchCursor>,
    /// Base directory of relative paths.
    pub workdir: Option<&'a Path>,
    /// Length of a hit's line in characters; 0 for the default.
    pub line_chars: usize,
    /// Only agents of this session; all agents if none.
    pub session: Option<SessionId>,
}

/// Results of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchResults {
    /// The hits, in the order of `order`.
    pub hits: Vec<Named>,
    /// Order of the hits.
    pub order: SortOrder,
    /// Cursor of the next page; none if this is the last one.
    pub next: Option<SearchCursor>,
    /// Remarks for the user.
    pub notes: Vec<&'static str>,
}

/// A hit with the name of its agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The row.
    pub hit: Hit,
    /// Its agent's name.
    pub agent: String,
    /// Unambiguous name of its agent: the name, or a prefix of its id.
    pub typed: String,
}

impl Named {
    /// Returns the reference to the row: `#name.12`, or `#12` for the agent itself.
    pub fn reference(&self, own: Option<AgentId>) -> String {
        let RowRef { agent, seq } = self.hit.at;
        if own == Some(agent) {
            format!("#{seq}")
        } else {
            format!("#{}.{seq}", self.typed)
        }
    }
}

impl EngineReader {
    /// Searches the log for a typed query.
    /// A query has words, `"several words"`, `begin*`, and filters: `agent:`, `by:`, `kind:`,
    /// `model:`, `before:`, `after:`, `path:`. The inner error describes a mistake in it.
    pub async fn search(
        &self,
        typed: &str,
        options: SearchOptions<'_>,
    ) -> Result<Result<SearchResults, String>, EngineError> {
        let moments = Moments {
            now: self.environment().now(),
            zone: self.environment().zone(),
        };
        let (words, filters) = match read(typed, &moments) {
            Ok(read) => read,
            Err(reason) => return Ok(Err(reason)),
        };
        let agents = self.reader().agents(None).await?;
        let query = SearchQuery {
            words,
            agents: match agents_named(&agents, &filters) {
                Ok(named) => within(&agents, named, options.session),
                Err(reason) => return Ok(Err(reason)),
            },
            directory: self.directory(&filters, options.workdir),
            kinds: filters.kinds,
            author: filters.author,
            model: filters.model,
            before: filters.before,
            after: filters.after,
            order: options.order,
            cursor: options.cursor,
            limit: if options.limit == 0 {
                USUAL_HITS
            } else {
                options.limit
            },
            line_chars: options.line_chars,
        };
        let page = self.reader().search(query).await?;
        let sessions = self.reader().sessions().await?;
        let known = KnownAgents { agents, sessions };
        Ok(Ok(search_results(page, options.order, &known)))
    }

    /// Returns the directory in its stored form.
    fn directory(&self, filters: &Filters, workdir: Option<&Path>) -> Option<String> {
        let typed = filters.path.as_deref()?;
        let home = self.environment().home();
        let path = match (typed.strip_prefix('~'), home) {
            (Some(below), Some(home)) => home.join(below.trim_start_matches('/')),
            _ => workdir.unwrap_or(Path::new("/")).join(typed),
        };
        Some(plain(&path))
    }
}

/// Removes `.` and `..` from a path, without reading the file system.
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

/// Keeps the named agents of a session, or all of the session.
fn within(
    agents: &[AgentRecord],
    named: Option<Vec<AgentId>>,
    session: Option<SessionId>,
) -> Option<Vec<AgentId>> {
    let Some(session) = session else {
        return named;
    };
    let is_meant = |agent: &&AgentRecord| {
        agent.session == session && named.as_ref().is_none_or(|named| named.contains(&agent.id))
    };
    Some(agents.iter().filter(is_meant).map(|it| it.id).collect())
}

/// Finds agents by the filter's name or id prefix; none without a filter.
fn agents_named(agents: &[AgentRecord], filters: &Filters) -> Result<Option<Vec<AgentId>>, String> {
    let Some(name) = filters.agent.as_deref() else {
        return Ok(None);
    };
    let is_called = |agent: &&AgentRecord| {
        agent.name == name || name.len() >= 4 && agent.id.to_string().starts_with(name)
    };
    // The newest first, because the number of agents in a query is limited.
    let found = agents.iter().rev().filter(is_called);
    let found: Vec<AgentId> = found.map(|agent| agent.id).collect();
    if found.is_empty() {
        return Err(format!("no agent named {name}"));
    }
    Ok(Some(found))
}

fn search_results(page: SearchPage, options: SortOrder, all: &KnownAgents) -> SearchResults {
    let known: HashMap<AgentId, &AgentRecord> =
        all.agents.iter().map(|agent| (agent.id, agent)).collect();
    let mut typed: HashMap<AgentId, String> = HashMap::new();
    let mut notes = Vec::new();
    if page.whole_words {
        notes.push("too many words match the prefix: only whole words were searched");
    }
    if page.cut {
        notes.push("the search is incomplete: there may be more");
    }
    if options == SortOrder::Relevance && page.order == SortOrder::Newest && !page.hits.is_empty() {
        notes.push("too many matches to rank: newest first");
    }
    let mut hits = Vec::new();
    for hit in page.hits {
        let agent = known.get(&hit.at.agent);
        let typed = typed.entry(hit.at.agent);
        let typed = typed.or_insert_with(|| {
            agent.map_or_else(|| hit.at.agent.to_string(), |agent| all.typed_as(agent))
        });
        hits.push(Named {
            agent: agent.map(|agent| agent.name.clone()).unwrap_or_default(),
            typed: typed.clone(),
            hit,
        });
    }
    SearchResults {
        hits,
        order: page.order,
        next: page.next,
        notes,
    }
}

/// All agents, with their workspaces.
struct KnownAgents {
    agents: Vec<AgentRecord>,
    sessions: Vec<SessionRecord>,
}

impl KnownAgents {
    /// Returns the name, `WORKSPACE/NAME` or id prefix that identifies only this agent.
    ///
    /// A name refers to the living agent of that name.
    fn typed_as(&self, agent: &AgentRecord) -> String {
        let named = |other: &&AgentRecord| other.id != agent.id && other.name == agent.name;
        let lives = |other: &AgentRecord| other.status == Status::Running;
        let mut others = self.agents.iter().filter(named);
        if lives(agent) && !others.any(lives) {
            return agent.name.clone();
        }
        let workspace = self.sessions.iter().find(|it| it.id == agent.session);
        if let Some(workspace) = workspace.filter(|_| lives(agent)) {
            let namesakes = self.sessions.iter().filter(|it| it.name == workspace.name);
            if namesakes.count() == 1 {
                return format!("{}/{}", workspace.name, agent.name);
            }
        }
        typed_as(agent, &self.agents)
    }
}

/// Returns the name or id prefix that identifies only this agent.
fn typed_as(agent: &AgentRecord, agents: &[AgentRecord]) -> String {
    let is_alone = |means: &dyn Fn(&AgentRecord) -> bool| {
        let others = agents.iter().filter(|other| other.id != agent.id);
        !others.into_iter().any(means)
    };
    if is_alone(&|other| other.name == agent.name) {
        return agent.name.clone();
    }
    let id = agent.id.to_string();
    let begin = |length: &usize| id.get(..*length);
    let lengths = PREFIX_CHARS..id.len();
    let prefix = lengths.into_iter().find(|length| {
        begin(length).is_some_and(|begin| {
            is_alone(&|other| other.name == begin || other.id.to_string().starts_with(begin))
        })
    });
    let prefix = prefix.and_then(|length| begin(&length).map(str::to_owned));
    prefix.unwrap_or(id)
}
