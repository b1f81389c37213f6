//! Commands on tools and permissions: `/tools`, `/approve`.

use std::fmt::Write as _;

use ikigai_core::Settings;
use ikigai_core::project::ToolSpec;
use ikigai_core::settings::{Approve, Rule};
use ikigai_store::Agent;
use serde_json::{Map, Value};

use super::{
    Command, Completes, Group, Reply, Shows, SlashCommand, Takes, Trouble, Typed, name_suggestion,
};
use crate::figures::shorten;
use crate::turn::CommandContext;

/// Length of a tool's description in a list, in characters.
const DESCRIPTION_CHARS: usize = 72;

const MODES: [Approve; 4] = [Approve::Read, Approve::Ask, Approve::Edits, Approve::All];

pub(super) const TOOLS: SlashCommand = SlashCommand {
    command: Command {
        aliases: &["toolset"],
        arguments: "[NAME | only NAME… | all]",
        help: "list the tools, show one, or restrict them",
        examples: &[
            ("/tools", "list the tools"),
            ("/tools grep", "show its parameters"),
            ("/tools only file_read grep", "enable only these"),
            ("/tools all", "enable all again"),
        ],
        takes: Takes::Words,
        completes: &[Completes::Tools],
        shows: Shows::OverlayWithoutArguments,
        ..Command::new("tools", Group::Tools)
    },
    handler: |ctx, typed| Box::pin(tools(ctx, typed)),
};

pub(super) const APPROVE: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[read | ask | edits | all | grant | -N]",
        help: "show or set the permission mode; list or revoke (-N) saved approvals",
        examples: &[
            ("/approve", "show the mode and saved approvals"),
            (
                "/approve edits",
                "edits inside the working directory run without asking",
            ),
            (
                "/approve grant",
                "apply the mode and rules granted by another user or machine",
            ),
            ("/approve -2", "revoke approval 2"),
        ],
        takes: Takes::Words,
        completes: &[Completes::Words(&["read", "ask", "edits", "all", "grant"])],
        shows: Shows::OverlayWithoutArguments,
        ..Command::new("approve", Group::Tools)
    },
    handler: |ctx, typed| Box::pin(approve(ctx, typed)),
};

async fn tools(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let all = Settings {
        toolset: None,
        ..ctx.settings().clone()
    };
    let all = ctx.engine().toolset(&all).await.specs();
    let chosen = ctx.settings().toolset.clone();
    let words: Vec<_> = typed.words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => Ok(Reply::says(list(&all, chosen.as_deref()))),
        ["all"] => {
            let set = Map::from_iter([("toolset".to_owned(), Value::Null)]);
            let output = format!("All {} tools enabled", all.len());
            Ok(Reply {
                set: Some(set),
                ..Reply::says(output)
            })
        }
        ["only"] => Trouble::refused("usage: /tools only NAME…"),
        ["only", names @ ..] => {
            for name in names {
                find(&all, name)?;
            }
            let mut names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            names.sort();
            names.dedup();
            let output = format!("Only {}. /tools all to enable all", names.join(", "));
            let settings = Settings {
                toolset: Some(names),
                ..Settings::default()
            };
            Ok(Reply::sets(&settings, output))
        }
        [name] => {
            let spec = find(&all, name)?;
            let schema = serde_json::to_string_pretty(&spec.parameters).unwrap_or_default();
            let output = format!("{}\n{}\n{schema}", spec.name, spec.description);
            Ok(Reply::says(output))
        }
        _ => Trouble::refused("usage: /tools [NAME | only NAME… | all]"),
    }
}

fn find<'a>(all: &'a [ToolSpec], name: &str) -> Result<&'a ToolSpec, Trouble> {
    if let Some(spec) = all.iter().find(|spec| spec.name == name) {
        return Ok(spec);
    }
    let near = name_suggestion::nearest(name, all.iter().map(|spec| spec.name.as_str()));
    let meant = near.first().map_or_else(
        || "/tools lists them".to_owned(),
        |near| format!("did you mean {near}?"),
    );
    Trouble::refused(format!("no tool {name} · {meant}"))
}

fn list(all: &[ToolSpec], chosen: Option<&[String]>) -> String {
    if all.is_empty() {
        return "No tools available".to_owned();
    }
    let widest = all.iter().map(|spec| spec.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for spec in all {
        let has = chosen.is_none_or(|chosen| chosen.contains(&spec.name));
        let _ = writeln!(
            text,
            "{} {:<widest$}  {}",
            if has { "●" } else { " " },
            spec.name,
            shorten(&spec.description, DESCRIPTION_CHARS)
        );
    }
    let has = chosen.map_or("all enabled", |_| "● enabled · /tools all to enable all");
    text.push_str(has);
    text
}

async fn approve(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let Some(word) = typed.one("approve")? else {
        return Ok(Reply::says(overview(ctx)));
    };
    if let Some(number) = word.strip_prefix('-') {
        return forget(ctx, number);
    }
    if word == "grant" {
        return grant_here(ctx).await;
    }
    let Some(mode) = MODES.into_iter().find(|mode| mode.word() == word) else {
        return Trouble::refused(format!("unknown mode {word}: use read, ask, edits or all"));
    };
    check_width(ctx, mode).await?;
    let settings = Settings {
        approve: Some(mode),
        ..Settings::default()
    };
    Ok(Reply {
        grants: true,
        ..Reply::sets(&settings, meaning(mode))
    })
}

/// Grants the logged mode and rules here, even if they come from elsewhere.
async fn grant_here(ctx: &CommandContext<'_>) -> Result<Reply, Trouble> {
    let Some(foreign) = ctx.foreign_grants() else {
        return Trouble::refused("nothing to grant: mode and rules already apply here");
    };
    let Settings { approve, rules, .. } = ctx.settings().clone();
    if let Some(mode) = approve {
        check_width(ctx, mode).await?;
    }
    let settings = Settings {
        approve,
        rules,
        ..Settings::default()
    };
    Ok(Reply {
        grants: true,
        ..Reply::sets(&settings, format!("Granted here: {foreign}"))
    })
}

/// Refuses a mode that is wider than the parent's.
async fn check_width(ctx: &CommandContext<'_>, mode: Approve) -> Result<(), Trouble> {
    if let Some(widest) = widest_for(ctx).await?
        && mode.width() > widest.width()
    {
        return Trouble::refused(format!(
            "not allowed: the parent agent is in mode {}",
            widest.word()
        ));
    }
    Ok(())
}

/// Returns the mode of the agent's parent; none for a root.
async fn widest_for(ctx: &CommandContext<'_>) -> Result<Option<Approve>, Trouble> {
    let Some(parent) = ctx.agent().state.fork().and_then(|fork| fork.parent_uuid) else {
        return Ok(None);
    };
    let parent = Agent::restore(ctx.engine().reader(), parent).await?;
    Ok(Some(ctx.engine().granted(&parent.state).mode))
}

const fn meaning(mode: Approve) -> &'static str {
    match mode {
        Approve::Read => "Mode: read. Tools can only read",
        Approve::Ask => "Mode: ask. Edits and commands need your approval",
        Approve::Edits => "Mode: edits. Edits inside the working directory run without asking",
        Approve::All => "Mode: all. Everything runs without asking",
    }
}

fn overview(ctx: &CommandContext<'_>) -> String {
    let granted = ctx.grant();
    let mut text = meaning(granted.mode).to_owned();
    let rules = ctx.settings().rules.as_deref().unwrap_or_default();
    for (index, rule) in rules.iter().enumerate() {
        let _ = write!(
            text,
            "\n  {}  always allowed: {}",
            index + 1,
            rule_text(rule)
        );
        if !granted.rules.contains(rule) {
            text.push_str(" (not in force here)");
        }
    }
    if !rules.is_empty() {
        text.push_str("\n/approve -N to revoke one");
    }
    if let Some(foreign) = ctx.foreign_grants() {
        let _ = write!(
            text,
            "\nNot in force here: {foreign}, granted by another user or machine. \
             /approve grant to apply"
        );
    }
    text
}

fn rule_text(rule: &Rule) -> String {
    format!(
        "{} \"{}\"",
        rule.tool.as_deref().unwrap_or_default(),
        rule.pattern.as_deref().unwrap_or_default()
    )
}

fn forget(ctx: &CommandContext<'_>, number: &str) -> Result<Reply, Trouble> {
    let mut rules = ctx.settings().rules.clone().unwrap_or_default();
    let index = number
        .parse::<usize>()
        .ok()
        .and_then(|number| number.checked_sub(1));
    let Some(index) = index.filter(|index| *index < rules.len()) else {
        return Trouble::refused(format!("no approval {number} · /approve lists them"));
    };
    let gone = rules.remove(index);
    let settings = Settings {
        rules: Some(rules),
        ..Settings::default()
    };
    Ok(Reply::sets(
        &settings,
        format!("Revoked: {}", rule_text(&gone)),
    ))
}
