//! Tools against the real machine: processes, files, the sandbox.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

mod bash;
mod desk;
mod editing;
mod external;
mod files;
mod finding;
mod lists;
mod processes;
mod reading;
mod sandbox;
mod support;
mod writing;
