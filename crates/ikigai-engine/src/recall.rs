//! Lookup of facts in the log that a call needs, along the agent's path.

use std::path::{Path, PathBuf};

use ikigai_core::data::{self, ToolResultData};
use ikigai_core::view::Entry;
use ikigai_core::{AgentId, Kind, Micros, PageQuery, Row, RowRef, Seq, Span};
use ikigai_store::{Agent, AgentRecord, ReadLog, StoreError, history};
use ikigai_tools::output::clean;
use ikigai_tools::tool_names::{TODO, current_name};
use ikigai_tools::{CallInputs, Need, ReadFile, Stale};

use crate::figures::since;
use crate::{EngineError, EngineReader};

/// Rows searched along the path; older rows have long left the requests.
const LOOK_BACK_ROWS: usize = 4096;

/// Rows read per query.
const PAGE_ROWS: usize = 512;

/// Most files that are compared before and after a command.
const MOST_READ_FILES: usize = 64;

/// Newest rows read per agent, and agents searched, for the writer of a file.
const OTHERS_ROWS: usize = 256;
const MOST_OTHERS: usize = 64;

/// Finds the facts that a call needs.
pub(crate) async fn inputs(
    engine: &EngineReader,
    agent: &Agent,
    needs: &[Need],
) -> Result<CallInputs, EngineError> {
    let mut inputs = CallInputs::default();
    for need in needs {
        match need {
            Need::File(path) => {
                inputs.file =
                    newest_result(engine, agent, |_, result| hash_in(result, path)).await?;
            }
            // The turn knows them.
            Need::Background(_) | Need::Processes(_) | Need::Keeper => {}
            Need::ReadFiles => inputs.read_files = read_files(agent),
            Need::List => {
                inputs.list = newest_result(engine, agent, |_, result| list_in(result)).await?;
            }
            Need::Row(seq) => {
                let at = RowRef::new(agent.state.agent(), Seq(*seq));
                inputs.blob = match history::row_at(engine.reader(), at).await? {
                    Some(row) => Some(whole_text(engine.reader(), &row).await?.into_bytes()),
                    None => None,
                };
            }
            Need::Blob(hash) => {
                inputs.blob = match hash.parse() {
                    Ok(hash) => engine.reader().blob(hash).await?,
                    Err(_) => None,
                };
            }
        }
    }
    Ok(inputs)
}

/// Returns the files in results that the agent's requests can hold, newest first.
fn read_files(agent: &Agent) -> Vec<ReadFile> {
    let mut files: Vec<ReadFile> = Vec::new();
    let results = agent.view.entries().iter().rev().filter_map(result_of);
    for touched in results.filter_map(|result| result.files) {
        for file in touched.into_iter().rev() {
            let (Some(path), Some(hash)) = (file.path, file.hash) else {
                continue;
            };
            let path = PathBuf::from(path);
            if !files.iter().any(|known| known.path == path) {
                files.push(ReadFile { path, hash });
            }
            if files.len() >= MOST_READ_FILES {
                return files;
            }
        }
    }
    files
}

/// Returns the full text of a row; of a tool result the whole stored output.
pub(crate) async fn whole_text(store: &dyn ReadLog, row: &Row) -> Result<String, StoreError> {
    if row.kind.read_as() == Some(Kind::ToolResult) {
        let result: ToolResultData = data::read(row.data.as_deref());
        let hash = result.blob.and_then(|blob| blob.hash);
        if let Some(hash) = hash.and_then(|hash| hash.parse().ok())
            && let Some(bytes) = store.blob(hash).await?
        {
            return Ok(clean(&bytes));
        }
        return Ok(result.output.unwrap_or_default());
    }
    let text = row.content.clone().or_else(|| row.data.clone());
    Ok(text.unwrap_or_default())
}

/// Returns the first result of `find` on the path's tool results, newest first.
pub(crate) async fn newest_result<T>(
    engine: &EngineReader,
    agent: &Agent,
    find: impl Fn(RowRef, &ToolResultData) -> Option<T>,
) -> Result<Option<T>, StoreError> {
    // A copy, so that the sent view does not grow; rows are shared.
    let mut agent = agent.clone();
    let mut looked = 0;
    loop {
        let entries = agent.view.entries();
        let unseen = entries.iter().rev().skip(looked);
        let mut results = unseen.filter_map(|entry| Some((entry.at(), result_of(entry)?)));
        if let Some(found) = results.find_map(|(at, result)| find(at, &result)) {
            return Ok(Some(found));
        }
        looked = entries.len();
        if looked >= LOOK_BACK_ROWS || !agent.lengthen(engine.reader(), PAGE_ROWS).await? {
            return Ok(None);
        }
    }
}

/// Finds the agent that wrote a file's current contents: `fix-lexer #31, 12 s ago`.
pub(crate) async fn who_changed(
    engine: &EngineReader,
    own: AgentId,
    stale: &Stale,
) -> Result<Option<String>, EngineError> {
    let mut others = engine.reader().agents(None).await?;
    others.retain(|other| other.id != own);
    others.sort_by_key(|other| std::cmp::Reverse(other.touched_at));
    for other in others.iter().take(MOST_OTHERS) {
        if let Some((row, at)) = written_by(engine, other, stale).await? {
            let ago = since(at, engine.environment().now());
            return Ok(Some(format!("{} #{}, {ago} ago", other.name, row.seq)));
        }
    }
    Ok(None)
}

async fn written_by(
    engine: &EngineReader,
    other: &AgentRecord,
    stale: &Stale,
) -> Result<Option<(RowRef, Micros)>, StoreError> {
    let query = PageQuery::newest(Span::new(other.id, Seq(1), other.head), OTHERS_ROWS);
    let rows = engine.reader().page(query).await?;
    let wrote = rows.iter().find(|row| {
        row.kind.read_as() == Some(Kind::ToolResult)
            && data::read::<ToolResultData>(row.data.as_deref())
                .files
                .is_some_and(|files| {
                    files.iter().any(|file| {
                        file.wrote == Some(true)
                            && file.path.as_deref() == Some(&stale.path)
                            && file.hash.as_deref() == Some(&stale.hash)
                    })
                })
    });
    Ok(wrote.map(|row| (row.at, row.created_at)))
}

fn result_of(entry: &Entry) -> Option<ToolResultData> {
    let is_result = entry.kind() == Some(Kind::ToolResult);
    is_result.then(|| data::read(entry.row.data.as_deref()))
}

fn hash_in(result: &ToolResultData, path: &Path) -> Option<String> {
    let files = result.files.as_deref()?.iter();
    let mut same = files.filter(|file| file.path.as_deref().map(Path::new) == Some(path));
    same.next_back()?.hash.clone()
}

fn list_in(result: &ToolResultData) -> Option<String> {
    let name = result.name.as_deref().map(current_name);
    let is_list = name == Some(TODO) && result.success == Some(true);
    result.output.clone().filter(|_| is_list)
}
