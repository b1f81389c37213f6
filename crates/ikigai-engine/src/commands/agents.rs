//! Commands on agents: `/agents`, `/switch`, `/send`, `/wait`, `/kill`, `/reap`, `/mail`.

use std::fmt::Write as _;
use std::time::Duration;

use ikigai_core::AgentId;
use ikigai_store::{AgentRecord, Effect, MailEffect, MailOrigin, MailTopic, Status};

use super::actions::CommandAction;
use super::reply::Then;
use super::{
    Command, CommandOption, Completes, Group, Next, Reply, Shows, SlashCommand, Takes, Trouble,
    Typed,
};
use crate::environment::draw_mail;
use crate::family::{check_mail, tree};
use crate::family_tree::FamilyTree;
use crate::figures::read_duration;
use crate::message_size::check_message_to;
use crate::turn::CommandContext;
use crate::{EngineError, EngineReader};

/// Default timeout of `/wait`.
const WAIT: Duration = Duration::from_mins(10);

/// Maximum timeout: a day.
const LONGEST_WAIT: Duration = Duration::from_hours(24);

/// Length of a mail in a list, in characters.
const SHOWN_CHARS: usize = 60;

pub(super) const AGENTS: SlashCommand = SlashCommand {
    command: Command {
        help: "show the tree of agents",
        shows: Shows::Overlay,
        ..Command::new("agents", Group::Agents)
    },
    handler: |ctx, _| Box::pin(async move { Ok(Reply::says(tree(ctx.engine()).await?)) }),
};

pub(super) const SWITCH: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[AGENT|..]",
        help: "go to another agent, or .. for the parent",
        takes: Takes::Words,
        completes: &[Completes::Agents],
        ..Command::new("switch", Group::Agents)
    },
    handler: |ctx, typed| Box::pin(switch(ctx, typed)),
};

pub(super) const SEND: SlashCommand = SlashCommand {
    command: Command {
        arguments: "AGENT text",
        help: "send a message to another agent; starts its turn if it is idle",
        examples: &[(
            "/send docs the parser has changed",
            "docs answers it in a turn",
        )],
        takes: Takes::WordsThenText(1),
        options: &[CommandOption::Flag("--wake")],
        completes: &[Completes::Agents, Completes::Nothing],
        ..Command::new("send", Group::Agents)
    },
    handler: |ctx, typed| Box::pin(send(ctx, typed)),
};

pub(super) const WAIT_FOR: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[AGENT …] [--for 10m]",
        help: "wait until child agents finish",
        examples: &[("/wait fix-lexer --for 90", "at most 90 seconds")],
        takes: Takes::Words,
        options: &[CommandOption::Value("--for")],
        completes: &[Completes::Agents],
        during: super::During::AtBreak,
        ..Command::new("wait", Group::Agents)
    },
    handler: |ctx, typed| Box::pin(wait(ctx, typed)),
};

pub(super) const KILL: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[AGENT]",
        help: "end an agent and its children; not a root",
        takes: Takes::Words,
        completes: &[Completes::Agents],
        reports: Some(ikigai_core::Kind::AgentKilled),
        ..Command::new("kill", Group::Agents)
    },
    handler: |ctx, typed| Box::pin(kill(ctx, typed)),
};

pub(super) const MAIL: SlashCommand = SlashCommand {
    command: Command {
        help: "list messages to this agent and their state",
        ..Command::new("mail", Group::Agents)
    },
    handler: |ctx, _| Box::pin(mail(ctx)),
};

/// Finds the agent that a user names.
pub(super) async fn find_agent(
    ctx: &CommandContext<'_>,
    name: &str,
) -> Result<AgentRecord, Trouble> {
    find_agent_near(ctx.engine(), ctx.id(), name).await
}

/// Finds an agent that a user names; names of `own`'s workspace come first.
pub(super) async fn find_agent_near(
    engine: &EngineReader,
    own: AgentId,
    name: &str,
) -> Result<AgentRecord, Trouble> {
    match engine.find_near(own, name).await {
        Ok(agent) => Ok(agent),
        Err(error @ (EngineError::NoSuchAgent(_) | EngineError::Ambiguous { .. })) => {
            Trouble::refused(format!("{error} · /agents lists them"))
        }
        Err(error) => Err(error.into()),
    }
}

async fn switch(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let target = match typed.one("switch")? {
        None => return Trouble::refused("usage: /switch AGENT, or .. for the parent"),
        Some("..") => {
            let family = FamilyTree::new(ctx.engine().agents().await?);
            let parents = family.ancestors(ctx.id());
            match parents.first() {
                Some(parent) => *parent,
                None => return Trouble::refused("no parent: this is a root agent"),
            }
        }
        Some(name) => find_agent(ctx, name).await?.id,
    };
    Ok(Reply::default().then(Then::Front(Next::Switch(target))))
}

async fn send(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let Some(name) = typed.words.first() else {
        return Trouble::refused("usage: /send AGENT TEXT");
    };
    let to = find_agent(ctx, name).await?;
    let text = typed.text.as_deref().unwrap_or_default();
    match check_mail(&to, text) {
        Ok(()) => {}
        Err(EngineError::Dead(name)) => {
            return Trouble::refused(format!(
                "{name} has ended · /switch {name} shows it, /fork makes another agent"
            ));
        }
        Err(error) => return Trouble::refused(error.to_string()),
    }
    check_message_to(ctx.engine(), to.id, text).await?;
    // From the user, not from the agent where it was typed.
    let effect = Effect::Mail(MailEffect::Send {
        mail: draw_mail(ctx.engine().environment()),
        to: to.id,
        origin: MailOrigin::User,
        from: None,
        about: MailTopic::Message,
        text: text.to_owned(),
        at: ctx.engine().environment().now(),
        author: ctx.engine().person(),
    });
    let mut reply = Reply::says(format!("Sent to {}", to.name));
    reply.effects.push(effect);
    Ok(reply.later(CommandAction::Wake(to)))
}

async fn wait(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let mut patience = WAIT;
    let mut of: Vec<AgentRecord> = Vec::new();
    let mut given = typed.value("--for");
    for word in &typed.words {
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        if of.is_empty() && is_number {
            given = given.or(Some(word));
        } else {
            of.push(find_agent(ctx, word).await?);
        }
    }
    if let Some(given) = given {
        patience = match duration_of(given) {
            Some(parsed) => parsed,
            None => return Trouble::refused("invalid time for --for: use 90, 90s, 10m or 2h"),
        };
    }
    if of.is_empty() {
        of = working_children(ctx).await?;
    }
    if of.is_empty() {
        return Trouble::refused("no child agent is running");
    }
    let names: Vec<_> = of.iter().map(|agent| agent.name.clone()).collect();
    let ids: Vec<_> = of.iter().map(|agent| agent.id).collect();
    let reply = Reply::says(format!("Waiting for {}", names.join(", ")));
    Ok(reply.later(CommandAction::Wait(ids, patience)))
}

/// Parses seconds, or a number with its unit.
fn duration_of(text: &str) -> Option<Duration> {
    let seconds = text.parse().ok().map(Duration::from_secs);
    let given = seconds.or_else(|| read_duration(text))?;
    Some(given.min(LONGEST_WAIT))
}

async fn working_children(ctx: &CommandContext<'_>) -> Result<Vec<AgentRecord>, EngineError> {
    let own = ctx.id();
    let mut working = Vec::new();
    for agent in ctx.engine().agents().await? {
        let is_child = agent.parent == Some(own) && agent.status == Status::Running;
        if is_child && ctx.engine().works(agent.id).await? {
            working.push(agent);
        }
    }
    Ok(working)
}

async fn kill(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let target = match typed.one("kill")? {
        Some(name) => find_agent(ctx, name).await?,
        None => match ctx.engine().reader().agent(ctx.id()).await? {
            Some(agent) => agent,
            None => return Trouble::refused("agent not found in the store"),
        },
    };
    Ok(Reply::of(CommandAction::Kill(target)))
}

async fn mail(ctx: &mut CommandContext<'_>) -> Result<Reply, Trouble> {
    let own = ctx.id();
    let mail = ctx.engine().reader().mail(own).await?;
    let mut output = String::new();
    for mail in mail {
        let sender = match mail.from {
            None if mail.origin == MailOrigin::User => "you".to_owned(),
            None => mail.origin.word().to_owned(),
            Some(from) => {
                let agent = ctx.engine().reader().agent(from).await?;
                agent.map_or_else(|| from.to_string(), |agent| agent.name)
            }
        };
        let by = mail
            .shown_by
            .map_or_else(String::new, |row| format!(" #{}", row.seq));
        let text = shorten(&mail.text);
        let _ = writeln!(output, "{:<10}{by} from {sender}: {text}", mail.state);
    }
    Ok(Reply::says(if output.is_empty() {
        "No messages".to_owned()
    } else {
        output.trim_end().to_owned()
    }))
}

/// Returns the beginning of a text, on one line.
pub(super) fn shorten(text: &str) -> String {
    ikigai_tools::arguments::one_line(text, SHOWN_CHARS)
}

#[cfg(test)]
mod tests {
    use super::duration_of;
    use std::time::Duration;

    #[test]
    fn times_are_read() {
        let cases = [
            ("90", Some(90)),
            ("90s", Some(90)),
            ("10m", Some(600)),
            ("2h", Some(7200)),
            ("x", None),
            ("10mm", None),
            ("18446744073709551615", Some(86_400)),
        ];

        for (typed, seconds) in cases {
            assert_eq!(
                duration_of(typed),
                seconds.map(Duration::from_secs),
                "{typed}"
            );
        }
    }
}
