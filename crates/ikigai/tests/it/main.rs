//! Tests of the built program, started as a user starts it.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail the test at once when something is not as expected"
)]

mod acp;
mod approval;
mod background;
mod background_processes;
mod budget;
mod commands;
mod config;
mod context;
mod control;
mod crashes;
mod credentials;
mod diagnostics;
mod drafts;
mod e2e;
mod endurance;
mod exports;
mod extensions;
mod file_history;
mod grants;
mod hostile_text;
mod identity;
mod inbox;
mod key_commands;
mod last_agents;
mod legacy_import;
mod low_limits;
mod mcp;
mod piped_input;
mod plain;
mod providers;
mod read_only;
mod sandbox_doors;
mod screen;
mod sharing;
mod signals;
mod sql;
mod streams;
mod support;
mod tools;
mod trust;
mod windows;
