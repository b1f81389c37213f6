//! `ikigai tools`: tools of agents in this directory, and unusable ones with the reason.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use ikigai_core::counts::counted;
use ikigai_core::spelling::clean_line;
use ikigai_tools::trust::TrustKind;
use serde_json::json;

use crate::arguments::ToolsOrder;
use crate::context::{configuration, registry};
use crate::output::{print, print_json, print_stderr};
use crate::runtime::runtime;
use crate::store_location::Here;
use crate::tools;
use crate::trust::trust;

pub(crate) fn tools(db: Option<String>, order: &ToolsOrder) -> Result<ExitCode> {
    let config = configuration()?;
    let store = crate::store_location::database(db, config.store.as_deref())?;
    let here = Here::find()?;
    let workdir = Path::new(&here.workdir);
    let work = config.work();
    let hidden = tools::hidden_paths(&store, &work);
    let all = tools::all(&registry(&config)?, &work, hidden.into());
    if order.allow {
        let trust = trust();
        let project = trust.items_of(workdir, &[TrustKind::Tool]);
        let allowed = trust.decide(workdir, &project.items, true);
        allowed.context("cannot save the decision")?;
        let count = counted(project.items.len(), "tool");
        print_stderr(&format!(
            "trusted: {count} of this project, as they are now"
        ));
    }
    let found = runtime()?.block_on(all.toolbox.look(workdir));
    for tool in &found.tools {
        let spec = tool.spec();
        if order.json {
            print_json(&json!(spec))?;
            continue;
        }
        let first = spec.description.lines().next().unwrap_or_default();
        print(&format!("{:<16} {first}\n", clean_line(&spec.name)))?;
    }
    for broken in &found.broken {
        let line = format!("⚠ {}: {}", broken.path.display(), broken.reason);
        print_stderr(&line);
    }
    Ok(ExitCode::SUCCESS)
}
