//! Texts about the end of a process.

use ikigai_core::counts::counted;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// Describes an exit status.
pub(crate) fn describe_exit(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// Describes the background processes that were ended, if any.
pub(crate) fn describe_left_behind(count: usize) -> Option<String> {
    let were = if count == 1 { "was" } else { "were" };
    let processes = counted(count, "process");
    (count > 0).then(|| format!("{processes} left in the background {were} ended"))
}
