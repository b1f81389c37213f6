//! `/diff`: what this agent changed in files.

use std::path::Path;

use ikigai_core::counts::counted;

use super::{
    Command, CommandOption, Completes, Group, Reply, Shows, SlashCommand, Takes, Trouble, Typed,
};
use crate::file_diff::{DiffRange, DiffReader};
use crate::turn::CommandContext;

pub(super) const DIFF: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[A..B] [--turn] [--family]",
        help: "show what this agent changed in files, shell commands included",
        examples: &[
            ("/diff", "everything it changed"),
            ("/diff --turn", "the last turn only"),
            ("/diff 12..40", "events #12 to #40"),
            ("/diff --family", "with all agents below it"),
        ],
        takes: Takes::Words,
        options: &[
            CommandOption::Flag("--turn"),
            CommandOption::Flag("--family"),
        ],
        completes: &[Completes::Nothing],
        shows: Shows::Overlay,
        ..Command::new("diff", Group::Time)
    },
    handler: |ctx, typed| Box::pin(diff(ctx, typed)),
};

async fn diff(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let mut range = match typed.one("diff")? {
        Some(text) => DiffRange::parse(text)?,
        None => DiffRange::default(),
    };
    range.family = typed.flag("--family");
    if typed.flag("--turn") {
        let start = ctx.last_start().await?;
        range.from = start
            .filter(|start| start.agent == ctx.id())
            .map(|start| start.seq);
    }
    let workdir = ctx.settings().workdir.clone().unwrap_or_default();
    let id = ctx.id();
    let reader = DiffReader {
        engine: ctx.engine(),
    };
    let diff = reader.read(id, &range, Path::new(&workdir)).await?;
    let mut lines = Vec::new();
    if diff.files == 0 {
        lines.push("no recorded changes of files".to_owned());
    } else {
        let patch = &diff.patch;
        let count = counted(diff.files, "file");
        lines.push(format!("{count} +{} −{}\n", patch.added, patch.removed));
        lines.push(patch.text.clone());
    }
    if !diff.missed.is_empty() {
        lines.push("Not recorded:".to_owned());
        let missed = diff.missed.iter();
        lines.extend(missed.map(|(what, why)| format!("  {what} ({why})")));
    }
    Ok(Reply::says(lines.join("\n")))
}
