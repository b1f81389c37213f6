//! `ikigai man`: manual pages.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use clap_mangen::{Man, generate_to};

use crate::arguments::{Arguments, ManOrder};
use crate::output::print_exact;

pub(crate) fn man(order: &ManOrder) -> Result<ExitCode> {
    let command = Arguments::command();
    if let Some(directory) = &order.directory {
        let failed = || format!("cannot write manual pages to {}", directory.display());
        generate_to(command, directory).with_context(failed)?;
    } else {
        let mut page = Vec::new();
        Man::new(command).render(&mut page)?;
        print_exact(&String::from_utf8_lossy(&page))?;
    }
    Ok(ExitCode::SUCCESS)
}
