//! A provider with scripted responses, which records its requests.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ikigai_core::Request;
use ikigai_core::data::Amounts;
use ikigai_core::message::Block;
use ikigai_core::project::estimate_request;
use ikigai_core::settings::ModelChoice;
use ikigai_core::summary::{SUMMARY_PROMPT, SUMMARY_REQUEST};
use ikigai_providers::answer::PATIENCE;
use ikigai_providers::{
    AnswerBlock, BoxFuture, Delta, Described, FailureKind, Model, Models, NoModel, ProviderError,
    Response, ResponseStream, RetryPause, StopReason, WindowSource,
};
use tokio::sync::Notify;

/// Key of the responses to requests for a summary.
const SUMMARY: &str = "<summary>";

/// One step of a scripted response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Sends text.
    Say(String),
    /// Ends well, with the text so far.
    Finish,
    /// Ends well, with these blocks.
    FinishWith(Vec<AnswerBlock>),
    /// Ends at the output limit.
    RunOut,
    /// Refuses this message of the request.
    Refuse(usize),
    /// Fails, and announces a retry.
    TryAgain(String),
    /// Fails with these words.
    Fail(String),
    /// Refuses the request as too long for the model, which accepts this many tokens.
    Overflow(String, Option<u64>),
    /// Starts the response over; follows [`Step::TryAgain`] by itself.
    Restart,
    /// Waits for `go_on`.
    Wait,
    /// Is silent for ever.
    Hang,
    /// Is silent for this time.
    Sleep(Duration),
    /// Panics, as a mistake in the program would.
    Panic(String),
}

/// A provider whose responses are scripted. Clones share script and requests.
#[derive(Clone, Debug, Default)]
pub struct ScriptedProvider {
    shared: Arc<ScriptState>,
    /// Tokens that its model accepts; none means plenty.
    window: Option<u64>,
    /// Longest silence of its responses; none means the default.
    patience: Option<Duration>,
    /// The price of its model is unknown.
    is_unpriced: bool,
    /// Its model takes no images.
    takes_text_only: bool,
}

#[derive(Debug, Default)]
struct ScriptState {
    answers: Mutex<VecDeque<Vec<Step>>>,
    /// Responses to conversations whose first message contains a word, by that word.
    told: Mutex<HashMap<String, VecDeque<Vec<Step>>>>,
    /// Words of the conversations, by conversation.
    begun: Mutex<HashMap<String, String>>,
    requests: Mutex<Vec<Request>>,
    go_on: Notify,
    /// Counted thousandths per estimated token; none: always ten tokens.
    counts: Mutex<Option<u64>>,
    /// Window that its server states in lookups, and the number of lookups.
    served: Mutex<(Option<u64>, usize)>,
    /// Window that its server has stated.
    learned: Mutex<Option<u64>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ScriptedProvider {
    /// Makes a provider whose model accepts this many tokens.
    pub fn with_window(tokens: u64) -> Self {
        Self {
            window: Some(tokens),
            ..Self::default()
        }
    }

    /// Makes a provider whose model has no known price.
    pub fn without_price() -> Self {
        Self {
            is_unpriced: true,
            ..Self::default()
        }
    }

    /// Makes a provider whose model takes no images.
    pub fn without_images() -> Self {
        Self {
            takes_text_only: true,
            ..Self::default()
        }
    }

    /// Makes a provider whose responses may be silent for this time.
    pub fn with_patience(patience: Duration) -> Self {
        Self {
            patience: Some(patience),
            ..Self::default()
        }
    }

    /// Adds a response after the ones scripted before.
    pub fn will(&self, steps: impl IntoIterator<Item = Step>) {
        locked(&self.shared.answers).push_back(steps.into_iter().collect());
    }

    /// Adds a response for conversations whose first message contains the word.
    ///
    /// The first request decides, so tests can script agents that run in parallel separately.
    pub fn will_to(&self, word: &str, steps: impl IntoIterator<Item = Step>) {
        let mut told = locked(&self.shared.told);
        let answers = told.entry(word.to_owned()).or_default();
        answers.push_back(steps.into_iter().collect());
    }

    /// Adds a text response for conversations whose first message contains the word.
    pub fn will_say_to(&self, word: &str, text: &str) {
        self.will_to(word, [Step::Say(text.to_owned()), Step::Finish]);
    }

    /// Adds a response to the next request for a summary.
    pub fn will_summarise(&self, steps: impl IntoIterator<Item = Step>) {
        self.will_to(SUMMARY, steps);
    }

    /// Adds a summary for the next request for one.
    pub fn will_summarise_as(&self, text: &str) {
        self.will_say_to(SUMMARY, text);
    }

    /// Returns the next response in a conversation.
    fn next_script(&self, request: &Request, conversation: &str) -> Option<Vec<Step>> {
        let mut told = locked(&self.shared.told);
        if is_summary_request(request) {
            let scripted = told.get_mut(SUMMARY).and_then(VecDeque::pop_front);
            return scripted.or_else(|| locked(&self.shared.answers).pop_front());
        }
        let mut begun = locked(&self.shared.begun);
        if !begun.contains_key(conversation) {
            let newest = newest_text(request);
            let words = told.keys().filter(|word| *word != SUMMARY);
            let mut words = words.filter(|word| newest.contains(word.as_str()));
            if let Some(word) = words.next() {
                begun.insert(conversation.to_owned(), word.clone());
            }
        }
        let of_word = begun
            .get(conversation)
            .and_then(|word| told.get_mut(word)?.pop_front());
        of_word.or_else(|| locked(&self.shared.answers).pop_front())
    }

    /// Removes the responses scripted so far.
    pub fn forget_script(&self) {
        locked(&self.shared.answers).clear();
        locked(&self.shared.told).clear();
    }

    /// Adds a text response.
    pub fn will_say(&self, text: &str) {
        self.will([Step::Say(text.to_owned()), Step::Finish]);
    }

    /// Ends one [`Step::Wait`], the next one if none waits now.
    pub fn go_on(&self) {
        self.shared.go_on.notify_one();
    }

    /// Sets the reported tokens of each request, in thousandths of the estimate.
    pub fn will_count(&self, thousandths: u64) {
        *locked(&self.shared.counts) = Some(thousandths);
    }

    /// Sets the window that lookups return.
    pub fn will_state_window(&self, tokens: u64) {
        locked(&self.shared.served).0 = Some(tokens);
    }

    /// Returns the number of window lookups.
    pub fn window_lookups(&self) -> usize {
        locked(&self.shared.served).1
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<Request> {
        locked(&self.shared.requests).clone()
    }
}

/// Returns true if a request asks for a summary, in either form.
pub fn is_summary_request(request: &Request) -> bool {
    request.system.as_deref() == Some(SUMMARY_PROMPT)
        || newest_text(request).starts_with(SUMMARY_REQUEST)
}

impl Models for ScriptedProvider {
    fn first_choice(&self) -> Result<ModelChoice, NoModel> {
        Ok(ModelChoice {
            provider: Some("scripted".to_owned()),
            model: Some("scripted".to_owned()),
            level: None,
        })
    }

    fn choose(&self, typed: &str) -> Result<ModelChoice, NoModel> {
        Ok(ModelChoice {
            provider: Some("scripted".to_owned()),
            model: Some(typed.to_owned()),
            level: None,
        })
    }

    fn window_tokens(&self, _choice: &ModelChoice) -> u64 {
        locked(&self.shared.learned).unwrap_or_else(|| Model::window_tokens(self))
    }

    fn learn_window<'a>(&'a self, _choice: &'a ModelChoice) -> BoxFuture<'a, ()> {
        Box::pin(async {
            let mut served = locked(&self.shared.served);
            served.1 += 1;
            *locked(&self.shared.learned) = served.0;
        })
    }

    fn describe(&self, choice: &ModelChoice) -> Described {
        let learned = *locked(&self.shared.learned);
        Described {
            title: choice.provider.clone().unwrap_or_default(),
            thinking: choice.level.clone(),
            context_tokens: learned,
            window_source: learned.map_or(WindowSource::Known, |_| WindowSource::Served),
        }
    }

    /// Returns a model with the window of this moment, as real providers do.
    fn resolve(&self, _choice: &ModelChoice) -> Result<Arc<dyn Model>, NoModel> {
        Ok(Arc::new(Self {
            window: locked(&self.shared.learned).or(self.window),
            ..self.clone()
        }))
    }
}

impl Model for ScriptedProvider {
    fn provider(&self) -> &'static str {
        "scripted"
    }

    fn name(&self) -> &'static str {
        "scripted"
    }

    fn level(&self) -> Option<&str> {
        None
    }

    fn window_tokens(&self) -> u64 {
        self.window.unwrap_or(1_000_000)
    }

    fn takes_images(&self) -> bool {
        !self.takes_text_only
    }

    fn cost_nano_usd(&self, _usage: &Amounts) -> Option<u64> {
        (!self.is_unpriced).then_some(7)
    }

    fn answer(&self, request: Request, conversation: &str) -> Box<dyn ResponseStream> {
        let counts = *locked(&self.shared.counts);
        let counted = counts.map(|share| estimate_request(&request) * share / 1000);
        let steps = self.next_script(&request, conversation);
        locked(&self.shared.requests).push(request);
        Box::new(ScriptedStream {
            steps: steps.unwrap_or_default().into(),
            shared: self.shared.clone(),
            said: String::new(),
            counted: counted.unwrap_or(10),
            patience: self.patience.unwrap_or(PATIENCE),
        })
    }
}

/// Returns the text of the last message of a request.
fn newest_text(request: &Request) -> String {
    let newest = request.messages.last();
    let blocks = newest.map_or(&[][..], |message| &message.blocks);
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

struct ScriptedStream {
    steps: VecDeque<Step>,
    shared: Arc<ScriptState>,
    said: String,
    /// The tokens of the request.
    counted: u64,
    patience: Duration,
}

impl ScriptedStream {
    fn take(&mut self) -> Option<Result<Delta, ProviderError>> {
        let failed = |message| ProviderError::new(FailureKind::Unavailable, message);
        Some(match self.steps.pop_front()? {
            Step::Say(text) => {
                self.said.push_str(&text);
                Ok(Delta::Text(text))
            }
            Step::Finish => {
                let text = std::mem::take(&mut self.said);
                Ok(self.finished(vec![AnswerBlock::Text { text, item: None }]))
            }
            Step::FinishWith(blocks) => Ok(self.finished(blocks)),
            Step::RunOut => {
                let text = std::mem::take(&mut self.said);
                Ok(Delta::Finished(Response {
                    blocks: vec![AnswerBlock::Text { text, item: None }],
                    stop: StopReason::Length,
                    usage: Amounts::default(),
                }))
            }
            Step::TryAgain(message) => {
                self.said.clear();
                self.steps.push_front(Step::Restart);
                Ok(Delta::Waiting(RetryPause {
                    error: failed(message),
                    attempt: 2,
                    attempts: 3,
                    pause: Duration::ZERO,
                }))
            }
            Step::Refuse(index) => Err(ProviderError {
                status: Some(400),
                names_message: Some(index),
                ..ProviderError::new(
                    FailureKind::BadRequest,
                    format!("messages[{index}] is invalid"),
                )
            }),
            Step::Restart => Ok(Delta::Again),
            Step::Fail(message) => Err(failed(message)),
            Step::Overflow(message, window) => Err(ProviderError {
                stated_window: window,
                ..ProviderError::new(FailureKind::TooLong, message)
            }),
            Step::Panic(reason) => panic!("{reason}"),
            Step::Wait | Step::Hang | Step::Sleep(_) => return None,
        })
    }
}

impl ScriptedStream {
    fn finished(&self, blocks: Vec<AnswerBlock>) -> Delta {
        let calls = blocks
            .iter()
            .any(|block| matches!(block, AnswerBlock::Call { .. }));
        Delta::Finished(Response {
            blocks,
            stop: if calls {
                StopReason::Calls
            } else {
                StopReason::End
            },
            usage: Amounts {
                input: Some(self.counted),
                output: Some(2),
                ..Amounts::default()
            },
        })
    }
}

impl ResponseStream for ScriptedStream {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Delta, ProviderError>>> {
        Box::pin(async move {
            if self.steps.front() == Some(&Step::Hang) {
                // Stays in the script, so that the next call waits again.
                std::future::pending::<()>().await;
            }
            if self.steps.front() == Some(&Step::Wait) {
                self.shared.go_on.notified().await;
                self.steps.pop_front();
            }
            if let Some(Step::Sleep(time)) = self.steps.front() {
                tokio::time::sleep(*time).await;
                self.steps.pop_front();
            }
            self.take()
        })
    }

    fn patience(&self) -> Duration {
        self.patience
    }
}
