//! Sources of the lines of a file: the calls that wrote them.

use std::collections::{BTreeMap, HashMap};

use ikigai_core::data::{
    self, AssistantData, FileKind, FileVersion, ToolCallData, UsageData, UserData,
};
use ikigai_core::{Kind, Micros, PageQuery, RowRef, Seq, Span};
use ikigai_store::{BoxFuture, history};
use ikigai_tools::line_sources;

use crate::file_diff::content_of;
use crate::file_history::{FilesRow, files_rows};
use crate::{EngineError, EngineReader};

/// Most renames of a file that are followed.
const MOST_RENAMES: usize = 32;

/// Rows around a call in which its answer and cost are searched.
const NEAR_ROWS: u64 = 64;

/// Line of a file with its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlamedLine {
    /// The line, without its ending.
    pub text: String,
    /// Event with the call that wrote it; none if no recorded call did.
    pub source: Option<RowRef>,
}

/// Call that wrote lines of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineSource {
    /// Name of the agent.
    pub agent: String,
    /// The call, or the command that restored the file.
    pub call: RowRef,
    /// Name of the tool.
    pub tool: String,
    /// First line of the message that started the turn.
    pub prompt: String,
    /// The model.
    pub model: String,
    /// Time of the change.
    pub at: Micros,
    /// Cost of the answer with the call.
    pub cost_nano_usd: Option<u64>,
}

/// Lines of a file with the rows that wrote them.
#[derive(Clone, Debug, Default)]
struct TracedContent {
    hash: Option<String>,
    content: Vec<u8>,
    /// Index of the row for each line.
    sources: Vec<Option<usize>>,
}

/// Rows about files, oldest first, and the places of each path in them.
struct FileTrace<'a> {
    engine: &'a EngineReader,
    rows: Vec<FilesRow>,
    places: HashMap<String, Vec<(usize, usize)>>,
}

/// Finds the sources of lines in the log.
pub struct BlameReader<'a> {
    /// The engine of the log.
    pub engine: &'a EngineReader,
}

impl BlameReader<'_> {
    /// Finds the sources of a file's lines, given its present content.
    pub async fn read(
        &self,
        path: &str,
        present: Vec<u8>,
    ) -> Result<(Vec<BlamedLine>, BTreeMap<RowRef, LineSource>), EngineError> {
        let mut rows = Vec::new();
        for agent in self.engine.agents().await? {
            rows.extend(files_rows(self.engine.reader(), Span::whole(agent.id)).await?);
        }
        rows.sort_by_key(|row| (row.created_at, row.at));
        let trace = FileTrace::new(self.engine, rows);
        let known = trace.trace(path, usize::MAX, 0).await?;
        let traced = known.followed_by(None, present, None).await;
        let text = String::from_utf8_lossy(&traced.content).into_owned();
        let mut sources = BTreeMap::new();
        let mut lines = Vec::new();
        for (line, source) in text.split_inclusive('\n').zip(traced.sources) {
            let row = source.map(|index| &trace.rows[index]);
            let call = row.and_then(|row| row.data.call);
            if let (Some(row), Some(call)) = (row, call)
                && !sources.contains_key(&call)
            {
                sources.insert(call, self.source_of(call, row.created_at).await?);
            }
            lines.push(BlamedLine {
                text: line.trim_end_matches(['\n', '\r']).to_owned(),
                source: call,
            });
        }
        Ok((lines, sources))
    }

    /// Describes the call that changed files.
    async fn source_of(&self, call: RowRef, at: Micros) -> Result<LineSource, EngineError> {
        let store = self.engine.reader();
        let agent = store.agent(call.agent).await?;
        let row = history::row_at(store, call).await?;
        let data: ToolCallData = data::read(row.as_ref().and_then(|row| row.data.as_deref()));
        let before = Span::new(call.agent, Seq(1), call.seq);
        let asked = store.user_rows(vec![before], 1).await?;
        let prompt = asked.first().map(|row| {
            let user: UserData = data::read(row.data.as_deref());
            user.typed
                .or_else(|| row.content.clone())
                .unwrap_or_default()
        });
        let first_line = |text: String| text.lines().next().unwrap_or_default().to_owned();
        let kind = row.and_then(|row| row.kind.read_as());
        Ok(LineSource {
            agent: agent.map_or_else(|| call.agent.to_string(), |agent| agent.name),
            call,
            tool: data
                .name
                .unwrap_or_else(|| kind.map_or("", Kind::name).to_owned()),
            prompt: prompt.map(first_line).unwrap_or_default(),
            model: self.model_of(call, data.response).await?,
            at,
            cost_nano_usd: self.cost_of(call, data.response).await?,
        })
    }

    async fn model_of(&self, call: RowRef, response: Option<u64>) -> Result<String, EngineError> {
        let from = Seq(call.seq.0.saturating_sub(NEAR_ROWS).max(1));
        let span = Span::new(call.agent, from, call.seq);
        let query = PageQuery::newest(span, usize::try_from(NEAR_ROWS).unwrap_or(usize::MAX));
        for row in self.engine.reader().page(query).await? {
            if row.kind.read_as() == Some(Kind::Assistant) {
                let answer: AssistantData = data::read(row.data.as_deref());
                if answer.response == response {
                    return Ok(answer.model.unwrap_or_default());
                }
            }
        }
        Ok(String::new())
    }

    async fn cost_of(
        &self,
        call: RowRef,
        response: Option<u64>,
    ) -> Result<Option<u64>, EngineError> {
        let to = Seq(call.seq.0.saturating_add(NEAR_ROWS));
        let rows = self
            .engine
            .reader()
            .usage(Span::new(call.agent, call.seq, to), 8)
            .await?;
        let mut found = rows
            .iter()
            .map(|row| data::read::<UsageData>(row.data.as_deref()));
        let usage = found.find(|usage| usage.response == response);
        Ok(usage.and_then(|usage| usage.amounts.cost_nano_usd))
    }
}

impl<'a> FileTrace<'a> {
    fn new(engine: &'a EngineReader, rows: Vec<FilesRow>) -> Self {
        let mut places: HashMap<String, Vec<(usize, usize)>> = HashMap::new();
        for (index, row) in rows.iter().enumerate() {
            let entries = row.data.entries.iter().flatten();
            for (place, entry) in entries.enumerate() {
                if let Some(path) = &entry.path {
                    places.entry(path.clone()).or_default().push((index, place));
                }
            }
        }
        Self {
            engine,
            rows,
            places,
        }
    }

    /// Follows a path through the rows before an index.
    fn trace<'f>(
        &'f self,
        path: &'f str,
        before: usize,
        renames: usize,
    ) -> BoxFuture<'f, Result<TracedContent, EngineError>> {
        Box::pin(async move {
            let mut traced = TracedContent::default();
            // Contents that a rewind brings back have their old sources.
            let mut former: HashMap<String, TracedContent> = HashMap::new();
            for (index, place) in self.places.get(path).into_iter().flatten() {
                if *index >= before {
                    break;
                }
                let row = &self.rows[*index];
                let Some(entry) = row.data.entries.iter().flatten().nth(*place) else {
                    continue;
                };
                let (found, left) = (entry.before.as_ref(), entry.after.as_ref());
                if !is_file(found) {
                    traced = match self.renamed_from(*index, left) {
                        Some(old) if renames < MOST_RENAMES => {
                            self.trace(old, *index, renames + 1).await?
                        }
                        _ => TracedContent::default(),
                    };
                } else if let Some(found) = found
                    && found.hash != traced.hash
                {
                    let content = content_of(self.engine.reader(), found)
                        .await?
                        .unwrap_or_default();
                    traced = traced.followed_by(found.hash.clone(), content, None).await;
                }
                if let Some(hash) = &traced.hash {
                    former.insert(hash.clone(), traced.clone());
                }
                let Some(left) = left.filter(|left| is_file(Some(*left))) else {
                    traced = TracedContent::default();
                    continue;
                };
                if left.hash == traced.hash {
                    continue;
                }
                let known = left.hash.as_ref().and_then(|hash| former.get(hash));
                if let Some(known) = known
                    && self.is_rewind(row).await?
                {
                    traced = known.clone();
                    continue;
                }
                let content = content_of(self.engine.reader(), left)
                    .await?
                    .unwrap_or_default();
                let hash = left.hash.clone();
                traced = traced.followed_by(hash, content, Some(*index)).await;
            }
            Ok(traced)
        })
    }

    /// Returns the path that a row moved to this state.
    fn renamed_from(&self, index: usize, left: Option<&FileVersion>) -> Option<&str> {
        let hash = left?.hash.as_ref()?;
        let mut entries = self.rows[index].data.entries.iter().flatten();
        let moved = entries.find(|entry| {
            let is_gone = entry.after.as_ref().is_some_and(FileVersion::is_absent);
            let before = entry.before.as_ref();
            is_gone && before.is_some_and(|before| before.hash.as_ref() == Some(hash))
        });
        moved?.path.as_deref()
    }

    async fn is_rewind(&self, row: &FilesRow) -> Result<bool, EngineError> {
        let Some(call) = row.data.call else {
            return Ok(false);
        };
        let row = history::row_at(self.engine.reader(), call).await?;
        Ok(row.is_some_and(|row| row.kind.read_as() == Some(Kind::Rewind)))
    }
}

impl TracedContent {
    /// Returns the next content; new lines come from `source`.
    async fn followed_by(
        self,
        hash: Option<String>,
        content: Vec<u8>,
        source: Option<usize>,
    ) -> Self {
        let work = move || {
            let from = line_sources(&self.content, &content);
            let sources = from.into_iter().map(|line| match line {
                Some(line) => self.sources.get(line).copied().flatten(),
                None => source,
            });
            Self {
                hash,
                sources: sources.collect(),
                content,
            }
        };
        // Comparing long files takes time.
        tokio::task::spawn_blocking(work).await.unwrap_or_default()
    }
}

fn is_file(version: Option<&FileVersion>) -> bool {
    version.is_some_and(|version| version.kind() == Some(FileKind::File))
}
