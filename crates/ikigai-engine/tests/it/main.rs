//! Promises of the engine: store before acting, survive restarts, send nothing unasked.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail the test at once when something is not as expected"
)]

mod agents;
mod attending;
mod calls;
mod commands;
mod context_limits;
mod costs;
mod estimates;
mod fakes;
mod files;
mod grants;
mod images;
mod interrupts;
mod left_commands;
mod limits;
mod matrix;
mod memory;
mod past_request;
mod processes;
mod projection;
mod questions;
mod queue;
mod refusals;
mod restarts;
mod resuming;
mod roots;
mod schedule;
mod server_tools;
mod store_failures;
mod submissions;
mod summaries;
mod support;
mod surroundings;
mod windows;
mod wire_memory;
