//! Who answers: one trait, the dialects behind it, and the built-in demo model.

pub mod answer;
pub mod catalogue;
pub mod credentials;
mod demo;
pub mod dialect;
pub mod sse;

use ikigai_core::Request;

pub use answer::{
    Answer, AnswerBlock, BoxFuture, Delta, FailureKind, ProviderError, Response, StopReason, Wait,
};
pub use demo::Demo;

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
