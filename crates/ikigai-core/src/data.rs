//! JSON data of rows: one type for each kind, with permanent shapes.
//!
//! Writing is exact: a constructor fills all fields that the kind always has. Reading is lenient: a
//! missing, unknown or mistyped key counts as absent, so an old, foreign or damaged row never
//! blocks the others. [`crate::load`] checks the required fields of tool rows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::{AgentId, RowRef, Seq};
use crate::json::{data_type, words};
use crate::settings::{Pin, Settings};
use crate::words::Severity;

mod file_changes;
mod stored_image;
mod tool_effects;

pub use crate::json::read;
pub(crate) use crate::json::{lenient, write};
pub use file_changes::{FileChange, FileKind, FileVersion, FilesData, MissedChange};
pub use stored_image::StoredImage;
pub use tool_effects::{RefusalKind, SandboxRefusal, TouchedFile};

words! {
    /// Origin of a system prompt.
    SystemOrigin {
        /// Set when the agent was made.
        Start,
        /// The user set it.
        Typed,
        /// Written by a fork.
        Fork,
        /// Repeated after a clear.
        Clear,
    }
}
words! {
    /// Origin of a message to the agent.
    UserOrigin {
        /// Typed by the user.
        Typed,
        /// Prompt of a fork.
        Fork,
        /// Delivered as mail.
        Mail,
        /// Automatic notice about a background process.
        Notice,
    }
}
words! {
    /// End of a tool call.
    Verdict {
        /// The call ran to its end.
        Ran,
        /// The call was not allowed.
        Refused,
        /// The call was stopped, or never started.
        Interrupted,
        /// The call was running when the process died.
        Unknown,
    }
}
words! {
    /// Command that made a rewind.
    Via {
        /// `/rewind`.
        Rewind,
        /// `/undo`.
        Undo,
        /// `/redo`.
        Redo,
        /// `/retry`: the turn is sent again.
        Retry,
    }
}
words! {
    /// Side of a fork that a row belongs to.
    ForkRole {
        /// Written into the parent's history.
        Parent,
        /// First row of the child.
        Child,
    }
}
words! {
    /// Rows that a child inherits from its parent.
    ForkContext {
        /// The path up to the fork point.
        Inherit,
        /// None.
        Fresh,
    }
}
words! {
    /// Source of an answer to a question.
    AnsweredBy {
        /// The user at the screen.
        User,
        /// A program at the control socket.
        Socket,
    }
}
words! {
    /// Source of a kill.
    KilledBy {
        /// The user.
        User,
        /// A model.
        Model,
    }
}
words! {
    /// Reason for the stop of a turn.
    Cause {
        /// The user stopped it.
        User,
        /// The program exited.
        Exit,
        /// The program crashed.
        Crash,
        /// The agent was killed.
        Kill,
    }
}
words! {
    /// Type of failure in an error row.
    Category {
        /// The provider refused or could not be reached.
        Provider,
        /// A limit on calls, turns or time was reached.
        Limit,
        /// The spending cap was reached.
        Budget,
        /// An item that a provider refused is left out from here on.
        Omitted,
        /// A failure of the program itself.
        Internal,
    }
}

words! {
    /// State of a background process from a row on.
    ProcessState {
        /// It was started.
        Started,
        /// It has ended.
        Ended,
    }
}
words! {
    /// Reason for the end of a background process.
    ProcessCause {
        /// It exited, or a signal from elsewhere ended it.
        Exit,
        /// A request or its time limit stopped it.
        Stop,
        /// Its owner was killed.
        Kill,
        /// Its keeper died, so its exit status is unknown.
        Lost,
    }
}

data_type! {
    /// Data of `system`.
    SystemData {
        /// Origin of the prompt.
        origin: SystemOrigin,
    }
}
data_type! {
    /// Data of `user`.
    UserData {
        /// Origin of the message.
        origin: UserOrigin,
        /// Text for the screen, if it differs from the content.
        typed: String,
        /// Sender of the mail.
        from: AgentId,
        /// The shell line whose output the text is.
        shell: Shell,
        /// The child's rows whose result the text is.
        merge: Merge,
        /// Facts about the surroundings that the model knows from this message on, by label.
        environment: BTreeMap<String, String>,
        /// Number of the background process that a notice is about.
        process: u64,
        /// Images that the model sees.
        images: Vec<StoredImage>,
    }
}
data_type! {
    /// A shell line of the user.
    Shell {
        /// The command line.
        command: String,
        /// Its exit code.
        exit: i32,
    }
}
data_type! {
    /// Rows of a child that a merge took over.
    Merge {
        /// The child.
        agent: AgentId,
        /// Its first row.
        from: Seq,
        /// Its last row.
        to: Seq,
    }
}
data_type! {
    /// Opaque payload with the provider and model that made it.
    Tagged {
        /// The provider that made it.
        provider: String,
        /// The model that made it.
        model: String,
        /// The provider's own JSON, as text, verbatim.
        payload: String,
    }
}
data_type! {
    /// A thinking block as stored.
    StoredThinking {
        /// Readable text of the thinking.
        text: String,
        /// The provider that made it.
        provider: String,
        /// The model that made it.
        model: String,
        /// Signature, redacted data or encrypted reasoning, verbatim.
        payload: String,
    }
}
data_type! {
    /// Opaque payloads of a row, for the provider and model that made them.
    Opaque {
        /// The thinking before this block, in order.
        thinking: Vec<StoredThinking>,
        /// Payload of the block itself: item id, phase, signature of a call.
        item: Tagged,
    }
}
data_type! {
    /// Data of `assistant`.
    AssistantData {
        /// Number of the response, from 1 for each agent.
        response: u64,
        /// The provider that answered.
        provider: String,
        /// The model that answered.
        model: String,
        /// Its thinking level.
        level: String,
        /// Stop reason of the provider.
        stop: String,
        /// Opaque payloads of the row.
        opaque: Opaque,
    }
}
data_type! {
    /// Data of `tool_call`; [`crate::load`] requires its three strings.
    ToolCallData {
        /// The id that pairs call and result, as it came.
        tool_call_id: String,
        /// Name of the tool.
        name: String,
        /// Its arguments as the model wrote them, byte for byte.
        arguments: String,
        /// Number of the response that holds the call.
        response: u64,
        /// Opaque payloads of the row.
        opaque: Opaque,
    }
}
data_type! {
    /// Reference to a blob.
    BlobRef {
        /// Hash of the bytes.
        hash: String,
        /// Number of bytes.
        bytes: u64,
    }
}
data_type! {
    /// Data of `tool_result`; [`crate::load`] checks its required fields.
    ToolResultData {
        /// The id of the call, as it came.
        tool_call_id: String,
        /// Name of the tool.
        name: String,
        /// Output for the model.
        output: String,
        /// True if the tool succeeded.
        success: bool,
        /// The call that is answered.
        call: RowRef,
        /// The whole output, if it was larger.
        blob: BlobRef,
        /// End of the call.
        verdict: Verdict,
        /// Files read or written.
        files: Vec<TouchedFile>,
        /// Number of the background process as which the call goes on.
        process: u64,
        /// Accesses that the sandbox refused while the call ran.
        refused: Vec<SandboxRefusal>,
        /// Images that the model sees.
        images: Vec<StoredImage>,
    }
}
data_type! {
    /// Data of `mark`.
    MarkData {
        /// Label from the user.
        label: String,
    }
}
data_type! {
    /// Data of `rewind`.
    RewindData {
        /// The last row that stays.
        target: RowRef,
        /// The head that was left.
        from: RowRef,
        /// Command that made the rewind.
        via: Via,
        /// Files changed since and not restored.
        files: Vec<String>,
        /// Files that the rewind restored.
        restored: Vec<String>,
        /// Number of turns that the rewind abandoned.
        turns: u64,
    }
}

/// Data of `fork`, of either role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkData {
    /// Side of the fork that this row belongs to.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub role: Option<ForkRole>,
    /// The child, in the parent's row.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub child_uuid: Option<AgentId>,
    /// The child's name at the fork, in the parent's row.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub child_name: Option<String>,
    /// The parent, in the child's row.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub parent_uuid: Option<AgentId>,
    /// Sequence number of the fork point, for older readers; use [`Self::fork_point`].
    #[serde(default, deserialize_with = "lenient")]
    pub fork_message_id: Option<Seq>,
    /// The last row that the child inherits; null if it inherits none.
    #[serde(default, deserialize_with = "lenient")]
    pub fork_point: Option<RowRef>,
    /// The tool call that made the fork.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub call: Option<RowRef>,
    /// Rows that the child inherits, in the child's row.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub context: Option<ForkContext>,
    /// The parent's name at the fork, in the child's row.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub parent_name: Option<String>,
    /// All settings the child starts with, in the child's row.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub settings: Option<Settings>,
    /// The row whose text is the child's system prompt, in the child's row.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub system: Option<RowRef>,
    /// Pins after the system prompt until the next context row, in the row of a child that
    /// inherits; absent if they are those of the settings.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub prefix_pins: Option<Vec<Pin>>,
    /// Tag over mode and rules of the settings, in the child's row: see [`crate::grants`].
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub grant: Option<String>,
}

data_type! {
    /// Data of `command`.
    CommandData {
        /// The command's name.
        command: String,
        /// Its arguments as typed.
        args: String,
        /// The line shown before the output; without it the row is not drawn.
        echo: String,
        /// The settings that it changes, as structured values.
        set: Map<String, Value>,
        /// Severity of the output; ordinary output has none.
        severity: Severity,
        /// The row that this one belongs to.
        of: RowRef,
        /// Source of the answer.
        by: AnsweredBy,
        /// True if the command resumes a stopped turn.
        resume: bool,
        /// Tag over the mode and rules that `set` names: see [`crate::grants`].
        grant: String,
        /// True if the pins of `set` follow the system prompt only after the next context row.
        later: bool,
    }
}
data_type! {
    /// Data of `agent_killed`.
    AgentKilledData {
        /// The agent that was named.
        target: AgentId,
        /// All that were killed.
        killed: Vec<AgentId>,
        /// Source of the kill.
        by: KilledBy,
    }
}
data_type! {
    /// Tokens and money.
    Amounts {
        /// Input tokens that were not cached.
        input: u64,
        /// Tokens read from the provider's cache.
        cache_read: u64,
        /// Tokens written to it.
        cache_write: u64,
        /// Output tokens.
        output: u64,
        /// Tokens of reasoning among them.
        reasoning: u64,
        /// Billionths of a dollar.
        cost_nano_usd: u64,
    }
}

/// Data of `usage`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageData {
    /// Number of the response.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub response: Option<u64>,
    /// The provider that answered.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub provider: Option<String>,
    /// The model that answered.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub model: Option<String>,
    /// Amounts of this response.
    #[serde(flatten)]
    pub amounts: Amounts,
    /// Running total of the agent's own rows.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub sum: Option<Amounts>,
}

data_type! {
    /// Data of `interrupted`.
    InterruptedData {
        /// Why the turn was stopped.
        cause: Cause,
    }
}
data_type! {
    /// Data of `error`.
    ErrorData {
        /// Type of failure.
        category: Category,
        /// HTTP status.
        status: u16,
        /// Number of attempts.
        attempts: u32,
        /// Rows that later requests leave out.
        omit: Vec<RowRef>,
    }
}
data_type! {
    /// Lines that an elided tool output keeps.
    Elide {
        /// Number of first lines.
        head: u32,
        /// Number of last lines.
        tail: u32,
    }
}
data_type! {
    /// Correction of token estimates by a model's counts.
    CountScale {
        /// The model's provider.
        provider: String,
        /// The model that counted.
        model: String,
        /// Counted tokens per thousand estimated ones.
        thousandths: u64,
    }
}
data_type! {
    /// Data of `summary`.
    SummaryData {
        /// First row of the range.
        from: RowRef,
        /// Last row of the range.
        to: RowRef,
        /// Oldest of the user's own messages in the range that are sent as typed.
        verbatim_from: RowRef,
        /// Shortens the tool outputs of the range instead of replacing it.
        elide: Elide,
        /// Replaces the range with a note instead of a text.
        cut: bool,
        /// The summary that this row undoes.
        undo: RowRef,
        /// Correction of estimates at this row, since the rows before it are out of sight later.
        scale: CountScale,
    }
}
data_type! {
    /// Data of `process`.
    ProcessData {
        /// Number of the process, from 1 for each owner.
        process: u64,
        /// State from this row on.
        state: ProcessState,
        /// The call that started it.
        call: RowRef,
        /// Its working directory.
        workdir: String,
        /// Exit code.
        exit: i32,
        /// Signal that ended it.
        signal: i32,
        /// Reason for its end.
        cause: ProcessCause,
    }
}
