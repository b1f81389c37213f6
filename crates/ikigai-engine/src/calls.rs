//! Tool calls in the log: open calls, and the results that close them.

use ikigai_core::data::{
    BlobRef, SandboxRefusal, StoredImage, ToolResultData, TouchedFile, Verdict,
};
use ikigai_core::load::{Loaded, load};
use ikigai_core::message::{Block, Role};
use ikigai_core::{Event, Micros, Row, RowRef};
use ikigai_store::Agent;
use ikigai_tools::mcp::called_by_name;

use crate::agent_tools::AgentTool;

/// A call without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenCall {
    pub(crate) at: RowRef,
    /// Id that pairs it with its result.
    pub(crate) id: String,
    /// Name of the tool.
    pub(crate) name: String,
    /// Arguments as the model wrote them.
    pub(crate) arguments: String,
    /// Tool through which it was called by name; it names the result.
    pub(crate) through: Option<String>,
    /// Time of the call.
    pub(crate) created_at: Micros,
}

/// Outcome of a call, for its row.
#[derive(Debug, Default)]
pub(crate) struct Came {
    /// Output for the model.
    pub(crate) output: String,
    /// Output for people.
    pub(crate) shown: Option<String>,
    pub(crate) success: bool,
    pub(crate) blob: Option<BlobRef>,
    pub(crate) files: Vec<TouchedFile>,
    /// Number of the background process as which the call goes on.
    pub(crate) process: Option<u64>,
    pub(crate) refused: Vec<SandboxRefusal>,
    pub(crate) images: Vec<StoredImage>,
}

impl Came {
    /// Creates the result of a call that failed or did not run.
    pub(crate) fn failed(reason: impl Into<String>) -> Self {
        Self {
            output: reason.into(),
            ..Self::default()
        }
    }
}

impl OpenCall {
    /// Returns the call of a row, if it is one.
    pub(crate) fn of(row: &Row) -> Option<Self> {
        open_call(row.at, row.created_at, &load(row).ok()?)
    }

    /// Builds the row that closes it.
    pub(crate) fn result(&self, mut came: Came, verdict: Verdict) -> Event {
        let tool = AgentTool::from_name(&self.name).filter(|_| verdict == Verdict::Ran);
        if let Some(remark) = tool.and_then(|tool| tool.remark(&self.arguments)) {
            let gap = if came.output.ends_with('\n') {
                ""
            } else {
                "\n"
            };
            came.output = format!("{}{gap}[{remark}]\n", came.output);
        }
        let data = ToolResultData {
            tool_call_id: Some(self.id.clone()),
            name: Some(self.through.as_ref().unwrap_or(&self.name).clone()),
            output: Some(came.output),
            success: Some(came.success),
            call: Some(self.at),
            blob: came.blob,
            verdict: Some(verdict),
            files: Some(came.files).filter(|files| !files.is_empty()),
            process: came.process,
            refused: Some(came.refused).filter(|refused| !refused.is_empty()),
            images: Some(came.images).filter(|images| !images.is_empty()),
        };
        Event::ToolResult {
            shown: came.shown,
            data,
        }
    }
}

fn open_call(at: RowRef, created_at: Micros, loaded: &Loaded) -> Option<OpenCall> {
    let Loaded::Message(part) = loaded else {
        return None;
    };
    match part.message.blocks.last() {
        Some(Block::ToolCall {
            id,
            name,
            arguments,
        }) => {
            let by_name = called_by_name(name, arguments);
            let through = by_name.is_some().then(|| name.clone());
            let (name, arguments) = by_name.unwrap_or_else(|| (name.clone(), arguments.clone()));
            Some(OpenCall {
                at,
                id: id.clone(),
                name,
                arguments,
                through,
                created_at,
            })
        }
        _ => None,
    }
}

/// Builds the rows that close calls without running them.
pub(crate) fn close(open: &[OpenCall], reason: &str) -> Vec<Event> {
    let close = |call: &OpenCall| call.result(Came::failed(reason), Verdict::Interrupted);
    open.iter().map(close).collect()
}

/// Returns the newest response's calls without a result, in order; none if unknown. The view may be
/// too short to know. Older calls get no result any more: later rows were written without it. An
/// agent does not answer calls of its ancestors.
pub(crate) fn open_calls(agent: &Agent) -> Option<Vec<OpenCall>> {
    let id = agent.state.agent();
    let mut open = Vec::new();
    let mut answered = Vec::new();
    // Results in older logs name only the id of their call, no row.
    let mut answered_ids = Vec::new();
    let mut newest = None;
    let mut is_sure = agent.view.is_complete(agent.state.path());
    for entry in agent.view.entries().iter().rev() {
        let Ok(Loaded::Message(part)) = &entry.loaded else {
            continue;
        };
        let is_of_newest = entry.at().agent == id
            && part.message.role != Role::User
            && part
                .response
                .is_none_or(|response| *newest.get_or_insert(response) == response);
        if !is_of_newest {
            is_sure = true;
            break;
        }
        answered.extend(part.answers);
        if let (None, Some(Block::ToolResult { tool_call_id, .. })) =
            (part.answers, part.message.blocks.last())
        {
            answered_ids.push(tool_call_id);
        }
        let call = open_call(
            entry.at(),
            entry.row.created_at,
            &Loaded::Message(part.clone()),
        );
        open.extend(
            call.filter(|call| !answered.contains(&call.at) && !answered_ids.contains(&&call.id)),
        );
    }
    open.reverse();
    is_sure.then_some(open)
}
