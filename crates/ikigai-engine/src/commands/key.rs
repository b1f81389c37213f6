//! `/key`: verifies and saves a key that was typed hidden.

use ikigai_core::counts::counted;
use std::error::Error;
use std::fmt::Write as _;

use ikigai_providers::{KeyError, looks_like_key};

use super::reply::Then;
use super::{Command, Completes, During, Group, Reply, SlashCommand, Takes, Trouble, Typed};
use crate::frontend::Next;
use crate::turn::CommandContext;

/// Well-known providers that need keys.
pub const KEY_PROVIDERS: &[&str] = &[
    "anthropic",
    "openai",
    "google",
    "xai",
    "deepseek",
    "moonshotai",
    "zai",
    "alibaba",
    "mistral",
    "openrouter",
];

pub(super) const KEY: SlashCommand = SlashCommand {
    command: Command {
        arguments: "PROVIDER",
        help: "enter an API key (hidden); it is verified and saved",
        examples: &[("/key anthropic", "the key is asked for next")],
        takes: Takes::Words,
        completes: &[Completes::Words(KEY_PROVIDERS), Completes::Nothing],
        // It sends a request to the provider.
        during: During::AtBreak,
        ..Command::new("key", Group::Session)
    },
    handler: |ctx, typed| Box::pin(key(ctx, typed)),
};

async fn key(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let known = KEY_PROVIDERS.join(", ");
    let provider = match typed.words.as_slice() {
        [] => return Trouble::refused(format!("usage: /key PROVIDER, one of {known}")),
        [provider] if !looks_like_key(provider) => provider,
        // Keys must not be typed here: command lines are stored in the log.
        [..] => return Trouble::refused("type only /key PROVIDER: the key is asked for next"),
    };
    let Some(key) = ctx.engine().hub().typed_key(provider) else {
        return Trouble::refused(format!(
            "the key of {provider} can only be typed hidden: on the screen, or at a terminal with \
             ikigai run \"/key {provider}\""
        ));
    };
    let kept = ctx.engine().models().take_key(provider, &key).await;
    let kept = kept.map_err(|error| format!("{} · key not saved", reason_of(&error)))?;
    let mut output = format!(
        "{} accepts the key and lists {}\n  saved in {}, readable only by you",
        kept.title,
        counted(kept.models, "model"),
        kept.file.display()
    );
    if let Some(first) = &kept.hidden_by {
        let _ = write!(output, "\n  ⚠ {first} is set and takes precedence");
    }
    let Some(model) = kept.model else {
        return Ok(Reply::says(output));
    };
    let _ = write!(output, "\n  /model {model} to use it");
    let offer = Next::Input(format!("/model {model}"));
    Ok(Reply::says(output).then(Then::Front(offer)))
}

/// Formats an error with its cause.
fn reason_of(error: &KeyError) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
