//! `/model`: chooses the model.

use std::fmt::Write as _;

use ikigai_core::counts::counted;
use ikigai_core::data::Amounts;
use ikigai_core::project::{Scale, assemble, estimate_request};
use ikigai_core::settings::ModelChoice;
use ikigai_core::{Block, Request, Settings};
use ikigai_store::Agent;

use super::{Command, Completes, Group, Reply, Shows, SlashCommand, Takes, Trouble, Typed};
use crate::turn::CommandContext;
use crate::{EngineError, figures};

pub(super) const MODEL: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[NAME[/LEVEL]]",
        help: "choose the model and its thinking level: none min low med high max",
        examples: &[
            ("/model", "list the models"),
            (
                "/model claude-sonnet-4-5/low",
                "switch from the next request on",
            ),
            ("/model ollama:qwen3", "a model of a given provider"),
        ],
        takes: Takes::Words,
        completes: &[Completes::Models],
        shows: Shows::OverlayWithoutArguments,
        ..Command::new("model", Group::Session)
    },
    handler: |ctx, typed| Box::pin(model(ctx, typed)),
};

async fn model(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let Some(name) = typed.one("model")? else {
        return Ok(Reply::says(list(ctx)?));
    };
    let models = ctx.engine().models().clone();
    let choice = models.choose(name).map_err(EngineError::from)?;
    models.learn_window(&choice).await;
    let was = ctx.settings().model.clone();
    let described = models.describe(&choice);
    let mut output = format!(
        "Switched to {} {}",
        described.title,
        choice.model.as_deref().unwrap_or_default()
    );
    if let Some(thinking) = described.thinking {
        let _ = write!(output, "\n  Thinking: {thinking}");
    }
    let is_another = was
        .as_ref()
        .is_none_or(|was| (&was.provider, &was.model) != (&choice.provider, &choice.model));
    if is_another && let Some(meaning) = meaning(ctx, was, &choice).await? {
        let _ = write!(output, "\n  {meaning}");
    }
    let settings = Settings {
        model: Some(choice),
        ..Settings::default()
    };
    Ok(Reply::sets(&settings, output))
}

/// Describes the effects of another model; none if the conversation is empty.
async fn meaning(
    ctx: &CommandContext<'_>,
    was: Option<ModelChoice>,
    choice: &ModelChoice,
) -> Result<Option<String>, EngineError> {
    let models = ctx.engine().models();
    let Some((request, scale)) = request_to(ctx, choice).await? else {
        return Ok(Some(
            "⚠ system prompt, pinned files and tools do not fit its window".to_owned(),
        ));
    };
    if request.messages.is_empty() {
        return Ok(None);
    }
    let tokens = scale.counted(estimate_request(&request));
    let mut meaning = format!(
        "Prompt cache is lost: {} tokens are sent again",
        figures::tokens(tokens)
    );
    let usage = Amounts {
        input: Some(tokens),
        ..Amounts::default()
    };
    if let Some(nano) = models.resolve(choice)?.cost_nano_usd(&usage) {
        let cents = nano.div_ceil(10_000_000);
        let _ = write!(meaning, " (about ${}.{:02})", cents / 100, cents % 100);
    }
    let sent_before = match &was {
        Some(was) => request_to(ctx, was).await?.map(|(request, _)| request),
        None => None,
    };
    let before = sent_before.as_ref().map_or(0, thinking_blocks);
    let left = before.saturating_sub(thinking_blocks(&request));
    if left > 0 {
        let _ = write!(meaning, ". Not sent: {}", counted(left, "thinking block"));
    }
    let window = models.describe(choice).context_tokens;
    let window = window
        .unwrap_or_else(|| models.window_tokens(choice))
        .max(1);
    let share = tokens.saturating_mul(100).div_ceil(window);
    let _ = write!(meaning, ". Uses {share}% of {}", figures::tokens(window));
    Ok(Some(meaning))
}

/// Builds the next request to this model, with its token scale; none without room.
async fn request_to(
    ctx: &CommandContext<'_>,
    choice: &ModelChoice,
) -> Result<Option<(Request, Scale)>, EngineError> {
    // A copy, so that the sent view does not grow; rows are shared.
    let ready = ctx.engine().ready(ctx.agent().clone(), choice);
    let ready = Box::pin(ready).await?;
    let Agent { state, view, .. } = &ready.agent;
    let request = assemble(state, view, &ready.target, &ready.budget);
    Ok(request.ok().map(|request| (request, ready.scale)))
}

fn thinking_blocks(request: &Request) -> usize {
    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
    blocks
        .filter(|block| matches!(block, Block::Thinking { .. }))
        .count()
}

fn list(ctx: &CommandContext<'_>) -> Result<String, EngineError> {
    let choice = ctx.engine().choice(ctx.settings())?;
    let level = choice
        .level
        .map(|level| format!("/{level}"))
        .unwrap_or_default();
    let mut text = format!(
        "model: {}:{}{level}",
        choice.provider.unwrap_or_default(),
        choice.model.unwrap_or_default()
    );
    let offers = ctx.engine().models().offers();
    let widest = offers.iter().map(|offer| offer.name().len()).max();
    for offer in &offers {
        let context = offer
            .context_tokens
            .map_or_else(|| "?".to_owned(), figures::tokens);
        let price =
            |price: Option<f64>| price.map_or_else(|| "?".to_owned(), |price| price.to_string());
        let line = format!(
            "{} {:<width$}  {context:>5}  ${} / ${}  {}",
            if offer.reachable { "●" } else { " " },
            offer.name(),
            price(offer.price_in),
            price(offer.price_out),
            offer.levels.join(" "),
            width = widest.unwrap_or(0)
        );
        let _ = write!(text, "\n{}", line.trim_end());
    }
    if !offers.is_empty() {
        text.push_str("\n● available (key found) · $ per million tokens, in / out");
    }
    Ok(text)
}
