//! Commands for screens: `/copy`, `/theme`, `/mouse`, `/keys`, `/view`, `/refresh`.

use ikigai_core::counts::counted;
use ikigai_core::view::Entry;
use ikigai_core::{AgentId, Kind};

use super::reply::Then;
use super::{Command, Completes, Group, Reply, Shows, SlashCommand, Takes, Trouble, Typed};
use crate::frontend::Next;
use crate::input::UserInput;
use crate::turn::CommandContext;
use crate::{Engine, EngineError};

/// Themes of screens.
pub const THEMES: &[&str] = &["terminal", "dark", "light", "daltonized", "mono"];

/// Rows read per query to find older text to copy.
const PAGE_ROWS: usize = 256;

pub(super) const COPY: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[N | code [N]]",
        help: "copy the last answer or code block, or the Nth from the end",
        examples: &[
            ("/copy", "the last answer"),
            ("/copy 2", "the one before it"),
            ("/copy code", "the last code block"),
        ],
        takes: Takes::Words,
        completes: &[Completes::Words(&["code"]), Completes::Nothing],
        ..Command::new("copy", Group::Talk)
    },
    handler: |ctx, typed| Box::pin(copy(ctx, typed)),
};

pub(super) const THEME: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[NAME]",
        help: "change the colours; `theme` in the configuration makes it permanent",
        examples: &[("/theme mono", "no colours")],
        takes: Takes::Words,
        completes: &[Completes::Words(THEMES), Completes::Nothing],
        ..Command::new("theme", Group::Session)
    },
    handler: |ctx, typed| Box::pin(async move { theme(ctx, typed) }),
};

pub(super) const MOUSE: SlashCommand = SlashCommand {
    command: Command {
        arguments: "on|off",
        help: "turn mouse support on or off",
        takes: Takes::Words,
        completes: &[Completes::Words(&["on", "off"]), Completes::Nothing],
        ..Command::new("mouse", Group::Session)
    },
    handler: |ctx, typed| Box::pin(async move { mouse(ctx, typed) }),
};

pub(super) const KEYS: SlashCommand = SlashCommand {
    command: Command {
        help: "show all keys",
        shows: Shows::Overlay,
        ..Command::new("keys", Group::Session)
    },
    handler: |ctx, _| {
        Box::pin(async move {
            needs_screen(ctx, "keys")?;
            Ok(Reply::default())
        })
    },
};

pub(super) const VIEW: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[open|folded]",
        help: "expand or collapse tool output (toggles)",
        takes: Takes::Words,
        completes: &[Completes::Words(&["open", "folded"]), Completes::Nothing],
        ..Command::new("view", Group::Session)
    },
    handler: |ctx, typed| Box::pin(async move { view(ctx, typed) }),
};

pub(super) const REFRESH: SlashCommand = SlashCommand {
    command: Command {
        help: "reload and redraw",
        ..Command::new("refresh", Group::Session)
    },
    handler: |ctx, _| {
        Box::pin(async move {
            needs_screen(ctx, "refresh")?;
            Ok(Reply::default().then(Then::Front(Next::Refresh)))
        })
    },
};

impl Engine {
    /// Returns the action of a screen command, for agents of any process. None for other lines, or
    /// wrong arguments.
    pub async fn screen_line(
        &self,
        shown: AgentId,
        input: &UserInput,
    ) -> Result<Option<Next>, EngineError> {
        let UserInput::Command(typed) = input else {
            return Ok(None);
        };
        Ok(match (typed.command.name, &*typed.arguments) {
            ("quit", _) => Some(Next::Quit),
            ("refresh", _) => Some(Next::Refresh),
            ("theme", name) if THEMES.contains(&name) => Some(Next::Theme(name.to_owned())),
            ("mouse", "on") => Some(Next::Mouse(true)),
            ("mouse", "off") => Some(Next::Mouse(false)),
            ("view", "") => Some(Next::View(None)),
            ("view", "open") => Some(Next::View(Some(true))),
            ("view", "folded") => Some(Next::View(Some(false))),
            ("switch", "..") => {
                let shown = self.reader().agent(shown).await?;
                shown.and_then(|shown| shown.parent).map(Next::Switch)
            }
            ("switch", name) if !name.is_empty() => Some(Next::Switch(self.find(name).await?.id)),
            _ => None,
        })
    }
}

fn needs_screen(ctx: &CommandContext<'_>, name: &str) -> Result<(), Trouble> {
    if ctx.engine().hub().has_screen() {
        return Ok(());
    }
    Trouble::refused(format!(
        "/{name} needs a screen · start `ikigai` without `run`"
    ))
}

fn theme(ctx: &CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    needs_screen(ctx, "theme")?;
    match typed.one("theme")? {
        Some(name) if THEMES.contains(&name) => {
            let next = Next::Theme(name.to_owned());
            Ok(Reply::says(format!("Theme: {name}")).then(Then::Front(next)))
        }
        Some(name) => Trouble::refused(format!("no theme {name} · use {}", THEMES.join(", "))),
        None => Trouble::refused(format!("usage: /theme NAME, one of {}", THEMES.join(", "))),
    }
}

fn mouse(ctx: &CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    needs_screen(ctx, "mouse")?;
    let (on, output) = match typed.one("mouse")? {
        Some("on") => (true, "Mouse on: scroll, select and click"),
        Some("off") => (false, "Mouse off: your terminal handles selection"),
        _ => return Trouble::refused("usage: /mouse on|off"),
    };
    Ok(Reply::says(output).then(Then::Front(Next::Mouse(on))))
}

fn view(ctx: &CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    needs_screen(ctx, "view")?;
    let open = match typed.one("view")? {
        None => None,
        Some("open") => Some(true),
        Some("folded") => Some(false),
        Some(_) => return Trouble::refused("usage: /view [open|folded]"),
    };
    Ok(Reply::default().then(Then::Front(Next::View(open))))
}

async fn copy(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    needs_screen(ctx, "copy")?;
    let words: Vec<_> = typed.words.iter().map(String::as_str).collect();
    let (is_code, number) = match words.as_slice() {
        [] => (false, None),
        ["code"] => (true, None),
        ["code", number] => (true, Some(*number)),
        [number] => (false, Some(*number)),
        [..] => return Trouble::refused("usage: /copy [N | code [N]]"),
    };
    let number = match number.map(str::parse) {
        None => 1,
        Some(Ok(number @ 1..)) => number,
        Some(_) => return Trouble::refused("usage: /copy [N] (1 = latest)"),
    };
    let what = if is_code { "code block" } else { "answer" };
    let Some(text) = nth_from_end(ctx, number, is_code).await? else {
        return Trouble::refused(match number {
            1 => format!("no {what} yet"),
            number => format!("fewer than {number} {what}s so far"),
        });
    };
    let output = format!("Copied {}", counted(text.chars().count(), "character"));
    Ok(Reply::says(output).then(Then::Front(Next::Copy(text))))
}

/// Returns the nth answer or code block on the path, counted from the newest.
async fn nth_from_end(
    ctx: &mut CommandContext<'_>,
    number: usize,
    is_code: bool,
) -> Result<Option<String>, Trouble> {
    // A copy, so that the sent view does not grow; rows are shared.
    let mut agent = ctx.agent().clone();
    loop {
        let mut answers = agent.view.entries().iter().rev().filter_map(answer_in);
        let found = if is_code {
            let mut blocks = answers.flat_map(|answer| code_blocks(answer).into_iter().rev());
            blocks.nth(number - 1)
        } else {
            answers.nth(number - 1).map(str::to_owned)
        };
        if found.is_some() || !agent.lengthen(ctx.engine().reader(), PAGE_ROWS).await? {
            return Ok(found);
        }
    }
}

fn answer_in(entry: &Entry) -> Option<&str> {
    let is_answer = entry.kind() == Some(Kind::Assistant);
    let text = entry.row.content.as_deref().filter(|_| is_answer)?;
    Some(text.trim()).filter(|text| !text.is_empty())
}

/// Returns the fenced code blocks of a Markdown text.
fn code_blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    // Fence of the open block, and its contents.
    let mut open: Option<(&str, String)> = None;
    for line in text.lines() {
        let fence = fence_of(line);
        match (&mut open, fence) {
            (Some((begun, _)), Some((fence, ""))) if fence.starts_with(*begun) => {
                blocks.extend(open.take().map(|(_, code)| code));
            }
            (Some((_, code)), _) => {
                code.push_str(line);
                code.push('\n');
            }
            (None, Some((fence, _))) => open = Some((fence, String::new())),
            (None, None) => {}
        }
    }
    // A truncated answer may have an open block.
    blocks.extend(open.map(|(_, code)| code));
    blocks
}

/// Returns the fence at the start of a line, and the text behind it.
fn fence_of(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let sign = line
        .chars()
        .next()
        .filter(|sign| matches!(sign, '`' | '~'))?;
    let after = line.trim_start_matches(sign);
    let fence = &line[..line.len() - after.len()];
    let is_fence = fence.len() >= 3 && !(sign == '`' && after.contains('`'));
    is_fence.then_some((fence, after.trim()))
}

#[cfg(test)]
mod tests;
