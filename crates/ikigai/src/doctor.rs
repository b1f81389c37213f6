//! `ikigai doctor`: checks by trying, and says what to do about each finding.

use std::process::ExitCode;

use anyhow::Result;

pub(crate) fn doctor(db: Option<String>) -> Result<ExitCode> {
    let _ = db;
    Ok(ExitCode::SUCCESS)
}
