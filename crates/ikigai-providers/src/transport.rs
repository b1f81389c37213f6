//! HTTP transport of all providers: connections, streams, retries and errors.

mod client;
mod exchange;
mod failure;
pub(crate) mod fetch;
mod journal;
mod rest;
mod surrogates;
#[cfg(test)]
mod tests;
mod words;

use std::fmt;
use std::time::Duration;

use secrecy::SecretString;

pub use client::Client;
pub(crate) use exchange::longest_silence;
pub use journal::BODIES;

use crate::answer::ResponseStream;
use crate::dialect::Dialect;
use crate::retry::Policy;

/// Time limits of a provider's silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// For a connection, with name lookup and TLS.
    pub connect: Duration,
    /// For the head of the response, connecting included.
    pub first_byte: Duration,
    /// Between two pieces of the response.
    pub idle: Duration,
    /// For the body of a refusal; the part received by then is used.
    pub refusal: Duration,
}

impl Deadlines {
    /// Default limits.
    ///
    /// A connection takes a second on a bad line. Providers send something, if only a ping, at
    /// least every half minute; local servers may read a long prompt for a minute or more first.
    pub const DEFAULT: Self = Self {
        connect: Duration::from_secs(10),
        first_byte: Duration::from_mins(2),
        idle: Duration::from_mins(2),
        refusal: Duration::from_secs(5),
    };
}

impl Default for Deadlines {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Bytes of content allowed for each token of the longest response; a token has four on average.
const BYTES_PER_TOKEN: u64 = 32;

/// Bytes of content allowed if the longest response is unknown.
const UNKNOWN_CONTENT_BYTES: usize = 16 << 20;

/// Returns the bytes of content that a response of at most `max_output` tokens may have.
pub fn content_limit(max_output: Option<u64>) -> usize {
    let known = max_output.map(|tokens| tokens.saturating_mul(BYTES_PER_TOKEN));
    known.map_or(UNKNOWN_CONTENT_BYTES, |bytes| {
        usize::try_from(bytes).unwrap_or(usize::MAX)
    })
}

/// An encoded request, which can be sent several times.
pub struct PreparedRequest {
    /// URL of the request.
    pub url: String,
    /// Headers. Their values are removed from every message to users and the log.
    pub headers: Vec<(String, SecretString)>,
    /// The request as JSON.
    pub body: Vec<u8>,
    /// Dialect that decodes the response.
    pub dialect: &'static dyn Dialect,
    /// Largest response in bytes of content; a longer one fails.
    pub content_limit: usize,
}

impl fmt::Debug for PreparedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A URL may contain a password, and a body is the user's conversation.
        f.debug_struct("PreparedRequest")
            .field("server", &words::server(&self.url))
            .field("body_bytes", &self.body.len())
            .field("dialect", &self.dialect.name())
            .finish_non_exhaustive()
    }
}

/// Prepares a request; nothing is sent before the first delta is requested.
///
/// `random` spreads the pauses between attempts. The response must be read within a tokio runtime.
pub fn send(
    client: &Client,
    call: PreparedRequest,
    policy: Policy,
    random: u64,
) -> Box<dyn ResponseStream> {
    Box::new(exchange::Exchange::new(
        client.clone(),
        call,
        policy,
        random,
    ))
}
