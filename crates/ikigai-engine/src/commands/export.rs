//! `/export`: the conversation as a file.

use ikigai_core::counts::counted;
use std::io::{BufWriter, ErrorKind};
use std::path::Path;

use ikigai_tools::paths;

use super::{Command, Completes, During, Group, Reply, SlashCommand, Takes, Trouble, Typed};
use crate::export::{ExportError, Format, Whose};
use crate::file_system;
use crate::turn::CommandContext;

pub(super) const EXPORT: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[md | html | json] [PATH]",
        help: "export this agent's history as HTML, Markdown or JSON",
        examples: &[
            ("/export", "NAME.html in the working directory"),
            (
                "/export md notes.md",
                "as Markdown; existing files are not overwritten",
            ),
            ("/export json", "for `ikigai import`, with its ancestors"),
        ],
        takes: Takes::Words,
        completes: &[Completes::Words(&Format::WORDS), Completes::Paths],
        during: During::AtBreak,
        ..Command::new("export", Group::Session)
    },
    handler: |ctx, typed| Box::pin(export(ctx, typed)),
};

async fn export(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let named = |word: &String| Format::from_name(word);
    let (format, path) = match typed.words.as_slice() {
        [] => (None, None),
        [word] => match named(word) {
            Some(format) => (Some(format), None),
            None => (None, Some(word)),
        },
        [word, path] if named(word).is_some() => (named(word), Some(path)),
        [..] => return Trouble::refused("usage: /export [md | html | json] [PATH]"),
    };
    // The file extension implies the format too.
    let ending = path.and_then(|path| Path::new(path).extension()?.to_str());
    let format = format.or_else(|| Format::from_name(ending?));
    let format = format.unwrap_or(Format::Html);
    let name = ctx.settings().name.as_deref().unwrap_or("agent");
    let file = path.map_or_else(|| format!("{name}.{}", format.ending()), String::clone);
    let path = paths::resolve(&ctx.place(), &file);
    let shown = path.display();
    // Conversations are private to their owner, as the store is.
    let opened = match file_system::create_private(&path).await {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Trouble::refused(format!("{shown} already exists · choose another name"));
        }
        Err(error) => return Trouble::refused(format!("cannot write {shown}: {error}")),
        Ok(opened) => opened,
    };
    let mut out = BufWriter::new(opened);
    let mut rows = 0;
    let whose = Whose::Agent(ctx.id());
    let written = ctx
        .engine()
        .export(whose, format, &mut out, &mut |done, _| rows = done)
        .await;
    match written {
        Ok(()) => Ok(Reply::says(format!(
            "Exported {} to {shown}",
            counted(rows, "event")
        ))),
        Err(error) => {
            // A partial export is useless.
            let _ = file_system::remove(&path).await;
            match error {
                ExportError::Engine(error) => Err(error.into()),
                ExportError::Write(error) => {
                    Trouble::refused(format!("cannot write {shown}: {error}"))
                }
            }
        }
    }
}
