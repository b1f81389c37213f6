//! The built program, started as a person would start it.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail the test at once when something is not as expected"
)]

mod commands;
mod context;
mod crashes;
mod diagnostics;
mod exports;
mod providers;
mod screen;
mod sql;
mod support;
mod tools;
