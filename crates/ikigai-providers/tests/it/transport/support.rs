//! A minimal dialect, and helpers that read an answer to its end.

use std::time::Duration;

use ikigai_providers::dialect::{Decoder, Dialect, Order};
use ikigai_providers::retry::Policy;
use ikigai_providers::sse::Frame;
use ikigai_providers::transport::{Client, Deadlines, PreparedRequest, content_limit, send};
use ikigai_providers::{
    AnswerBlock, Delta, FailureKind, ProviderError, Response, ResponseStream, StopReason,
};
use ikigai_testkit::server::Server;
use secrecy::SecretString;
use serde_json::Value;

/// API key of every request in these tests; no message may show it.
pub(crate) const KEY: &str = "sk-a-key-that-stays-secret";

/// Deadlines long enough for a busy machine; reaching one is a bug.
pub(crate) const PATIENT: Deadlines = Deadlines {
    connect: Duration::from_secs(20),
    first_byte: Duration::from_secs(20),
    idle: Duration::from_secs(20),
    refusal: Duration::from_secs(20),
};

/// Deadline for servers that never send the awaited data.
pub(crate) const BRIEF: Duration = Duration::from_millis(50);

/// Tries three times, almost at once.
pub(crate) const HASTY: Policy = Policy {
    tries: 3,
    first_pause: Duration::from_millis(1),
    longest_pause: Duration::from_millis(2),
    longest_delay: Duration::from_mins(1),
};

/// Frames are `text WORDS`, `think WORDS`, `call NAME`, `error WORDS`, `busy WORDS`, and `end`.
pub(crate) struct Tiny;

impl Dialect for Tiny {
    fn name(&self) -> &'static str {
        "tiny"
    }

    fn default_base(&self) -> &'static str {
        ""
    }

    fn endpoint(&self, base: &str, _: &str) -> String {
        format!("{base}/tiny")
    }

    fn headers(&self, _: Option<&str>) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn encode(&self, _: &Order<'_>) -> Value {
        Value::Null
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::<TinyDecoder>::default()
    }

    fn explain(&self, body: &Value, error: &mut ProviderError) {
        let field = |name: &str| body["error"][name].as_str();
        if let Some(message) = field("message") {
            message.clone_into(&mut error.message);
        }
        match field("code") {
            Some("insufficient_quota") => error.kind = FailureKind::Quota,
            Some("context_length_exceeded") => error.kind = FailureKind::TooLong,
            _ => {}
        }
    }
}

#[derive(Default)]
struct TinyDecoder {
    said: String,
    is_done: bool,
}

impl Decoder for TinyDecoder {
    fn push(&mut self, frame: &Frame) -> Result<Vec<Delta>, ProviderError> {
        let (word, rest) = frame.data.split_once(' ').unwrap_or((&frame.data, ""));
        let rest = rest.to_owned();
        let delta = match word {
            "text" => {
                self.said.push_str(&rest);
                Delta::Text(rest)
            }
            "think" => Delta::Thinking(rest),
            "call" => Delta::Call(rest),
            "end" => {
                self.is_done = true;
                return Ok(Vec::new());
            }
            "error" => return Err(ProviderError::new(FailureKind::BadRequest, rest)),
            "busy" => return Err(ProviderError::new(FailureKind::Unavailable, rest)),
            word => {
                let message = format!("the event `{word}` cannot be read");
                return Err(ProviderError::new(FailureKind::Malformed, message));
            }
        };
        Ok(vec![delta])
    }

    fn finish(self: Box<Self>) -> Result<Response, ProviderError> {
        if self.is_done {
            Ok(whole(&self.said))
        } else {
            let message = "the answer ended before it was whole";
            Err(ProviderError::new(FailureKind::CutOff, message))
        }
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn content_bytes(&self) -> usize {
        self.said.len()
    }
}

/// Returns a response with this text.
pub(crate) fn whole(said: &str) -> Response {
    Response {
        blocks: vec![AnswerBlock::Text {
            text: said.to_owned(),
            item: None,
        }],
        stop: StopReason::End,
        usage: ikigai_core::data::Amounts::default(),
    }
}

/// Returns the call that every test sends.
pub(crate) fn call(url: String) -> PreparedRequest {
    let secret = |value: String| SecretString::from(value);
    PreparedRequest {
        url,
        headers: vec![
            ("authorization".to_owned(), secret(format!("Bearer {KEY}"))),
            ("x-version".to_owned(), secret("2026".to_owned())),
        ],
        body: br#"{"model":"tiny"}"#.to_vec(),
        dialect: &Tiny,
        content_limit: content_limit(None),
    }
}

/// Sends the call to a server, with the deadlines [`PATIENT`].
pub(crate) fn ask(server: &Server, policy: Policy) -> Box<dyn ResponseStream> {
    let client = Client::new(PATIENT);
    send(&client, call(server.url("/v1/tiny")), policy, 7)
}

/// Reads an answer until nothing more comes.
pub(crate) async fn read(answer: &mut dyn ResponseStream) -> Vec<Result<Delta, ProviderError>> {
    let mut deltas = Vec::new();
    while let Some(delta) = answer.next().await {
        deltas.push(delta);
    }
    deltas
}

/// Describes each delta in a word or two.
pub(crate) fn told(deltas: &[Result<Delta, ProviderError>]) -> Vec<String> {
    let tell = |delta: &Result<Delta, ProviderError>| match delta {
        Ok(Delta::Text(text)) => format!("text {text}"),
        Ok(Delta::Thinking(text)) => format!("think {text}"),
        Ok(Delta::Call(name)) => format!("call {name}"),
        Ok(Delta::Waiting(wait)) => {
            format!("try {} of {}: {}", wait.attempt, wait.attempts, wait.error)
        }
        Ok(Delta::Progress) => "progress".to_owned(),
        Ok(Delta::Again) => "again".to_owned(),
        Ok(Delta::Finished(response)) => match response.blocks.as_slice() {
            [AnswerBlock::Text { text, .. }] => format!("finished {text}"),
            blocks => format!("finished {blocks:?}"),
        },
        Err(error) => format!("failed: {error}"),
    };
    deltas.iter().map(tell).collect()
}

/// Runs a test on a runtime like that of the program: one thread.
pub(crate) fn run<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future)
}
