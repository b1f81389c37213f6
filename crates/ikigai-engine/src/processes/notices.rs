//! Notices: automatic messages to the owner of a background process, without authority.

use std::borrow::Cow;
use std::path::PathBuf;

use ikigai_core::Event;
use ikigai_core::data::{UserData, UserOrigin};
use ikigai_core::environment_block::frame;
use ikigai_store::{JobRecord, MailRecord};
use ikigai_tools::output::clean;
use ikigai_tools::process::keeper::{ProcessEnd, read_output};

/// Tag around a notice.
const NOTICE: &str = "notice";

/// Bytes of unread output that the notice of an end quotes.
const QUOTED_BYTES: usize = 2048;

/// Longest command line in a notice, in characters.
const COMMAND_CHARS: usize = 200;

/// Word after the number in the notice of an end.
const ENDED: &str = "has ended";

fn command(job: &JobRecord) -> String {
    let line = job.command.lines().next().unwrap_or_default();
    line.chars().take(COMMAND_CHARS).collect()
}

/// Returns the notice about a matching line.
pub(super) fn matched(job: &JobRecord, line: &str) -> String {
    let number = job.number;
    format!(
        "process {number} printed a matching line: {line}\n({})",
        command(job)
    )
}

/// Returns the notice about an end, with the last unread output.
pub(super) async fn ended(
    job: &JobRecord,
    end: Option<&ProcessEnd>,
    blank: &(dyn for<'a> Fn(&'a [u8]) -> Cow<'a, [u8]> + Send + Sync),
) -> String {
    let status = match end {
        Some(end) => end.describe(),
        None => "lost, its keeper died; exit status unknown".to_owned(),
    };
    let mut text = format!(
        "process {} {ENDED}: {status} ({})",
        job.number,
        command(job)
    );
    if let Some(warning) = end.and_then(|end| end.warning.as_deref()) {
        text = format!("{text}\n{warning}");
    }
    let directory = PathBuf::from(&job.directory);
    let from = job.read_to;
    let read = move || read_output(&directory, from, QUOTED_BYTES);
    let part = tokio::task::spawn_blocking(read).await;
    if let Ok(Ok(part)) = part
        && !part.bytes.is_empty()
    {
        let output = clean(&blank(&part.bytes));
        text = format!("{text}\nLast output:\n{}", output.trim_end());
    }
    text
}

/// Builds the row of a notice.
///
/// The row of an end is drawn, so the notice about it is not.
pub(crate) fn shown_notice(mail: &MailRecord, process: u64) -> Event {
    let number = process.to_string();
    let is_end = mail
        .text
        .starts_with(&format!("process {process} {ENDED}: "));
    let first = mail.text.lines().next().unwrap_or_default();
    let typed = if is_end { "" } else { first };
    Event::User {
        text: frame(NOTICE, &[(PROCESS, &number)], &mail.text),
        data: UserData {
            origin: Some(UserOrigin::Notice),
            process: Some(process),
            typed: Some(typed.to_owned()),
            ..UserData::default()
        },
    }
}

const PROCESS: &str = "process";
