//! Tools against the real machine: processes, files, the sandbox.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

mod attacks;
mod bash;
mod call_shapes;
mod desk;
mod editing;
mod external;
mod files;
mod finding;
mod foreground;
mod host_list;
mod keeper;
mod loopback;
mod mcp;
mod other_processes;
mod permissions_page;
mod processes;
mod protected_paths;
mod races;

mod reading;
mod reading_git;
mod recording;
mod sandbox;
mod sandboxed_programs;
mod support;
mod todo;
mod unix_sockets;
mod worktrees;
mod writing;
