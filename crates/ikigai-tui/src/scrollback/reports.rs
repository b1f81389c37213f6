//! Commands that report events of their own: each pair is one item.

use ikigai_core::Kind;
use ikigai_core::data::{self, UserData};
use ikigai_core::render::{Shown, render};
use ikigai_core::view::Entry;
use ikigai_core::words::Severity;
use ikigai_engine::UserInput;

use super::items::{Id, ItemContent, ScrollbackItem};

/// First characters of a line of `/fork` that names a child.
const CHILD: &str = "├ ";

/// Merges the row of a command into the item of the event that it reports.
///
/// `before` has the entries before it, newest first. Returns true if the row needs no own item.
pub(super) fn add_report<'e>(
    items: &mut Vec<ScrollbackItem>,
    command: &Entry,
    before: impl Iterator<Item = &'e Entry>,
) -> bool {
    if command.kind() != Some(Kind::Command) {
        return false;
    }
    let Shown::Command {
        echo,
        output,
        severity: Severity::Info,
    } = render(&command.row)
    else {
        return false;
    };
    let UserInput::Command(typed) = UserInput::parse(echo) else {
        return false;
    };
    // A rewind may have restored files.
    let before = before.filter(|entry| entry.kind() != Some(Kind::Files));
    let (kind, count) = match typed.command.reports {
        Some(Kind::Clear) => return is_cleared(before),
        Some(Kind::User) => return is_merged(before, output.lines().count()),
        Some(Kind::Fork) => (Kind::Fork, output.matches(CHILD).count()),
        Some(kind) => (kind, 1),
        None => return false,
    };
    let events: Vec<_> = before.take(count).collect();
    let is_own = events.len() == count && events.iter().all(|event| event.kind() == Some(kind));
    let Some((newest, older)) = events.split_first().filter(|_| is_own) else {
        return false;
    };
    // Rows that a rewind left may follow its item.
    let id = Id::Row(newest.at());
    let Some(item) = items.iter_mut().rev().find(|item| item.id == id) else {
        return false;
    };
    if let ItemContent::Row { report, .. } = &mut item.what {
        *report = Some(command.row.clone());
    }
    // The report names all children; the newest of them carries it.
    items.retain(|item| !older.iter().any(|event| item.id == Id::Row(event.at())));
    true
}

/// Returns true if the newest rows are this many merges, whose lines name the children.
fn is_merged<'e>(before: impl Iterator<Item = &'e Entry>, count: usize) -> bool {
    let is_merge = |entry: &Entry| {
        let data: UserData = data::read(entry.row.data.as_deref());
        entry.kind() == Some(Kind::User) && data.merge.is_some()
    };
    before.take(count).filter(|entry| is_merge(entry)).count() == count
}

/// Returns true if the newest rows are those of a clear, whose line says everything.
fn is_cleared<'e>(before: impl Iterator<Item = &'e Entry>) -> bool {
    let mut kinds = before.map(Entry::kind);
    kinds.next() == Some(Some(Kind::System)) && kinds.next() == Some(Some(Kind::Clear))
}
