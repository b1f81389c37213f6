//! Async runtime of the program.

use anyhow::{Context, Result};
use tokio::runtime::{Builder, Runtime};

/// Builds a runtime that runs all tasks on the calling thread.
pub(crate) fn runtime() -> Result<Runtime> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")
}
