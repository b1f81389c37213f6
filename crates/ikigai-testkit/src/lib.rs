//! Fakes, generators and checkers for the tests of ikigai. Nothing here is part of the program.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "this crate is test code: whatever is not as expected fails the test at once"
)]

mod checker;
mod clock;
pub mod conformance;
mod dice;
pub mod docs;
mod engine_choice;
mod executor;
mod fault_injection;
mod forwarded_reads;
pub mod framed_server;
pub mod generate;
mod golden;
mod ids;
mod log;
mod memory;
pub mod metered_proxy;
pub mod mock;
mod oracle;
mod player;
pub mod postgres;
mod provider;
pub mod proxy;
pub mod pty;
pub mod server;
pub mod stores;
mod tcp_server;
pub mod tls;
pub mod wire;

pub use checker::check_request;
pub use clock::ManualClock;
pub use dice::Dice;
pub use engine_choice::{ChosenEngine, ChosenStore, cases};
pub use executor::block_on;
pub use fault_injection::{CommitFault, FaultyStore};
pub use golden::assert_golden;
pub use ids::IdSource;
pub use log::{TestLog, target};
pub use memory::MemoryStore;
pub use oracle::Oracle;
pub use player::{Player, copy_program, part, tell, wait_for_parent};
pub use provider::{ScriptedProvider, Step, is_summary_request};
