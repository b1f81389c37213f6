//! `/key`: verifies and saves a key that was typed hidden.

use std::error::Error;
use std::fmt::Write as _;

use ikigai_providers::{KeyError, looks_like_key};

use super::reply::Then;
use super::{Command, Completes, During, Group, Reply, Takes, Trouble, Typed};
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

pub(super) const KEY: Command = Command {
    arguments: "PROVIDER",
    help: "type a key where nobody sees it; it is tried, and kept in a file that only you can read",
    examples: &[("/key anthropic", "the key itself is asked for")],
    takes: Takes::Words,
    completes: &[Completes::Words(KEY_PROVIDERS), Completes::Nothing],
    // It sends a request to the provider.
    during: During::AtBreak,
    ..Command::new("key", Group::Session, |ctx, typed| {
        Box::pin(key(ctx, typed))
    })
};

async fn key(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let known = KEY_PROVIDERS.join(", ");
    let provider = match typed.words.as_slice() {
        [] => return Trouble::refused(format!("name a provider: {known}")),
        [provider] if !looks_like_key(provider) => provider,
        // Keys must not be typed here: command lines are stored in the log.
        [..] => return Trouble::refused("name only the provider: the key is asked for"),
    };
    let Some(key) = ctx.engine().hub.typed_key(provider) else {
        return Trouble::refused(format!(
            "the key of {provider} has to be typed where nobody sees it: on a screen, or at a terminal with \
             ikigai run \"/key {provider}\""
        ));
    };
    let kept = ctx.engine().models.take_key(provider, &key).await;
    let kept = kept.map_err(|error| format!("{} · nothing was kept", told(&error)))?;
    let mut output = format!(
        "{} takes the key and lists {} models\n  kept in {}, which only you can read",
        kept.title,
        kept.models,
        kept.file.display()
    );
    if let Some(first) = &kept.hidden_by {
        let _ = write!(output, "\n  ⚠ {first} is set and comes first");
    }
    let Some(model) = kept.model else {
        return Ok(Reply::says(output));
    };
    let _ = write!(output, "\n  /model {model} asks it from now on");
    let offer = Next::Input(format!("/model {model}"));
    Ok(Reply::says(output).then(Then::Front(offer)))
}

/// Formats an error with its cause.
fn told(error: &KeyError) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
