//! A provider that says what it was told to say, and remembers what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ikigai_core::Request;
use ikigai_core::data::Amounts;
use ikigai_providers::{Answer, BoxFuture, Delta, Provider, ProviderError};

/// One step of a scripted answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Says something.
    Say(String),
    /// Ends well.
    Finish,
    /// Fails with these words.
    Fail(String),
    /// Says nothing ever after.
    Hang,
}

/// A provider whose answers are scripted. Clones share script and memory.
#[derive(Clone, Debug, Default)]
pub struct ScriptedProvider {
    shared: Arc<Shared>,
    /// How many tokens its model takes; none means plenty.
    window: Option<u64>,
}

#[derive(Debug, Default)]
struct Shared {
    answers: Mutex<VecDeque<Vec<Step>>>,
    requests: Mutex<Vec<Request>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ScriptedProvider {
    /// A provider whose model takes so many tokens.
    pub fn with_window(tokens: u64) -> Self {
        Self {
            window: Some(tokens),
            ..Self::default()
        }
    }

    /// Will answer so, after the answers scripted before.
    pub fn will(&self, steps: impl IntoIterator<Item = Step>) {
        locked(&self.shared.answers).push_back(steps.into_iter().collect());
    }

    /// Will say this and finish.
    pub fn will_say(&self, text: &str) {
        self.will([Step::Say(text.to_owned()), Step::Finish]);
    }

    /// What it was asked so far.
    pub fn requests(&self) -> Vec<Request> {
        locked(&self.shared.requests).clone()
    }
}

impl Provider for ScriptedProvider {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn default_model(&self) -> &'static str {
        "scripted"
    }

    fn window_tokens(&self, _model: &str) -> u64 {
        self.window.unwrap_or(1_000_000)
    }

    fn answer(&self, _model: &str, request: Request) -> Box<dyn Answer> {
        locked(&self.shared.requests).push(request);
        let steps = locked(&self.shared.answers).pop_front();
        Box::new(Script(steps.unwrap_or_default().into()))
    }
}

struct Script(VecDeque<Step>);

impl Answer for Script {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Delta, ProviderError>>> {
        Box::pin(async move {
            if self.0.front() == Some(&Step::Hang) {
                // Stays in the script, so that whoever asks again waits again.
                std::future::pending::<()>().await;
            }
            Some(match self.0.pop_front()? {
                Step::Say(text) => Ok(Delta::Text(text)),
                Step::Finish => Ok(Delta::Finished {
                    stop: "end".to_owned(),
                    usage: Amounts {
                        input: Some(10),
                        output: Some(2),
                        ..Amounts::default()
                    },
                }),
                Step::Fail(message) => Err(ProviderError {
                    message,
                    status: Some(500),
                }),
                Step::Hang => return None,
            })
        })
    }
}
