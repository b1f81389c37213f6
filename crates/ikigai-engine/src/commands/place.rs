//! Commands on name and place of the agent: `/name`, `/cd`, `/sessions`.

use std::fmt::Write as _;

use ikigai_core::Settings;
use ikigai_core::counts::counted;
use ikigai_core::names::{PARENT, is_valid_name};
use ikigai_store::{AgentEffect, Effect};
use ikigai_tools::paths;

use super::{Command, Completes, Group, Reply, Shows, SlashCommand, Takes, Trouble, Typed};
use crate::EngineError;
use crate::figures::since;
use crate::file_system;
use crate::turn::CommandContext;

pub(super) const NAME: SlashCommand = SlashCommand {
    command: Command {
        arguments: "NAME",
        help: "rename this agent",
        examples: &[("/name fix-parser", "lower-case letters, digits and -")],
        takes: Takes::Words,
        ..Command::new("name", Group::Agents)
    },
    handler: |ctx, typed| Box::pin(name(ctx, typed)),
};

pub(super) const CD: SlashCommand = SlashCommand {
    command: Command {
        arguments: "PATH",
        help: "change the directory of tools and !commands",
        examples: &[("/cd ../docs", "relative to the current one")],
        takes: Takes::WordsThenText(0),
        completes: &[Completes::Directories],
        ..Command::new("cd", Group::Agents)
    },
    handler: |ctx, typed| Box::pin(cd(ctx, typed)),
};

pub(super) const SESSIONS: SlashCommand = SlashCommand {
    command: Command {
        help: "list directories with agents, most recent first",
        shows: Shows::Overlay,
        ..Command::new("sessions", Group::Agents)
    },
    handler: |ctx, _| Box::pin(async move { Ok(Reply::says(sessions(ctx).await?)) }),
};

async fn sessions(ctx: &CommandContext<'_>) -> Result<String, EngineError> {
    let now = ctx.engine().environment().now();
    let mut output = String::new();
    for entry in ctx.engine().session_entries().await? {
        let living = counted(entry.living, "agent");
        let latest = entry
            .latest
            .map_or_else(|| "–".to_owned(), |agent| agent.name);
        let silent = since(entry.touched_at, now);
        let directory = entry.session.directory;
        let _ = writeln!(output, "{latest:<20} {living:<10} {silent:>8}  {directory}");
    }
    Ok(output.trim_end().to_owned())
}

async fn name(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let Some(name) = typed.one("name")? else {
        let now = ctx.settings().name.as_deref().unwrap_or_default();
        return Trouble::refused(format!(
            "this agent is named {now} · /name NAME to rename it"
        ));
    };
    if name == PARENT {
        return Trouble::refused("the name parent is reserved");
    }
    if !is_valid_name(name) {
        return Trouble::refused(format!(
            "invalid name {name}: use up to 32 lower-case letters, digits and -, not - first"
        ));
    }
    let own = ctx.id();
    let record = ctx.engine().reader().agent(own).await?;
    let session = record.map(|record| record.session);
    let mut living = match session {
        Some(_) => ctx.engine().reader().find_by_name(session, name).await?,
        None => Vec::new(),
    };
    living.retain(|agent| agent.id != own);
    if !living.is_empty() {
        return Trouble::refused(format!("the name {name} is taken"));
    }
    let was = ctx.settings().name.clone().unwrap_or_default();
    if was == name {
        return Trouble::refused(format!("this agent is already named {name}"));
    }
    let settings = Settings {
        name: Some(name.to_owned()),
        ..Settings::default()
    };
    let mut reply = Reply::sets(&settings, format!("Renamed to {name} (was {was})"));
    reply.effects.push(Effect::Agent(AgentEffect::SetName {
        agent: own,
        name: name.to_owned(),
    }));
    Ok(reply)
}

async fn cd(ctx: &CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let place = ctx.place();
    let was = &place.workdir;
    let Some(text) = typed.text.as_deref() else {
        return Trouble::refused(format!(
            "directory: {} · /cd PATH to change it",
            was.display()
        ));
    };
    let path = paths::resolve(&place, text);
    let shown = path.display();
    match file_system::metadata(&path).await {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Trouble::refused(format!("{shown} is not a directory")),
        Err(error) => return Trouble::refused(format!("cannot use {shown}: {error}")),
    }
    let Some(name) = path.to_str() else {
        return Trouble::refused(format!("{shown} is not UTF-8"));
    };
    let settings = Settings {
        workdir: Some(name.to_owned()),
        ..Settings::default()
    };
    Ok(Reply::sets(
        &settings,
        format!("Directory: {name} (was {})", was.display()),
    ))
}
