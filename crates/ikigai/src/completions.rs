//! `ikigai completions`: shell completions.

use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory as _;
use clap_complete::{generate, shells};

use crate::arguments::{Arguments, CompletionsOrder, Shell};
use crate::output::print_exact;

pub(crate) fn completions(order: &CompletionsOrder) -> Result<ExitCode> {
    let mut command = Arguments::command();
    let mut script = Vec::new();
    match order.shell {
        Shell::Bash => generate(shells::Bash, &mut command, "ikigai", &mut script),
        Shell::Zsh => generate(shells::Zsh, &mut command, "ikigai", &mut script),
        Shell::Fish => generate(shells::Fish, &mut command, "ikigai", &mut script),
    }
    print_exact(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
