//! What the model may do: `/tools`, `/approve`.

use std::fmt::Write as _;

use ikigai_core::Settings;
use ikigai_core::project::ToolSpec;
use ikigai_core::settings::{Approve, Rule};
use ikigai_store::Agent;
use serde_json::{Map, Value};

use super::rows::shortened;
use super::{Command, Completes, Group, Reply, Shows, Takes, Trouble, Typed, near};
use crate::Worker;

/// How much of a tool's description a list shows.
const DESCRIPTION_CHARS: usize = 72;

const MODES: [Approve; 4] = [Approve::Read, Approve::Ask, Approve::Edits, Approve::All];

pub(super) const TOOLS: Command = Command {
    aliases: &["toolset"],
    arguments: "[NAME | only NAME… | all]",
    help: "which tools the model has, what one takes, or which it may have",
    examples: &[
        ("/tools", "a list"),
        ("/tools grep", "what it takes"),
        ("/tools only file_read grep", "these and no others"),
        ("/tools all", "all again"),
    ],
    takes: Takes::Words,
    completes: &[Completes::Tools],
    shows: Shows::OverlayWithoutArguments,
    ..Command::new("tools", Group::Tools, |worker, typed, _| {
        Box::pin(tools(worker, typed))
    })
};

pub(super) const APPROVE: Command = Command {
    arguments: "[read | ask | edits | all | -N]",
    help: "what tools may do without asking; lists what was allowed for good, -N takes one back",
    examples: &[
        ("/approve", "how it is, and what was allowed for good"),
        (
            "/approve edits",
            "writes inside the working directory need no question",
        ),
        ("/approve -2", "takes back what stands under 2"),
    ],
    takes: Takes::Words,
    completes: &[Completes::Words(&["read", "ask", "edits", "all"])],
    shows: Shows::OverlayWithoutArguments,
    ..Command::new("approve", Group::Tools, |worker, typed, _| {
        Box::pin(approve(worker, typed))
    })
};

async fn tools(worker: &mut Worker, typed: &Typed) -> Result<Reply, Trouble> {
    let all = Settings {
        toolset: None,
        ..worker.settings().clone()
    };
    let all = worker.engine.toolset(&all).await.specs();
    let chosen = worker.settings().toolset.clone();
    let words: Vec<_> = typed.words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => Ok(Reply::says(list(&all, chosen.as_deref()))),
        ["all"] => {
            let set = Map::from_iter([("toolset".to_owned(), Value::Null)]);
            let output = format!("all {} tools", all.len());
            Ok(Reply {
                set: Some(set),
                ..Reply::says(output)
            })
        }
        ["only"] => Trouble::refused("/tools only NAME…: name the tools"),
        ["only", names @ ..] => {
            for name in names {
                find(&all, name)?;
            }
            let mut names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            names.sort();
            names.dedup();
            let output = format!("only {} · /tools all", names.join(", "));
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
        _ => Trouble::refused("/tools shows one tool · /tools only NAME… restricts them"),
    }
}

fn find<'a>(all: &'a [ToolSpec], name: &str) -> Result<&'a ToolSpec, Trouble> {
    if let Some(spec) = all.iter().find(|spec| spec.name == name) {
        return Ok(spec);
    }
    let near = near::nearest(name, all.iter().map(|spec| spec.name.as_str()));
    let meant = near.first().map_or_else(
        || "/tools lists them".to_owned(),
        |near| format!("did you mean {near}?"),
    );
    Trouble::refused(format!("there is no tool {name} · {meant}"))
}

fn list(all: &[ToolSpec], chosen: Option<&[String]>) -> String {
    if all.is_empty() {
        return "there are no tools here".to_owned();
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
            shortened(&spec.description, DESCRIPTION_CHARS)
        );
    }
    let has = chosen.map_or(
        "the model has all of them",
        |_| "● the model has · /tools all",
    );
    text.push_str(has);
    text
}

async fn approve(worker: &mut Worker, typed: &Typed) -> Result<Reply, Trouble> {
    let Some(word) = typed.one("approve")? else {
        return Ok(Reply::says(overview(worker)));
    };
    if let Some(number) = word.strip_prefix('-') {
        return forget(worker, number);
    }
    let Some(mode) = MODES.into_iter().find(|mode| mode.word() == word) else {
        return Trouble::refused(format!("{word} is no mode: read, ask, edits or all"));
    };
    if let Some(widest) = widest_for(worker).await?
        && rank(mode) > rank(widest)
    {
        return Trouble::refused(format!(
            "the parent of this agent is in mode {}, and a child has no wider one",
            widest.word()
        ));
    }
    let was = worker
        .approve
        .or(worker.settings().approve)
        .unwrap_or(Approve::Ask);
    let settings = Settings {
        approve: Some(mode),
        ..Settings::default()
    };
    let output = format!("{} · was {}", meaning(mode), was.word());
    Ok(Reply::sets(&settings, output))
}

/// The mode of the agent's parent; none for a root.
async fn widest_for(worker: &Worker) -> Result<Option<Approve>, Trouble> {
    let Some(parent) = worker.agent.state.fork().and_then(|fork| fork.parent_uuid) else {
        return Ok(None);
    };
    let parent = Agent::restore(worker.engine.store(), parent).await?;
    Ok(Some(
        parent.state.settings().approve.unwrap_or(Approve::Ask),
    ))
}

const fn rank(mode: Approve) -> u8 {
    match mode {
        Approve::Read => 0,
        Approve::Ask => 1,
        Approve::Edits => 2,
        Approve::All => 3,
    }
}

const fn meaning(mode: Approve) -> &'static str {
    match mode {
        Approve::Read => "read: tools only read, the rest is refused",
        Approve::Ask => "ask: whatever changes something is asked",
        Approve::Edits => "edits: writes inside the working directory need no question",
        Approve::All => "all: nothing is asked",
    }
}

fn overview(worker: &Worker) -> String {
    let mode = worker
        .approve
        .or(worker.settings().approve)
        .unwrap_or(Approve::Ask);
    let mut text = meaning(mode).to_owned();
    let rules = worker.settings().rules.as_deref().unwrap_or_default();
    for (index, rule) in rules.iter().enumerate() {
        let _ = write!(text, "\n  {}  always: {}", index + 1, shown(rule));
    }
    if !rules.is_empty() {
        text.push_str("\n/approve -N takes one back");
    }
    text
}

fn shown(rule: &Rule) -> String {
    format!(
        "{} \"{}\"",
        rule.tool.as_deref().unwrap_or_default(),
        rule.pattern.as_deref().unwrap_or_default()
    )
}

fn forget(worker: &Worker, number: &str) -> Result<Reply, Trouble> {
    let mut rules = worker.settings().rules.clone().unwrap_or_default();
    let index = number
        .parse::<usize>()
        .ok()
        .and_then(|number| number.checked_sub(1));
    let Some(index) = index.filter(|index| *index < rules.len()) else {
        return Trouble::refused(format!(
            "nothing stands under {number} · /approve lists them"
        ));
    };
    let gone = rules.remove(index);
    let settings = Settings {
        rules: Some(rules),
        ..Settings::default()
    };
    Ok(Reply::sets(
        &settings,
        format!("asks again: {}", shown(&gone)),
    ))
}
