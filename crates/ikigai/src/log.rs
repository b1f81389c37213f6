//! `ikigai log`: an agent's rows or next request, without changing the agent.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use ikigai_core::load::LoadError;
use ikigai_core::load::load;
use ikigai_core::render::{Shown, render};
use ikigai_core::spelling::clean_line;
use ikigai_core::{AgentId, AgentState, PageQuery, Row, RowRef, Seq, Span};
use ikigai_engine::{Engine, NameCache};
use ikigai_store::Agent;

use crate::arguments::{LogOrder, exit};
use crate::context::ProgramContext;
use crate::output::{json_of, local_time, print, print_json, print_stderr};

/// Rows read at a time.
const PAGE_ROWS: usize = 256;

/// Rows printed before and after one.
const ROWS_AROUND: u64 = 10;

pub(crate) fn log(db: Option<String>, order: &LogOrder) -> Result<ExitCode> {
    let program = ProgramContext::open_reading(db)?;
    let agent = program.find(order.agent.as_deref())?;
    if let Some(name) = &order.around {
        let own = agent.map(|agent| agent.id);
        program.block_on(print_around(&program.engine, own, name, order))?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(agent) = agent else {
        print_stderr(
            "error: no agent in this directory yet\nhint: start one with `ikigai run \"hello\"`",
        );
        return Ok(exit::AGENT.into());
    };
    program.block_on(async {
        if order.request {
            print_request(&program, agent.id, order).await
        } else {
            let mut printer = Printer::new(&program.engine, agent.id, order);
            let newest = printer.print_rows().await?;
            if order.follow {
                printer.follow(newest).await?;
            }
            anyhow::Ok(())
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn print_request(program: &ProgramContext, agent: AgentId, order: &LogOrder) -> Result<()> {
    let engine = &program.engine;
    let past = match &order.at {
        None => engine.pending_request(agent).await?,
        Some(name) => {
            engine
                .request_at(row_named(engine, Some(agent), name).await?)
                .await?
        }
    };
    let dialect = order.dialect.as_deref();
    let dialect = dialect.and_then(|name| program.registry.dialect(name, &past.choice));
    let text = match dialect {
        None => serde_json::to_string_pretty(&past.request)?,
        Some(dialect) => {
            let conversation = past.agent.to_string();
            let registry = &program.registry;
            let body = registry.preview(&past.choice, &past.request, &conversation, dialect);
            serde_json::to_string_pretty(&body)?
        }
    };
    print_json(&text)?;
    Ok(())
}

/// Finds a row by its typed reference: the agent's, or another agent's by name.
pub(crate) async fn row_named(
    engine: &Engine,
    own: Option<AgentId>,
    typed: &str,
) -> Result<RowRef> {
    let name = typed.strip_prefix('#').unwrap_or(typed);
    let (owner, number) = match (name.rsplit_once('.'), own) {
        (Some((owner, number)), _) => (engine.find(owner).await?.id, number),
        (None, Some(own)) => (own, name),
        (None, None) => bail!(
            "no agent in this directory yet, so `{typed}` is unknown\nhint: name the agent, as in #name.12"
        ),
    };
    let number = number
        .parse()
        .ok()
        .with_context(|| format!("invalid event `{typed}`: expected #12 or #name.12"))?;
    Ok(RowRef::new(owner, Seq(number)))
}

/// Prints the rows around one, remembered or not.
async fn print_around(
    engine: &Engine,
    own: Option<AgentId>,
    name: &str,
    order: &LogOrder,
) -> Result<()> {
    let row = row_named(engine, own, name).await?;
    let head = engine.reader().head(row.agent).await?;
    let head = head.map_or(Seq(0), |head| head.seq);
    if row.seq == Seq(0) || row.seq > head {
        bail!("no event `{name}`; the last one is #{head}");
    }
    let first = Seq(row.seq.0.saturating_sub(ROWS_AROUND).max(1));
    let last = Seq(row.seq.0.saturating_add(ROWS_AROUND).min(head.0));
    let span = Span::new(row.agent, first, last);
    let mut printer = Printer::new(engine, row.agent, order);
    printer
        .know(Agent::restore(engine.reader(), row.agent).await?)
        .await?;
    printer.print_span(span).await
}

/// Prints rows as one agent sees them.
struct Printer<'a> {
    engine: &'a Engine,
    order: &'a LogOrder,
    own: AgentId,
    called: NameCache,
    /// State of the agent, with its whole path.
    state: Option<AgentState>,
}

impl<'a> Printer<'a> {
    fn new(engine: &'a Engine, own: AgentId, order: &'a LogOrder) -> Self {
        Self {
            engine,
            order,
            own,
            called: NameCache::default(),
            state: None,
        }
    }

    /// Reads the whole path of the agent, to detect invalid rewinds.
    async fn know(&mut self, mut agent: Agent) -> Result<()> {
        agent.know_all(self.engine.reader()).await?;
        self.state = Some(agent.state);
        Ok(())
    }

    /// Prints the stored rows. Returns the newest row.
    async fn print_rows(&mut self) -> Result<Seq> {
        let store = self.engine.reader();
        let mut agent = Agent::restore(store, self.own).await?;
        let newest = agent.state.head();
        if let Some(rows) = self.order.tail {
            while agent.view.entries().len() < rows {
                let missing = rows - agent.view.entries().len();
                if !agent.lengthen(store, missing.min(PAGE_ROWS)).await? {
                    break;
                }
            }
            let rows: Vec<_> = agent
                .view
                .entries()
                .iter()
                .map(|entry| entry.row.clone())
                .collect();
            self.know(agent).await?;
            for row in &rows {
                self.print_row(row).await?;
            }
            return Ok(newest);
        }
        self.know(agent).await?;
        let spans = match &self.state {
            Some(state) if !self.order.all => state.path().spans().collect(),
            _ => vec![Span::new(self.own, Seq(1), newest)],
        };
        for span in spans {
            self.print_span(span).await?;
        }
        Ok(newest)
    }

    /// Prints rows after `after` as they are stored.
    async fn follow(&mut self, after: Seq) -> Result<()> {
        let mut follow = self.engine.follow(self.own, after)?;
        loop {
            let rows = follow.next().await?;
            if rows.is_empty() {
                return Ok(());
            }
            for row in &rows {
                self.print_row(row).await?;
            }
        }
    }

    async fn print_span(&mut self, span: Span) -> Result<()> {
        let mut from = span.from;
        while from <= span.to {
            let query = PageQuery::oldest(Span { from, ..span }, PAGE_ROWS);
            let rows = self.engine.reader().page(query).await?;
            let Some(last) = rows.last() else {
                let missing = RowRef::new(span.agent, from);
                print_stderr(&format!("warning: event {missing} is missing"));
                return Ok(());
            };
            from = last.at.seq.next();
            for row in &rows {
                self.print_row(row).await?;
            }
        }
        Ok(())
    }

    async fn print_row(&mut self, row: &Row) -> Result<()> {
        let by = self.order.by.as_ref();
        if by.is_some_and(|by| row.author.as_ref() != Some(by)) {
            return Ok(());
        }
        if self.order.json {
            print_json(&json_of(row))?;
            return Ok(());
        }
        let problem = self
            .state
            .as_ref()
            .and_then(|state| state.rewind_problem(row));
        let shown = match (load(row), problem) {
            (Ok(_), None) => render(row),
            (Err(error), _) | (Ok(_), Some(error)) => warning(row, &error),
        };
        let text = self
            .called
            .plain_text(self.engine, self.own, &shown)
            .await?;
        if text.is_empty() {
            return Ok(());
        }
        let place = self.called.row(self.engine, self.own, row.at).await?;
        let author = row.author.as_ref();
        let author = author.map_or_else(String::new, |author| format!(" by {author}"));
        print(&format!(
            "{} {} {}{}\n{text}\n\n",
            local_time(row.created_at),
            clean_line(&place),
            clean_line(row.kind.name()),
            clean_line(&author)
        ))?;
        Ok(())
    }
}

fn warning(row: &Row, error: &LoadError) -> Shown {
    print_stderr(&format!("warning: cannot read event {}: {error}", row.at));
    Shown::warning(row, error)
}
