//! `/help`, `/quit`, and the page in `docs/`, generated from the table.

use std::fmt::Write as _;

use ikigai_core::spelling::spell_out;
use ikigai_tools::extensions::{ExtensionText, Extensions};

use super::reply::Then;
use super::{
    Command, Completes, During, Group, Reply, Shows, SlashCommand, Takes, Trouble, Typed, all,
    find, name_suggestion,
};
use crate::frontend::Next;

pub(super) const HELP: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[command]",
        help: "list commands, or show one with examples",
        examples: &[("/help rewind", "show help on /rewind")],
        takes: Takes::Words,
        completes: &[Completes::Commands],
        shows: Shows::Overlay,
        ..Command::new("help", Group::Session)
    },
    handler: |ctx, typed| {
        Box::pin(async move {
            let workdir = ctx.place().workdir;
            let extensions = ctx.engine().extensions(&workdir).await;
            help(typed, &extensions)
        })
    },
};

pub(super) const QUIT: SlashCommand = SlashCommand {
    command: Command {
        aliases: &["exit"],
        help: "quit (everything is saved)",
        ..Command::new("quit", Group::Session)
    },
    handler: |_, _| Box::pin(async { Ok(Reply::default().then(Then::Front(Next::Quit))) }),
};

/// Longest description of a command or skill in the list, in characters.
const MOST_HELP_CHARS: usize = 100;

/// Input other than slash commands, with descriptions.
const LINES: &[(&str, &str)] = &[
    (
        "!command",
        "run in your shell; the model sees it with your next message",
    ),
    ("!!command", "run in your shell; the model does not see it"),
    (
        "@path[:a-b]",
        "attach a file, lines of it, or an image, to a message",
    ),
    (" /text, //text", "send a message that begins with a slash"),
];

fn help(typed: &Typed, extensions: &Extensions) -> Result<Reply, Trouble> {
    let Some(name) = typed.one("help")? else {
        return Ok(Reply::says(overview(extensions)));
    };
    let name = name.trim_start_matches('/');
    if let Some(command) = find(name) {
        return Ok(Reply::says(one(command)));
    }
    if let Some(text) = extensions.callable(name) {
        let (usage, help) = (usage_of(text), spell_out(&text.description));
        let file = text.path.display();
        return Ok(Reply::says(format!("{usage}\n  {help}\n  from {file}")));
    }
    let near = name_suggestion::nearest(name, all().map(|command| command.name));
    let meant = near.first().map_or_else(
        || "/help lists them".to_owned(),
        |near| format!("did you mean /help {near}?"),
    );
    Trouble::refused(format!("no command /{name} · {meant}"))
}

/// Lists all commands in their groups, one row each.
fn overview(extensions: &Extensions) -> String {
    let widest = all().map(|command| width(&command.usage()));
    let lines = LINES.iter().map(|(line, _)| width(line));
    // Longer ones have their help in the next row.
    let column = widest.chain(lines).filter(|width| *width <= 40).max();
    let column = column.unwrap_or(0);
    let mut text = String::new();
    for group in Group::ALL {
        let mut commands = all().filter(|command| command.group == group).peekable();
        if commands.peek().is_none() {
            continue;
        }
        let _ = writeln!(text, "{}", group.word());
        for command in commands {
            row(&mut text, &command.usage(), command.help, column);
        }
    }
    let mut callables = extensions.callables().peekable();
    if callables.peek().is_some() {
        text.push_str("your commands and skills\n");
    }
    for callable in callables {
        let help: String = callable.description.chars().take(MOST_HELP_CHARS).collect();
        row(&mut text, &usage_of(callable), &spell_out(&help), column);
    }
    text.push_str("other input\n");
    for (line, help) in LINES {
        row(&mut text, line, help, column);
    }
    text.trim_end().to_owned()
}

/// Returns the usage line of a command or skill.
fn usage_of(text: &ExtensionText) -> String {
    let hint = text.argument_hint.as_deref().unwrap_or_default();
    format!("/{} {}", text.name, spell_out(hint))
        .trim_end()
        .to_owned()
}

fn row(text: &mut String, usage: &str, help: &str, column: usize) {
    match column.checked_sub(width(usage)) {
        Some(gap) => writeln!(text, "  {usage}{:gap$}  {help}", ""),
        None => writeln!(text, "  {usage}\n  {:column$}  {help}", ""),
    }
    .unwrap_or_default();
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// Renders the full help on one command.
fn one(command: &Command) -> String {
    let mut text = format!("{}\n  {}", command.usage(), command.help);
    if !command.aliases.is_empty() {
        let _ = write!(text, "\n  also /{}", command.aliases.join(", /"));
    }
    if command.during == During::Interrupts {
        text.push_str("\n  interrupts a running turn");
    }
    let widest = command.examples.iter().map(|(line, _)| width(line)).max();
    for (line, does) in command.examples {
        let gap = widest.unwrap_or(0).saturating_sub(width(line)) + 2;
        let _ = write!(text, "\n    {line}{:gap$}{does}", "");
    }
    text
}

/// Generates `docs/commands.md`.
pub fn page() -> String {
    let mut page = String::from(
        "# Slash commands\n\n\
         Generated from the table in `crates/ikigai-engine/src/commands`.\n\
         To update it: `IKIGAI_WRITE_DOCS=1 cargo test -p ikigai-engine --test it commands_page`.\n\n\
         Only a first word of letters, digits, `-`, `_` and `:` after `/` is a command; commands and skills of your files are called in the same way ([extensions](extensions.md)). The log keeps the output of commands.\n\
         Quote arguments with spaces. Text at the end of a line needs no quotes.\n\
         Events are named `#12` (of this agent) or `#name.12` (of an ancestor).\n\
         Settings changed during a turn apply from its next request on.\n",
    );
    for group in Group::ALL {
        let commands = all().filter(|command| command.group == group);
        let rows: Vec<_> = commands.map(page_row).collect();
        if !rows.is_empty() {
            let _ = write!(
                page,
                "\n## {}\n\n| command | does |\n|---|---|\n{}",
                group.word(),
                rows.concat()
            );
        }
    }
    page.push_str("\n## other input\n\n| typed | does |\n|---|---|\n");
    for (line, help) in LINES {
        let _ = writeln!(page, "| `{}` | {} |", cell(line), cell(help));
    }
    page
}

fn page_row(command: &Command) -> String {
    let mut does = command.help.to_owned();
    if !command.aliases.is_empty() {
        let _ = write!(does, " (also `/{}`)", command.aliases.join("`, `/"));
    }
    if command.during == During::Interrupts {
        does.push_str("; interrupts a running turn");
    }
    for (line, example) in command.examples {
        let _ = write!(does, "<br>`{line}`: {example}");
    }
    format!("| `{}` | {} |\n", cell(&command.usage()), cell(&does))
}

/// Escapes a text for a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
