//! File with the end of a kept process.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use super::protocol::ProcessEnd;

const NAME: &str = "exit";
const PARTIAL: &str = "exit.partial";

/// Writes the end of a process; the file appears whole or not at all. Blocks.
///
/// A durable one survives a crash of the machine, for the price of a flush.
pub(super) fn write(directory: &Path, end: &ProcessEnd, is_durable: bool) -> io::Result<()> {
    let partial = directory.join(PARTIAL);
    let mut file = File::create(&partial)?;
    file.write_all(&serde_json::to_vec(end)?)?;
    if is_durable {
        file.sync_all()?;
    }
    fs::rename(partial, directory.join(NAME))
}

/// Reads the end of a process; none if its keeper has not written it. Blocks.
pub(super) fn read(directory: &Path) -> Option<ProcessEnd> {
    let text = fs::read(directory.join(NAME)).ok()?;
    serde_json::from_slice(&text).ok()
}
