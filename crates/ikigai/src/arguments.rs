//! Command line.

mod acp;
mod control;
mod files;
mod mcp;
mod other_tools;
mod project;
mod workspace;

use std::path::PathBuf;
use std::str::FromStr;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use ikigai_core::PersonName;
use ikigai_core::settings::Approve;

pub(crate) use self::acp::AcpOrder;
pub(crate) use self::control::{CtlOrder, CtlVerb};
pub(crate) use self::files::{BlameOrder, DiffOrder};
pub(crate) use self::mcp::{McpAddOrder, McpListOrder, McpOrder, McpVerb};
pub(crate) use self::project::{ToolsOrder, TrustOrder};
pub(crate) use self::workspace::{WorkspaceOrder, WorkspaceVerb};
use crate::config;

/// Exit codes, listed in `--help`.
pub(crate) mod exit {
    /// The turn failed, or another error occurred.
    pub(crate) const FAILED: u8 = 1;
    /// Invalid arguments; clap uses the same code.
    pub(crate) const USAGE: u8 = 2;
    /// The store cannot be opened, read or written.
    pub(crate) const STORE: u8 = 3;
    /// The agent does not exist or cannot be used.
    pub(crate) const AGENT: u8 = 4;
    /// The reader of the output is gone; shells use this code for SIGPIPE.
    pub(crate) const READER_GONE: u8 = 141;
    /// The turn was interrupted; the part received so far is stored.
    pub(crate) const INTERRUPTED: u8 = 130;
}

const AFTER_HELP: &str = "\
Everything is stored in one database: --db, else IKIGAI_DB, else `store` in the config,
else $XDG_DATA_HOME/ikigai/ikigai.db (~/.local/share/ikigai/ikigai.db).

Exit codes: 0 success · 1 turn failed · 2 invalid arguments · 3 database unusable ·
4 agent not found, or open in another process (your message was delivered there) ·
130 interrupted

Examples:
  ikigai                         start ikigai in this directory
  ikigai run \"hello\"             send one message and print the answer
  ikigai run \"what did I say\"    the agent remembers
  ikigai log --request           print the next request to the model";

/// A terminal coding agent that never loses history and can fork
#[derive(Debug, Parser)]
#[command(name = "ikigai", version = env!("IKIGAI_VERSION"), after_help = AFTER_HELP, subcommand_precedence_over_arg = true)]
pub(crate) struct Arguments {
    /// Database: PATH, `sqlite:PATH` or `postgres://USER@HOST/DATABASE`
    #[arg(long, global = true, value_name = "STORE")]
    pub(crate) db: Option<String>,

    #[command(flatten)]
    pub(crate) screen: ScreenOrder,

    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
}

impl Arguments {
    /// Parses the command line.
    ///
    /// Options of the screen are an error with a verb; `--db` may precede one.
    pub(crate) fn read() -> Self {
        let arguments = Self::try_parse().unwrap_or_else(|error| {
            if let Some(text) = other_tools::explain(&error) {
                refuse(error.kind(), &text);
            }
            error.exit()
        });
        let screen = &arguments.screen;
        let is_named = screen.agent.is_some() || screen.at.is_some();
        let is_set = screen.model.is_some() || screen.approve.is_some() || screen.continues;
        let is_set = is_set || screen.no_sandbox || screen.trust;
        let is_named = is_named || is_set;
        let asks_screen = screen.prompt.is_some() || is_named || screen.new || screen.headless;
        if arguments.verb.is_some() && asks_screen {
            let text = "put options after the command, as in `ikigai run --new \"hello\"`";
            refuse(ErrorKind::ArgumentConflict, text);
        }
        let prompt = screen.prompt.as_deref();
        if let Some(text) = prompt.and_then(other_tools::explain_prompt) {
            refuse(ErrorKind::InvalidSubcommand, &text);
        }
        arguments
    }
}

fn refuse(kind: ErrorKind, text: &str) -> ! {
    Arguments::command().error(kind, text).exit()
}

/// Returns true if a word is a command of ours.
fn is_command(word: &str) -> bool {
    Arguments::command().find_subcommand(word).is_some()
}

/// Columns and rows of a screen without a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) (u16, u16));

impl Default for Size {
    fn default() -> Self {
        Self((100, 50))
    }
}

impl FromStr for Size {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "expected COLUMNSxROWS of 1x1 to 1000x500";
        let (columns, rows) = text.split_once('x').ok_or(wrong)?;
        let number = |text: &str, most: u16| text.parse().ok().filter(|n| (1..=most).contains(n));
        let size = number(columns, 1000).zip(number(rows, 500));
        size.map(Self).ok_or(wrong)
    }
}

/// Arguments of the screen.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct ScreenOrder {
    /// First message
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,

    /// Open this agent (name, id, or start of an id) instead of the last one used here
    #[arg(long, value_name = "AGENT", conflicts_with = "new")]
    pub(crate) agent: Option<String>,

    /// Create a new agent in this directory
    #[arg(long)]
    pub(crate) new: bool,

    /// Continue with the last agent of this directory; fail if there is none
    #[arg(long = "continue", short = 'c', conflicts_with_all = ["new", "agent"])]
    pub(crate) continues: bool,

    /// Use this model from now on: `[PROVIDER:]NAME[/LEVEL]`; `ikigai models` lists them
    #[arg(long, short = 'm', value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// Permission mode of this session: `read` refuses edits and commands, `ask` asks first,
    /// `edits` allows edits in this directory, `all` allows everything
    #[arg(long, short = 'a', value_name = "MODE", value_parser = APPROVE_MODES, hide_possible_values = true)]
    pub(crate) approve: Option<String>,

    /// Run tools without the sandbox in this session: they can change all your files
    #[arg(long)]
    pub(crate) no_sandbox: bool,

    /// Trust the project's settings, tools, hooks, servers, skills, commands and agents as they
    /// are now; `ikigai trust` lists them
    #[arg(long)]
    pub(crate) trust: bool,

    /// Open the history at this event: `#name.12`, as `ikigai search` prints it, or `#12`
    #[arg(long, value_name = "#ID", conflicts_with_all = ["new", "prompt", "plain"])]
    pub(crate) at: Option<String>,

    /// Run without a terminal, driven through the control socket (`ikigai ctl`)
    #[arg(long)]
    pub(crate) headless: bool,

    /// Screen size with --headless: `COLUMNSxROWS` (default 100x50)
    #[arg(long, value_name = "SIZE", requires = "headless")]
    pub(crate) size: Option<Size>,

    /// Exit when all agents are idle
    #[arg(long, requires = "headless")]
    pub(crate) until_idle: bool,

    /// Continue the stopped turn of this agent; used when a process hands agents over
    #[arg(long, value_name = "AGENT", hide = true, requires = "headless")]
    pub(crate) take_over: Vec<String>,

    /// Print plain lines: for screen readers and simple terminals
    #[arg(long, conflicts_with = "headless")]
    pub(crate) plain: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Send a message to an agent and print its answer
    Run(RunOrder),
    /// Serve an editor on standard input and output, by the Agent Client Protocol (see docs/editors.md)
    Acp(AcpOrder),
    /// Print the conversation of an agent
    Log(LogOrder),
    /// Print what an agent changed in files, as a patch that `git apply` takes
    Diff(DiffOrder),
    /// Print which call of which agent wrote each line of a file
    Blame(BlameOrder),
    /// List the agents
    Agents(AgentsOrder),
    /// List workspaces (a directory of a machine), or adopt one
    Workspace(WorkspaceOrder),
    /// List what waits for you: questions, failures and stopped turns of all agents
    Inbox(InboxOrder),
    /// Search all messages, tool calls and outputs, newest first
    Search(SearchOrder),
    /// Query the store in SQL, read-only
    ///
    /// Queries cannot change tables. On PostgreSQL, volatile functions are refused except for a few
    /// harmless ones, but stable and immutable functions run even if they take locks or end
    /// sessions. Use a read-only role if that matters.
    Sql(SqlOrder),
    /// Export conversations as Markdown, HTML or JSON
    Export(ExportOrder),
    /// Import agents from a JSON export or from an older ikigai
    Import(ImportOrder),
    /// Copy a database to an empty one (SQLite or PostgreSQL) and verify it
    Copy(CopyOrder),
    /// Show costs by agent, model or day
    Cost(CostOrder),
    /// List models with context window, prices and thinking levels
    Models(ModelsOrder),
    /// List the tools available in this directory, and broken ones
    Tools(ToolsOrder),
    /// Add, list or remove MCP servers
    Mcp(McpOrder),
    /// Show what this project brings that runs or reaches the model; trust or revoke it
    ///
    /// A project can bring settings, tools, hooks, MCP servers, skills, commands and agent
    /// definitions. None of them is loaded before you trust its present content; a change asks
    /// again. Trusted items can run programs with your rights.
    Trust(TrustOrder),
    /// Diagnose problems and suggest fixes
    Doctor(DoctorOrder),
    /// Control a running ikigai through its socket (see docs/control-socket.md)
    Ctl(CtlOrder),
    /// Show effective settings and where each comes from
    #[command(after_help = config::help())]
    Config(ConfigOrder),
    /// Print shell completions
    #[command(after_help = COMPLETIONS_HELP)]
    Completions(CompletionsOrder),
    /// Print the manual page, or write the pages of all commands into a directory
    Man(ManOrder),
    /// Keep a background process; ikigai starts this itself
    #[command(hide = true)]
    Keeper,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct RunOrder {
    /// Message; `-` reads it from stdin. Piped text is appended: `git diff | ikigai run "review
    /// this"`. `/NAME` runs a slash command (see `/help`), `!LINE` a shell command
    #[arg(value_name = "PROMPT", required_unless_present_any = ["retry", "resume"])]
    pub(crate) prompt: Option<String>,

    /// Use this agent (name, id, or start of an id) instead of the last one used here
    #[arg(long, value_name = "AGENT", conflicts_with = "new")]
    pub(crate) agent: Option<String>,

    /// Create a new agent in this directory
    #[arg(long)]
    pub(crate) new: bool,

    /// Continue with the last agent of this directory; fail if there is none
    #[arg(long = "continue", short = 'c', conflicts_with_all = ["new", "agent"])]
    pub(crate) continues: bool,

    /// Use a new child agent with empty context
    #[arg(long, conflicts_with_all = ["retry", "resume"])]
    pub(crate) fresh: bool,

    /// Use this model from now on: `[PROVIDER:]NAME[/LEVEL]`; `ikigai models` lists them
    #[arg(long, short = 'm', value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// Permission mode of this run: `read` refuses edits and commands, `ask` asks first (and
    /// refuses without a terminal), `edits` allows edits in this directory, `all` allows everything
    #[arg(long, short = 'a', value_name = "MODE", value_parser = APPROVE_MODES, hide_possible_values = true)]
    pub(crate) approve: Option<String>,

    /// Run tools without the sandbox in this session: they can change all your files
    #[arg(long)]
    pub(crate) no_sandbox: bool,

    /// Trust the project's settings, tools, hooks, servers, skills, commands and agents as they
    /// are now; `ikigai trust` lists them
    #[arg(long)]
    pub(crate) trust: bool,

    /// Leave background processes running at the end; they are stopped otherwise
    #[arg(long)]
    pub(crate) keep: bool,

    /// Resend the last message
    #[arg(long, conflicts_with_all = ["prompt", "resume", "new"])]
    pub(crate) retry: bool,

    /// Continue an interrupted turn
    #[arg(long, conflicts_with_all = ["prompt", "new"])]
    pub(crate) resume: bool,

    /// Abort after N seconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: Option<u64>,

    /// Print the events of the turn as JSON lines
    #[arg(long)]
    pub(crate) json: bool,
}

/// Names of the approval modes.
const APPROVE_MODES: [&str; 4] = ["read", "ask", "edits", "all"];

/// Parses an approval mode.
pub(crate) fn approve_mode(typed: Option<&str>) -> Option<Approve> {
    typed.map(|mode| match mode {
        "read" => Approve::Read,
        "edits" => Approve::Edits,
        "all" => Approve::All,
        _ => Approve::Ask,
    })
}

/// Arguments of `log`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct LogOrder {
    /// Agent (name, id, or start of an id); default: the one last used in this directory
    #[arg(value_name = "AGENT")]
    pub(crate) agent: Option<String>,

    /// Print the next request to the model, as JSON
    #[arg(long, conflicts_with_all = ["all", "tail", "json"])]
    pub(crate) request: bool,

    /// Print the raw HTTP body for this API (`own`: the agent's provider)
    #[arg(long, value_name = "DIALECT", requires = "request",
        value_parser = ["responses", "chat", "messages", "gemini", "own"])]
    pub(crate) dialect: Option<String>,

    /// Print the request sent at event `#12`, or at `#name.12` of an ancestor (tool descriptions
    /// are today's)
    #[arg(long, value_name = "#ID", requires = "request")]
    pub(crate) at: Option<String>,

    /// Print the events around `#12` or `#name.12`
    #[arg(long, value_name = "#ID", conflicts_with_all = ["request", "all", "tail", "follow"])]
    pub(crate) around: Option<String>,

    /// Print all events of the agent, including abandoned branches
    #[arg(long, conflicts_with = "tail")]
    pub(crate) all: bool,

    /// Print only the last N events
    #[arg(long, value_name = "N")]
    pub(crate) tail: Option<usize>,

    /// Print only events that this person caused
    #[arg(long, value_name = "PERSON", conflicts_with = "request")]
    pub(crate) by: Option<PersonName>,

    /// Print new events as they come, until Ctrl-C
    #[arg(long, short, conflicts_with = "request")]
    pub(crate) follow: bool,

    /// Print one JSON line per event
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `search`.
#[derive(Debug, Args)]
pub(crate) struct SearchOrder {
    /// Words that must all occur; `"exact phrase"`, `prefix*`, and filters: agent:NAME
    /// by:PERSON kind:user,tool,… model:NAME before:2026-11-30 after:7d path:DIRECTORY
    #[arg(value_name = "TEXT", required = true)]
    pub(crate) text: Vec<String>,

    /// Show at most N results
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,

    /// Sort by relevance instead of date
    #[arg(long)]
    pub(crate) best: bool,

    /// Continue a previous search at its cursor
    #[arg(long, value_name = "CURSOR")]
    pub(crate) from: Option<i64>,

    /// Print one JSON line per result
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `sql`.
#[derive(Debug, Args)]
pub(crate) struct SqlOrder {
    /// SQL query; docs/schema.md lists the tables
    #[arg(value_name = "STATEMENT")]
    pub(crate) statement: String,

    /// Show at most N rows
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) limit: usize,

    /// Stop the query after N seconds
    #[arg(
        long,
        value_name = "N",
        default_value_t = 30,
        value_parser = clap::value_parser!(u64).range(1..=86_400)
    )]
    pub(crate) timeout: u64,

    /// Print one JSON line per row
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `export`.
#[derive(Debug, Args)]
pub(crate) struct ExportOrder {
    /// Agent (name, id, or start of an id); default: the one last used in this directory
    #[arg(value_name = "AGENT", conflicts_with = "all")]
    pub(crate) agent: Option<String>,

    /// Include all descendants
    #[arg(long, conflicts_with = "all")]
    pub(crate) tree: bool,

    /// Export all agents
    #[arg(long)]
    pub(crate) all: bool,

    /// Format: `md`, `html`, or `json` (for `import`; includes ancestors)
    #[arg(long, value_name = "FORMAT", default_value = "md", value_parser = ["md", "html", "json"])]
    pub(crate) format: String,

    /// Write to this new file instead of stdout
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<String>,
}

/// Arguments of `import`.
#[derive(Debug, Args)]
pub(crate) struct ImportOrder {
    /// Format of the file
    #[arg(long, value_name = "FORMAT", default_value = "json", value_parser = ["json"])]
    pub(crate) format: String,

    /// Import from the database of an older ikigai (`postgres://USER@HOST/DATABASE`) into this
    /// directory
    #[arg(long, value_name = "URL", conflicts_with = "format")]
    pub(crate) from: Option<String>,

    /// File; `-` reads stdin
    #[arg(
        value_name = "FILE",
        required_unless_present = "from",
        conflicts_with = "from"
    )]
    pub(crate) file: Option<String>,
}

/// Arguments of `copy`.
#[derive(Debug, Args)]
pub(crate) struct CopyOrder {
    /// Source database, as in `--db`
    #[arg(long, value_name = "STORE")]
    pub(crate) from: String,

    /// Target database; must be empty or new
    #[arg(long, value_name = "STORE")]
    pub(crate) to: String,
}

/// Arguments of `agents`.
#[derive(Debug, Args)]
pub(crate) struct AgentsOrder {
    /// Refresh the list on every change, until Ctrl-C
    #[arg(long)]
    pub(crate) watch: bool,

    /// Print one JSON line per agent
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `inbox`.
#[derive(Debug, Args)]
pub(crate) struct InboxOrder {
    /// Print one JSON line per entry
    #[arg(long)]
    pub(crate) json: bool,
    /// Remove all entries but questions
    #[arg(long, conflicts_with = "json")]
    pub(crate) clear: bool,
}

/// Arguments of `cost`.
#[derive(Debug, Args)]
pub(crate) struct CostOrder {
    /// Only this agent (name, id, or start of an id) and its descendants; default: all agents
    #[arg(value_name = "AGENT")]
    pub(crate) agent: Option<String>,

    /// Group by agent, model or day
    #[arg(long, value_enum, value_name = "WHAT", default_value = "agent")]
    pub(crate) by: CostKey,

    /// Print one JSON line per group
    #[arg(long)]
    pub(crate) json: bool,
}

/// Grouping of costs.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CostKey {
    /// By agent, with its descendants
    Agent,
    /// By provider and model
    Model,
    /// By day, in local time
    Day,
}

/// Arguments of `models`.
#[derive(Debug, Args)]
pub(crate) struct ModelsOrder {
    /// Only models with this text in their name or provider
    #[arg(value_name = "WORD")]
    pub(crate) word: Option<String>,

    /// Print one JSON line per model
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorOrder {
    /// Rebuild the search index and exit
    #[arg(long)]
    pub(crate) reindex: bool,
}

/// Arguments of `config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigOrder {
    /// Print one JSON line per setting
    #[arg(long)]
    pub(crate) json: bool,
}

const COMPLETIONS_HELP: &str = "\
Examples:
  ikigai completions bash > ~/.local/share/bash-completion/completions/ikigai
  ikigai completions zsh > ~/.zfunc/_ikigai       (with ~/.zfunc in $fpath)
  ikigai completions fish > ~/.config/fish/completions/ikigai.fish";

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsOrder {
    /// Shell to generate completions for
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub(crate) struct ManOrder {
    /// Directory for the pages
    #[arg(value_name = "DIRECTORY")]
    pub(crate) directory: Option<PathBuf>,
}

/// Shells with completions.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Shell {
    /// GNU bash
    Bash,
    /// Z shell
    Zsh,
    /// fish
    Fish,
}
