//! Arguments of `ikigai ctl`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `ctl`.
#[derive(Debug, Args)]
pub(crate) struct CtlOrder {
    /// Process to ask; not needed if only one runs
    #[arg(long, value_name = "PID", global = true)]
    pub(crate) pid: Option<u32>,

    /// Socket to ask
    #[arg(long, value_name = "PATH", global = true, conflicts_with = "pid")]
    pub(crate) socket: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) verb: CtlVerb,
}

/// Request of `ctl`.
#[derive(Clone, Debug, Subcommand)]
#[command(rename_all = "snake_case")]
pub(crate) enum CtlVerb {
    /// Print the screen
    ReadFramebuffer {
        /// As plain text
        #[arg(long)]
        text: bool,
    },
    /// Type keys: `hello\\r`; `\\r \\n \\t \\\\ \\xNN` are unescaped
    SendKeys {
        #[arg(value_name = "KEYS", allow_hyphen_values = true)]
        keys: String,
    },
    /// Wait until the shown agent is idle; exit code 1 on timeout
    WaitIdle {
        /// Timeout in milliseconds
        #[arg(value_name = "MS", default_value_t = 60_000)]
        timeout_ms: u64,
    },
    /// Print the use of the context window, in tokens
    ReadTokenCache,
    /// Send a message or command
    Submit {
        #[arg(value_name = "TEXT", allow_hyphen_values = true)]
        text: String,
        /// Agent that gets it
        #[arg(long, value_name = "AGENT")]
        agent: Option<String>,
    },
    /// List the agents and their questions
    Agents,
    /// Print the events of an agent's log, one per line
    Events {
        /// Agent
        #[arg(long, value_name = "AGENT")]
        agent: Option<String>,
        /// Only events after this one
        #[arg(long, value_name = "SEQ")]
        after: Option<u64>,
        /// Print new events as they come, until Ctrl-C
        #[arg(long, short)]
        follow: bool,
    },
    /// Answer a question: once, always or no
    Approve {
        #[arg(value_name = "ANSWER", value_parser = ["once", "always", "no"], default_value = "once")]
        answer: String,
        /// Agent that asks
        #[arg(long, value_name = "AGENT")]
        agent: Option<String>,
        /// Hash of the call to approve, as `ctl agents` prints it; `no` needs none
        #[arg(long, value_name = "HASH")]
        call: Option<String>,
        /// Pattern that `always` allows
        #[arg(long, value_name = "PATTERN")]
        pattern: Option<String>,
        /// Reason of a `no`, for the model
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Interrupt an agent
    Interrupt {
        /// Agent; default: the one on the screen
        #[arg(long, value_name = "AGENT")]
        agent: Option<String>,
    },
    /// Release an agent, so that another process can take it
    Release {
        /// Agent; default: all
        #[arg(long, value_name = "AGENT")]
        agent: Option<String>,
    },
    /// Print the version and process that answers
    Version,
}
