//! Commands and options of other tools, each with the way to the same here.

use std::env;

use clap::error::{ContextKind, ContextValue, ErrorKind};

const EARLIER_CONVERSATION: &str = "`ikigai` continues the last agent of this directory, \
                                    `ikigai --agent NAME` opens another one";
const ONE_ANSWER: &str = "use `ikigai run \"PROMPT\"`";
const KEYS: &str = "type /key PROVIDER in ikigai, or set a variable such as ANTHROPIC_API_KEY";

const COMMANDS: &[(&str, &str)] = &[
    ("resume", EARLIER_CONVERSATION),
    ("continue", EARLIER_CONVERSATION),
    ("exec", ONE_ANSWER),
    ("chat", "`ikigai` alone starts a conversation"),
    ("login", KEYS),
    ("logout", KEYS),
    ("auth", KEYS),
    ("setup-token", KEYS),
    (
        "update",
        "install the newer version the way you installed this one",
    ),
    (
        "upgrade",
        "install the newer version the way you installed this one",
    ),
    ("sessions", "`ikigai agents` lists all conversations"),
    ("session", "`ikigai agents` lists all conversations"),
    ("list", "`ikigai agents` lists all conversations"),
    ("ls", "`ikigai agents` lists all conversations"),
    ("history", "`ikigai log` prints the conversation"),
    ("stats", "use `ikigai cost`"),
    ("usage", "use `ikigai cost`"),
    ("status", "use `ikigai agents` or `ikigai inbox`"),
    ("serve", "use `ikigai --headless` (docs/control-socket.md)"),
    ("server", "use `ikigai --headless` (docs/control-socket.md)"),
    ("init", "use `ikigai run \"write AGENTS.md\"`"),
    ("review", "use `git diff | ikigai run \"review this\"`"),
    ("settings", "use `ikigai config`"),
];

const OPTIONS: &[(&str, &str)] = &[
    ("-p", ONE_ANSWER),
    ("--print", ONE_ANSWER),
    ("--prompt", ONE_ANSWER),
    ("-r", EARLIER_CONVERSATION),
    ("--resume", EARLIER_CONVERSATION),
    ("--session", EARLIER_CONVERSATION),
    ("--yolo", "use `--approve all`"),
    ("--full-auto", "use `--approve edits`"),
    ("--dangerously-skip-permissions", "use `--approve all`"),
    ("--permission-mode", "use `--approve MODE`"),
    ("--output-format", "use `ikigai run --json`"),
    (
        "--verbose",
        "use `RUST_LOG=debug ikigai` (docs/providers.md)",
    ),
];

/// Explains a prompt that is a command of another tool; none if it is a message.
pub(super) fn explain_prompt(prompt: &str) -> Option<String> {
    let instead = find(COMMANDS, prompt)?;
    let message = format!("to send it as a message: `ikigai run {prompt}`");
    Some(format!("no command `{prompt}`: {instead}; {message}"))
}

/// Explains arguments that clap does not know; none if nothing is known about them.
pub(super) fn explain(error: &clap::Error) -> Option<String> {
    // A second word after a message is taken for a command.
    let kind = match error.kind() {
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        _ => return None,
    };
    let Some(ContextValue::String(unknown)) = error.get(kind) else {
        return None;
    };
    if unknown.starts_with('-') {
        let name = unknown.split('=').next().unwrap_or(unknown);
        let instead = find(OPTIONS, name)?;
        return Some(format!("no option `{name}`: {instead}"));
    }
    let first = env::args_os().nth(1)?.into_string().ok()?;
    if let Some(instead) = find(COMMANDS, &first) {
        return Some(format!("no command `{first}`: {instead}"));
    }
    let (command, is_prompt) = match first.as_str() {
        "run" => ("ikigai run", true),
        _ => ("ikigai", !super::is_command(&first)),
    };
    is_prompt
        .then(|| format!("unexpected argument `{unknown}`: quote the message: `{command} \"…\"`"))
}

fn find(table: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    let entry = table.iter().find(|(known, _)| *known == name);
    entry.map(|(_, instead)| *instead)
}
