//! Trust in the project: the question at start, the notice of commands, and `ikigai trust`.

use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use ikigai_core::spelling::clean_line;
use ikigai_tools::trust::{ProjectTrust, Trust, TrustItem, TrustKind, TrustState};
use rustix::termios::{QueueSelector, tcflush};
use serde_json::json;

use crate::arguments::TrustOrder;
use crate::config;
use crate::output::{print, print_json, print_stderr, visible};
use crate::store_location::Here;

/// Most items in the question; `ikigai trust` lists all.
const MOST_ASKED: usize = 20;

/// Returns the decisions about projects.
pub(crate) fn trust() -> Trust {
    let directory = config::state_home().map(|state| state.join("trust"));
    Trust::new(directory).describing_settings(config::settings_to_trust)
}

/// Returns true if the user trusts a project's configuration file with this text.
pub(crate) fn trusts_settings(project: &Path) -> bool {
    let found = trust().items_of(project, &[TrustKind::Settings]);
    found.items.iter().all(|it| it.state == TrustState::Trusted)
}

/// Way in which open decisions are handled at start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrustPrompt {
    /// Ask if there is a terminal.
    Ask,
    /// Never wait for an answer.
    Tell,
}

/// Asks about the project's files that are neither trusted nor refused, or says that they are not
/// loaded. With `grants`, trusts all of them instead.
pub(crate) fn settle(grants: bool, prompt: TrustPrompt) -> Result<()> {
    let workdir = PathBuf::from(Here::find()?.workdir);
    let trust = trust();
    let project = trust.project(&workdir);
    let open = project.open_items();
    if open.is_empty() {
        return Ok(());
    }
    if grants {
        return decide(&trust, &workdir, &open, true);
    }
    let can_ask = io::stdin().is_terminal() && io::stderr().is_terminal();
    if prompt == TrustPrompt::Ask && can_ask {
        return ask(&trust, &workdir, &project);
    }
    if let Some(notice) = project.notice() {
        print_stderr(&notice);
    }
    Ok(())
}

/// Asks one question about all open items.
fn ask(trust: &Trust, workdir: &Path, project: &ProjectTrust) -> Result<()> {
    let open = project.open_items();
    let is_changed = open.iter().any(|item| item.state == TrustState::Changed);
    let since = if is_changed {
        "Files of this project that run programs or reach the model were added or changed:"
    } else {
        "This project has files that run programs or reach the model:"
    };
    let rows = rows(project, open.iter().copied().take(MOST_ASKED));
    let more = open.len().saturating_sub(MOST_ASKED);
    let more = match more {
        0 => String::new(),
        more => format!("  … {more} more: ikigai trust\n"),
    };
    print_stderr(&visible(&format!("{since}\n\n{rows}{more}")));
    // Keys typed before the question was visible are no answer.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    loop {
        print_stderr("Trust them as they are now? y yes · n no · Enter decide later");
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line);
        read.context("cannot read the answer")?;
        let answer = line.trim().to_lowercase();
        match answer.as_str() {
            "y" | "yes" => return decide(trust, workdir, &open, true),
            "n" | "no" => return decide(trust, workdir, &open, false),
            "" => return Ok(()),
            _ => {}
        }
    }
}

fn decide(trust: &Trust, workdir: &Path, items: &[&TrustItem], is_trusted: bool) -> Result<()> {
    let decided = trust.decide(workdir, items.iter().copied(), is_trusted);
    decided.context("cannot save the decision")
}

/// Formats items in columns: state, kind, file, name and summary.
fn rows<'a>(project: &ProjectTrust, items: impl Iterator<Item = &'a TrustItem>) -> String {
    let items: Vec<_> = items
        .map(|item| {
            let path = item.path.strip_prefix(&project.root).unwrap_or(&item.path);
            (item, clean_line(&path.display().to_string()).into_owned())
        })
        .collect();
    let width = items.iter().map(|(_, path)| path.chars().count()).max();
    let width = width.unwrap_or(0).min(40);
    let mut text = String::new();
    for (item, path) in items {
        let name = match item.kind {
            TrustKind::Settings | TrustKind::Tool => String::new(),
            _ if item.summary.is_empty() => item.name.clone(),
            _ => format!("{}: ", item.name),
        };
        let what = format!("{name}{}", item.summary);
        let row = format!(
            "  {:<8} {:<8} {path:<width$}  {}",
            item.state.word(),
            item.kind.word(),
            clean_line(&what)
        );
        let _ = writeln!(text, "{}", row.trim_end());
    }
    text
}

/// `ikigai trust`: lists the items of the project, and stores decisions.
pub(crate) fn trust_command(order: &TrustOrder) -> Result<ExitCode> {
    let workdir = PathBuf::from(Here::find()?.workdir);
    let trust = trust();
    if order.revoke {
        let was_decided = trust.forget(&workdir).context("cannot revoke the trust")?;
        let text = if was_decided {
            "Revoked: nothing of this project is loaded until you trust it again"
        } else {
            "Nothing to revoke: there are no decisions about this project"
        };
        print_stderr(text);
        return Ok(ExitCode::SUCCESS);
    }
    let mut project = trust.project(&workdir);
    if order.yes || order.no {
        let items: Vec<_> = project.items.iter().collect();
        decide(&trust, &workdir, &items, order.yes)?;
        project = trust.project(&workdir);
    }
    for (path, reason) in &project.broken {
        print_stderr(&visible(&format!("⚠ {}: {reason}", path.display())));
    }
    if order.json {
        for item in &project.items {
            print_json(&json!({
                "kind": item.kind.word(),
                "name": item.name,
                "path": item.path,
                "summary": item.summary,
                "state": item.state.word(),
                "digest": item.digest,
            }))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if project.items.is_empty() {
        print_stderr("This project has no files that need trust");
        return Ok(ExitCode::SUCCESS);
    }
    let can_ask = io::stdin().is_terminal() && io::stderr().is_terminal();
    let open = project.open_items();
    if !open.is_empty() && open.len() == project.items.len() && can_ask && open.len() <= MOST_ASKED
    {
        // The question lists the same items.
        ask(&trust, &workdir, &project)?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&visible(&rows(&project, project.items.iter())))?;
    if !open.is_empty() {
        if can_ask {
            print_stderr("");
            ask(&trust, &workdir, &project)?;
        } else {
            print_stderr("Trust all of them as they are now: ikigai trust --yes");
        }
    }
    Ok(ExitCode::SUCCESS)
}
