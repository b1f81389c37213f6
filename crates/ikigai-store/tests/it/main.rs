//! Store tests: the conformance suite of all engines, and tests of one engine.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "test code: whatever is not as expected fails the test at once"
)]

mod blobs;
mod conformance;
mod crash;
mod disk;
mod legacy;
mod outcome;
mod portable;
mod postgres;
mod processes;
mod read_only;
mod removal;
mod search;
mod sql;
mod support;
mod versions;
