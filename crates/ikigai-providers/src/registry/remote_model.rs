//! A model behind a dialect, and its responses.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::Request;
use ikigai_core::data::Amounts;
use secrecy::{ExposeSecret, SecretString};

use super::Random;
use super::model_limits::ModelLimits;
use crate::catalogue::{Level, ModelSpec, ThinkingValue};
use crate::credentials::CredentialsError;
use crate::dialect::{Dialect, Order, Quirks};
use crate::key_command::{COMMAND_DEADLINE, KeyCommand};
use crate::retry::Policy;
use crate::transport::{Client, PreparedRequest, content_limit, longest_silence, send};
use crate::{BoxFuture, Delta, FailureKind, Model, ProviderError, ResponseStream};

/// Source of a provider's key.
#[derive(Clone)]
pub(super) enum KeySource {
    Known(SecretString),
    Command(Arc<KeyCommand>),
}

/// A provider with all parameters of its requests.
#[derive(Clone)]
pub(super) struct Reachable {
    pub(super) name: String,
    pub(super) dialect: &'static dyn Dialect,
    pub(super) base: String,
    pub(super) key: Option<KeySource>,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) quirks: Quirks,
}

impl Reachable {
    /// Returns the headers of every request to it.
    pub(super) fn headers(&self, key: Option<&SecretString>) -> Vec<(String, SecretString)> {
        request_headers(self.dialect, key, &self.headers)
    }
}

/// Returns the headers of a request: those of the dialect, then configured ones.
pub(super) fn request_headers(
    dialect: &dyn Dialect,
    key: Option<&SecretString>,
    further: &BTreeMap<String, String>,
) -> Vec<(String, SecretString)> {
    let own = dialect.headers(key.map(ExposeSecret::expose_secret));
    let own = own
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    let further = further
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()));
    own.chain(further)
        .map(|(name, value)| (name, SecretString::from(value)))
        .collect()
}

/// A model behind a dialect.
#[derive(Clone)]
pub(super) struct RemoteModel {
    pub(super) reachable: Reachable,
    pub(super) name: String,
    pub(super) spec: Option<ModelSpec>,
    pub(super) limits: ModelLimits,
    pub(super) level: Option<Level>,
    pub(super) thinking: Option<ThinkingValue>,
    pub(super) client: Client,
    pub(super) random: Random,
}

impl RemoteModel {
    fn order<'a>(&'a self, request: &'a Request, conversation: &'a str) -> Order<'a> {
        Order {
            request,
            model: &self.name,
            thinking: self.thinking.as_ref(),
            max_output: self.limits.output.unwrap_or(0),
            cache_key: conversation,
            quirks: self.reachable.quirks,
        }
    }
}

impl Model for RemoteModel {
    fn provider(&self) -> &str {
        &self.reachable.name
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn level(&self) -> Option<&str> {
        self.level.map(Level::word)
    }

    fn window_tokens(&self) -> u64 {
        self.limits.request_tokens()
    }

    fn most_output(&self) -> Option<u64> {
        let known = self.spec.as_ref().and_then(|spec| spec.max_output);
        self.limits.output.or(known).or(Some(self.limits.reserve))
    }

    fn takes_images(&self) -> bool {
        self.spec.as_ref().is_some_and(|spec| spec.images)
    }

    fn cost_nano_usd(&self, usage: &Amounts) -> Option<u64> {
        self.spec.as_ref()?.cost_nano_usd(usage)
    }

    fn answer(&self, request: Request, conversation: &str) -> Box<dyn ResponseStream> {
        let key = match &self.reachable.key {
            None => Start::Send(None),
            Some(KeySource::Known(key)) => Start::Send(Some(key.clone())),
            Some(KeySource::Command(command)) => {
                let command = Arc::clone(command);
                Start::Key(Box::pin(async move { command.key().await }))
            }
        };
        let mut located = RefusalLocator {
            start: key,
            model: self.clone(),
            conversation: conversation.to_owned(),
            request,
        };
        located.send();
        Box::new(located)
    }
}

impl RemoteModel {
    fn send(
        &self,
        request: &Request,
        conversation: &str,
        key: Option<&SecretString>,
    ) -> Box<dyn ResponseStream> {
        let Reachable { dialect, base, .. } = &self.reachable;
        let call = PreparedRequest {
            url: dialect.endpoint(base, &self.name),
            headers: self.reachable.headers(key),
            body: dialect
                .encode(&self.order(request, conversation))
                .to_string()
                .into_bytes(),
            dialect: *dialect,
            content_limit: content_limit(self.spec.as_ref().and_then(|spec| spec.max_output)),
        };
        send(&self.client, call, Policy::default(), (self.random)())
    }
}

/// Progress of a request until its response starts.
enum Start {
    /// A command prints the key.
    Key(BoxFuture<'static, Result<SecretString, CredentialsError>>),
    /// The request can be sent with this key.
    Send(Option<SecretString>),
    /// The response is running.
    Answer(Box<dyn ResponseStream>),
    /// There is no key, and the caller got the error.
    Failed,
}

/// A response whose refusal names a message of the request instead of the wire.
struct RefusalLocator {
    start: Start,
    model: RemoteModel,
    conversation: String,
    request: Request,
}

impl RefusalLocator {
    /// Sends the request, if its key is known.
    fn send(&mut self) {
        if let Start::Send(key) = &self.start {
            let answer = self
                .model
                .send(&self.request, &self.conversation, key.as_ref());
            self.start = Start::Answer(answer);
        }
    }

    async fn next_delta(&mut self) -> Option<Result<Delta, ProviderError>> {
        if let Start::Key(key) = &mut self.start {
            match key.await {
                Ok(key) => self.start = Start::Send(Some(key)),
                Err(error) => {
                    self.start = Start::Failed;
                    let message = format!("{error} · {}", error.advice());
                    return Some(Err(ProviderError::new(FailureKind::Unauthorized, message)));
                }
            }
            self.send();
        }
        let Start::Answer(answer) = &mut self.start else {
            return None;
        };
        let next = answer.next().await?;
        Some(next.map_err(|error| {
            let order = self.model.order(&self.request, &self.conversation);
            let names_message = self.model.reachable.dialect.locate(&order, &error);
            ProviderError {
                names_message,
                ..error
            }
        }))
    }
}

impl ResponseStream for RefusalLocator {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Delta, ProviderError>>> {
        Box::pin(self.next_delta())
    }

    fn patience(&self) -> Duration {
        match &self.start {
            Start::Answer(answer) => answer.patience(),
            // The deadlines of the provider follow that of its command.
            _ => {
                COMMAND_DEADLINE
                    + longest_silence(self.model.client.deadlines(), &Policy::default())
            }
        }
    }
    fn into_rest(self: Box<Self>) -> Option<BoxFuture<'static, ()>> {
        match self.start {
            Start::Answer(answer) => answer.into_rest(),
            Start::Key(_) | Start::Send(_) | Start::Failed => None,
        }
    }
}
