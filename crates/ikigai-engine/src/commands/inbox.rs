//! `/inbox`: everything that waits for the user.

use ikigai_core::counts::counted;
use ikigai_core::spelling::clean_line;

use super::{Command, Completes, Group, Reply, Shows, SlashCommand, Takes, Trouble, Typed};
use crate::figures::{shorten, since};
use crate::inbox::{dismissals, read_inbox};
use crate::inbox_entry::{InboxEntry, InboxKind};
use crate::turn::CommandContext;

/// Length of an entry's text, in characters.
const SHOWN_CHARS: usize = 80;

pub(super) const INBOX: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[clear]",
        help: "list what waits for you: questions, failures, unread reports",
        examples: &[("/inbox clear", "remove all but questions")],
        takes: Takes::Words,
        completes: &[Completes::Words(&["clear"])],
        shows: Shows::OverlayWithoutArguments,
        ..Command::new("inbox", Group::Agents)
    },
    handler: |ctx, typed| Box::pin(inbox(ctx, typed)),
};

async fn inbox(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let entries = read_inbox(ctx.engine()).await?;
    match typed.one("inbox")? {
        None => {}
        Some("clear") => return Ok(clear(ctx, &entries)),
        Some(other) => return Trouble::refused(format!("usage: /inbox [clear], not `{other}`")),
    }
    if entries.is_empty() {
        return Ok(Reply::says("Nothing waits for you"));
    }
    let now = ctx.engine().environment().now();
    let width = |text: &str| text.chars().count();
    let names = entries.iter().map(|entry| width(&entry.agent.name)).max();
    let names = names.unwrap_or(0);
    let lines = entries.iter().map(|entry| {
        let (sign, word) = (entry.kind.sign(), entry.kind.word());
        let name = clean_line(&entry.agent.name);
        let age = since(entry.at, now);
        let text = shorten(&clean_line(&entry.text), SHOWN_CHARS);
        format!("{sign} {name:<names$}  {age:>7}  {word}: {text}")
    });
    let lines: Vec<String> = lines.collect();
    let hint = "/switch AGENT to answer or /retry there · /resume AGENT to continue";
    Ok(Reply::says(format!("{}\n{hint}", lines.join("\n"))))
}

/// Dismisses all entries that need no answer.
fn clear(ctx: &CommandContext<'_>, entries: &[InboxEntry]) -> Reply {
    let is_question = |entry: &&InboxEntry| entry.kind == InboxKind::Question;
    let left = entries.iter().filter(is_question).count();
    let removed = counted(entries.len() - left, "entry");
    let text = match left {
        0 => format!("Removed {removed}"),
        _ => format!("Removed {removed}; {} left", counted(left, "question")),
    };
    Reply {
        effects: dismissals(ctx.engine(), entries),
        ..Reply::says(text)
    }
}
