//! Event kinds: one closed list, from the store to the renderer.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Defines the kinds with their stored names.
macro_rules! kinds {
    ($($(#[$about:meta])* $kind:ident = $name:literal,)+) => {
        /// Type of an event; the only list of kind names.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind { $($(#[$about])* $kind,)+ }

        impl Kind {
            /// Every kind, in the order of the enum.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$kind),+];

            /// Returns the stored name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)+ }
            }
        }
    };
}

kinds! {
    /// The system prompt, from this row on.
    System = "system",
    /// Message to the agent from the user, a parent or another agent.
    User = "user",
    /// Text of the model.
    Assistant = "assistant",
    /// A tool call of the model.
    ToolCall = "tool_call",
    /// Result of a tool call.
    ToolResult = "tool_result",
    /// Cleared path: the agent forgets all rows before it.
    Clear = "clear",
    /// Named row to return to.
    Mark = "mark",
    /// A return to an earlier row.
    Rewind = "rewind",
    /// New child; written into both histories.
    Fork = "fork",
    /// Command of the user with its output, or a setting.
    Command = "command",
    /// Agents were killed.
    AgentKilled = "agent_killed",
    /// Cost of a response.
    Usage = "usage",
    /// A turn was stopped.
    Interrupted = "interrupted",
    /// A turn failed.
    Error = "error",
    /// Summary, or a gap, in place of a range of turns.
    Summary = "summary",
    /// A background process started or ended.
    Process = "process",
    /// Files that a call changed.
    Files = "files",
}

/// The kind name that older stores used for tool results.
pub const LEGACY_TOOL: &str = "tool";

/// Error for a name that is no writable kind.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a kind of event")]
pub struct UnknownKind(pub String);

impl Kind {
    /// Returns true if requests contain rows of this kind.
    pub const fn is_conversation(self) -> bool {
        match self {
            Self::System | Self::User | Self::Assistant | Self::ToolCall | Self::ToolResult => true,
            Self::Clear
            | Self::Mark
            | Self::Rewind
            | Self::Fork
            | Self::Command
            | Self::AgentKilled
            | Self::Usage
            | Self::Interrupted
            | Self::Error
            | Self::Summary
            | Self::Process
            | Self::Files => false,
        }
    }

    /// Returns the insert rule for rows of this kind.
    pub const fn insert_rule(self) -> InsertRule {
        use PartRule::{Absent, Optional, Required};
        let (content, data) = match self {
            Self::System | Self::User => (Required, Optional),
            Self::Assistant | Self::Fork | Self::Error => (Required, Required),
            Self::ToolCall | Self::ToolResult | Self::Command | Self::Summary | Self::Process => {
                (Optional, Required)
            }
            Self::Clear => (Absent, Absent),
            Self::Mark => (Absent, Optional),
            Self::Rewind | Self::AgentKilled | Self::Usage | Self::Interrupted | Self::Files => {
                (Absent, Required)
            }
        };
        InsertRule { content, data }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(name: &str) -> Result<Self, UnknownKind> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| UnknownKind(name.chars().take(64).collect()))
    }
}

/// Presence of a part in rows of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartRule {
    /// The part must be present.
    Required,
    /// The part may be present.
    Optional,
    /// The part must be absent.
    Absent,
}

/// Parts that a row must have to be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InsertRule {
    /// The text.
    pub content: PartRule,
    /// The JSON object.
    pub data: PartRule,
}

/// Returns true if a stored kind name belongs to the conversation. Total.
pub fn is_conversation_kind(name: Option<&str>) -> bool {
    match name {
        None => false,
        Some(LEGACY_TOOL) => true,
        Some(name) => name.parse().is_ok_and(Kind::is_conversation),
    }
}

/// Kind of a stored row, perhaps of an older or newer program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StoredKind {
    /// A kind of this program.
    Known(Kind),
    /// `tool`, read as a tool result.
    LegacyTool,
    /// Any other name; the row stays in the log, is reported and skipped.
    Unknown(Box<str>),
}

impl StoredKind {
    /// Reads a stored name. Total.
    pub fn of(name: &str) -> Self {
        match name.parse() {
            Ok(kind) => Self::Known(kind),
            Err(_) if name == LEGACY_TOOL => Self::LegacyTool,
            Err(_) => Self::Unknown(name.into()),
        }
    }

    /// Returns the stored name.
    pub fn name(&self) -> &str {
        match self {
            Self::Known(kind) => kind.name(),
            Self::LegacyTool => LEGACY_TOOL,
            Self::Unknown(name) => name,
        }
    }

    /// Returns the kind of a row in today's shape; a control row has no other.
    pub(crate) const fn known(&self) -> Option<Kind> {
        match self {
            Self::Known(kind) => Some(*kind),
            Self::LegacyTool | Self::Unknown(_) => None,
        }
    }

    /// Returns the kind that such a row is read as.
    pub const fn read_as(&self) -> Option<Kind> {
        match self {
            Self::Known(kind) => Some(*kind),
            Self::LegacyTool => Some(Kind::ToolResult),
            Self::Unknown(_) => None,
        }
    }
}

impl fmt::Display for StoredKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
