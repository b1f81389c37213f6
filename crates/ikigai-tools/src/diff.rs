//! Unified diffs of writes: short for results, whole for questions.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use similar::TextDiff;

use crate::output::visible;

/// Most lines of a short diff: it is read by the user or a model, not applied.
const MOST_LINES: usize = 200;

/// Row of a diff below a last line that has no newline.
const NO_NEWLINE: &str = "\\ no newline at end of file";

/// Unchanged lines around a hunk.
const CONTEXT_LINES: usize = 3;

/// Most ranges of changed lines that are named.
const MOST_RANGES: usize = 10;

/// Most bytes of a line in a short diff.
const MOST_LINE_BYTES: usize = 500;

/// Most differing lines between equal ends that are compared.
///
/// The time grows with the square.
const MOST_COMPARED: usize = 5_000;

/// Difference between two contents of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Diff {
    /// Hunks in unified form, without a header; ends with a newline unless empty.
    pub(crate) text: String,
    /// Number of added lines.
    pub(crate) added: usize,
    /// Number of removed lines.
    pub(crate) removed: usize,
    /// First and last changed lines of the new content, from 1, in order.
    ///
    /// Lines that were only removed count as the line that follows them.
    ranges: Vec<(usize, usize)>,
}

/// Returns all removed and added lines exactly: nothing is cut or replaced by symbols.
pub fn whole(old: &[u8], new: &[u8]) -> String {
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let (old, new) = (lines(&old), lines(&new));
    let (same_head, went, came) = count_changes(&old, &new);
    let ending = ending(&old, &new);
    if went + came <= MOST_COMPARED {
        return write_diff(&TextDiff::from_slices(&old, &new), ending, Cut::Nowhere).text;
    }
    let first = same_head + 1;
    let mut text = format!("@@ -{first},{went} +{first},{came} @@\n");
    let removed = old.iter().skip(same_head).take(went);
    let added = new.iter().skip(same_head).take(came);
    let changes = removed.map(|line| ('-', line));
    for (sign, line) in changes.chain(added.map(|line| ('+', line))) {
        text.push(sign);
        text.push_str(without_ending(line, ending));
        text.push('\n');
        if !line.ends_with('\n') {
            text.push_str(NO_NEWLINE);
            text.push('\n');
        }
    }
    text
}

/// Returns the hunks of a patch exactly, with the numbers of added and removed lines.
pub(crate) fn hunks(old: &str, new: &str) -> (String, usize, usize) {
    let (old, new) = (lines(old), lines(new));
    let (same_head, went, came) = count_changes(&old, &new);
    let mut text = String::new();
    let mut add = |sign: char, line: &str| {
        text.push(sign);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    };
    if went + came > MOST_COMPARED {
        let head = same_head.min(CONTEXT_LINES);
        let tail = (old.len() - same_head - went).min(CONTEXT_LINES);
        let first = same_head - head;
        let range = |count: usize| match count {
            0 => format!("{first},0"),
            count => format!("{},{count}", first + 1),
        };
        let (before, after) = (head + went + tail, head + came + tail);
        let header = format!("@@ -{} +{} @@\n", range(before), range(after));
        old.iter()
            .skip(first)
            .take(head)
            .for_each(|line| add(' ', line));
        old.iter()
            .skip(same_head)
            .take(went)
            .for_each(|line| add('-', line));
        new.iter()
            .skip(same_head)
            .take(came)
            .for_each(|line| add('+', line));
        let end = old.iter().skip(same_head + went).take(tail);
        end.for_each(|line| add(' ', line));
        return (header + &text, came, went);
    }
    let diff = TextDiff::from_slices(&old, &new);
    let (mut added, mut removed) = (0, 0);
    let mut all = String::new();
    for hunk in diff
        .unified_diff()
        .context_radius(CONTEXT_LINES)
        .iter_hunks()
    {
        let mut text = format!("{}\n", hunk.header());
        for change in hunk.iter_changes() {
            let sign = match change.tag() {
                similar::ChangeTag::Equal => ' ',
                similar::ChangeTag::Delete => {
                    removed += 1;
                    '-'
                }
                similar::ChangeTag::Insert => {
                    added += 1;
                    '+'
                }
            };
            text.push(sign);
            text.push_str(change.value());
            if !change.value().ends_with('\n') {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
        all.push_str(&text);
    }
    (all, added, removed)
}

/// Returns the old line from which each new line comes; none for new lines.
pub fn line_sources(old: &[u8], new: &[u8]) -> Vec<Option<usize>> {
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let (old, new) = (lines(&old), lines(&new));
    let (same_head, went, came) = count_changes(&old, &new);
    if went + came > MOST_COMPARED {
        let tail = old.len() - same_head - went;
        let head = (0..same_head).map(Some);
        let middle = std::iter::repeat_n(None, came);
        let end = (old.len() - tail..old.len()).map(Some);
        return head.chain(middle).chain(end).collect();
    }
    let mut sources = vec![None; new.len()];
    for change in TextDiff::from_slices(&old, &new).iter_all_changes() {
        if let (Some(from), Some(to)) = (change.old_index(), change.new_index())
            && let Some(source) = sources.get_mut(to)
        {
            *source = Some(from);
        }
    }
    sources
}

/// Counts equal lines at the start, then removed and added ones.
fn count_changes(old: &[&str], new: &[&str]) -> (usize, usize, usize) {
    let same_head = same(old.iter(), new.iter());
    let (old_end, new_end) = (&old[same_head..], &new[same_head..]);
    let same_tail = same(old_end.iter().rev(), new_end.iter().rev());
    let (went, came) = (old_end.len() - same_tail, new_end.len() - same_tail);
    (same_head, went, came)
}

/// Returns the line ending that all lines have, which is not shown.
fn ending(old: &[&str], new: &[&str]) -> &'static str {
    let all_crlf = [old, new].iter().all(|lines| {
        let mut ended = lines.iter().filter(|line| line.ends_with('\n'));
        ended.all(|line| line.ends_with("\r\n"))
    });
    if all_crlf { "\r\n" } else { "\n" }
}

impl Diff {
    pub(crate) fn between(old: &[u8], new: &[u8]) -> Self {
        let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
        let (old, new) = (lines(&old), lines(&new));
        let (same_head, went, came) = count_changes(&old, &new);
        if went + came > MOST_COMPARED {
            let first = same_head + 1;
            return Self {
                text: format!(
                    "[from line {first} on, {went} lines are replaced by {came} others]\n"
                ),
                added: came,
                removed: went,
                ranges: vec![(first, first + came.max(1) - 1)],
            };
        }
        let ending = ending(&old, &new);
        write_diff(&TextDiff::from_slices(&old, &new), ending, Cut::Short)
    }

    /// Formats the counts: `+3 −1`.
    pub(crate) fn counts(&self) -> String {
        format!("+{} −{}", self.added, self.removed)
    }

    /// Formats the changed lines of the new content: `line 3`, `lines 3-5, 9`.
    pub(crate) fn place(&self) -> String {
        let ranges = self.ranges.iter().take(MOST_RANGES);
        let ranges = ranges.map(|(first, last)| {
            if first == last {
                first.to_string()
            } else {
                format!("{first}-{last}")
            }
        });
        let noun = match self.ranges.as_slice() {
            [(first, last)] if first == last => "line",
            _ => "lines",
        };
        let more = if self.ranges.len() > MOST_RANGES {
            ", …"
        } else {
            ""
        };
        format!("{noun} {}{more}", ranges.collect::<Vec<_>>().join(", "))
    }

    /// Adds a changed line of the new content.
    fn touch(&mut self, line: usize) {
        match self.ranges.last_mut() {
            Some((_, last)) if line <= *last + 1 => *last = line.max(*last),
            _ => self.ranges.push((line, line)),
        }
    }
}

/// Length of a formatted diff.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// A limited number of short lines, control characters as symbols.
    Short,
    /// Everything, as it is.
    Nowhere,
}

fn write_diff(diff: &TextDiff<'_, '_, str>, ending: &str, cut: Cut) -> Diff {
    let mut result = Diff {
        text: String::new(),
        added: 0,
        removed: 0,
        ranges: Vec::new(),
    };
    let mut next = 1;
    let mut shown = 0;
    let mut left_out = 0;
    let mut line = |result: &mut Diff, text: &str| {
        if shown < MOST_LINES || cut == Cut::Nowhere {
            shown += 1;
            result.text.push_str(text);
            result.text.push('\n');
        } else {
            left_out += 1;
        }
    };
    for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
        line(&mut result, &hunk.header().to_string());
        let first = hunk.iter_changes().find_map(|change| change.new_index());
        next = first.map_or(next, |index| index + 1);
        for change in hunk.iter_changes() {
            let sign = match change.tag() {
                similar::ChangeTag::Equal => ' ',
                similar::ChangeTag::Delete => {
                    result.removed += 1;
                    result.touch(next);
                    '-'
                }
                similar::ChangeTag::Insert => {
                    result.added += 1;
                    result.touch(next);
                    '+'
                }
            };
            if change.new_index().is_some() {
                next += 1;
            }
            let text = change.value();
            let words = match cut {
                Cut::Short => short(text, ending),
                Cut::Nowhere => without_ending(text, ending).to_owned(),
            };
            line(&mut result, &format!("{sign}{words}"));
            if !text.ends_with('\n') {
                line(&mut result, NO_NEWLINE);
            }
        }
    }
    if left_out > 0 {
        let _ = writeln!(result.text, "[{left_out} more lines of this diff]");
    }
    result
}

/// Splits a text into lines with their endings, for `similar`.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn same<'text>(
    one: impl Iterator<Item = &'text &'text str>,
    other: impl Iterator<Item = &'text &'text str>,
) -> usize {
    one.zip(other)
        .take_while(|(one, other)| one == other)
        .count()
}

fn without_ending<'line>(line: &'line str, ending: &str) -> &'line str {
    let line = line.strip_suffix(ending).unwrap_or(line);
    line.strip_suffix('\n').unwrap_or(line)
}

/// Formats a line without its ending, all characters visible.
///
/// A `\r` before the newline is visible if not all lines have it, so that a change of line endings
/// shows.
fn short(line: &str, ending: &str) -> String {
    let line = without_ending(line, ending);
    let end = line.floor_char_boundary(MOST_LINE_BYTES);
    let mut text = visible(&line.as_bytes()[..end]);
    if end < line.len() {
        text.push('…');
    }
    text
}
