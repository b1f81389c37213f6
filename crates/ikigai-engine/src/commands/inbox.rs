//! `/inbox`: everything that waits for the user.

use ikigai_core::spelling::clean_line;

use super::{Command, Group, Reply, Shows, SlashCommand, Trouble};
use crate::figures::{shorten, since};
use crate::inbox::read_inbox;
use crate::turn::CommandContext;

/// Length of an entry's text, in characters.
const SHOWN_CHARS: usize = 80;

pub(super) const INBOX: SlashCommand = SlashCommand {
    command: Command {
        help: "list questions, failures and stopped turns of all agents",
        shows: Shows::Overlay,
        ..Command::new("inbox", Group::Agents)
    },
    handler: |ctx, _| Box::pin(inbox(ctx)),
};

async fn inbox(ctx: &mut CommandContext<'_>) -> Result<Reply, Trouble> {
    let entries = read_inbox(ctx.engine()).await?;
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
