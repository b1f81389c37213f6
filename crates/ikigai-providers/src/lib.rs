//! Where answers come from: one trait, and the models behind it.

mod demo;

use std::future::Future;
use std::pin::Pin;

use ikigai_core::Request;
use ikigai_core::data::Amounts;
use thiserror::Error;

pub use demo::Demo;

/// A future that a provider returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Somebody who answers requests.
pub trait Provider: Send + Sync {
    /// The name by which settings and rows call it.
    fn name(&self) -> &str;

    /// The model that answers if none is chosen.
    fn default_model(&self) -> &str;

    /// How many tokens a request to this model may have.
    fn window_tokens(&self, model: &str) -> u64;

    /// Begins to answer. Nothing happens before the answer is asked for its first delta.
    fn answer(&self, model: &str, request: Request) -> Box<dyn Answer>;
}

/// An answer on its way. Dropping it ends it.
pub trait Answer: Send {
    /// The next piece; none after [`Delta::Finished`] or an error. Dropping the future before it is
    /// ready loses nothing: the next call goes on where it was.
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Delta, ProviderError>>>;
}

/// One piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// More text.
    Text(String),
    /// The answer is whole.
    Finished {
        /// Why the model stopped.
        stop: String,
        /// What it cost.
        usage: Amounts,
    },
}

/// Why there is no whole answer. It becomes an event, never a failure of ours.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ProviderError {
    /// The provider's own words.
    pub message: String,
    /// HTTP status, if there was one.
    pub status: Option<u16>,
}
