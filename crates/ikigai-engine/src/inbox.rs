//! Inbox: everything that waits for the user, read from the logs of all agents.
//!
//! Each entry follows from rows: an open call that needs approval, or a last turn that failed, met
//! a budget, or stopped with its process. So a new message, rewind or clear removes it, in every
//! process at once.

use std::cmp::Reverse;

use ikigai_core::data::{self, Category, Cause, CommandData, ErrorData, InterruptedData, UserData};
use ikigai_core::spelling::spell_out;
use ikigai_core::{Kind, Micros, Row, RowRef};
use ikigai_store::{Agent, AgentRecord, Status};
use ikigai_tools::permission::Decision;

use crate::calls::{OpenCall, open_calls};
use crate::last_turn::last_turn;
use crate::{EngineError, EngineReader, recall};

/// Rows read per query, and in total, to find what an agent waits for.
const PAGE_ROWS: usize = 64;
const MOST_ROWS: usize = 4096;

/// Reason why an agent waits for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InboxKind {
    /// A call needs approval.
    Question,
    /// The last turn failed.
    Failed,
    /// The last turn was refused by a budget.
    Budget,
    /// The last turn stopped with its process.
    Interrupted,
}

impl InboxKind {
    /// Returns the word for lists and JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::Failed => "failed",
            Self::Budget => "budget",
            Self::Interrupted => "interrupted",
        }
    }

    /// Returns the sign for lists.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Question => "?",
            Self::Failed => "✗",
            Self::Budget => "$",
            Self::Interrupted => "⏸",
        }
    }
}

/// One entry of the inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxEntry {
    /// The agent that waits.
    pub agent: AgentRecord,
    /// Reason of the wait.
    pub kind: InboxKind,
    /// Row that began the wait.
    pub row: RowRef,
    /// Time of that row.
    pub at: Micros,
    /// The call with its diff, or the failure, in full.
    pub text: String,
}

/// Meaning of a row for the last turn, newest rows first.
enum RowVerdict {
    /// The agent waits, because of this row.
    Waits(InboxKind),
    /// The agent does not wait.
    Rests,
    /// An older row decides.
    Neutral,
}

/// Reads everything that waits for the user, newest first. Reads a page of rows per running agent.
pub async fn read_inbox(engine: &EngineReader) -> Result<Vec<InboxEntry>, EngineError> {
    let scan = InboxScan { engine };
    let mut entries = Vec::new();
    for record in engine.agents().await? {
        if record.status == Status::Running {
            entries.extend(scan.waits_of(record).await?);
        }
    }
    entries.sort_by_key(|entry| (Reverse(entry.at), entry.row.agent, entry.row.seq));
    Ok(entries)
}

/// Search for what agents wait for.
struct InboxScan<'a> {
    engine: &'a EngineReader,
}

impl InboxScan<'_> {
    /// Returns what one agent waits for.
    async fn waits_of(&self, record: AgentRecord) -> Result<Vec<InboxEntry>, EngineError> {
        let mut agent = Agent::restore(self.engine.reader(), record.id).await?;
        let open = loop {
            if let Some(open) = open_calls(&agent) {
                break open;
            }
            let is_enough = agent.view.entries().len() >= MOST_ROWS;
            if is_enough || !agent.lengthen(self.engine.reader(), PAGE_ROWS).await? {
                break Vec::new();
            }
        };
        let questions = self.questions_of(&record, &agent, open).await?;
        if !questions.is_empty() || self.engine.works(record.id).await? {
            return Ok(questions);
        }
        let Some((kind, row)) = self.end_of_turn(&mut agent).await? else {
            return Ok(Vec::new());
        };
        let text = match kind {
            InboxKind::Interrupted => self.interruption(&record).await?,
            InboxKind::Question | InboxKind::Failed | InboxKind::Budget => {
                row.content.clone().unwrap_or_default()
            }
        };
        Ok(vec![InboxEntry {
            kind,
            row: row.at,
            at: row.created_at,
            text,
            agent: record,
        }])
    }

    /// Returns the open calls that need approval. A call that was started is journalled.
    async fn questions_of(
        &self,
        record: &AgentRecord,
        agent: &Agent,
        open: Vec<OpenCall>,
    ) -> Result<Vec<InboxEntry>, EngineError> {
        if open.is_empty() {
            return Ok(Vec::new());
        }
        let runs = self.engine.reader().open_runs(record.id).await?;
        let tools = self.engine.toolset(agent.state.settings()).await;
        let mut questions = Vec::new();
        for call in open {
            let runs = runs.iter().any(|run| run.call == call.at);
            // Calls of agent tools are decided by their family.
            if runs || tools.agent_tool(&call.name).is_some() {
                continue;
            }
            let Ok(mut prepared) = tools.prepare(&call.name, &call.arguments) else {
                continue;
            };
            let sandbox = self.engine.sandbox_for(prepared.class).await;
            let grant = self.engine.in_force(&agent.state);
            let judged = self
                .engine
                .judge(grant, sandbox, &call.name, &prepared, &tools.place);
            if !matches!(judged, Decision::Ask { .. }) {
                continue;
            }
            let mut text = format!("{}: {}", call.name, spell_out(&prepared.shown));
            if let Some(make) = prepared.preview.take() {
                let given = recall::inputs(self.engine, agent, &prepared.needs).await?;
                let preview = tokio::task::spawn_blocking(move || make(&given)).await;
                // The question itself says why a preview failed.
                if let Ok(Ok(preview)) = preview {
                    text.push('\n');
                    text.push_str(&spell_out(&preview));
                }
            }
            questions.push(InboxEntry {
                agent: record.clone(),
                kind: InboxKind::Question,
                row: call.at,
                at: call.created_at,
                text,
            });
        }
        Ok(questions)
    }

    /// Finds the row with which an idle agent's last turn ended, if that waits for the user.
    async fn end_of_turn(
        &self,
        agent: &mut Agent,
    ) -> Result<Option<(InboxKind, Row)>, EngineError> {
        let newest = agent.view.entries().back();
        let newest = newest.map(|entry| Row::clone(&entry.row));
        if let Some(newest) =
            newest.filter(|_| agent.view.is_busy(agent.state.path()) == Some(true))
        {
            // Its process died and no other has settled the turn yet.
            return Ok(Some((InboxKind::Interrupted, newest)));
        }
        loop {
            for entry in agent.view.entries().iter().rev() {
                match verdict(&entry.row) {
                    RowVerdict::Waits(kind) => return Ok(Some((kind, Row::clone(&entry.row)))),
                    RowVerdict::Rests => return Ok(None),
                    RowVerdict::Neutral => {}
                }
            }
            let is_enough = agent.view.entries().len() >= MOST_ROWS;
            if is_enough || !agent.lengthen(self.engine.reader(), PAGE_ROWS).await? {
                return Ok(None);
            }
        }
    }

    async fn interruption(&self, record: &AgentRecord) -> Result<String, EngineError> {
        let stop = last_turn(self.engine.reader(), record.id).await?.stop();
        Ok(match stop {
            Some((_, true)) => "a tool call was interrupted, its outcome is unknown",
            _ => "its process ended",
        }
        .to_owned())
    }
}

/// Returns what a row says about the last turn of an idle agent.
fn verdict(row: &Row) -> RowVerdict {
    let data = row.data.as_deref();
    let Some(kind) = row.kind.read_as() else {
        return RowVerdict::Neutral;
    };
    match kind {
        Kind::Error => {
            let error: ErrorData = data::read(data);
            match (error.omit, error.category) {
                (Some(_), _) => RowVerdict::Neutral,
                (None, Some(Category::Budget)) => RowVerdict::Waits(InboxKind::Budget),
                (None, _) => RowVerdict::Waits(InboxKind::Failed),
            }
        }
        Kind::Interrupted => match data::read::<InterruptedData>(data).cause {
            Some(Cause::Exit | Cause::Crash) => RowVerdict::Waits(InboxKind::Interrupted),
            _ => RowVerdict::Rests,
        },
        Kind::User => {
            let user: UserData = data::read(data);
            if user.shell.is_some() || user.merge.is_some() {
                RowVerdict::Neutral
            } else {
                RowVerdict::Rests
            }
        }
        Kind::Command if data::read::<CommandData>(data).resume == Some(true) => RowVerdict::Rests,
        Kind::Assistant | Kind::ToolCall | Kind::ToolResult | Kind::Clear | Kind::Rewind => {
            RowVerdict::Rests
        }
        Kind::Command
        | Kind::System
        | Kind::Mark
        | Kind::Fork
        | Kind::AgentKilled
        | Kind::Usage
        | Kind::Summary
        | Kind::Process => RowVerdict::Neutral,
    }
}
