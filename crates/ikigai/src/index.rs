//! The search index: filled before something is looked for, and made again by `doctor --reindex`.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::Result;
use ikigai_store::ReadLog;

use crate::context::ProgramContext;
use crate::output::print;

/// Fewer rows than this are indexed before anybody could read about it.
const WORTH_TELLING: u64 = 20_000;

/// Brings the index up to the log; on a terminal one line tells how far it is, if it takes long.
pub(crate) async fn catch_up(store: &dyn ReadLog) -> Result<()> {
    let mut all = 0;
    loop {
        let left = store.index_chunk().await?;
        all = all.max(left);
        let tells = all >= WORTH_TELLING && io::stderr().is_terminal();
        if left == 0 {
            if tells {
                let _ = write!(io::stderr(), "\r\x1b[K");
            }
            return Ok(());
        }
        if tells {
            let done = (all - left) * 100 / all;
            let _ = write!(io::stderr(), "\rindexing … {done} %\x1b[K");
        }
    }
}

/// `ikigai doctor --reindex`.
pub(crate) fn make_again(program: &ProgramContext) -> Result<ExitCode> {
    program.block_on(async {
        let rows = program.store.reset_index().await?;
        catch_up(program.engine.reader()).await?;
        print(&format!("the search index was made again of {rows} rows\n"))?;
        Ok(ExitCode::SUCCESS)
    })
}
