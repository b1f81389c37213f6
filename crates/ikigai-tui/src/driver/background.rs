//! What is found out beside the screen, which goes on meanwhile: nothing that is read or tried here
//! keeps a key from being seen.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::data::Amounts;
use ikigai_core::settings::ModelChoice;
use ikigai_core::{AgentId, Direction, PageQuery, Row, Span};
use ikigai_engine::commands::Candidate;
use ikigai_engine::search::{Asked, Cursor};
use ikigai_engine::{Branch, CommitError, Engine, EngineError, MergePreview, Pulse, Submission};

use super::choices;
use super::mailbox::Mailbox;
use crate::app::{Choosing, Filled, Hits, Picker};
use crate::drafts::DraftReport;

/// How many of an agent's rows are read to tell what it said last.
const NEWEST_ROWS: usize = 16;

/// It is told at most this often that the log has grown.
const GROWN_PAUSE: Duration = Duration::from_millis(500);

/// How many hits are read at a time.
const MOST_HITS: usize = 50;

/// Something that was found out.
#[derive(Debug)]
pub(crate) enum Found {
    /// The tree of agents, and what one of them cost.
    Tree(Vec<Branch>, AgentId, Amounts),
    /// What the board shows.
    Board {
        /// What agents used in their whole lives.
        costs: Vec<(AgentId, Amounts)>,
        /// The newest rows of some, oldest first.
        newest: Vec<(AgentId, Vec<Row>)>,
    },
    /// What merging would bring into an agent.
    Merge(AgentId, Vec<MergePreview>),
    /// What stopped in the middle, a line each.
    Stopped(Vec<String>),
    /// Whether what tools run is confined.
    Confined(bool),
    /// What can be chosen by name.
    Choices {
        /// Models.
        models: Vec<Candidate>,
        /// Tools.
        tools: Vec<Candidate>,
    },
    /// A model server on this machine, and how it is used.
    Server(String),
    /// What there is to choose from.
    Choice(Box<Picker>),
    /// What was looked for in the log.
    Hits {
        /// What was found.
        hits: Box<Hits>,
        /// Whether an earlier answer is gone on with.
        is_more: bool,
    },
    /// What fills an agent's window.
    Filled(AgentId, Option<Filled>),
    /// What is checked out in an agent's directory.
    CheckedOut(AgentId, Option<String>),
    /// Another process holds an agent.
    Held(AgentId, String),
    /// An agent is taken care of.
    Attended,
    /// The log has grown.
    Grown,
    /// An agent has a typed line, or not.
    Delivered(AgentId, Submission, Result<(), EngineError>),
    /// A pending message is stored, or not.
    PendingStored(AgentId, Submission, Result<(), EngineError>),
    /// Something became of draft files.
    Kept(DraftReport),
    /// Something failed.
    Trouble(String),
}

/// Finds things out and puts them where the screen looks.
pub(super) struct Scout {
    pub(super) engine: Engine,
    pub(super) mailbox: Arc<Mailbox>,
    /// Held by everything that is being found out.
    away: Arc<()>,
}

impl Scout {
    pub(super) fn new(engine: Engine, mailbox: Arc<Mailbox>) -> Self {
        Self {
            engine,
            mailbox,
            away: Arc::default(),
        }
    }

    fn send(&self, seek: impl Future<Output = Found> + Send + 'static) {
        let mailbox = self.mailbox.clone();
        let away = self.away.clone();
        tokio::spawn(async move {
            let found = seek.await;
            // Before it is told, so that nobody who is woken by it waits for more.
            drop(away);
            mailbox.found(found);
        });
    }

    /// Whether something is being found out.
    pub(super) fn is_away(&self) -> bool {
        Arc::strong_count(&self.away) > 1
    }

    /// Takes care of an agent.
    pub(super) fn attend(&self, agent: AgentId) {
        let engine = self.engine.clone();
        self.send(async move {
            let attended = match engine.store().agent(agent).await {
                Ok(Some(record)) => engine.attend(&record).await,
                Ok(None) => Ok(()),
                Err(error) => Err(error.into()),
            };
            match attended {
                Ok(()) | Err(EngineError::Dead(_)) => Found::Attended,
                Err(EngineError::Commit(CommitError::Held { owner, .. })) => {
                    let holder = format!("open in pid {} on {}", owner.pid, owner.host);
                    Found::Held(agent, holder)
                }
                Err(error) => Found::Trouble(error.to_string()),
            }
        });
    }

    /// Reads the tree, and what the agent that is shown cost.
    pub(super) fn read_tree(&self, shown: AgentId) {
        let engine = self.engine.clone();
        self.send(async move {
            let spent = engine.own_cost(shown).await.unwrap_or_default();
            or_trouble(engine.tree().await, |tree| Found::Tree(tree, shown, spent))
        });
    }

    /// Tells from now on when the log has grown: others may have done that.
    pub(super) fn watch_others(&self) {
        let (engine, mailbox) = (self.engine.clone(), self.mailbox.clone());
        tokio::spawn(async move {
            // Not while the first screen is drawn.
            tokio::time::sleep(GROWN_PAUSE).await;
            let Ok(mut watch) = engine.store().watch() else {
                return;
            };
            let mut seen = engine.store().pulse().await.ok();
            while watch.changed().await {
                tokio::time::sleep(GROWN_PAUSE).await;
                let pulse = engine.store().pulse().await.ok();
                let rows = |pulse: Option<&Pulse>| pulse.map(|pulse| pulse.rows);
                if rows(pulse.as_ref()) != rows(seen.as_ref()) {
                    mailbox.found(Found::Grown);
                }
                seen = pulse;
            }
        });
    }

    /// Reads what agents cost, and the newest rows of some.
    pub(super) fn read_board(&self, agents: Vec<AgentId>) {
        let engine = self.engine.clone();
        self.send(async move {
            match board(&engine, agents).await {
                Ok(found) => found,
                Err(error) => Found::Trouble(error.to_string()),
            }
        });
    }

    /// Reads what `/merge` with these arguments would bring.
    pub(super) fn preview_merge(&self, into: AgentId, arguments: String) {
        let engine = self.engine.clone();
        self.send(async move {
            let previews = engine.merge_previews(into, &arguments).await;
            or_trouble(previews, |previews| Found::Merge(into, previews))
        });
    }

    /// Settles what processes that are gone left unfinished.
    pub(super) fn supervise(&self) {
        let engine = self.engine.clone();
        self.send(async move {
            let stopped = engine.supervise().await;
            for one in stopped.iter().flatten().filter(|one| !one.goes_on) {
                // What it had asked is asked again. Who died or was taken meanwhile asks nothing.
                let _ = engine.attend(&one.agent).await;
            }
            or_trouble(stopped, |stopped| {
                Found::Stopped(engine.stopped_lines(&stopped))
            })
        });
    }

    /// Tries whether what tools run is confined.
    pub(super) fn try_confinement(&self) {
        let engine = self.engine.clone();
        self.send(async move { Found::Confined(engine.confines().await) });
    }

    /// Looks for a model server on this machine. It is offered, never chosen.
    pub(super) fn find_server(&self) {
        let (engine, mailbox) = (self.engine.clone(), self.mailbox.clone());
        tokio::spawn(async move {
            if let Some((title, model)) = engine.find_local().await {
                mailbox.found(Found::Server(format!("{title} here: /model {model}")));
            }
        });
    }

    /// Lists what can be chosen by name.
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
            Found::Choices { models, tools }
        });
    }

    /// Reads what there is to choose from.
    pub(super) fn read_choice(&self, what: Choosing, model: Option<ModelChoice>) {
        let engine = self.engine.clone();
        self.send(async move {
            let picker = choices::picker(&engine, what, model.as_ref()).await;
            or_trouble(picker, |picker| Found::Choice(Box::new(picker)))
        });
    }

    /// Looks for words in the whole log; `from` is who is shown.
    pub(super) fn search(
        &self,
        typed: String,
        after: Option<Cursor>,
        from: AgentId,
        workdir: String,
    ) {
        let engine = self.engine.clone();
        self.send(async move {
            let asked = Asked {
                limit: MOST_HITS,
                cursor: after,
                workdir: Some(Path::new(&workdir)),
                ..Asked::default()
            };
            match engine.search(&typed, asked).await {
                Ok(Ok(found)) => {
                    let now = engine.now();
                    let hits = Hits {
                        typed,
                        from,
                        now,
                        found,
                    };
                    Found::Hits {
                        hits: Box::new(hits),
                        is_more: after.is_some(),
                    }
                }
                Ok(Err(reason)) => Found::Trouble(reason),
                Err(error) => Found::Trouble(error.to_string()),
            }
        });
    }

    /// Counts what fills an agent's window.
    pub(super) fn count(&self, agent: AgentId) {
        let engine = self.engine.clone();
        self.send(async move {
            // What cannot be told is not shown.
            let estimate = engine.estimate_context(agent).await.ok();
            let filled = estimate.map(|estimate| Filled {
                used: estimate.used,
                of: estimate.budget,
                source: estimate.source.word(),
            });
            Found::Filled(agent, filled)
        });
    }

    /// Looks what is checked out in an agent's directory.
    pub(super) fn look_up_branch(&self, agent: AgentId, workdir: String) {
        self.send(async move { Found::CheckedOut(agent, branch_of(Path::new(&workdir))) });
    }
}

async fn board(engine: &Engine, agents: Vec<AgentId>) -> Result<Found, EngineError> {
    let costs = engine.costs().await?.into_iter();
    let costs = costs.map(|cost| (cost.agent.id, cost.own)).collect();
    let mut newest = Vec::new();
    for agent in agents {
        let query = PageQuery {
            span: Span::whole(agent),
            direction: Direction::Backwards,
            limit: NEWEST_ROWS,
        };
        let mut rows = engine.store().page(query).await?;
        rows.reverse();
        newest.push((agent, rows));
    }
    Ok(Found::Board { costs, newest })
}

fn or_trouble<T>(read: Result<T, EngineError>, found: impl FnOnce(T) -> Found) -> Found {
    match read {
        Ok(read) => found(read),
        Err(error) => Found::Trouble(error.to_string()),
    }
}

/// The branch that is checked out in a directory, or the beginning of its commit.
fn branch_of(directory: &Path) -> Option<String> {
    let mut above = directory.ancestors().map(|up| up.join(".git"));
    let git = above.find(|git| git.exists())?;
    let git = if git.is_dir() { git } else { linked(&git)? };
    let head = std::fs::read_to_string(git.join("HEAD")).ok()?;
    let head = head.trim();
    let name = head.strip_prefix("ref: refs/heads/").or(head.get(..7))?;
    Some(name.to_owned())
}

/// Where the data of a linked work tree is.
fn linked(git: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(git).ok()?;
    Some(PathBuf::from(text.trim().strip_prefix("gitdir: ")?))
}
