//! The JSON beside a row's text: one type for each kind, shapes that are for ever.
//!
//! Writing is exact: a constructor fills what the kind always has. Reading is lenient: a key that
//! is missing, unknown or of the wrong type is as if absent, because an old, foreign or damaged
//! row must never stand in the way of the rest. What must be demanded of tool rows is demanded in
//! [`crate::load`].

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::{AgentId, RowRef, Seq};
use crate::json::{data_type, words};
use crate::settings::Settings;

pub use crate::json::read;
pub(crate) use crate::json::{lenient, write};

words! {
    /// Where a system prompt came from.
    SystemOrigin {
        /// The agent was made with it.
        Start,
        /// The user set it.
        Typed,
        /// It was written with the fork.
        Fork,
        /// It was repeated after a clear.
        Clear,
    }
}
words! {
    /// Where a message to the agent came from.
    UserOrigin {
        /// A person typed it.
        Typed,
        /// It is a fork's prompt.
        Fork,
        /// It came as mail.
        Mail,
    }
}
words! {
    /// How a tool call ended.
    Verdict {
        /// It ran to its end.
        Ran,
        /// It was not allowed.
        Refused,
        /// It was stopped, or never started.
        Interrupted,
        /// It had started when the process died.
        Unknown,
    }
}
words! {
    /// Which command made a rewind.
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
    /// Whose side of a fork a row tells.
    ForkRole {
        /// Written into the parent's history.
        Parent,
        /// First row of the child.
        Child,
    }
}
words! {
    /// What a child remembers of its parent.
    ForkContext {
        /// The path up to the fork point.
        Inherit,
        /// Nothing.
        Fresh,
    }
}
words! {
    /// Who answered a question.
    AnsweredBy {
        /// The person at the screen.
        User,
        /// A program at the control socket.
        Socket,
    }
}
words! {
    /// Who gave a kill.
    KilledBy {
        /// A person.
        User,
        /// A model.
        Model,
    }
}
words! {
    /// Why a turn was stopped.
    Cause {
        /// A person stopped it.
        User,
        /// The program was left.
        Exit,
        /// The program died.
        Crash,
        /// The agent was killed.
        Kill,
    }
}
words! {
    /// What kind of failure an error row tells.
    Category {
        /// The provider refused or could not be reached.
        Provider,
        /// A limit of calls, turns or time was hit.
        Limit,
        /// The spending cap was reached.
        Budget,
        /// An item that a provider refused is left out from here on.
        Omitted,
        /// A failure of the program itself.
        Internal,
    }
}

data_type! {
    /// Data of `system`.
    SystemData {
        /// Where the prompt came from.
        origin: SystemOrigin,
    }
}
data_type! {
    /// Data of `user`.
    UserData {
        /// Where the message came from.
        origin: UserOrigin,
        /// What the screen shows, if it is not the text.
        typed: String,
        /// Who sent the mail.
        from: AgentId,
        /// The shell line whose output the text is.
        shell: Shell,
        /// The child's rows whose result the text is.
        merge: Merge,
    }
}
data_type! {
    /// A shell line of the user.
    Shell {
        /// What was run.
        command: String,
        /// Its exit code.
        exit: i32,
    }
}
data_type! {
    /// Which rows of a child were merged.
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
    /// Something a provider wants back byte for byte, and from whom it came.
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
        /// What can be read of it.
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
    /// What hangs on a row only for the provider that made it.
    Opaque {
        /// The thinking before this block, in order.
        thinking: Vec<StoredThinking>,
        /// What hangs on the block itself: item id, phase, signature of a call.
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
        /// Why it stopped.
        stop: String,
        /// What hangs on the row.
        opaque: Opaque,
    }
}
data_type! {
    /// Data of `tool_call`, beside the three strings that [`crate::load`] demands.
    ToolCallData {
        /// The id that pairs call and result, as it came.
        tool_call_id: String,
        /// Which tool.
        name: String,
        /// Its arguments as the model wrote them, byte for byte.
        arguments: String,
        /// Number of the response that holds the call.
        response: u64,
        /// What hangs on the row.
        opaque: Opaque,
    }
}
data_type! {
    /// A file that a tool read or wrote.
    TouchedFile {
        /// Its path.
        path: String,
        /// Hash of its bytes afterwards.
        hash: String,
        /// Whether the tool wrote it.
        wrote: bool,
        /// Lines that a write added, if they were counted.
        added: u64,
        /// Lines that a write removed, if they were counted.
        removed: u64,
    }
}
data_type! {
    /// A large content that is stored once.
    BlobRef {
        /// Hash of the bytes.
        hash: String,
        /// How many there are.
        bytes: u64,
    }
}
data_type! {
    /// Data of `tool_result`, beside what [`crate::load`] demands.
    ToolResultData {
        /// The id of the call, as it came.
        tool_call_id: String,
        /// Which tool.
        name: String,
        /// What the model is given.
        output: String,
        /// Whether the tool succeeded.
        success: bool,
        /// The call that is answered.
        call: RowRef,
        /// The whole output, if it was larger.
        blob: BlobRef,
        /// How the call ended.
        verdict: Verdict,
        /// Files read or written.
        files: Vec<TouchedFile>,
    }
}
data_type! {
    /// Data of `mark`.
    MarkData {
        /// What the user called the place.
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
        /// Which command did it.
        via: Via,
        /// Files changed since and not restored.
        files: Vec<String>,
        /// How many turns were left behind.
        turns: u64,
    }
}

/// Data of `fork`, of either role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkData {
    /// Whose side this row tells.
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
    /// The parent, in the child's row.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub parent_uuid: Option<AgentId>,
    /// The fork point's sequence number, for older readers; [`Self::fork_point`] is what is used.
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
    /// What the child remembers, in the child's row.
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
        /// The row that this one belongs to.
        of: RowRef,
        /// Who answered.
        by: AnsweredBy,
        /// Whether a stopped turn goes on.
        resume: bool,
        /// Tag over the mode and rules that `set` names: see [`crate::grants`].
        grant: String,
    }
}
data_type! {
    /// Data of `agent_killed`.
    AgentKilledData {
        /// The agent that was named.
        target: AgentId,
        /// All that were killed.
        killed: Vec<AgentId>,
        /// Who gave the kill.
        by: KilledBy,
    }
}
data_type! {
    /// Tokens and money.
    Amounts {
        /// Tokens read afresh.
        input: u64,
        /// Tokens read from the provider's cache.
        cache_read: u64,
        /// Tokens written to it.
        cache_write: u64,
        /// Tokens answered.
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
    /// Of this response.
    #[serde(flatten)]
    pub amounts: Amounts,
    /// The same over the agent's own rows so far.
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
        /// What failed.
        category: Category,
        /// HTTP status.
        status: u16,
        /// How often it was tried.
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
        /// The summary that is taken back.
        undo: RowRef,
    }
}
