//! Background loaders: reads and probes that must not delay a key.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::data::Amounts;
use ikigai_core::settings::ModelChoice;
use ikigai_core::words::Severity;
use ikigai_core::{AgentId, PageQuery, Row, RowRef, Span};
use ikigai_engine::commands::Candidate;
use ikigai_engine::search::{SearchCursor, SearchOptions};
use ikigai_engine::{
    Branch, CommitError, Engine, EngineError, InboxEntry, MergePreview, Pulse, Submission,
    dismiss_entries, mark_read, read_inbox, read_marks, read_tree_and_inbox,
};
use tokio::time::sleep;

use super::choices;
use super::mailbox::Mailbox;
use crate::app::{App, ContextUsage, Hits, Picker, PickerKind};
use crate::complete::NamesToComplete;
use crate::drafts::DraftReport;

/// Rows read to find an agent's newest words.
const NEWEST_ROWS: usize = 16;

/// Minimum interval between two notes that the log has grown.
const GROWN_PAUSE: Duration = Duration::from_millis(500);

/// Hits of one search.
const MOST_HITS: usize = 50;

/// Result of a background load.
#[derive(Debug)]
pub(crate) enum LoadResult {
    /// The tree of agents, and the cost of one of them.
    Tree(Vec<Branch>, AgentId, Amounts),
    /// Everything that waits for the user.
    Inbox(Vec<InboxEntry>),
    /// The user has read something, maybe in another process.
    Seen,
    /// Costs and newest rows for the board.
    Board {
        /// Usage of agents since their birth.
        costs: Vec<(AgentId, Amounts)>,
        /// The newest rows of some, oldest first.
        newest: Vec<(AgentId, Vec<Row>)>,
    },
    /// Previews of merges into an agent.
    Merge(AgentId, Vec<MergePreview>),
    /// Interrupted turns, a line each.
    Stopped(Vec<(Severity, String)>),
    /// True if tools run in a sandbox.
    Confined(bool),
    /// Names for completion.
    Choices(NamesToComplete),
    /// A model server on this machine, and how to use it.
    Server(String),
    /// A picker with its entries.
    Choice(Box<Picker>),
    /// Hits of a search.
    Hits {
        hits: Box<Hits>,
        /// True if they follow earlier hits.
        is_more: bool,
    },
    /// Usage of an agent's context window.
    Filled(AgentId, Option<ContextUsage>),
    /// Branch of an agent's directory.
    CheckedOut(AgentId, Option<String>),
    /// Another process owns an agent.
    Held(AgentId, String),
    /// This process owns an agent.
    Attended(AgentId),
    /// The log has grown.
    Grown,
    /// Delivery of a typed line to an agent.
    Delivered(AgentId, Submission, Result<(), EngineError>),
    /// Outcome of storing a pending message.
    PendingStored(AgentId, Submission, Result<(), EngineError>),
    /// Report about files of drafts.
    Kept(DraftReport),
    /// A load failed.
    Trouble(String),
}

/// Interval of looking for agents whose holders died.
const BETWEEN_TAKEOVERS: Duration = Duration::from_secs(10);

/// Runs loads in the background and queues their results for the screen.
pub(super) struct Loader {
    pub(super) engine: Engine,
    pub(super) mailbox: Arc<Mailbox>,
    /// One reference for each running load.
    away: Arc<()>,
}

impl Loader {
    pub(super) fn new(engine: Engine, mailbox: Arc<Mailbox>) -> Self {
        Self {
            engine,
            mailbox,
            away: Arc::default(),
        }
    }

    fn send(&self, seek: impl Future<Output = LoadResult> + Send + 'static) {
        let mailbox = self.mailbox.clone();
        let away = self.away.clone();
        tokio::spawn(async move {
            let found = seek.await;
            // Dropped before the result is queued: its receiver then sees no running load.
            drop(away);
            mailbox.found(found);
        });
    }

    /// Reports whether a load runs.
    pub(super) fn is_loading(&self) -> bool {
        Arc::strong_count(&self.away) > 1
    }

    /// Takes the lease of an agent.
    pub(super) fn activate(&self, agent: AgentId) {
        let engine = self.engine.clone();
        self.send(async move {
            let active_agents = match engine.reader().agent(agent).await {
                Ok(Some(record)) => engine.activate(&record).await,
                Ok(None) => Ok(()),
                Err(error) => Err(error.into()),
            };
            match active_agents {
                Ok(()) | Err(EngineError::Dead(_)) => LoadResult::Attended(agent),
                Err(EngineError::Commit(CommitError::Held { owner, .. })) => {
                    let holder = format!(
                        "open in another ikigai (pid {} on {})",
                        owner.pid, owner.host
                    );
                    LoadResult::Held(agent, holder)
                }
                Err(error) => LoadResult::Trouble(error.to_string()),
            }
        });
    }

    /// Reads the tree, and the cost of the current agent.
    pub(super) fn read_tree(&self, shown: AgentId) {
        let engine = self.engine.clone();
        self.send(async move {
            let spent = engine.own_cost(shown).await.unwrap_or_default();
            or_trouble(engine.tree().await, |tree| {
                LoadResult::Tree(tree, shown, spent)
            })
        });
    }

    /// Reads the tree and the inbox, as far as they are due.
    pub(super) fn read_due(&self, shown: AgentId, [tree, inbox]: [bool; 2]) {
        match (tree, inbox) {
            (true, true) => self.read_tree_and_inbox(shown),
            (true, false) => self.read_tree(shown),
            (false, true) => self.read_inbox(),
            (false, false) => {}
        }
    }

    /// Reads the tree and everything that waits for the user, from one list of agents.
    fn read_tree_and_inbox(&self, shown: AgentId) {
        let engine = self.engine.clone();
        let mailbox = self.mailbox.clone();
        self.send(async move {
            let spent = engine.own_cost(shown).await.unwrap_or_default();
            or_trouble(read_tree_and_inbox(&engine).await, |(tree, inbox)| {
                mailbox.found(LoadResult::Inbox(inbox));
                LoadResult::Tree(tree, shown, spent)
            })
        });
    }

    /// Reads everything that waits for the user.
    pub(super) fn read_inbox(&self) {
        let engine = self.engine.clone();
        self.send(async move { or_trouble(read_inbox(&engine).await, LoadResult::Inbox) });
    }

    /// Notes that the user has read the report of a row.
    pub(super) fn mark_read(&self, row: RowRef) {
        let engine = self.engine.clone();
        self.send(async move {
            // If that fails, the report is listed again.
            let _ = mark_read(&engine, row).await;
            LoadResult::Seen
        });
    }

    /// Removes an entry from the inbox.
    pub(super) fn dismiss(&self, entry: InboxEntry) {
        let engine = self.engine.clone();
        self.send(async move {
            let dismissed = dismiss_entries(&engine, &[entry]).await;
            or_trouble(dismissed, |()| LoadResult::Seen)
        });
    }

    /// Watches the log for growth, which other processes may cause.
    pub(super) fn watch_others(&self) {
        let (engine, mailbox) = (self.engine.clone(), self.mailbox.clone());
        tokio::spawn(async move {
            // Not before the first frame is drawn.
            tokio::time::sleep(GROWN_PAUSE).await;
            let Ok(mut watch) = engine.reader().watch() else {
                return;
            };
            let mut seen = engine.reader().pulse().await.ok();
            let mut marks = read_marks(&engine).await.ok();
            // Something may have been read since the first look.
            mailbox.found(LoadResult::Seen);
            while watch.changed().await {
                tokio::time::sleep(GROWN_PAUSE).await;
                let changes = watch.take();
                if !changes.is_partial() {
                    if !changes.others.agents.is_empty() {
                        mailbox.found(LoadResult::Grown);
                    } else if !changes.own.agents.is_empty()
                        || changes.own.are_marks_changed
                        || changes.others.are_marks_changed
                    {
                        mailbox.found(LoadResult::Seen);
                    }
                    continue;
                }
                let pulse = engine.reader().pulse().await.ok();
                let rows = |pulse: Option<&Pulse>| pulse.map(|pulse| pulse.rows);
                let read = read_marks(&engine).await.ok();
                if rows(pulse.as_ref()) != rows(seen.as_ref()) {
                    mailbox.found(LoadResult::Grown);
                } else if read != marks {
                    mailbox.found(LoadResult::Seen);
                }
                (seen, marks) = (pulse, read);
            }
        });
    }

    /// Reads costs of agents, and the newest rows of some.
    pub(super) fn read_board(&self, agents: Vec<AgentId>) {
        let engine = self.engine.clone();
        self.send(async move {
            match board(&engine, agents).await {
                Ok(found) => found,
                Err(error) => LoadResult::Trouble(error.to_string()),
            }
        });
    }

    /// Reads the preview of `/merge` with these arguments.
    pub(super) fn preview_merge(&self, into: AgentId, arguments: String) {
        let engine = self.engine.clone();
        self.send(async move {
            let previews = engine.merge_previews(into, &arguments).await;
            or_trouble(previews, |previews| LoadResult::Merge(into, previews))
        });
    }

    /// Settles unfinished turns of dead processes.
    pub(super) fn supervise(&self) {
        let engine = self.engine.clone();
        self.send(async move {
            let stopped = engine.supervise().await;
            for one in stopped.iter().flatten().filter(|one| !one.goes_on) {
                // Its questions appear again, unless it ended or was taken meanwhile.
                let _ = engine.activate(&one.agent).await;
            }
            or_trouble(stopped, |stopped| {
                LoadResult::Stopped(engine.stopped_lines(&stopped))
            })
        });
    }

    /// Takes over agents of this person and machine whose holders die, as long as the program runs.
    pub(super) fn watch_holders(&self) {
        let (engine, mailbox) = (self.engine.clone(), self.mailbox.clone());
        tokio::spawn(async move {
            let mut seen = HashSet::new();
            loop {
                sleep(BETWEEN_TAKEOVERS).await;
                // A store that is away is asked again later.
                let Ok(dead) = engine.dead_holders().await else {
                    continue;
                };
                // The killed keep their holder, and need nothing.
                if dead.is_subset(&seen) {
                    continue;
                }
                let Ok(stopped) = engine.supervise().await else {
                    continue;
                };
                seen = dead;
                for one in stopped.iter().filter(|one| !one.goes_on) {
                    let _ = engine.activate(&one.agent).await;
                }
                if !stopped.is_empty() {
                    mailbox.found(LoadResult::Stopped(engine.stopped_lines(&stopped)));
                }
            }
        });
    }

    /// Probes whether tools run in a sandbox.
    pub(super) fn try_confinement(&self) {
        let engine = self.engine.clone();
        self.send(async move { LoadResult::Confined(engine.confines().await) });
    }

    /// Probes for a model server on this machine, to offer it.
    pub(super) fn find_server(&self) {
        let (engine, mailbox) = (self.engine.clone(), self.mailbox.clone());
        tokio::spawn(async move {
            if let Some((title, model)) = engine.find_local().await {
                mailbox.found(LoadResult::Server(format!("{title}: /model {model}")));
            }
        });
    }

    /// Starts servers of tools.
    pub(super) fn start_tool_servers(&self, workdir: &str) {
        let (engine, workdir) = (self.engine.clone(), PathBuf::from(workdir));
        tokio::spawn(async move { engine.tool_source().start_servers(&workdir).await });
    }

    /// Lists names for completion.
    pub(super) fn list_choices(&self, workdir: String) {
        let engine = self.engine.clone();
        self.send(async move {
            let models = engine.offers().into_iter().map(|offer| {
                let about = if offer.reachable { "" } else { "no key" };
                Candidate::new(offer.name(), about)
            });
            let models = models.collect();
            let tools = engine.tool_names(&workdir).await.into_iter();
            let tools = tools.map(|name| Candidate::new(name, "")).collect();
            let extensions = engine.extensions(Path::new(&workdir)).await;
            let callables = extensions.callables();
            let callables = callables
                .map(|text| Candidate::new(text.name.clone(), text.description.clone()))
                .collect();
            LoadResult::Choices(NamesToComplete {
                models,
                tools,
                callables,
            })
        });
    }

    /// Reads the entries of a picker.
    pub(super) fn read_choice(&self, what: PickerKind, model: Option<ModelChoice>) {
        let engine = self.engine.clone();
        self.send(async move {
            let picker = choices::picker(&engine, what, model.as_ref()).await;
            or_trouble(picker, |picker| LoadResult::Choice(Box::new(picker)))
        });
    }

    /// Searches the whole log; `from` is the current agent.
    pub(super) fn search(
        &self,
        typed: String,
        after: Option<SearchCursor>,
        from: AgentId,
        workdir: String,
    ) {
        let engine = self.engine.clone();
        self.send(async move {
            let options = SearchOptions {
                limit: MOST_HITS,
                cursor: after,
                workdir: Some(Path::new(&workdir)),
                ..SearchOptions::default()
            };
            match engine.search(&typed, options).await {
                Ok(Ok(found)) => {
                    let now = engine.now();
                    let hits = Hits {
                        typed,
                        from,
                        now,
                        found,
                    };
                    LoadResult::Hits {
                        hits: Box::new(hits),
                        is_more: after.is_some(),
                    }
                }
                Ok(Err(reason)) => LoadResult::Trouble(reason),
                Err(error) => LoadResult::Trouble(error.to_string()),
            }
        });
    }

    /// Reads the parts of the status other than settings.
    pub(super) fn read_status(&self, app: &App) {
        let current = app.current();
        self.count(current);
        self.look_up_branch(current, app.workdir());
    }

    /// Estimates the usage of an agent's context window.
    fn count(&self, agent: AgentId) {
        let engine = self.engine.clone();
        self.send(async move {
            // Without an estimate the status shows none.
            let estimate = engine.estimate_context(agent).await.ok();
            let filled = estimate.map(|estimate| ContextUsage {
                used: estimate.used,
                of: estimate.budget,
                source: estimate.source.word(),
            });
            LoadResult::Filled(agent, filled)
        });
    }

    /// Reads the branch of an agent's directory.
    fn look_up_branch(&self, agent: AgentId, workdir: String) {
        self.send(async move {
            let look = move || branch_of(Path::new(&workdir));
            let branch = tokio::task::spawn_blocking(look).await;
            LoadResult::CheckedOut(agent, branch.ok().flatten())
        });
    }
}

async fn board(engine: &Engine, agents: Vec<AgentId>) -> Result<LoadResult, EngineError> {
    let costs = engine.costs().await?.into_iter();
    let costs = costs.map(|cost| (cost.agent.id, cost.own)).collect();
    let mut newest = Vec::new();
    for agent in agents {
        let query = PageQuery::newest(Span::whole(agent), NEWEST_ROWS);
        let mut rows = engine.reader().page(query).await?;
        rows.reverse();
        newest.push((agent, rows));
    }
    Ok(LoadResult::Board { costs, newest })
}

fn or_trouble<T>(read: Result<T, EngineError>, found: impl FnOnce(T) -> LoadResult) -> LoadResult {
    match read {
        Ok(read) => found(read),
        Err(error) => LoadResult::Trouble(error.to_string()),
    }
}

/// Returns the branch of a directory, or the beginning of its commit.
#[expect(clippy::disallowed_methods, reason = "runs on a blocking thread")]
fn branch_of(directory: &Path) -> Option<String> {
    let mut above = directory.ancestors().map(|up| up.join(".git"));
    let git = above.find(|git| git.exists())?;
    let git = if git.is_dir() {
        git
    } else {
        linked_directory(&git)?
    };
    let head = std::fs::read_to_string(git.join("HEAD")).ok()?;
    let head = head.trim();
    let name = head.strip_prefix("ref: refs/heads/").or(head.get(..7))?;
    Some(name.to_owned())
}

/// Returns the Git directory of a linked work tree.
#[expect(clippy::disallowed_methods, reason = "runs on a blocking thread")]
fn linked_directory(git: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(git).ok()?;
    Some(PathBuf::from(text.trim().strip_prefix("gitdir: ")?))
}
