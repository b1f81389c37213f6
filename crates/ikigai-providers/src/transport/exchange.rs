//! One request with all its attempts: a state machine that can be dropped at any wait.

use std::collections::VecDeque;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Method, Request, Url};
use secrecy::ExposeSecret;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::failure::{self, Refusal};
use super::journal::{self, BodyCopy};
use super::rest;
use super::surrogates::Repaired;
use super::words::Secrets;
use super::{Client, Deadlines, PreparedRequest, words};
use crate::answer::{
    BoxFuture, Delta, FailureKind, PATIENCE, ProviderError, ResponseStream, RetryPause,
};
use crate::dialect::{Decoder, Dialect};
use crate::retry::{self, Policy};
use crate::sse::{Frame, Sse};

/// Largest part that is read of a refusal or of a non-stream body.
const MOST_REFUSAL_BYTES: usize = 64 << 10;

/// Largest response in bytes, event wrappers included.
///
/// It is a hundred times the longest response of any model, so only a broken server reaches it.
const MOST_ANSWER_BYTES: usize = 256 << 20;

/// Time for a late caller to read data that arrived meanwhile.
const LAST_LOOK: Duration = Duration::from_secs(1);

/// One request and its response, over all attempts.
pub(super) struct Exchange {
    client: Client,
    server: String,
    dialect: &'static dyn Dialect,
    /// Request of every attempt, or the reason why there is none.
    request: Result<Request, ProviderError>,
    secrets: Arc<Secrets>,
    policy: Policy,
    random: u64,
    /// Largest response in bytes of content.
    content_limit: usize,
    /// Number of the attempt, from 1.
    attempt: u32,
    /// True if a part of this attempt's response has been returned.
    shown: bool,
    /// Deltas that are read and not yet returned; they precede the state.
    queue: VecDeque<Delta>,
    state: ExchangeState,
    /// Body of a finished response, not yet read to its end.
    rest: Option<reqwest::Response>,
}

/// State of an exchange; it holds every pending wait, so a dropped `next` loses nothing.
enum ExchangeState {
    Begin,
    Connecting {
        response: Pin<Box<dyn Future<Output = reqwest::Result<reqwest::Response>> + Send>>,
        until: Instant,
    },
    Refused {
        response: reqwest::Response,
        body: Vec<u8>,
        until: Instant,
    },
    Reading(Box<Reading>),
    Failed(ProviderError),
    Pausing {
        until: Instant,
    },
    Over,
}

struct Reading {
    response: reqwest::Response,
    sse: Sse,
    decoder: Box<dyn Decoder>,
    /// First bytes before any frame, to explain a body that is no stream.
    head: Vec<u8>,
    has_frames: bool,
    bytes: usize,
    content_bytes: usize,
    content_limit: usize,
    /// Deadline of the silence; none while no caller waits.
    until: Option<Instant>,
    looked_again: bool,
    /// Copy for the diagnostics log, if that is enabled.
    copy: Option<BodyCopy>,
}

impl ResponseStream for Exchange {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Delta, ProviderError>>> {
        Box::pin(self.step())
    }

    fn patience(&self) -> Duration {
        longest_silence(self.client.deadlines(), &self.policy)
    }

    fn into_rest(mut self: Box<Self>) -> Option<BoxFuture<'static, ()>> {
        let response = self.rest.take()?;
        Some(Box::pin(rest::read(response)))
    }
}

/// Returns the longest silence of a response: a pause, and the wait for its head or refusal.
pub(crate) fn longest_silence(deadlines: Deadlines, policy: &Policy) -> Duration {
    let answer = deadlines.first_byte.max(deadlines.idle);
    PATIENCE.max(answer + deadlines.refusal + policy.longest_delay)
}

impl Exchange {
    pub(super) fn new(client: Client, call: PreparedRequest, policy: Policy, random: u64) -> Self {
        let server = words::server(&call.url);
        let secrets = Arc::new(Secrets::of(&call));
        let dialect = call.dialect;
        let content_limit = call.content_limit;
        Self {
            client,
            server,
            dialect,
            request: request_of(call),
            secrets,
            policy,
            random,
            content_limit,
            attempt: 1,
            shown: false,
            queue: VecDeque::new(),
            state: ExchangeState::Begin,
            rest: None,
        }
    }

    async fn step(&mut self) -> Option<Result<Delta, ProviderError>> {
        loop {
            if let Some(delta) = self.queue.pop_front() {
                self.shown |= matches!(delta, Delta::Text(_) | Delta::Thinking(_) | Delta::Call(_));
                return Some(Ok(delta));
            }
            match &mut self.state {
                ExchangeState::Begin => self.state = self.begin(),
                ExchangeState::Connecting { response, until } => {
                    let outcome = timeout_at(*until, response.as_mut()).await;
                    self.state = match outcome {
                        Ok(Ok(response)) => self.look_at(response),
                        Ok(Err(error)) => ExchangeState::Failed(self.explain_sending(&error)),
                        Err(_) => ExchangeState::Failed(failure::no_answer(
                            &self.server,
                            self.client.deadlines().first_byte,
                        )),
                    };
                }
                ExchangeState::Refused {
                    response,
                    body,
                    until,
                } => {
                    if !read_more(response, body, *until).await {
                        self.state = ExchangeState::Failed(self.explain_refusal());
                    }
                }
                ExchangeState::Reading(reading) => {
                    let idle = self.client.deadlines().idle;
                    let outcome = reading.chunk(idle).await;
                    self.state = self.take_in(outcome);
                }
                ExchangeState::Failed(_) => return self.settle(),
                ExchangeState::Pausing { until } => {
                    sleep_until(*until).await;
                    self.attempt += 1;
                    self.state = ExchangeState::Begin;
                    if mem::take(&mut self.shown) {
                        return Some(Ok(Delta::Again));
                    }
                }
                ExchangeState::Over => return None,
            }
        }
    }

    fn begin(&self) -> ExchangeState {
        let request = match &self.request {
            Ok(request) => request,
            Err(error) => return ExchangeState::Failed(error.clone()),
        };
        let client = match self.client.to(request.url()) {
            Ok(client) => client,
            Err(reason) => {
                return ExchangeState::Failed(ProviderError::new(
                    FailureKind::BadRequest,
                    format!("cannot set up connections: {reason}"),
                ));
            }
        };
        // A body of bytes can always be cloned, and its clones share them.
        let Some(request) = request.try_clone() else {
            return ExchangeState::Failed(ProviderError::new(
                FailureKind::BadRequest,
                "the request cannot be sent twice",
            ));
        };
        journal::sending(&request, self.dialect, self.attempt, &self.secrets);
        ExchangeState::Connecting {
            response: Box::pin(client.execute(request)),
            until: Instant::now() + self.client.deadlines().first_byte,
        }
    }

    /// Examines the head of a response: a stream, or a refusal.
    fn look_at(&self, response: reqwest::Response) -> ExchangeState {
        journal::head(&response, &self.server, &self.secrets);
        let status = response.status().as_u16();
        if status == 200 && failure::may_be_stream(header(&response, &CONTENT_TYPE)) {
            return ExchangeState::Reading(Box::new(Reading {
                response,
                sse: Sse::default(),
                decoder: Box::new(Repaired::new(self.dialect.decoder())),
                head: Vec::new(),
                has_frames: false,
                bytes: 0,
                content_bytes: 0,
                content_limit: self.content_limit,
                until: None,
                looked_again: false,
                copy: BodyCopy::begin(&self.secrets),
            }));
        }
        ExchangeState::Refused {
            response,
            body: Vec::new(),
            until: Instant::now() + self.client.deadlines().refusal,
        }
    }

    /// Handles the outcome of a read: bytes, the end, or a failure.
    fn take_in(&mut self, outcome: Result<impl AsRef<[u8]>, BodyEnd>) -> ExchangeState {
        let ExchangeState::Reading(mut reading) =
            mem::replace(&mut self.state, ExchangeState::Over)
        else {
            return ExchangeState::Over;
        };
        let failed = match outcome {
            Ok(bytes) => match reading.push(bytes.as_ref(), &mut self.queue) {
                Ok(()) if reading.decoder.is_done() => return self.finish_early(*reading),
                Ok(()) => return ExchangeState::Reading(reading),
                Err(error) => error,
            },
            Err(BodyEnd::Whole) => match reading.push_last(&mut self.queue) {
                Ok(()) => return self.end(*reading),
                Err(error) => error,
            },
            Err(BodyEnd::Silent) => {
                let error = failure::silent(&self.server, self.client.deadlines().idle);
                return self.finish(*reading, Some(error));
            }
            Err(BodyEnd::Broken(error)) => {
                let error = failure::connection_error(&self.server, &error);
                return self.finish(*reading, Some(error));
            }
        };
        ExchangeState::Failed(failed)
    }

    /// Ends a response whose body has ended.
    fn end(&mut self, reading: Reading) -> ExchangeState {
        if reading.has_frames {
            return self.finish(reading, None);
        }
        let head = self.secrets.hide_in(&reading.head);
        match failure::no_stream(&self.server, self.dialect, None, &head) {
            Some(error) => ExchangeState::Failed(error),
            None => self.finish(reading, None),
        }
    }

    /// Ends a response at its terminal event, before the end of the body.
    fn finish_early(&mut self, reading: Reading) -> ExchangeState {
        let Reading {
            response,
            decoder,
            bytes,
            ..
        } = reading;
        self.rest = Some(response);
        self.finish_decoder(decoder, bytes, None)
    }

    /// Gets the whole response from the decoder.
    ///
    /// It may be complete even if the connection broke: then only unneeded bytes were lost. Else
    /// `broken` is a better error than the decoder's.
    fn finish(&mut self, reading: Reading, broken: Option<ProviderError>) -> ExchangeState {
        self.finish_decoder(reading.decoder, reading.bytes, broken)
    }

    fn finish_decoder(
        &mut self,
        decoder: Box<dyn Decoder>,
        bytes: usize,
        broken: Option<ProviderError>,
    ) -> ExchangeState {
        match decoder.finish() {
            Ok(response) => {
                journal::log_finished(&self.server, bytes);
                self.queue.push_back(Delta::Finished(response));
                ExchangeState::Over
            }
            Err(error) => ExchangeState::Failed(broken.unwrap_or(error)),
        }
    }

    fn explain_sending(&self, error: &reqwest::Error) -> ProviderError {
        failure::sending(&self.server, error, self.client.deadlines().connect)
    }

    fn explain_refusal(&mut self) -> ProviderError {
        let ExchangeState::Refused { response, body, .. } =
            mem::replace(&mut self.state, ExchangeState::Over)
        else {
            return failure::empty(&self.server);
        };
        // Before anything is quoted: half a key would not be recognised.
        let text = self.secrets.hide_in(&body);
        journal::refusal(&text);
        let content_type = header(&response, &CONTENT_TYPE);
        if response.status() == 200 {
            return failure::no_stream(&self.server, self.dialect, content_type, &text)
                .unwrap_or_else(|| failure::empty(&self.server));
        }
        let named = |name: &str| response.headers().get(name)?.to_str().ok();
        failure::refusal_error(&Refusal {
            server: &self.server,
            dialect: self.dialect,
            status: response.status(),
            retry_headers: retry::retry_headers(named, SystemTime::now()),
            location: header(&response, &LOCATION),
            content_type,
            text: &text,
        })
    }

    /// Decides if a failure is final.
    fn settle(&mut self) -> Option<Result<Delta, ProviderError>> {
        let ExchangeState::Failed(mut error) = mem::replace(&mut self.state, ExchangeState::Over)
        else {
            return None;
        };
        error.message = words::clean(&self.secrets.hide(&error.message));
        error.attempts = self.attempt;
        let pause = retry::decide(&error, self.attempt, &self.policy, self.random);
        journal::log_failure(&self.server, &error, self.attempt, pause);
        if let Some(pause) = pause {
            self.state = ExchangeState::Pausing {
                until: Instant::now() + pause,
            };
            return Some(Ok(Delta::Waiting(RetryPause {
                error,
                attempt: self.attempt + 1,
                attempts: self.policy.tries,
                pause,
            })));
        }
        if let Some(delay) = retry::excessive_delay(&error, &self.policy) {
            let delay = words::time(delay);
            error.message = format!("{}; try again in {delay}", error.message);
        }
        Some(Err(error))
    }
}

/// Reason for the end of the bytes.
enum BodyEnd {
    /// The body is complete.
    Whole,
    Silent,
    Broken(reqwest::Error),
}

impl Reading {
    /// Waits for bytes. The time limit counts from the caller's first wait.
    async fn chunk(&mut self, idle: Duration) -> Result<impl AsRef<[u8]> + use<>, BodyEnd> {
        let now = Instant::now();
        let mut until = *self.until.get_or_insert(now + idle);
        if until <= now && !mem::replace(&mut self.looked_again, true) {
            until = now + LAST_LOOK.min(idle);
            self.until = Some(until);
        }
        let chunk = timeout_at(until, self.response.chunk()).await;
        self.until = None;
        self.looked_again = false;
        match chunk {
            Ok(Ok(Some(bytes))) => Ok(bytes),
            Ok(Ok(None)) => Err(BodyEnd::Whole),
            Ok(Err(error)) => Err(BodyEnd::Broken(error)),
            Err(_) => Err(BodyEnd::Silent),
        }
    }

    fn push(&mut self, bytes: &[u8], queue: &mut VecDeque<Delta>) -> Result<(), ProviderError> {
        self.bytes += bytes.len();
        if let Some(copy) = &mut self.copy {
            copy.add(bytes);
        }
        if self.bytes > MOST_ANSWER_BYTES {
            return Err(failure::endless_stream(MOST_ANSWER_BYTES));
        }
        if !self.has_frames {
            let room = MOST_REFUSAL_BYTES - self.head.len();
            self.head.extend(bytes.iter().take(room));
        }
        let frames = self.sse.push(bytes).map_err(failure::unreadable)?;
        for frame in frames {
            self.has_frames = true;
            self.head = Vec::new();
            queue.extend(self.decoder.push(&frame)?);
            let content_bytes = self.decoder.content_bytes();
            if content_bytes > self.content_limit {
                return Err(failure::endless(self.content_limit));
            }
            let is_more = content_bytes > mem::replace(&mut self.content_bytes, content_bytes);
            if is_more && queue.is_empty() {
                queue.push_back(Delta::Progress);
            }
            if self.decoder.is_done() {
                break;
            }
        }
        Ok(())
    }

    /// Decodes the incomplete rest at the end of the body. If that fails, the body was cut.
    fn push_last(&mut self, queue: &mut VecDeque<Delta>) -> Result<(), ProviderError> {
        let last: Option<Frame> = mem::take(&mut self.sse)
            .end()
            .map_err(|_| failure::cut_inside_event())?;
        let Some(frame) = last else {
            return Ok(());
        };
        self.has_frames = true;
        match self.decoder.push(&frame) {
            Ok(deltas) => queue.extend(deltas),
            Err(error) if error.kind == FailureKind::Malformed => {
                return Err(failure::cut_inside_event());
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Reads more of the body of a refusal; returns false at its end.
async fn read_more(response: &mut reqwest::Response, body: &mut Vec<u8>, until: Instant) -> bool {
    let Ok(Ok(Some(bytes))) = timeout_at(until, response.chunk()).await else {
        return false;
    };
    let room = MOST_REFUSAL_BYTES - body.len();
    body.extend(bytes.iter().take(room));
    body.len() < MOST_REFUSAL_BYTES
}

fn header<'a>(response: &'a reqwest::Response, name: &HeaderName) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

fn request_of(call: PreparedRequest) -> Result<Request, ProviderError> {
    let url = Url::parse(&call.url)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or_else(|| {
            ProviderError::new(
                FailureKind::NotFound,
                "the base URL must begin with `http://` or `https://`",
            )
        })?;
    let mut request = Request::new(Method::POST, url);
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    for (name, value) in &call.headers {
        insert(headers, name, value.expose_secret()).ok_or_else(|| {
            let message = format!(
                "header `{}` has a character that HTTP does not allow",
                words::clean(name)
            );
            ProviderError::new(FailureKind::BadRequest, message)
        })?;
    }
    *request.body_mut() = Some(call.body.into());
    Ok(request)
}

fn insert(headers: &mut HeaderMap, name: &str, value: &str) -> Option<()> {
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Some(())
}
