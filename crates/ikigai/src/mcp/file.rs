//! Changes of the user's configuration file: other lines and comments stay.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use toml::{Table, Value};

use crate::config_list::{bare, format_value};

/// Appends the section `[mcp.NAME]`.
pub(super) fn add(file: &Path, name: &str, server: &Table) -> Result<()> {
    let old = read(file)?;
    let mut text = old.clone();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&section(name, server));
    let mut expected = parse(&old)?;
    let servers = expected.entry("mcp").or_insert_with(|| Table::new().into());
    let servers = servers.as_table_mut().context("`mcp` is not a section")?;
    servers.insert(name.to_owned(), Value::Table(server.clone()));
    write(file, &text, &expected)
}

/// Removes the section `[mcp.NAME]` and those below it.
pub(super) fn remove(file: &Path, name: &str) -> Result<()> {
    let old = read(file)?;
    let mut expected = parse(&old)?;
    let servers = expected.get_mut("mcp").and_then(Value::as_table_mut);
    let Some(servers) = servers.filter(|servers| servers.contains_key(name)) else {
        bail!("there is no server `{name}` in `{}`", file.display());
    };
    servers.remove(name);
    let is_last = servers.is_empty();
    if is_last {
        expected.remove("mcp");
    }
    let mut text = String::new();
    let mut is_removed = false;
    for line in old.split_inclusive('\n') {
        if let Some(header) = header_of(line) {
            is_removed = header.len() >= 2 && header[0] == "mcp" && header[1] == name;
        }
        if !is_removed {
            text.push_str(line);
        }
    }
    let text = text.trim_end().to_owned() + "\n";
    write(file, &text, &expected)
}

/// Returns the names in the header of a section; none if a line is something else.
fn header_of(line: &str) -> Option<Vec<String>> {
    let line = line.trim();
    if !line.starts_with('[') || line.starts_with("[[") {
        return line.starts_with("[[").then(Vec::new);
    }
    let table: Table = toml::from_str(line).ok()?;
    let mut names = Vec::new();
    let mut table = &table;
    while let Some((name, value)) = table.iter().next() {
        names.push(name.clone());
        match value.as_table() {
            Some(inner) => table = inner,
            None => break,
        }
    }
    Some(names)
}

fn section(name: &str, server: &Table) -> String {
    let mut text = format!("[mcp.{}]\n", bare(name));
    for (key, value) in server {
        let _ = writeln!(text, "{} = {}", bare(key), format_value(value));
    }
    text
}

fn read(file: &Path) -> Result<String> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read `{}`", file.display())),
    }
}

fn parse(text: &str) -> Result<Table> {
    toml::from_str(text).context("the config is not valid TOML")
}

/// Replaces the file, which must then mean what is expected and nothing else.
fn write(file: &Path, text: &str, expected: &Table) -> Result<()> {
    if toml::from_str::<Table>(text).ok().as_ref() != Some(expected) {
        bail!(
            "cannot change `{}` without touching other lines\nhint: change it in an editor",
            file.display()
        );
    }
    let failed = || format!("cannot write `{}`", file.display());
    let directory = file.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(directory).with_context(failed)?;
    // A link to the file of another place stays a link.
    let real = fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
    let draft = real.with_extension(format!("toml.{}.tmp", std::process::id()));
    let mode = fs::metadata(&real).map_or(0o600, |known| {
        std::os::unix::fs::PermissionsExt::mode(&known.permissions()) & 0o777
    });
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&draft)
        .and_then(|mut draft| {
            draft.write_all(text.as_bytes())?;
            draft.sync_all()
        })
        .and_then(|()| fs::rename(&draft, &real));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written.with_context(failed)
}

#[cfg(test)]
mod tests;
