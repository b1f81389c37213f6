//! `ikigai diff`: what an agent changed in files, as a patch.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use ikigai_engine::{DiffRange, DiffReader};
use ikigai_store::Agent;

use crate::arguments::DiffOrder;
use crate::context::ProgramContext;
use crate::output::{print_exact, print_stderr, visible};

pub(crate) fn diff(db: Option<String>, order: &DiffOrder) -> Result<ExitCode> {
    let program = ProgramContext::open_reading(db)?;
    let Some(agent) = program.find(Some(&order.agent))? else {
        return Err(anyhow!("no agent `{}`", order.agent));
    };
    let mut range = match &order.range {
        Some(text) => DiffRange::parse(text).map_err(|reason| anyhow!(reason))?,
        None => DiffRange::default(),
    };
    range.family = order.family;
    let diff = program.block_on(async {
        let engine = &program.engine;
        let state = Agent::restore(engine.reader(), agent.id).await?;
        let workdir = state.state.settings().workdir.clone().unwrap_or_default();
        let reader = DiffReader { engine };
        // Recorded paths have no links.
        let real = Path::new(&workdir).canonicalize();
        let real = real.unwrap_or_else(|_| workdir.into());
        let diff = reader.read(agent.id, &range, &real).await?;
        Ok::<_, anyhow::Error>(diff)
    })?;
    print_exact(&diff.patch.text)?;
    if diff.files == 0 {
        print_stderr("No recorded changes of files.");
    }
    for (what, why) in &diff.missed {
        print_stderr(&format!("not recorded: {} ({why})", visible(what)));
    }
    Ok(ExitCode::SUCCESS)
}
