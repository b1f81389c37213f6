//! `ikigai blame`: the calls that wrote the lines of a file.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use ikigai_engine::{BlameReader, BlamedLine, LineSource};

use crate::arguments::BlameOrder;
use crate::context::ProgramContext;
use crate::output::{local_time, print, visible};

/// Characters of a prompt that are shown.
const PROMPT_CHARS: usize = 30;

pub(crate) fn blame(db: Option<String>, order: &BlameOrder) -> Result<ExitCode> {
    let (path, line) = place(&order.file)?;
    let content = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let name = path
        .to_str()
        .ok_or_else(|| anyhow!("{} is not UTF-8", path.display()))?;
    let program = ProgramContext::open_reading(db)?;
    let blamed = program.block_on(async {
        let reader = BlameReader {
            engine: &program.engine,
        };
        reader.read(name, content).await
    });
    let (lines, sources) = blamed?;
    if let Some(line) = line
        && line > lines.len()
    {
        return Err(anyhow!("the file has {} lines", lines.len()));
    }
    let shown = (1..)
        .zip(&lines)
        .filter(|(number, _)| line.is_none_or(|line| line == *number));
    let mut described = BTreeSet::new();
    for (number, line) in shown {
        let source = line.source.and_then(|source| sources.get(&source));
        let text = if order.porcelain {
            let is_new = source.is_some_and(|source| described.insert(source.call));
            porcelain(number, line, source.filter(|_| is_new))
        } else {
            plain(number, line, source)
        };
        print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Splits off the number of a line; a file of that very name comes first.
fn place(typed: &std::path::Path) -> Result<(PathBuf, Option<usize>)> {
    let real = |path: &std::path::Path| path.canonicalize();
    if let Ok(path) = real(typed) {
        return Ok((path, None));
    }
    let text = typed.to_string_lossy();
    if let Some((file, line)) = text.rsplit_once(':')
        && let Ok(line) = line.parse()
        && let Ok(path) = real(std::path::Path::new(file))
    {
        return Ok((path, Some(line)));
    }
    Err(anyhow!("there is no file {}", typed.display()))
}

fn plain(number: usize, line: &BlamedLine, source: Option<&LineSource>) -> String {
    let text = visible(&line.text);
    let Some(source) = source else {
        return format!("{:<58} {number:>4} {text}\n", "(not recorded)");
    };
    let prompt: String = source.prompt.chars().take(PROMPT_CHARS).collect();
    let from = format!("{} #{}", visible(&source.agent), source.call.seq);
    let time = local_time(source.at);
    format!(
        "{from:<16} {} {time} \"{}\" {number:>4} {text}\n",
        source.tool,
        visible(&prompt)
    )
}

fn porcelain(number: usize, line: &BlamedLine, source: Option<&LineSource>) -> String {
    let id = line.source.map_or_else(
        || "-".to_owned(),
        |call| format!("{}#{}", call.agent, call.seq),
    );
    let mut text = format!("{id} {number}\n");
    if let Some(source) = source {
        // Writing to a string does not fail.
        let _ = writeln!(text, "agent {}", visible(&source.agent));
        let _ = writeln!(text, "tool {}", visible(&source.tool));
        let _ = writeln!(text, "model {}", visible(&source.model));
        let _ = writeln!(text, "time {}", source.at.0);
        let _ = writeln!(text, "prompt {}", visible(&source.prompt));
        if let Some(cost) = source.cost_nano_usd {
            let _ = writeln!(text, "cost_nano_usd {cost}");
        }
    }
    let _ = writeln!(text, "\t{}", line.text);
    text
}
