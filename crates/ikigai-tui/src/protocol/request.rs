//! Requests of the control socket: one line of JSON each.

use serde::{Deserialize, Serialize};

/// Default limit of a wait for an idle agent.
const PATIENCE_MS: u64 = 60_000;

/// One request. Unknown fields are ignored.
/// An agent is named by its name, its id or a prefix of its id; the default is the visible agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ControlRequest {
    /// Contents of the screen.
    ReadFramebuffer,
    /// Types keys, as a terminal sends them.
    SendKeys {
        /// With `\r \n \t \\ \xNN` unescaped.
        keys: String,
    },
    /// Waits until the visible agent is idle.
    WaitIdle {
        /// Limit of the wait.
        #[serde(default = "patience")]
        timeout_ms: u64,
    },
    /// Usage of the current agent's context window.
    ReadTokenCache,
    /// Submits a message or command to an agent, as if it had been typed.
    Submit {
        /// Text of the message.
        text: String,
        /// Recipient.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// All agents.
    Agents,
    /// The rows of an agent's log, one a line.
    Events {
        /// The agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// Only rows after this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<u64>,
        /// True to continue with new rows.
        #[serde(default)]
        follow: bool,
    },
    /// Answers the question of an agent.
    Approve {
        /// The answer.
        #[serde(default)]
        answer: ApprovalWord,
        /// Agent with the question; by default the visible agent, else the oldest question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// Hash of the approved call, as in `agents`; `no` needs none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
        /// Pattern that `always` allows, instead of the proposed one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pattern: Option<String>,
        /// Why not, for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Interrupts an agent.
    Interrupt {
        /// The agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// Releases an agent, so that another process can take it. Releases all if none is named.
    Release {
        /// The agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// Version of this program.
    Version,
}

/// An answer to a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalWord {
    /// This once.
    #[default]
    Once,
    /// Yes, and from now on for all calls that match the pattern.
    Always,
    /// No.
    No,
}

const fn patience() -> u64 {
    PATIENCE_MS
}
