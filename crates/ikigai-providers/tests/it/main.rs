//! Tests of the providers through their public interface.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail the test at once, as the tests themselves do"
)]

mod any_history_gemini;
mod any_history_messages;
mod any_history_openai;
mod chat;
mod conversations;
mod fuzz_openai;
mod gemini;
mod images;
mod key_commands;
mod matrix;
mod messages;
mod payloads;
mod registry;
mod responses;
mod rules_openai;
mod stream;
mod strict;
mod support;
mod switching;
mod transport;
mod windows;
