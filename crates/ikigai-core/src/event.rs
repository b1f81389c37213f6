//! Events, which are decided, and rows, which are stored.

use thiserror::Error;

use crate::data::{
    AgentKilledData, AssistantData, Cause, CommandData, ErrorData, FilesData, ForkData, ForkRole,
    InterruptedData, KilledBy, MarkData, ProcessData, RewindData, SummaryData, SystemData,
    SystemOrigin, ToolCallData, ToolResultData, UsageData, UserData, UserOrigin, write,
};
use crate::identity::PersonName;
use crate::ids::{AgentId, Micros, RowRef};
use crate::kind::{Kind, PartRule, StoredKind, UnknownKind};

/// Something that is about to happen to an agent; it has happened once its row is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The system prompt from here on.
    System { text: String, data: SystemData },
    /// A message to the agent.
    User { text: String, data: UserData },
    /// Text of the model.
    Assistant { text: String, data: AssistantData },
    /// A call of a tool; `shown` is for the screen only.
    ToolCall {
        shown: Option<String>,
        data: ToolCallData,
    },
    /// Result of a call; `shown` is for the screen only.
    ToolResult {
        shown: Option<String>,
        data: ToolResultData,
    },
    /// A cleared path.
    Clear,
    /// A named row to return to.
    Mark(MarkData),
    /// A return to an earlier row.
    Rewind(RewindData),
    /// One side of a fork.
    Fork { text: String, data: Box<ForkData> },
    /// A command and its output.
    Command {
        output: Option<String>,
        data: CommandData,
    },
    /// Agents were killed.
    AgentKilled(AgentKilledData),
    /// Cost of a response.
    Usage(UsageData),
    /// A turn was stopped.
    Interrupted(InterruptedData),
    /// A turn failed.
    Error { text: String, data: ErrorData },
    /// A summary, or a gap, in place of a range of turns.
    Summary {
        text: Option<String>,
        data: SummaryData,
    },
    /// A background process started or ended.
    Process { command: String, data: ProcessData },
    /// Files that a call changed.
    Files(FilesData),
}

/// Commands that a person gives by starting the program, so that their rows show no typed line.
const COMMANDS_OF_PERSON: [&str; 3] = ["start", "model", "approve"];

impl Event {
    /// Returns the kind of row that this event becomes.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::System { .. } => Kind::System,
            Self::User { .. } => Kind::User,
            Self::Assistant { .. } => Kind::Assistant,
            Self::ToolCall { .. } => Kind::ToolCall,
            Self::ToolResult { .. } => Kind::ToolResult,
            Self::Clear => Kind::Clear,
            Self::Mark(_) => Kind::Mark,
            Self::Rewind(_) => Kind::Rewind,
            Self::Fork { .. } => Kind::Fork,
            Self::Command { .. } => Kind::Command,
            Self::AgentKilled(_) => Kind::AgentKilled,
            Self::Usage(_) => Kind::Usage,
            Self::Interrupted(_) => Kind::Interrupted,
            Self::Error { .. } => Kind::Error,
            Self::Summary { .. } => Kind::Summary,
            Self::Process { .. } => Kind::Process,
            Self::Files(_) => Kind::Files,
        }
    }

    /// Returns true if path or settings are computed from the row.
    pub fn is_control(&self) -> bool {
        match self {
            Self::Clear
            | Self::Rewind(_)
            | Self::Mark(_)
            | Self::Summary { .. }
            | Self::System { .. } => true,
            Self::Fork { data, .. } => data.role == Some(ForkRole::Child),
            Self::Command { data, .. } => data.set.is_some(),
            Self::Error { data, .. } => data.omit.is_some(),
            Self::User { .. }
            | Self::Assistant { .. }
            | Self::ToolCall { .. }
            | Self::ToolResult { .. }
            | Self::AgentKilled(_)
            | Self::Usage(_)
            | Self::Interrupted(_)
            | Self::Process { .. }
            | Self::Files(_) => false,
        }
    }

    /// Returns true if a person caused the event, not the engine or the model.
    ///
    /// Messages that a child begins with follow its `fork` row, and delivered mail follows its sender.
    pub fn is_of_person(&self) -> bool {
        match self {
            Self::System { data, .. } => data.origin == Some(SystemOrigin::Typed),
            Self::User { data, .. } => data.origin == Some(UserOrigin::Typed),
            Self::Clear | Self::Mark(_) | Self::Rewind(_) => true,
            Self::Fork { data, .. } => data.call.is_none(),
            Self::Command { data, .. } => {
                let typed = data.echo.is_some() || data.by.is_some();
                let command = data.command.as_deref();
                typed || command.is_some_and(|it| COMMANDS_OF_PERSON.contains(&it))
            }
            Self::AgentKilled(data) => data.by == Some(KilledBy::User),
            Self::Interrupted(data) => data.cause == Some(Cause::User),
            Self::Assistant { .. }
            | Self::ToolCall { .. }
            | Self::ToolResult { .. }
            | Self::Usage(_)
            | Self::Error { .. }
            | Self::Summary { .. }
            | Self::Process { .. }
            | Self::Files(_) => false,
        }
    }

    /// Makes the row that is to be stored for `agent`.
    ///
    /// U+0000 in the text becomes U+2400, because PostgreSQL refuses it; data keeps it escaped.
    pub fn into_row(self, agent: AgentId, created_at: Micros) -> NewRow {
        let kind = self.kind();
        let control = self.is_control();
        let (content, data) = self.into_parts();
        NewRow {
            agent,
            kind,
            control,
            content: content.map(without_nul),
            data,
            created_at,
            author: None,
        }
    }

    fn into_parts(self) -> (Option<String>, Option<String>) {
        match self {
            Self::System { text, data } => (Some(text), Some(write(&data))),
            Self::User { text, data } => (Some(text), Some(write(&data))),
            Self::Assistant { text, data } => (Some(text), Some(write(&data))),
            Self::ToolCall { shown, data } => (shown, Some(write(&data))),
            Self::ToolResult { shown, data } => (shown, Some(write(&data))),
            Self::Clear => (None, None),
            Self::Mark(data) => (None, Some(write(&data))),
            Self::Rewind(data) => (None, Some(write(&data))),
            Self::Fork { text, data } => (Some(text), Some(write(&data))),
            Self::Command { output, data } => (output, Some(write(&data))),
            Self::AgentKilled(data) => (None, Some(write(&data))),
            Self::Usage(data) => (None, Some(write(&data))),
            Self::Interrupted(data) => (None, Some(write(&data))),
            Self::Error { text, data } => (Some(text), Some(write(&data))),
            Self::Summary { text, data } => (text, Some(write(&data))),
            Self::Process { command, data } => (Some(command), Some(write(&data))),
            Self::Files(data) => (None, Some(write(&data))),
        }
    }
}

fn without_nul(text: String) -> String {
    if text.contains('\0') {
        text.replace('\0', "\u{2400}")
    } else {
        text
    }
}

/// A row on its way to the store, which gives it its sequence number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRow {
    /// The agent.
    pub agent: AgentId,
    /// The kind.
    pub kind: Kind,
    /// True if path or settings are computed from the row.
    pub control: bool,
    /// Its text.
    pub content: Option<String>,
    /// Its JSON, stored byte for byte.
    pub data: Option<String>,
    /// Time of the event.
    pub created_at: Micros,
    /// Person who caused it; none for the engine or the model.
    pub author: Option<PersonName>,
}

/// Why a row may not be inserted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InsertError {
    /// This program does not write the kind.
    #[error(transparent)]
    Kind(#[from] UnknownKind),
    /// The kind must have this part.
    #[error("a row of kind `{kind}` needs {part}")]
    Missing { kind: Kind, part: &'static str },
    /// The kind must not have this part.
    #[error("a row of kind `{kind}` has no {part}")]
    Surplus { kind: Kind, part: &'static str },
}

impl NewRow {
    /// Names the person who caused the row.
    #[must_use]
    pub fn by(mut self, author: Option<PersonName>) -> Self {
        self.author = author;
        self
    }

    /// Checks the row against its kind's insert rule. Every store does so before it writes.
    pub fn check(&self) -> Result<(), InsertError> {
        let rule = self.kind.insert_rule();
        self.check_part(rule.content, self.content.is_some(), "content")?;
        self.check_part(rule.data, self.data.is_some(), "data")
    }

    fn check_part(
        &self,
        rule: PartRule,
        there: bool,
        part: &'static str,
    ) -> Result<(), InsertError> {
        let kind = self.kind;
        match (rule, there) {
            (PartRule::Required, false) => Err(InsertError::Missing { kind, part }),
            (PartRule::Absent, true) => Err(InsertError::Surplus { kind, part }),
            (PartRule::Required | PartRule::Optional, true)
            | (PartRule::Optional | PartRule::Absent, false) => Ok(()),
        }
    }
}

/// One stored event. It never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Agent and sequence number.
    pub at: RowRef,
    /// The kind.
    pub kind: StoredKind,
    /// Its text.
    pub content: Option<String>,
    /// Its JSON as stored.
    pub data: Option<String>,
    /// Time of the event.
    pub created_at: Micros,
    /// Person who caused it; none for the engine or the model.
    pub author: Option<PersonName>,
}
