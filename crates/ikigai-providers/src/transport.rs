//! The one way to every provider over HTTP: connects, reads, retries, and names what goes wrong.

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

use crate::answer::Answer;
use crate::dialect::Dialect;
use crate::retry::Policy;

/// How long a provider may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// Until there is a connection, the name found and TLS agreed on.
    pub connect: Duration,
    /// Until the head of the answer is there, connecting included.
    pub first_byte: Duration,
    /// Between one piece of the answer and the next.
    pub idle: Duration,
    /// Until the words of a refusal are there; what has come by then has to do.
    pub refusal: Duration,
}

impl Deadlines {
    /// A connection takes a second on a bad line. Providers send something, if only a ping, at
    /// least every half minute; local servers read a long prompt for a minute or more first.
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

/// Bytes of content allowed for each token of the longest answer; a token has four on average.
const BYTES_PER_TOKEN: u64 = 32;

/// Bytes of content allowed where the longest answer is unknown.
const UNKNOWN_CONTENT_BYTES: usize = 16 << 20;

/// Returns the bytes of content that an answer of at most `max_output` tokens may have.
pub fn content_limit(max_output: Option<u64>) -> usize {
    let known = max_output.map(|tokens| tokens.saturating_mul(BYTES_PER_TOKEN));
    known.map_or(UNKNOWN_CONTENT_BYTES, |bytes| {
        usize::try_from(bytes).unwrap_or(usize::MAX)
    })
}

/// A request that is spelled out and ready to be sent, as often as need be.
pub struct Call {
    /// Where it goes.
    pub url: String,
    /// What goes with it. Values are taken out of every message that a person or the log gets.
    pub headers: Vec<(String, SecretString)>,
    /// The request as JSON.
    pub body: Vec<u8>,
    /// Who reads the answer.
    pub dialect: &'static dyn Dialect,
    /// The longest answer in bytes of content; a longer one fails.
    pub content_limit: usize,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An address may carry a password, and a body is the user's conversation.
        f.debug_struct("Call")
            .field("server", &words::server(&self.url))
            .field("body_bytes", &self.body.len())
            .field("dialect", &self.dialect.name())
            .finish_non_exhaustive()
    }
}

/// Prepares to send a request. Nothing happens before the answer is asked for its first delta.
///
/// `random` spreads the pauses between tries. The answer must be read within a tokio runtime.
pub fn send(client: &Client, call: Call, policy: Policy, random: u64) -> Box<dyn Answer> {
    Box::new(exchange::Exchange::new(
        client.clone(),
        call,
        policy,
        random,
    ))
}
