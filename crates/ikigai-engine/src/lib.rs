//! The running agents: a handler looks at state and decides events; they are stored, then applied,
//! and only then acted upon.

mod engine;
mod environment;
mod error;
mod response;
mod settle;
mod turn;
mod window;
mod worker;

pub use engine::Engine;
pub use environment::{Environment, System};
pub use error::EngineError;
pub use turn::{Outcome, Stop, Update};
pub use worker::Worker;
