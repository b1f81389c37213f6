//! Output that front ends have not seen yet.

use crate::output::clean;
use ikigai_core::counts::counted;

/// Most bytes between two reports; a screen shows far less at a time.
const MOST_BYTES: usize = 64 * 1024;

/// Whole output lines of a running process, within bounds.
///
/// Partial lines are held back, so that a secret is never cut in two and missed.
#[derive(Default)]
pub(super) struct UnseenLines {
    bytes: Vec<u8>,
    /// Lines dropped because there were too many at once.
    dropped: u64,
    /// True if the current line is too long to hold.
    skips: bool,
}

impl UnseenLines {
    /// Adds output; drops the oldest lines if there is too much.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        if self.skips {
            let Some(end) = find_newline(rest) else {
                return;
            };
            self.skips = false;
            self.dropped += 1;
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        self.bytes.extend_from_slice(rest);
        let surplus = self.bytes.len().saturating_sub(MOST_BYTES);
        if surplus == 0 {
            return;
        }
        let end = self
            .bytes
            .iter()
            .skip(surplus - 1)
            .position(|byte| *byte == b'\n');
        let cut = if let Some(end) = end {
            surplus + end
        } else {
            self.skips = true;
            self.bytes.len()
        };
        let dropped = self
            .bytes
            .drain(..cut)
            .filter(|byte| *byte == b'\n')
            .count();
        self.dropped += dropped as u64;
    }

    /// Takes the whole new lines, cleaned of control characters; none if there are none.
    pub(super) fn take(&mut self) -> Option<String> {
        let end = self.bytes.iter().rposition(|byte| *byte == b'\n')?;
        let lines: Vec<u8> = self.bytes.drain(..=end).collect();
        let text = clean(&lines);
        Some(match std::mem::take(&mut self.dropped) {
            0 => text,
            dropped => format!("[… {} not shown …]\n{text}", counted(dropped, "line")),
        })
    }
}

fn find_newline(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

#[cfg(test)]
mod tests;
