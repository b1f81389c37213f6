//! Search index: updated before a search, rebuilt by `doctor --reindex`.

use ikigai_core::counts::counted;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::Result;
use ikigai_store::ReadLog;

use crate::context::ProgramContext;
use crate::output::print;

/// Rows from which on progress is shown; fewer are indexed in a moment.
const LEAST_PROGRESS_ROWS: u64 = 20_000;

/// Updates the search index; shows progress on a terminal if it takes long.
pub(crate) async fn catch_up(store: &dyn ReadLog) -> Result<()> {
    let mut all = 0;
    loop {
        let left = store.index_chunk().await?;
        all = all.max(left);
        let shows_progress = all >= LEAST_PROGRESS_ROWS && io::stderr().is_terminal();
        if left == 0 {
            if shows_progress {
                let _ = write!(io::stderr(), "\r\x1b[K");
            }
            return Ok(());
        }
        if shows_progress {
            let done = (all - left) * 100 / all;
            let _ = write!(io::stderr(), "\rIndexing … {done} %\x1b[K");
        }
    }
}

/// Rebuilds the search index (`ikigai doctor --reindex`).
pub(crate) fn make_again(program: &ProgramContext) -> Result<ExitCode> {
    program.block_on(async {
        let rows = program.store.reset_index().await?;
        catch_up(program.engine.reader()).await?;
        print(&format!(
            "Search index rebuilt: {}\n",
            counted(rows, "event")
        ))?;
        Ok(ExitCode::SUCCESS)
    })
}
