//! The command line.

mod control;

use std::str::FromStr;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use ikigai_core::settings::Approve;

pub(crate) use self::control::{CtlOrder, CtlVerb};
use crate::config;

/// Exit codes, which `--help` lists.
pub(crate) mod exit {
    /// The turn failed, or something else went wrong.
    pub(crate) const FAILED: u8 = 1;
    /// The arguments make no sense, as clap says it too.
    pub(crate) const USAGE: u8 = 2;
    /// The store cannot be opened, read or written.
    pub(crate) const STORE: u8 = 3;
    /// There is no such agent, or it cannot be used.
    pub(crate) const AGENT: u8 = 4;
    /// Nobody reads what is printed any more, as shells number a death by SIGPIPE.
    pub(crate) const READER_GONE: u8 = 141;
    /// The turn was interrupted; what came so far is stored.
    pub(crate) const INTERRUPTED: u8 = 130;
}

const AFTER_HELP: &str = "\
Everything is kept in one database: --db, else IKIGAI_DB, else `store` of the
configuration, else $XDG_DATA_HOME/ikigai/ikigai.db (~/.local/share/ikigai/ikigai.db).

Exit codes: 0 done and stored · 1 the turn failed · 2 bad arguments · 3 the store
cannot be used · 4 no such agent, or another process holds it (the message is left
there as mail) · 130 interrupted

Try:
  ikigai                             the screen, with this directory's agent
  ikigai run \"hello\"                 one turn with this directory's agent
  ikigai run \"what did I say\"        it remembers
  ikigai log --request               what the model would be given next";

/// An operating environment for living LLM agents: whatever happens is an event in a database.
#[derive(Debug, Parser)]
#[command(name = "ikigai", version, after_help = AFTER_HELP, subcommand_precedence_over_arg = true)]
pub(crate) struct Arguments {
    /// The database: `sqlite:PATH`, just PATH, or `postgres://USER@HOST/DATABASE`
    #[arg(long, global = true, value_name = "STORE")]
    pub(crate) db: Option<String>,

    #[command(flatten)]
    pub(crate) screen: ScreenOrder,

    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
}

impl Arguments {
    /// What the command line says. What is asked of the screen makes no sense with a verb, while
    /// `--db` may stand before one.
    pub(crate) fn read() -> Self {
        let arguments = Self::parse();
        let screen = &arguments.screen;
        let is_named = screen.agent.is_some() || screen.at.is_some();
        let is_set = screen.model.is_some() || screen.approve.is_some() || screen.continues;
        let is_named = is_named || is_set;
        let asks_screen = screen.prompt.is_some() || is_named || screen.new || screen.headless;
        if arguments.verb.is_some() && asks_screen {
            let text = "what stands before the verb is for the screen: put it after the verb";
            Self::command()
                .error(ErrorKind::ArgumentConflict, text)
                .exit();
        }
        arguments
    }
}

/// How many columns and rows a screen without a terminal has.
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

/// What the screen is asked.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct ScreenOrder {
    /// What to say at once
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,

    /// Show this agent (name, id, or the beginning of an id) instead of the one that was used last
    /// in this directory
    #[arg(long, value_name = "AGENT", conflicts_with = "new")]
    pub(crate) agent: Option<String>,

    /// Make a new agent in this directory
    #[arg(long)]
    pub(crate) new: bool,

    /// Continue with the agent that was used last in this directory; fails if there is none
    #[arg(long = "continue", short = 'c', conflicts_with_all = ["new", "agent"])]
    pub(crate) continues: bool,

    /// Answer with this model from now on: `[PROVIDER:]NAME[/LEVEL]`; `ikigai models` lists them
    #[arg(long, short = 'm', value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// What tools may do without asking while this ikigai runs: `read` nothing but reading, `ask`
    /// for the rest, `edits` also writes inside the working directory, `all` everything
    #[arg(long, short = 'a', value_name = "MODE", value_parser = APPROVE_MODES)]
    pub(crate) approve: Option<String>,

    /// Show this row where it stands in its agent's history, as `ikigai search` tells it: `#name.12`,
    /// or `#12` of the agent itself
    #[arg(long, value_name = "#ID", conflicts_with_all = ["new", "prompt", "plain"])]
    pub(crate) at: Option<String>,

    /// Run without a terminal: the same screen, driven through the control socket (`ikigai ctl`)
    #[arg(long)]
    pub(crate) headless: bool,

    /// How large the screen without a terminal is: columns, `x` and rows, 100x50 if nothing is said
    #[arg(long, value_name = "SIZE", requires = "headless")]
    pub(crate) size: Option<Size>,

    /// End as soon as no agent works
    #[arg(long, requires = "headless")]
    pub(crate) until_idle: bool,

    /// Go on with the stopped turn of this agent; for whoever hands agents over
    #[arg(long, value_name = "AGENT", hide = true, requires = "headless")]
    pub(crate) take_over: Vec<String>,

    /// Only append lines: for screen readers, plain terminals, and the terminal's own scrollback
    #[arg(long, conflicts_with = "headless")]
    pub(crate) plain: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Say something to an agent and print its answer
    Run(RunOrder),
    /// Print what an agent remembers
    Log(LogOrder),
    /// List the agents
    Agents(AgentsOrder),
    /// Find words in all that any agent ever said, did or printed, the newest first
    Search(SearchOrder),
    /// Query the store in SQL, read-only
    ///
    /// Tables cannot be changed. On a PostgreSQL server functions can still act, for example end
    /// sessions or take locks: volatile functions are refused except for a few harmless ones, but a
    /// function that its author marked as stable or immutable is run, whatever it does. Use a role
    /// that may only read where that matters.
    Sql(SqlOrder),
    /// Write histories as Markdown, one page of HTML, or JSON that `import` takes in
    Export(ExportOrder),
    /// Take in agents that were exported as JSON, or those of an older ikigai
    Import(ImportOrder),
    /// Copy everything into an empty store, of either kind, and compare it
    Copy(CopyOrder),
    /// Print what agents cost, by agent, model or day
    Cost(CostOrder),
    /// List the models with their context, prices, thinking levels, and whether a key is present
    Models(ModelsOrder),
    /// List the tools that agents have here, and those that cannot be used, with the reason
    Tools(ToolsOrder),
    /// Check store and surroundings, and say what to do about each finding
    Doctor(DoctorOrder),
    /// Ask something of a running ikigai through its control socket; docs/control-socket.md
    Ctl(CtlOrder),
    /// Print every setting: what it is, where it comes from, and what it means
    #[command(after_help = config::help())]
    Config(ConfigOrder),
    /// Print what a shell needs to complete the words of this command line
    #[command(after_help = COMPLETIONS_HELP)]
    Completions(CompletionsOrder),
}

/// What `run` is asked.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct RunOrder {
    /// What to say; `-` reads it from standard input. Text that is piped in is appended, as in
    /// `git diff | ikigai run "review this"`. What begins with `/` is a command (`/help` lists
    /// them), with `!` a line for your shell
    #[arg(value_name = "PROMPT", required_unless_present_any = ["retry", "resume"])]
    pub(crate) prompt: Option<String>,

    /// Say it to this agent (name, id, or the beginning of an id) instead of the one that was
    /// used last in this directory
    #[arg(long, value_name = "AGENT", conflicts_with = "new")]
    pub(crate) agent: Option<String>,

    /// Make a new agent in this directory
    #[arg(long)]
    pub(crate) new: bool,

    /// Continue with the agent that was used last in this directory; fails if there is none
    #[arg(long = "continue", short = 'c', conflicts_with_all = ["new", "agent"])]
    pub(crate) continues: bool,

    /// Say it to a new child of the agent, which knows nothing of what was said before
    #[arg(long, conflicts_with_all = ["retry", "resume"])]
    pub(crate) fresh: bool,

    /// Answer with this model from now on: `[PROVIDER:]NAME[/LEVEL]`, LEVEL being none, min, low,
    /// med, high or max; `ikigai models` lists them
    #[arg(long, short = 'm', value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// What tools may do without asking, for this run only: `read` nothing but reading, `ask` for
    /// the rest, `edits` also writes inside the working directory, `all` everything. Where nobody
    /// can be asked (no terminal), what would be asked is refused
    #[arg(long, short = 'a', value_name = "MODE", value_parser = APPROVE_MODES)]
    pub(crate) approve: Option<String>,

    /// Send the last turn again instead of saying something
    #[arg(long, conflicts_with_all = ["prompt", "resume", "new"])]
    pub(crate) retry: bool,

    /// Go on with a turn that was stopped instead of saying something
    #[arg(long, conflicts_with_all = ["prompt", "new"])]
    pub(crate) resume: bool,

    /// Give the turn up after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: Option<u64>,

    /// Print every event of the turn as one line of JSON, once it is stored, instead of the answer
    #[arg(long)]
    pub(crate) json: bool,
}

/// The approval modes as they are typed.
const APPROVE_MODES: [&str; 4] = ["read", "ask", "edits", "all"];

/// The approval mode that was typed.
pub(crate) fn approve_mode(typed: Option<&str>) -> Option<Approve> {
    typed.map(|mode| match mode {
        "read" => Approve::Read,
        "edits" => Approve::Edits,
        "all" => Approve::All,
        _ => Approve::Ask,
    })
}

/// What `log` is asked.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct LogOrder {
    /// Which agent (name, id, or the beginning of an id); the one used last in this directory if
    /// none is named
    #[arg(value_name = "AGENT")]
    pub(crate) agent: Option<String>,

    /// Print the neutral request that the next turn would send, as JSON
    #[arg(long, conflicts_with_all = ["all", "tail", "json"])]
    pub(crate) request: bool,

    /// Print it as this dialect spells it: the body that is sent; `own` is the one of the agent's
    /// provider
    #[arg(long, value_name = "DIALECT", requires = "request",
        value_parser = ["responses", "chat", "messages", "gemini", "own"])]
    pub(crate) dialect: Option<String>,

    /// Print the request that was made at this row instead: `#12`, or `#name.12` of an ancestor. Of
    /// a part of an answer it is the one that was answered so, of any other row the next one. What
    /// tools say of themselves is not stored: they are told as they are now
    #[arg(long, value_name = "#ID", requires = "request")]
    pub(crate) at: Option<String>,

    /// Print the rows around this one instead, as it stands in the log: `#12`, or `#name.12`
    #[arg(long, value_name = "#ID", conflicts_with_all = ["request", "all", "tail", "follow"])]
    pub(crate) around: Option<String>,

    /// Print all rows that the agent ever wrote, also those that it no longer remembers
    #[arg(long, conflicts_with = "tail")]
    pub(crate) all: bool,

    /// Print only the newest so many rows
    #[arg(long, value_name = "ROWS")]
    pub(crate) tail: Option<usize>,

    /// Go on with the rows that come, until Ctrl-C, whoever works with the agent
    #[arg(long, short, conflicts_with = "request")]
    pub(crate) follow: bool,

    /// Print one line of JSON for each row
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `search` is asked.
#[derive(Debug, Args)]
pub(crate) struct SearchOrder {
    /// Words that must all be there; `"in quotes"` as they stand, `begin*` for longer words, and
    /// filters: agent:NAME kind:user,tool,… model:NAME before:2026-11-30 after:7d path:DIRECTORY
    #[arg(value_name = "TEXT", required = true)]
    pub(crate) text: Vec<String>,

    /// Tell at most so many rows
    #[arg(long, value_name = "ROWS", default_value_t = 20)]
    pub(crate) limit: usize,

    /// Tell those first that fit best, if they are few, instead of the newest
    #[arg(long)]
    pub(crate) best: bool,

    /// Go on where the last answer ended, as it said
    #[arg(long, value_name = "PLACE")]
    pub(crate) from: Option<i64>,

    /// Print one line of JSON for each row
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `sql` is asked.
#[derive(Debug, Args)]
pub(crate) struct SqlOrder {
    /// One statement that reads; docs/schema.md has the tables
    #[arg(value_name = "STATEMENT")]
    pub(crate) statement: String,

    /// Tell at most so many rows
    #[arg(long, value_name = "ROWS", default_value_t = 1000)]
    pub(crate) limit: usize,

    /// Stop the query after this time
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 30,
        value_parser = clap::value_parser!(u64).range(1..=86_400)
    )]
    pub(crate) timeout: u64,

    /// Print one line of JSON for each row
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `export` is asked.
#[derive(Debug, Args)]
pub(crate) struct ExportOrder {
    /// Which agent (name, id, or the beginning of an id); the one used last in this directory if
    /// none is named
    #[arg(value_name = "AGENT", conflicts_with = "all")]
    pub(crate) agent: Option<String>,

    /// With all its descendants
    #[arg(long, conflicts_with = "all")]
    pub(crate) tree: bool,

    /// All agents of the store
    #[arg(long)]
    pub(crate) all: bool,

    /// What to write: `md`, `html`, or `json`, in which agents come with their ancestors
    #[arg(long, value_name = "FORMAT", default_value = "md", value_parser = ["md", "html", "json"])]
    pub(crate) format: String,

    /// Write to this file, which must not be there, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<String>,
}

/// What `import` is asked.
#[derive(Debug, Args)]
pub(crate) struct ImportOrder {
    /// What the file is
    #[arg(long, value_name = "FORMAT", default_value = "json", value_parser = ["json"])]
    pub(crate) format: String,

    /// A database of an older ikigai, as `postgres://USER@HOST/DATABASE`: its agents come to live
    /// in this directory
    #[arg(long, value_name = "URL", conflicts_with = "format")]
    pub(crate) from: Option<String>,

    /// The file; `-` is standard input
    #[arg(
        value_name = "FILE",
        required_unless_present = "from",
        conflicts_with = "from"
    )]
    pub(crate) file: Option<String>,
}

/// What `copy` is asked.
#[derive(Debug, Args)]
pub(crate) struct CopyOrder {
    /// The store that is copied, as `--db` takes it
    #[arg(long, value_name = "STORE")]
    pub(crate) from: String,

    /// The store that is made or filled; it must be empty
    #[arg(long, value_name = "STORE")]
    pub(crate) to: String,
}

/// What `agents` is asked.
#[derive(Debug, Args)]
pub(crate) struct AgentsOrder {
    /// Show them again whenever something changes, until Ctrl-C
    #[arg(long)]
    pub(crate) watch: bool,

    /// Print one line of JSON for each agent
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `cost` is asked.
#[derive(Debug, Args)]
pub(crate) struct CostOrder {
    /// Only this agent (name, id, or the beginning of an id) and its descendants; all if none is
    /// named
    #[arg(value_name = "AGENT")]
    pub(crate) agent: Option<String>,

    /// By what it is added up
    #[arg(long, value_enum, value_name = "WHAT", default_value = "agent")]
    pub(crate) by: CostKey,

    /// Print one line of JSON for each
    #[arg(long)]
    pub(crate) json: bool,
}

/// By what cost is added up.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CostKey {
    /// By agent, with its descendants
    Agent,
    /// By provider and model
    Model,
    /// By day, where you are
    Day,
}

/// What `models` is asked.
#[derive(Debug, Args)]
pub(crate) struct ModelsOrder {
    /// Only models whose name or provider has this in it
    #[arg(value_name = "WORD")]
    pub(crate) word: Option<String>,

    /// Print one line of JSON for each model
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `tools` is asked.
#[derive(Debug, Args)]
pub(crate) struct ToolsOrder {
    /// Let agents use the tools that this project brings in `.ikigai/tools`, from now on
    #[arg(long)]
    pub(crate) allow: bool,

    /// Print one line of JSON for each tool: name, description and schema
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `doctor` is asked.
#[derive(Debug, Args)]
pub(crate) struct DoctorOrder {
    /// Make the search index again of the log, and check nothing
    #[arg(long)]
    pub(crate) reindex: bool,
}

/// What `config` is asked.
#[derive(Debug, Args)]
pub(crate) struct ConfigOrder {
    /// Print one line of JSON for each setting
    #[arg(long)]
    pub(crate) json: bool,
}

const COMPLETIONS_HELP: &str = "\
Try:
  ikigai completions bash > ~/.local/share/bash-completion/completions/ikigai
  ikigai completions zsh > ~/.zfunc/_ikigai       (with ~/.zfunc in $fpath)
  ikigai completions fish > ~/.config/fish/completions/ikigai.fish";

/// What `completions` is asked.
#[derive(Debug, Args)]
pub(crate) struct CompletionsOrder {
    /// For this shell
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Shells whose words can be completed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Shell {
    /// GNU bash
    Bash,
    /// Z shell
    Zsh,
    /// fish
    Fish,
}
