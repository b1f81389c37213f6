//! Texts about the end of a process.

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
    match count {
        0 => None,
        1 => Some("1 process left in the background was ended".to_owned()),
        n => Some(format!("{n} processes left in the background were ended")),
    }
}
