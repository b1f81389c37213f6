//! Who answers: one trait, the dialects behind it, and the built-in demo model.

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
    Answer, AnswerBlock, BoxFuture, Delta, FailureKind, ProviderError, Response, StopReason, Wait,
};
pub use demo::Demo;
pub use keys::{KeptKey, KeyError, TypedKey, looks_like_key};

/// Everybody who can be asked.
pub trait Models: Send + Sync {
    /// The model for a new agent. One that is configured and cannot be asked is an error: nothing
    /// goes to somebody else by mistake.
    fn first_choice(&self) -> Result<ModelChoice, NoModel>;

    /// The settings that a typed model name means: `[provider:]name[/level]`.
    fn choose(&self, typed: &str) -> Result<ModelChoice, NoModel>;

    /// How many tokens a request to the model that settings name may have; needs no key.
    fn window_tokens(&self, choice: &ModelChoice) -> u64;

    /// Asks the server for the window of a model that is not known; afterwards
    /// [`Models::window_tokens`] returns what it stated.
    ///
    /// Asks once for each model and never fails; it takes at most a few seconds.
    fn learn_window<'a>(&'a self, choice: &'a ModelChoice) -> BoxFuture<'a, ()> {
        let _ = choice;
        Box::pin(async {})
    }

    /// How many tokens the model that settings name is likely to count for one that is estimated,
    /// before it has told; needs no key.
    fn token_scale(&self, _choice: &ModelChoice) -> Scale {
        Scale::default()
    }

    /// The model that settings name, ready to be asked.
    fn resolve(&self, choice: &ModelChoice) -> Result<Arc<dyn Model>, NoModel>;

    /// What people are told of the model that settings name; needs no key.
    fn describe(&self, choice: &ModelChoice) -> Described {
        Described {
            title: choice.provider.clone().unwrap_or_default(),
            thinking: choice.level.clone(),
            context_tokens: None,
            window_source: WindowSource::Known,
        }
    }

    /// Tries a key that somebody typed with the provider's list of models, and keeps it if the
    /// provider takes it.
    fn take_key<'a>(
        &'a self,
        provider: &'a str,
        key: &'a TypedKey,
    ) -> BoxFuture<'a, Result<KeptKey, KeyError>> {
        let _ = (provider, key);
        Box::pin(async { Err(KeyError::NoFile) })
    }

    /// Looks for a server on this machine that answers; tells its name and a model of it, as it is
    /// typed.
    fn find_local(&self) -> BoxFuture<'_, Option<(&'static str, String)>> {
        Box::pin(async { None })
    }

    /// All models that are known by name.
    fn offers(&self) -> Vec<Offer> {
        Vec::new()
    }
}

/// What people are told of a model that was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// What people call its provider.
    pub title: String,
    /// How much it thinks: `low (budget: 4096)`; none if that is not known.
    pub thinking: Option<String>,
    /// How many tokens it takes and gives together, if that is known.
    pub context_tokens: Option<u64>,
    /// Where that is known from.
    pub window_source: WindowSource,
}

/// Source of a model's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowSource {
    /// The table of models, or the configuration.
    Known,
    /// The model's server.
    Served,
    /// Nothing: most models have this much.
    Assumed,
    /// The server's refusal of a longer request.
    Refusal,
}

impl WindowSource {
    /// The word for a status line; none where there is nothing to say.
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
    /// Its provider, as settings call it.
    pub provider: String,
    /// Its name there.
    pub model: String,
    /// How many tokens it takes and gives together.
    pub context_tokens: Option<u64>,
    /// Dollars for a million tokens read.
    pub price_in: Option<f64>,
    /// Dollars for a million tokens answered.
    pub price_out: Option<f64>,
    /// The thinking levels that it has.
    pub levels: Vec<&'static str>,
    /// Whether it can be asked: it is local, or has a key.
    pub reachable: bool,
}

impl Offer {
    /// How it is chosen: `provider:model`, or the one name that both have.
    pub fn name(&self) -> String {
        if self.provider == self.model {
            self.model.clone()
        } else {
            format!("{}:{}", self.provider, self.model)
        }
    }
}

/// Why a model cannot be asked, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct NoModel {
    /// What is missing.
    pub reason: String,
    /// What a person can do.
    pub advice: String,
}

/// One model of one provider.
pub trait Model: Send + Sync {
    /// Its provider, as settings and rows call it.
    fn provider(&self) -> &str;

    /// Its name there.
    fn name(&self) -> &str;

    /// How much it thinks, if that was chosen.
    fn level(&self) -> Option<&str>;

    /// How many tokens a request may have.
    fn window_tokens(&self) -> u64;

    /// What a response cost in billionths of a dollar; none if that is not known.
    fn cost_nano_usd(&self, usage: &Amounts) -> Option<u64>;

    /// Begins to answer. Nothing happens before the answer is asked for its first delta.
    /// `conversation` names the agent, for prompt caches.
    fn answer(&self, request: Request, conversation: &str) -> Box<dyn Answer>;
}
