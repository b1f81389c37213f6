//! Arguments of `ikigai ctl`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `ctl`.
#[derive(Debug, Args)]
pub(crate) struct CtlOrder {
    /// Process to control; needed only if several run
    #[arg(long, value_name = "PID", global = true)]
    pub(crate) pid: Option<u32>,

    /// Socket to use
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
    /// Type keys, for example `hello\r`; escapes: \r \n \t \\ \xNN
    SendKeys {
        #[arg(value_name = "KEYS", allow_hyphen_values = true)]
        keys: String,
    },
    /// Wait until the agent on the screen is idle; exit code 1 on timeout
    WaitIdle {
        /// Timeout in milliseconds
        #[arg(value_name = "MS", default_value_t = 60_000)]
        timeout_ms: u64,
    },
    /// Print how many tokens of the context window are used
    ReadTokenCache,
    /// Send a message or command
    Submit {
        #[arg(value_name = "TEXT", allow_hyphen_values = true)]
        text: String,
        /// Agent; default: the one on the screen
        #[arg(long, value_name = "AGENT")]
        agent: Option<String>,
    },
    /// List the agents and their pending approvals
    Agents,
    /// Print the events of an agent, one JSON line each
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
    /// Answer an approval prompt: once, always or no
    Approve {
        #[arg(value_name = "ANSWER", value_parser = ["once", "always", "no"], default_value = "once")]
        answer: String,
        /// Agent that asks; default: the one on the screen
        #[arg(long, value_name = "AGENT")]
        agent: Option<String>,
        /// Hash of the call, from `ctl agents`; not needed for `no`
        #[arg(long, value_name = "HASH")]
        call: Option<String>,
        /// Pattern to allow with `always`
        #[arg(long, value_name = "PATTERN")]
        pattern: Option<String>,
        /// Reason for `no`, shown to the model
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Interrupt an agent
    Interrupt {
        /// Agent; default: the one on the screen
        #[arg(long, value_name = "AGENT")]
        agent: Option<String>,
    },
    /// Release an agent so that another process can take it over
    Release {
        /// Agent; default: all
        #[arg(long, value_name = "AGENT")]
        agent: Option<String>,
    },
    /// Print version and process id
    Version,
}
