//! Providers: the model traits, the dialects, and the demo model.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod answer;
pub mod catalogue;
pub mod credentials;
mod demo;
pub mod dialect;
pub mod dialects;
mod key_command;
mod keys;
pub mod local;
pub mod presets;
pub mod registry;
pub mod retry;
pub mod small_file;
pub mod sse;
pub mod transport;

use std::sync::Arc;

use ikigai_core::Request;
use ikigai_core::data::Amounts;
use ikigai_core::project::Scale;
use ikigai_core::settings::ModelChoice;
use thiserror::Error;

pub use answer::{
    AnswerBlock, BoxFuture, Delta, FailureKind, ProviderError, Response, ResponseStream,
    RetryPause, StopReason,
};
pub use demo::Demo;
pub use keys::{KeyError, StoredKey, TypedKey, looks_like_key};

/// All models that can be chosen.
pub trait Models: Send + Sync {
    /// Returns the model for a new agent.
    ///
    /// A configured model that is unreachable is an error: no request goes to another provider by
    /// mistake.
    fn first_choice(&self) -> Result<ModelChoice, NoModel>;

    /// Returns the settings for a typed model name: `[provider:]name[/level]`.
    fn choose(&self, typed: &str) -> Result<ModelChoice, NoModel>;

    /// Returns the largest number of tokens of a request; needs no key.
    fn window_tokens(&self, choice: &ModelChoice) -> u64;

    /// Asks the server for the window of an unknown model; updates [`Models::window_tokens`].
    ///
    /// Asks once for each model and never fails; it takes at most a few seconds.
    fn learn_window<'a>(&'a self, choice: &'a ModelChoice) -> BoxFuture<'a, ()> {
        let _ = choice;
        Box::pin(async {})
    }

    /// Returns the expected counted tokens per estimated token, before any count; needs no key.
    fn token_scale(&self, _choice: &ModelChoice) -> Scale {
        Scale::default()
    }

    /// Returns the model of the settings, ready for requests.
    fn resolve(&self, choice: &ModelChoice) -> Result<Arc<dyn Model>, NoModel>;

    /// Returns the description of the model for users; needs no key.
    fn describe(&self, choice: &ModelChoice) -> Described {
        Described {
            title: choice.provider.clone().unwrap_or_default(),
            thinking: choice.level.clone(),
            context_tokens: None,
            window_source: WindowSource::Known,
        }
    }

    /// Verifies a typed key with the provider's list of models, then saves it.
    fn take_key<'a>(
        &'a self,
        provider: &'a str,
        key: &'a TypedKey,
    ) -> BoxFuture<'a, Result<StoredKey, KeyError>> {
        let _ = (provider, key);
        Box::pin(async { Err(KeyError::NoFile) })
    }

    /// Finds a running server on this machine; returns its name and a typable model name.
    fn find_local(&self) -> BoxFuture<'_, Option<(&'static str, String)>> {
        Box::pin(async { None })
    }

    /// Returns all models that are known by name.
    fn offers(&self) -> Vec<Offer> {
        Vec::new()
    }
}

/// Description of a chosen model for users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Display name of its provider.
    pub title: String,
    /// Thinking level: `low (budget: 4096)`; none if unknown.
    pub thinking: Option<String>,
    /// Largest number of input and output tokens together, if known.
    pub context_tokens: Option<u64>,
    /// Source of that number.
    pub window_source: WindowSource,
}

/// Source of a model's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowSource {
    /// The table of models, or the configuration.
    Known,
    /// The model's server.
    Served,
    /// Nothing: a common size is assumed.
    Assumed,
    /// The server's refusal of a longer request.
    Refusal,
}

impl WindowSource {
    /// Returns the word for a status line; none if there is nothing to add.
    pub const fn word(self) -> Option<&'static str> {
        match self {
            Self::Known => None,
            Self::Served => Some("from server"),
            Self::Assumed => Some("assumed"),
            Self::Refusal => Some("corrected"),
        }
    }
}

/// A model that can be chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// Name of its provider in settings.
    pub provider: String,
    /// Its name there.
    pub model: String,
    /// Largest number of input and output tokens together.
    pub context_tokens: Option<u64>,
    /// Dollars per million input tokens.
    pub price_in: Option<f64>,
    /// Dollars per million output tokens.
    pub price_out: Option<f64>,
    /// The thinking levels that it has.
    pub levels: Vec<&'static str>,
    /// True if the model is local or has a key.
    pub reachable: bool,
}

impl Offer {
    /// Returns the typed form: `provider:model`, or one name if both are equal.
    pub fn name(&self) -> String {
        if self.provider == self.model {
            self.model.clone()
        } else {
            format!("{}:{}", self.provider, self.model)
        }
    }
}

/// Error of choosing a model, with advice.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct NoModel {
    /// The cause.
    pub reason: String,
    /// The user's remedy.
    pub advice: String,
}

/// One model of one provider.
pub trait Model: Send + Sync {
    /// Returns the name of its provider in settings and rows.
    fn provider(&self) -> &str;

    /// Returns its name at the provider.
    fn name(&self) -> &str;

    /// Returns the chosen thinking level, if any.
    fn level(&self) -> Option<&str>;

    /// Returns the largest number of tokens of a request.
    fn window_tokens(&self) -> u64;

    /// Returns the most tokens that one answer may have; none if no limit is known.
    fn most_output(&self) -> Option<u64> {
        None
    }

    /// Returns true if it takes images.
    fn takes_images(&self) -> bool {
        false
    }

    /// Returns the cost in billionths of a dollar; none if unknown.
    fn cost_nano_usd(&self, usage: &Amounts) -> Option<u64>;

    /// Starts a response.
    ///
    /// Nothing is sent before the first delta is requested. `conversation` names the agent, for
    /// prompt caches.
    fn answer(&self, request: Request, conversation: &str) -> Box<dyn ResponseStream>;
}
