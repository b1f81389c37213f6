//! `ikigai man`: manual pages.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use crate::arguments::{Arguments, ManOrder};
use crate::output::print_exact;

pub(crate) fn man(order: &ManOrder) -> Result<ExitCode> {
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    if let Some(directory) = &order.directory {
        let failed = || format!("cannot write manual pages to {}", directory.display());
        write_pages(&command, directory).with_context(failed)?;
    } else {
        print_exact(&page(&command)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the pages of a command and of its subcommands.
fn write_pages(command: &Command, directory: &Path) -> io::Result<()> {
    for inner in command
        .get_subcommands()
        .filter(|inner| !inner.is_hide_set())
    {
        write_pages(inner, directory)?;
    }
    let file = Man::new(command.clone()).get_filename();
    fs::write(directory.join(file), page(command)?)
}

/// Renders the page of a command.
fn page(command: &Command) -> io::Result<String> {
    let mut page = Vec::new();
    let source = concat!("ikigai ", env!("IKIGAI_VERSION"));
    let man = Man::new(command.clone()).source(source).manual("ikigai");
    man.render(&mut page)?;
    Ok(with_notes(&String::from_utf8_lossy(&page)))
}

/// Gives the text below the options a usual title, and keeps its line ends.
fn with_notes(page: &str) -> String {
    let Some((before, rest)) = page.split_once(".SH EXTRA\n") else {
        return page.to_owned();
    };
    let end = rest.find("\n.SH ").unwrap_or(rest.len());
    let (notes, after) = rest.split_at(end);
    format!(
        "{before}.SH NOTES\n.nf\n{}\n.fi\n{}",
        notes.trim_end(),
        after.trim_start()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_keep_the_lines_of_their_notes() {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Arguments::command();
        command.build();

        write_pages(&command, directory.path()).unwrap();

        let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
        let notes = |page: &str| {
            let (_, rest) = page.split_once(".SH NOTES\n.nf\n").unwrap();
            rest.split_once("\n.fi\n").unwrap().0.to_owned()
        };
        let example = "\n  ikigai run \"hello\"             send one message";
        assert!(notes(&read("ikigai.1")).contains(example));
        assert!(notes(&read("ikigai-config.1")).contains("\n  model  "));
        assert!(read("ikigai-ctl-approve.1").contains("ikigai 0."));
        assert!(!directory.path().join("ikigai-keeper.1").exists());
    }
}
