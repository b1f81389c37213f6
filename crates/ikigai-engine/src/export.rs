//! Export of agents: Markdown, one page of HTML, or JSON lines for another store.
//! Rows are read in pages, so that a history may have any length.

mod html;
mod markdown;
mod page;
mod prose;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::io::{self, Write};

use ikigai_core::{AgentId, AgentState, Kind, PageQuery, Row, RowRef, Seq, Span};
use ikigai_store::{Agent, AgentRecord};
use thiserror::Error;
use tokio::sync::mpsc;

use crate::{EngineError, EngineReader, TurnFigures};

use page::Page;

/// Rows read per query.
const PAGE_ROWS: usize = 256;

/// Capacity of the queue of JSON lines.
const LINES: usize = 64;

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people, as text.
    Markdown,
    /// For people, as one page.
    Html,
    /// For another store.
    Json,
}

impl Format {
    /// Names of all formats.
    pub const WORDS: [&'static str; 3] = ["md", "html", "json"];

    /// Returns the format by its name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "md" | "markdown" => Some(Self::Markdown),
            "html" => Some(Self::Html),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    /// Returns the file extension.
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Markdown => "md",
            Self::Html => "html",
            Self::Json => "json",
        }
    }
}

/// Selection of agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// This agent's history, with inherited rows.
    Agent(AgentId),
    /// This agent's and its descendants'.
    Tree(AgentId),
    /// All agents.
    All,
}

/// Failure of an export.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The log could not be read.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The output could not be written.
    #[error("cannot write")]
    Write(#[from] io::Error),
}

impl From<ikigai_store::StoreError> for ExportError {
    fn from(error: ikigai_store::StoreError) -> Self {
        Self::Engine(error.into())
    }
}

/// Progress callback: rows done, and rows in total.
pub type ExportProgress<'a> = &'a mut (dyn FnMut(u64, u64) + Send);

impl EngineReader {
    /// Writes histories.
    pub async fn export(
        &self,
        whose: Whose,
        format: Format,
        out: &mut (dyn Write + Send),
        progress: ExportProgress<'_>,
    ) -> Result<(), ExportError> {
        let all = self.reader().agents(None).await?;
        let agents = select_agents(whose, &all);
        if format == Format::Json {
            let of = match whose {
                Whose::All => None,
                Whose::Agent(_) | Whose::Tree(_) => {
                    Some(agents.iter().map(|(agent, _)| agent.id).collect())
                }
            };
            let all = agents.iter().map(|(agent, _)| agent.head.0).sum();
            return self.export_json(of, all, out, progress).await;
        }
        let now = self.environment().now();
        let names = all.into_iter().map(|agent| (agent.id, agent.name));
        let page = Page::new(agents, names.collect(), now, self.environment().zone());
        let mut writing = Writing {
            engine: self,
            page: &page,
            format,
            out,
            done: 0,
            all: page.rows(),
            progress,
            turn: None,
        };
        writing.whole(whose).await
    }

    async fn export_json(
        &self,
        of: Option<Vec<AgentId>>,
        all: u64,
        out: &mut (dyn Write + Send),
        progress: ExportProgress<'_>,
    ) -> Result<(), ExportError> {
        let (sender, mut lines) = mpsc::channel::<String>(LINES);
        let write = async {
            let mut done = 0;
            while let Some(line) = lines.recv().await {
                out.write_all(line.as_bytes())?;
                if line.starts_with("{\"row\"") {
                    done += 1;
                    progress(done, all.max(done));
                }
            }
            out.flush()
        };
        let (dumped, written) = tokio::join!(self.reader().dump(of, sender), write);
        written?;
        Ok(dumped?)
    }
}

/// Returns the agents in the order of the tree, each with its depth.
fn select_agents(whose: Whose, agents: &[AgentRecord]) -> Vec<(AgentRecord, usize)> {
    let (roots, with_children) = match whose {
        Whose::All => (roots_of(agents), true),
        Whose::Tree(root) => (vec![root], true),
        Whose::Agent(agent) => (vec![agent], false),
    };
    let mut left: Vec<(AgentId, usize)> = roots.into_iter().rev().map(|id| (id, 0)).collect();
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    while let Some((id, depth)) = left.pop() {
        let Some(agent) = agents.iter().find(|agent| agent.id == id) else {
            continue;
        };
        if !seen.insert(id) {
            continue;
        }
        if with_children {
            let below = agents.iter().rev().filter(|child| child.parent == Some(id));
            left.extend(below.map(|child| (child.id, depth + 1)));
        }
        found.push((agent.clone(), depth));
    }
    found
}

/// Returns the agents whose parents are not in the list.
fn roots_of(agents: &[AgentRecord]) -> Vec<AgentId> {
    let known: HashSet<AgentId> = agents.iter().map(|agent| agent.id).collect();
    let is_root = |agent: &&AgentRecord| agent.parent.is_none_or(|parent| !known.contains(&parent));
    agents
        .iter()
        .filter(is_root)
        .map(|agent| agent.id)
        .collect()
}

/// Export page under construction.
struct Writing<'a> {
    engine: &'a EngineReader,
    page: &'a Page,
    format: Format,
    out: &'a mut (dyn Write + Send),
    done: u64,
    all: u64,
    progress: ExportProgress<'a>,
    /// The turn in progress.
    turn: Option<TurnFigures>,
}

impl Writing<'_> {
    async fn whole(&mut self, whose: Whose) -> Result<(), ExportError> {
        let text = match self.format {
            Format::Markdown => markdown::begin(self.page),
            _ => html::begin(self.page),
        };
        self.write(&text)?;
        for (agent, _) in self.page.agents() {
            let alone = matches!(whose, Whose::Agent(_));
            self.agent(agent, alone).await?;
        }
        let text = match self.format {
            Format::Markdown => String::new(),
            _ => html::end(),
        };
        self.write(&text)?;
        Ok(self.out.flush()?)
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }

    async fn agent(&mut self, record: &AgentRecord, alone: bool) -> Result<(), ExportError> {
        let store = self.engine.reader();
        let mut agent = Agent::restore(store, record.id).await?;
        agent.know_all(store).await?;
        let state = agent.state;
        let text = match self.format {
            Format::Markdown => markdown::agent(self.page, record),
            _ => html::agent(self.page, record),
        };
        self.write(&text)?;
        // Inherited rows are on the page with their own agent; add them only if it is absent.
        if alone {
            let spans: Vec<Span> = state.path().spans().collect();
            for span in spans.into_iter().filter(|span| span.agent != record.id) {
                self.span(span, &state).await?;
            }
            self.end_turn()?;
        }
        self.span(Span::new(record.id, Seq(1), record.head), &state)
            .await?;
        self.end_turn()?;
        let text = match self.format {
            Format::Markdown => String::new(),
            _ => html::agent_end(),
        };
        Ok(self.write(&text)?)
    }

    async fn span(&mut self, span: Span, state: &AgentState) -> Result<(), ExportError> {
        let mut from = span.from.max(Seq(1));
        while from <= span.to {
            let query = PageQuery::oldest(Span { from, ..span }, PAGE_ROWS);
            let rows = self.engine.reader().page(query).await?;
            let Some(last) = rows.last() else {
                break;
            };
            from = last.at.seq.next();
            for row in &rows {
                self.row(row, state)?;
            }
        }
        Ok(())
    }

    fn row(&mut self, row: &Row, state: &AgentState) -> io::Result<()> {
        self.follow_turn(row)?;
        let is_remembered = state.path().contains(row.at);
        let item = page::item(self.page, row, state.rewind_problem(row).as_ref());
        let text = match self.format {
            Format::Markdown => markdown::row(self.page, row, item, is_remembered),
            _ => html::row(self.page, row, &item, is_remembered),
        };
        self.done += 1;
        (self.progress)(self.done, self.all.max(self.done));
        self.write(&text)
    }
}

impl Writing<'_> {
    /// Adds a row to its turn. Writes the usage line of a turn that ended before it.
    fn follow_turn(&mut self, row: &Row) -> io::Result<()> {
        let kind = row.kind.read_as();
        let ends = self.turn.as_ref().is_some_and(|turn| turn.ends_before(row));
        if ends || matches!(kind, Some(Kind::Clear | Kind::Rewind)) {
            self.end_turn()?;
        }
        // A repeated turn begins with a rewind, but a message after a rewind begins a new turn.
        let is_unanswered = self.turn.as_ref().is_none_or(|turn| !turn.answered);
        if is_unanswered && matches!(kind, Some(Kind::User | Kind::Rewind)) {
            self.turn = Some(TurnFigures::starting_at(row));
        }
        if let Some(turn) = &mut self.turn {
            turn.add(row);
        }
        Ok(())
    }

    /// Writes the usage line of a turn, if the model answered.
    fn end_turn(&mut self) -> io::Result<()> {
        let Some(turn) = self.turn.take().filter(|turn| turn.answered) else {
            return Ok(());
        };
        let line = page::turn_line(self.page, &turn);
        let text = match self.format {
            Format::Markdown => markdown::turn(&line),
            _ => html::turn(&line),
        };
        self.write(&text)
    }
}

/// Returns the name of a row within its agent: `#12`.
fn named(row: RowRef) -> String {
    format!("#{}", row.seq)
}
