//! Inbox: everything that waits for the user, read from the logs of all agents.
//!
//! Each entry follows from rows: an open call that needs approval, a last turn that failed, met a
//! budget or stopped with its process, an answer that the user has not read, or a background process
//! that failed. So a new message, rewind or clear removes it, in every process at once. Marks in the
//! store say what the user has read.

use std::cmp::Reverse;
use std::collections::HashMap;

use ikigai_core::data::{
    self, Category, Cause, CommandData, ErrorData, ForkData, InterruptedData, ProcessCause,
    ProcessData, ProcessState, UserData, UserOrigin,
};
use ikigai_core::render::process_ended;
use ikigai_core::spelling::spell_out;
use ikigai_core::{AgentId, Kind, Row, RowRef, Seq, Span};
use ikigai_store::{Agent, AgentRecord, Batch, Effect, SeenMark, Status};
use ikigai_tools::permission::Decision;

use crate::calls::{OpenCall, open_calls};
use crate::family::Branch;
use crate::inbox_entry::{InboxEntry, InboxKind};
use crate::last_turn::last_turn;
use crate::{Engine, EngineError, EngineReader, recall};

/// Rows read per query, and in total, to find what an agent waits for.
const PAGE_ROWS: usize = 64;
const MOST_ROWS: usize = 4096;

/// Newest rows of an agent among which failed processes and messages of a person are looked for.
const MOST_PROCESSES: usize = 16;
const MOST_MESSAGES: usize = 64;

/// Meaning of a row for the last turn, newest rows first.
enum RowVerdict {
    /// The agent waits, because of this row.
    Waits(InboxKind),
    /// The agent does not wait.
    Rests,
    /// An older row decides.
    Neutral,
}

/// Reads everything that waits for the user, newest first.
///
/// Reads rows only of running agents that work, wait for an answer, or have grown since the last call.
pub async fn read_inbox(engine: &EngineReader) -> Result<Vec<InboxEntry>, EngineError> {
    let agents = engine.agents().await?.into_iter();
    let agents = agents.filter(|record| record.status == Status::Running);
    read_inbox_of(engine, agents.map(|record| (record, None))).await
}

/// Reads the tree of agents and everything that waits for the user, from one list of agents.
pub async fn read_tree_and_inbox(
    engine: &Engine,
) -> Result<(Vec<Branch>, Vec<InboxEntry>), EngineError> {
    let tree = engine.tree().await?;
    let running = tree.iter();
    let running = running.filter(|branch| branch.agent.status == Status::Running);
    let agents = running.map(|branch| {
        let activity = KnownActivity {
            works: branch.works,
            may_ask: branch.may_ask,
        };
        (branch.agent.clone(), Some(activity))
    });
    let inbox = read_inbox_of(engine, agents).await?;
    Ok((tree, inbox))
}

/// Facts about an agent that are known before its rows are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KnownActivity {
    /// It is in a turn.
    works: bool,
    /// A call of it may wait for an answer.
    may_ask: bool,
}

async fn read_inbox_of(
    engine: &EngineReader,
    agents: impl Iterator<Item = (AgentRecord, Option<KnownActivity>)>,
) -> Result<Vec<InboxEntry>, EngineError> {
    let scan = InboxScan { engine };
    let marks = engine.reader().seen(&person_name(engine)).await?;
    let marks: HashMap<AgentId, SeenMark> = marks.iter().map(|mark| (mark.agent, *mark)).collect();
    let mut entries = Vec::new();
    for (record, activity) in agents {
        let mark = marks.get(&record.id).copied();
        let mark = mark.unwrap_or(SeenMark::new(record.id));
        let mut waits = scan.waits_of(record, activity, mark).await?;
        waits.retain(|entry| !entry.is_seen(mark));
        entries.extend(waits);
    }
    entries.sort_by_key(|entry| (Reverse(entry.at), entry.row.agent, entry.row.seq));
    Ok(entries)
}

/// Returns how far the user has read the running agents.
pub async fn read_marks(engine: &EngineReader) -> Result<Vec<SeenMark>, EngineError> {
    Ok(engine.reader().seen(&person_name(engine)).await?)
}

/// Notes that the user has read an agent up to a row.
pub async fn mark_read(engine: &Engine, row: RowRef) -> Result<(), EngineError> {
    commit_marks(engine, vec![read_mark(engine, row)]).await
}

/// Notes that the user has read all of an agent.
pub async fn mark_all_read(engine: &Engine, agent: AgentId) -> Result<(), EngineError> {
    match engine.reader().head(agent).await? {
        Some(head) => mark_read(engine, RowRef::new(agent, head.seq)).await,
        None => Ok(()),
    }
}

/// Removes entries other than questions from the inbox.
pub async fn dismiss_entries(engine: &Engine, entries: &[InboxEntry]) -> Result<(), EngineError> {
    commit_marks(engine, dismissals(engine, entries)).await
}

/// Returns the name under which the store keeps how far the user has read.
fn person_name(engine: &EngineReader) -> String {
    let person = engine.environment().person();
    person.map_or_else(String::new, |person| person.to_string())
}

/// Builds the effects that remove entries other than questions from the inbox.
pub(crate) fn dismissals(engine: &EngineReader, entries: &[InboxEntry]) -> Vec<Effect> {
    let person = person_name(engine);
    let entries = entries.iter();
    let settled = entries.filter(|entry| entry.kind != InboxKind::Question);
    let marks = settled.map(|entry| Effect::MarkSeen {
        person: person.clone(),
        mark: SeenMark {
            dismissed: entry.row.seq,
            ..SeenMark::new(entry.row.agent)
        },
    });
    marks.collect()
}

/// Builds the effect that notes that the user has read an agent up to a row.
pub(crate) fn read_mark(engine: &EngineReader, row: RowRef) -> Effect {
    Effect::MarkSeen {
        person: person_name(engine),
        mark: SeenMark {
            read: row.seq,
            ..SeenMark::new(row.agent)
        },
    }
}

async fn commit_marks(engine: &Engine, marks: Vec<Effect>) -> Result<(), EngineError> {
    if marks.is_empty() {
        return Ok(());
    }
    let batch = Batch {
        with: marks,
        ..Batch::default()
    };
    engine.commit_without_lease(batch).await?;
    Ok(())
}

/// Search for what agents wait for.
struct InboxScan<'a> {
    engine: &'a EngineReader,
}

impl InboxScan<'_> {
    /// Returns what one agent waits for. Entries up to the mark may be missing.
    async fn waits_of(
        &self,
        record: AgentRecord,
        activity: Option<KnownActivity>,
        mark: SeenMark,
    ) -> Result<Vec<InboxEntry>, EngineError> {
        let works_here = self.engine.hub().is_working(record.id) == Some(true);
        let cache = &self.engine.hub().inbox;
        if let Some(entries) = cache.at(&record).filter(|_| !works_here) {
            return Ok(entries);
        }
        let failed = self.failed_rows(&record, mark).await?;
        let is_quiet = activity.is_some_and(|known| known.works && !known.may_ask);
        if failed.is_empty() && is_quiet && !works_here {
            return Ok(Vec::new());
        }
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
        let has_open = !open.is_empty();
        let mut entries = self.questions_of(&record, &agent, open).await?;
        entries.extend(self.failed_processes(&record, &agent, failed).await?);
        let asks = entries.iter().any(|it| it.kind == InboxKind::Question);
        let works = match activity {
            _ if asks => true,
            Some(known) => known.works,
            None => self.engine.works(record.id).await?,
        };
        if works {
            return Ok(entries);
        }
        if let Some((kind, row)) = self.end_of_turn(&mut agent, mark).await? {
            let text = match kind {
                InboxKind::Interrupted => self.interruption(&record).await?,
                _ => row.content.clone().unwrap_or_default(),
            };
            entries.push(InboxEntry {
                kind,
                row: row.at,
                at: row.created_at,
                text,
                agent: record.clone(),
            });
        }
        if !has_open {
            cache.keep(&record, entries.clone());
        }
        Ok(entries)
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

    /// Reads the rows of background processes that failed and were not dismissed.
    async fn failed_rows(
        &self,
        record: &AgentRecord,
        mark: SeenMark,
    ) -> Result<Vec<Row>, EngineError> {
        let whole = Span::whole(record.id);
        let rows = self.engine.reader().process_rows(whole, MOST_PROCESSES);
        let has_failed = |row: &Row| row.at.seq > mark.dismissed && failed_process(row).is_some();
        Ok(rows.await?.into_iter().filter(has_failed).collect())
    }

    /// Finds the background processes of an agent that failed since the newest message of a person.
    async fn failed_processes(
        &self,
        record: &AgentRecord,
        agent: &Agent,
        rows: Vec<Row>,
    ) -> Result<Vec<InboxEntry>, EngineError> {
        let store = self.engine.reader();
        let whole = Span::whole(record.id);
        let rows = rows.into_iter();
        let rows = rows.filter(|row| agent.state.path().contains(row.at));
        let rows: Vec<Row> = rows.collect();
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let messages = store.user_rows(vec![whole], MOST_MESSAGES).await?;
        let newest = messages.iter().find(|row| is_typed_message(row));
        let newest = newest.map_or(Seq(0), |row| row.at.seq);
        let rows = rows.into_iter().filter(|row| row.at.seq > newest);
        let entries = rows.map(|row| InboxEntry {
            agent: record.clone(),
            kind: InboxKind::Process,
            row: row.at,
            at: row.created_at,
            text: failed_process(&row).unwrap_or_default(),
        });
        Ok(entries.collect())
    }

    /// Finds the row with which an idle agent's last turn ended, if that waits for the user.
    async fn end_of_turn(
        &self,
        agent: &mut Agent,
        mark: SeenMark,
    ) -> Result<Option<(InboxKind, Row)>, EngineError> {
        let own = agent.state.agent();
        let newest = agent.view.entries().back();
        let newest = newest.map(|entry| Row::clone(&entry.row));
        let newest = newest.filter(|row| row.at.agent == own);
        if let Some(newest) =
            newest.filter(|_| agent.view.is_busy(agent.state.path()) == Some(true))
        {
            // Its process died and no other has settled the turn yet.
            return Ok(Some((InboxKind::Interrupted, newest)));
        }
        let fork = agent.state.fork();
        // The report of such an agent goes to its parent, unless the user talks to it.
        let reports_to_parent = fork.is_some_and(is_by_model);
        let mut report: Option<Row> = None;
        loop {
            for entry in agent.view.entries().iter().rev() {
                // Inherited rows wait in the parent.
                if entry.at().agent != own {
                    return Ok(None);
                }
                if let Some(report) = &report {
                    if entry.at() < report.at && begins_turn(&entry.row) {
                        let is_asked = is_typed_message(&entry.row);
                        return Ok(is_asked.then(|| (InboxKind::Report, report.clone())));
                    }
                    continue;
                }
                match verdict(&entry.row) {
                    RowVerdict::Waits(InboxKind::Report) if entry.at().seq <= mark.read => {
                        return Ok(None);
                    }
                    RowVerdict::Waits(InboxKind::Report) if reports_to_parent => {
                        report = Some(Row::clone(&entry.row));
                    }
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
        Kind::Assistant => RowVerdict::Waits(InboxKind::Report),
        Kind::ToolCall | Kind::ToolResult | Kind::Clear | Kind::Rewind => RowVerdict::Rests,
        Kind::Command
        | Kind::System
        | Kind::Mark
        | Kind::Fork
        | Kind::AgentKilled
        | Kind::Usage
        | Kind::Summary
        | Kind::Process
        | Kind::Files => RowVerdict::Neutral,
    }
}

/// Describes a background process that failed by itself; none for another row.
fn failed_process(row: &Row) -> Option<String> {
    let process: ProcessData = data::read(row.data.as_deref());
    let has_failed = match process.cause {
        Some(ProcessCause::Stop | ProcessCause::Kill) => false,
        Some(ProcessCause::Lost) => true,
        Some(ProcessCause::Exit) | None => process.exit != Some(0),
    };
    let has_failed = has_failed && process.state == Some(ProcessState::Ended);
    let command = row.content.as_deref().unwrap_or_default();
    has_failed.then(|| format!("{}: {command}", process_ended(&process)))
}

/// Returns true if a model forked the agent.
fn is_by_model(fork: &ForkData) -> bool {
    fork.parent_uuid.is_some() && fork.call.is_some()
}

/// Returns true if a row begins a turn, or joins one that runs.
fn begins_turn(row: &Row) -> bool {
    let user: UserData = data::read(row.data.as_deref());
    row.kind.read_as() == Some(Kind::User) && user.shell.is_none() && user.merge.is_none()
}

/// Returns true if a row is a message that a person typed.
fn is_typed_message(row: &Row) -> bool {
    let origin = data::read::<UserData>(row.data.as_deref()).origin;
    begins_turn(row) && matches!(origin, None | Some(UserOrigin::Typed))
}
