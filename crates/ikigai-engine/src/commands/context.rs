//! Commands on the system prompt and pins: `/system`, `/pin`, `/unpin`.

use ikigai_core::data::SystemOrigin;
use ikigai_core::settings::Pin;
use ikigai_core::{Event, Settings};
use ikigai_store::blobs;
use ikigai_tools::paths;

use super::{Command, Completes, Group, Reply, Shows, SlashCommand, Takes, Trouble, Typed};
use crate::documents::{Document, size};
use crate::instructions::is_instruction_file;
use crate::turn::CommandContext;

pub(super) const PIN: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[PATH | -PATH]",
        help: "attach a file to every request, read again each turn",
        examples: &[
            ("/pin", "list pinned files"),
            ("/pin docs/style.md", "pin a file"),
            ("/pin -docs/style.md", "unpin it, as /unpin does"),
        ],
        takes: Takes::WordsThenText(0),
        completes: &[Completes::Paths],
        shows: Shows::OverlayWithoutArguments,
        ..Command::new("pin", Group::Context)
    },
    handler: |ctx, typed| Box::pin(pin(ctx, typed)),
};

pub(super) const UNPIN: SlashCommand = SlashCommand {
    command: Command {
        arguments: "PATH",
        help: "stop attaching a pinned file",
        takes: Takes::WordsThenText(0),
        completes: &[Completes::Pins],
        ..Command::new("unpin", Group::Context)
    },
    handler: |ctx, typed| {
        Box::pin(async move {
            match typed.text.as_deref() {
                Some(path) => unpin(ctx, path),
                None => Trouble::refused("usage: /unpin PATH · /pin lists them"),
            }
        })
    },
};

pub(super) const SYSTEM: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[text]",
        help: "show or set the system prompt",
        examples: &[("/system Answer in one line.", "from the next request on")],
        takes: Takes::WordsThenText(0),
        shows: Shows::OverlayWithoutArguments,
        ..Command::new("system", Group::Context)
    },
    handler: |ctx, typed| Box::pin(async move { Ok(system(ctx, typed)) }),
};

fn system(ctx: &CommandContext<'_>, typed: &Typed) -> Reply {
    let now = ctx.agent().state.system().unwrap_or_default();
    match typed.text.as_deref() {
        None if now.is_empty() => Reply::says("No system prompt. /system TEXT to set one"),
        None => Reply::says(now),
        Some(text) => Reply::does(
            Event::system(text, SystemOrigin::Typed),
            "System prompt set, from the next request on",
        ),
    }
}

async fn pin(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let Some(text) = typed.text.as_deref() else {
        return Ok(Reply::says(list(ctx)));
    };
    if let Some(path) = text.strip_prefix('-') {
        return unpin(ctx, path.trim_start());
    }
    let place = ctx.place();
    let document = Document::read(ctx.engine(), &place, text).await?;
    let mut pins = ctx.settings().pins.clone().unwrap_or_default();
    let path = document.path.to_string_lossy().into_owned();
    let name = paths::display_path(&place, &document.path);
    let hash = blobs::hash_of(&document.bytes).to_string();
    let is_it = |pin: &&mut Pin| pin.path.as_deref() == Some(path.as_str());
    let word = if let Some(known) = pins.iter_mut().find(is_it) {
        let was_off = known.off.take() == Some(true);
        known.hash = Some(hash);
        if was_off {
            "Pinned"
        } else {
            "Already pinned, reloaded"
        }
    } else {
        pins.push(Pin {
            path: Some(path.clone()),
            hash: Some(hash),
            off: None,
        });
        "Pinned"
    };
    let size = size(document.bytes.len());
    let output = format!("{word}: {name} ({size}). /unpin {name} to remove it");
    Ok(Reply {
        blobs: vec![document.bytes],
        ..Reply::sets(&of(pins), output)
    })
}

fn unpin(ctx: &CommandContext<'_>, text: &str) -> Result<Reply, Trouble> {
    let place = ctx.place();
    let resolved = paths::resolve(&place, text);
    let located = paths::locate(&place, text);
    let located = located.map_or_else(|_| resolved.clone(), |found| found.path);
    let mut pins = ctx.settings().pins.clone().unwrap_or_default();
    let before = pins.clone();
    pins.retain_mut(|pin| {
        let path = pin.path.as_deref().map(std::path::Path::new);
        let is_it = path == Some(&resolved) || path == Some(&located);
        // Without its pin an instruction file would be found again when the next turn starts.
        if is_it && path.is_some_and(is_instruction_file) {
            pin.off = Some(true);
            pin.hash = None;
            return true;
        }
        !is_it
    });
    if pins == before {
        return Trouble::refused(format!("{text} is not pinned · /pin lists pinned files"));
    }
    let name = paths::display_path(&place, &located);
    Ok(Reply::sets(&of(pins), format!("Unpinned: {name}")))
}

fn of(pins: Vec<Pin>) -> Settings {
    Settings {
        pins: Some(pins),
        ..Settings::default()
    }
}

fn list(ctx: &CommandContext<'_>) -> String {
    let place = ctx.place();
    let pins = ctx.settings().pins.as_deref().unwrap_or_default();
    let lines: Vec<_> = pins
        .iter()
        .filter(|pin| pin.off != Some(true))
        .map(|pin| {
            let path = pin.path.as_deref().unwrap_or_default();
            let name = paths::display_path(&place, std::path::Path::new(path));
            match pin.hash {
                Some(_) => name,
                None => format!("{name} · cannot be read, left out"),
            }
        })
        .collect();
    if lines.is_empty() {
        "No pinned files. /pin PATH to add one".to_owned()
    } else {
        lines.join("\n")
    }
}
