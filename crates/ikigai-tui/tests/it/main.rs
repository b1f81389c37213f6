//! Tests of the terminal modules together, and invariants for any input.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail the test at once when something is not as expected"
)]

mod board;
mod board_processes;
mod browse;
mod commands;
mod foreign_questions;
mod grants;
mod hits;
mod inbox;
mod input;
mod keys;
mod layout;
mod listings;
mod merging;
mod narrow;
mod pending;
mod pickers;
mod question;
mod snapshots;
mod support;
mod terminal;
mod tool_output;
