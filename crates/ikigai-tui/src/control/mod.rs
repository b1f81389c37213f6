//! Control of a running screen over its socket: a queue of requests, and their execution.
//!
//! The socket itself belongs to the program.

mod controlled_screen;
mod request_queue;
mod typed_keys;

pub use controlled_screen::ControlledScreen;
pub(crate) use controlled_screen::{LEFT_LATE, at};
pub use request_queue::{PendingRequest, RequestOutcome, RequestQueue, RunMode};
pub use typed_keys::unescape;

#[cfg(test)]
mod tests;
