//! Arguments of `ikigai ctl`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Requests of `ctl`.
#[derive(Debug, Args)]
pub(crate) struct CtlOrder {
    /// Ask this process; not needed if only one runs
    #[arg(long, value_name = "PID", global = true)]
    pub(crate) pid: Option<u32>,

    /// Ask at this socket
    #[arg(long, value_name = "PATH", global = true, conflicts_with = "pid")]
    pub(crate) socket: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) verb: CtlVerb,
}

/// One request.
#[derive(Clone, Debug, Subcommand)]
#[command(rename_all = "snake_case")]
pub(crate) enum CtlVerb {
    /// Print what is on the screen
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
    /// Wait until the agent that is shown has nothing to do; exit code 1 if the time is over before
    WaitIdle {
        /// Milliseconds
        #[arg(value_name = "MS", default_value_t = 60_000)]
        timeout_ms: u64,
    },
    /// Print what fills the window, in tokens
    ReadTokenCache,
    /// Say something, or have a command carried out
    Submit {
        #[arg(value_name = "TEXT", allow_hyphen_values = true)]
        text: String,
        /// To this agent
        #[arg(long, value_name = "AGENT")]
        agent: Option<String>,
    },
    /// List the agents and what they ask
    Agents,
    /// Print the rows of an agent's log, one a line
    Events {
        /// Of this agent
        #[arg(long, value_name = "AGENT")]
        agent: Option<String>,
        /// Only those after this row
        #[arg(long, value_name = "SEQ")]
        after: Option<u64>,
        /// Go on with those that come, until Ctrl-C
        #[arg(long, short)]
        follow: bool,
    },
    /// Answer a question: once, always or no
    Approve {
        #[arg(value_name = "ANSWER", value_parser = ["once", "always", "no"], default_value = "once")]
        answer: String,
        /// The question of this agent
        #[arg(long, value_name = "AGENT")]
        agent: Option<String>,
        /// Hash of the call to approve, as `ctl agents` tells it; `no` needs none
        #[arg(long, value_name = "HASH")]
        call: Option<String>,
        /// What `always` allows
        #[arg(long, value_name = "PATTERN")]
        pattern: Option<String>,
        /// Why not, for the model
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Interrupt an agent
    Interrupt {
        /// This one instead of the one that is shown
        #[arg(long, value_name = "AGENT")]
        agent: Option<String>,
    },
    /// Have the program let go of an agent, so that another can take it
    Release {
        /// This one; all of them if none is named
        #[arg(long, value_name = "AGENT")]
        agent: Option<String>,
    },
    /// Print who answers
    Version,
}
