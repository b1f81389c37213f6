//! The demo model: offline, deterministic, scripted by rules on the last message.

mod messages;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::Request;
use ikigai_core::data::Amounts;
use ikigai_core::project::{estimate_request, estimate_tokens};
use ikigai_core::settings::ModelChoice;
use ikigai_core::summary::{SUMMARY_PROMPT, SUMMARY_REQUEST};

use crate::{
    AnswerBlock, BoxFuture, Delta, FailureKind, Model, Models, NoModel, ProviderError, Response,
    ResponseStream, RetryPause, StopReason,
};
use rules::{Ask, DemoStep};

/// Pause between words of a slow response.
const SLOW_PAUSE: Duration = Duration::from_millis(50);

/// Pause before the pretended retry.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Name of the demo provider and of its model.
pub(crate) const DEMO: &str = "demo";

/// Context window of the demo model.
pub(crate) const WINDOW_TOKENS: u64 = 200_000;

/// The built-in scripted model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Demo;

impl Demo {
    /// Returns the settings that choose it.
    pub fn choice() -> ModelChoice {
        ModelChoice {
            provider: Some(DEMO.to_owned()),
            model: Some(DEMO.to_owned()),
            level: None,
        }
    }
}

impl Models for Demo {
    fn first_choice(&self) -> Result<ModelChoice, NoModel> {
        Ok(Self::choice())
    }

    fn choose(&self, _typed: &str) -> Result<ModelChoice, NoModel> {
        self.first_choice()
    }

    fn window_tokens(&self, _choice: &ModelChoice) -> u64 {
        Model::window_tokens(self)
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
        WINDOW_TOKENS
    }

    fn cost_nano_usd(&self, _usage: &Amounts) -> Option<u64> {
        Some(0)
    }

    fn answer(&self, request: Request, _conversation: &str) -> Box<dyn ResponseStream> {
        let ask = Ask::of(&request);
        let mut script = DemoAnswer::default();
        let is_summary = request.system.as_deref() == Some(SUMMARY_PROMPT)
            || ask.said.starts_with(SUMMARY_REQUEST);
        let steps = if is_summary {
            rules::summarise(&ask)
        } else {
            rules::answer(&ask)
        };
        for step in steps {
            script.add(step);
        }
        script.finish(estimate_request(&request));
        Box::new(Scripted {
            deltas: script.deltas,
            pause: ask.has("slowly").then_some(SLOW_PAUSE),
        })
    }
}

/// Deltas of a scripted response.
#[derive(Default)]
struct DemoAnswer {
    deltas: VecDeque<Result<Delta, ProviderError>>,
    blocks: Vec<AnswerBlock>,
    failed: bool,
}

impl DemoAnswer {
    fn add(&mut self, step: DemoStep) {
        match step {
            DemoStep::Say(text) => {
                self.deltas
                    .extend(words(&text).into_iter().map(Delta::Text).map(Ok));
                self.blocks.push(AnswerBlock::Text { text, item: None });
            }
            DemoStep::Think(text) => {
                self.deltas
                    .extend(words(&text).into_iter().map(Delta::Thinking).map(Ok));
                // A scripted thought has a scripted signature, so that it is sent back like any
                // other.
                let payload = Some(format!("demo:{}", text.len()));
                self.blocks.push(AnswerBlock::Thinking { text, payload });
            }
            DemoStep::Call { tool, arguments } => {
                self.deltas.push_back(Ok(Delta::Call(tool.clone())));
                self.blocks.push(AnswerBlock::Call {
                    id: None,
                    name: tool,
                    arguments,
                    item: None,
                });
            }
            DemoStep::Stumble(message) => {
                let error = ProviderError::new(FailureKind::Unavailable, message);
                self.deltas.push_back(Ok(Delta::Waiting(RetryPause {
                    error,
                    attempt: 2,
                    attempts: 6,
                    pause: RETRY_PAUSE,
                })));
                self.deltas.push_back(Ok(Delta::Again));
                self.blocks.clear();
            }
            DemoStep::Fail(message) => {
                let error = ProviderError::new(FailureKind::Unavailable, message);
                self.deltas.push_back(Err(error));
                self.failed = true;
            }
        }
    }

    fn finish(&mut self, input: u64) {
        if self.failed {
            return;
        }
        let calls = |block: &AnswerBlock| matches!(block, AnswerBlock::Call { .. });
        let stop = if self.blocks.iter().any(calls) {
            StopReason::Calls
        } else {
            StopReason::End
        };
        let (output, reasoning) = self
            .blocks
            .iter()
            .fold((0, 0), |(output, reasoning), block| {
                let tokens = answered_tokens(block);
                let thought = matches!(block, AnswerBlock::Thinking { .. });
                (
                    output + tokens,
                    reasoning + if thought { tokens } else { 0 },
                )
            });
        let usage = Amounts {
            input: Some(input),
            output: Some(output),
            reasoning: Some(reasoning),
            ..Amounts::default()
        };
        self.deltas.push_back(Ok(Delta::Finished(Response {
            blocks: std::mem::take(&mut self.blocks),
            stop,
            usage,
        })));
    }
}

fn answered_tokens(block: &AnswerBlock) -> u64 {
    match block {
        AnswerBlock::Text { text, .. } | AnswerBlock::Thinking { text, .. } => {
            estimate_tokens(text)
        }
        AnswerBlock::Call {
            name, arguments, ..
        } => estimate_tokens(name) + estimate_tokens(arguments),
    }
}

/// A response that is known from its start.
struct Scripted {
    deltas: VecDeque<Result<Delta, ProviderError>>,
    pause: Option<Duration>,
}

impl ResponseStream for Scripted {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Delta, ProviderError>>> {
        Box::pin(async move {
            let again = matches!(self.deltas.front(), Some(Ok(Delta::Again)));
            let pause = if again { Some(RETRY_PAUSE) } else { self.pause };
            if let Some(pause) = pause {
                tokio::time::sleep(pause).await;
            }
            self.deltas.pop_front()
        })
    }
}

/// Splits a text into words with the blanks after them.
fn words(text: &str) -> Vec<String> {
    text.split_inclusive(char::is_whitespace)
        .map(str::to_owned)
        .collect()
}

/// Returns the output of a command without the remarks below it, such as `[exit 0, 0.1 s]`.
fn printed_part(result: &str) -> &str {
    let mut output = result.trim_end();
    loop {
        let (rest, last) = output.rsplit_once('\n').unwrap_or(("", output));
        if !(last.starts_with('[') && last.ends_with(']')) {
            return output;
        }
        output = rest.trim_end();
    }
}
