//! The demo model: offline, deterministic, scripted by rules on the last message.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::Request;
use ikigai_core::data::Amounts;
use ikigai_core::message::{Block, Message, Role};
use ikigai_core::project::estimate_tokens;
use ikigai_core::settings::ModelChoice;

use crate::{
    Answer, AnswerBlock, BoxFuture, Delta, FailureKind, Model, Models, NoModel, ProviderError,
    Response, StopReason,
};

/// How long the model waits between words when it was asked to be slow.
const SLOW_PAUSE: Duration = Duration::from_millis(50);

/// The largest number it counts to, so that no answer is without end.
const MOST_COUNTED: u32 = 10_000;

/// The built-in scripted model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Demo;

/// The provider name of the demo model, and its own.
pub(crate) const DEMO: &str = "demo";

impl Demo {
    /// The settings that choose it.
    pub fn choice() -> ModelChoice {
        ModelChoice {
            provider: Some(DEMO.to_owned()),
            model: Some(DEMO.to_owned()),
            level: None,
        }
    }
}

impl Models for Demo {
    fn first_choice(&self) -> ModelChoice {
        Self::choice()
    }

    fn resolve(&self, choice: &ModelChoice) -> Result<Arc<dyn Model>, NoModel> {
        match choice.provider.as_deref() {
            None | Some(DEMO) => Ok(Arc::new(*self)),
            Some(other) => Err(NoModel {
                reason: format!("there is no provider `{other}`"),
                advice: "choose the built-in model `demo`".to_owned(),
            }),
        }
    }
}

impl Model for Demo {
    fn provider(&self) -> &'static str {
        DEMO
    }

    fn name(&self) -> &'static str {
        DEMO
    }

    fn level(&self) -> Option<&str> {
        None
    }

    fn window_tokens(&self) -> u64 {
        200_000
    }

    fn cost_nano_usd(&self, _usage: &Amounts) -> Option<u64> {
        Some(0)
    }

    fn answer(&self, request: Request, _conversation: &str) -> Box<dyn Answer> {
        let said = last_words(&request);
        let slow = said
            .split_whitespace()
            .any(|word| word.eq_ignore_ascii_case("slowly"));
        let (text, failure) = match script(&request, said) {
            Ok(text) => (text, None),
            Err(message) => (
                String::new(),
                Some(ProviderError::new(FailureKind::BadRequest, message)),
            ),
        };
        let usage = Amounts {
            input: Some(tokens_of(&request)),
            output: Some(estimate_tokens(&text)),
            ..Amounts::default()
        };
        let block = AnswerBlock::Text {
            text: text.clone(),
            item: None,
        };
        let finished = Delta::Finished(Response {
            blocks: vec![block],
            stop: StopReason::End,
            usage,
        });
        let deltas = words(&text).into_iter().map(Delta::Text).map(Ok);
        let end = failure.map_or(Ok(finished), Err);
        Box::new(Scripted {
            deltas: deltas.chain(std::iter::once(end)).collect(),
            pause: slow.then_some(SLOW_PAUSE),
        })
    }
}

/// An answer that is known from its beginning.
struct Scripted {
    deltas: VecDeque<Result<Delta, ProviderError>>,
    pause: Option<Duration>,
}

impl Answer for Scripted {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Delta, ProviderError>>> {
        Box::pin(async move {
            if let Some(pause) = self.pause {
                tokio::time::sleep(pause).await;
            }
            self.deltas.pop_front()
        })
    }
}

/// Each word with the blanks after it.
fn words(text: &str) -> Vec<String> {
    text.split_inclusive(char::is_whitespace)
        .map(str::to_owned)
        .collect()
}

fn texts(message: &Message) -> impl Iterator<Item = &str> {
    message.blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        Block::ToolCall { .. } | Block::ToolResult { .. } | Block::Thinking { .. } => None,
    })
}

fn said_by_user(request: &Request) -> impl Iterator<Item = &str> {
    request
        .messages
        .iter()
        .filter(|message| message.role == Role::User)
        .flat_map(texts)
}

fn last_words(request: &Request) -> &str {
    said_by_user(request).last().unwrap_or_default().trim()
}

fn tokens_of(request: &Request) -> u64 {
    let said = request
        .messages
        .iter()
        .flat_map(texts)
        .map(estimate_tokens)
        .sum::<u64>();
    said + estimate_tokens(request.system.as_deref().unwrap_or_default())
}

/// Decides the answer, or the failure that was asked for.
fn script(request: &Request, said: &str) -> Result<String, String> {
    let lower = said.to_lowercase();
    let has = |word: &str| {
        lower
            .split(|c: char| !c.is_alphanumeric())
            .any(|part| part == word)
    };
    if has("fail") {
        return Err("the demo model fails because it was asked to".to_owned());
    }
    if has("count") {
        return Ok(counted(&lower));
    }
    if has("remember") || lower.contains("did i say") {
        return Ok(recited(request));
    }
    if has("hello") || has("hi") {
        return Ok(format!("Hello. {}", what_it_is(request)));
    }
    Ok(format!("You said: {said}\n\n{}", what_it_is(request)))
}

fn counted(said: &str) -> String {
    let number = said
        .split_whitespace()
        .find_map(|word| word.parse::<u32>().ok());
    let numbers = 1..=number.unwrap_or(10).min(MOST_COUNTED);
    numbers
        .map(|number| number.to_string())
        .collect::<Vec<_>>()
        .join(" ")
}

fn recited(request: &Request) -> String {
    let mut earlier: Vec<_> = said_by_user(request).collect();
    earlier.pop();
    if earlier.is_empty() {
        return "This is the first message that I was given.".to_owned();
    }
    let lines: Vec<_> = earlier
        .iter()
        .enumerate()
        .map(|(index, text)| format!("{}. {}", index + 1, text.lines().next().unwrap_or_default()))
        .collect();
    format!("I was given these messages before:\n{}", lines.join("\n"))
}

fn what_it_is(request: &Request) -> String {
    let messages = request.messages.len();
    let plural = if messages == 1 { "" } else { "s" };
    format!(
        "I am the built-in demo model: scripted, offline, always the same. \
         I was given {messages} message{plural}. \
         Try `what did I say`, `count to 20` or `count slowly to 100`."
    )
}
