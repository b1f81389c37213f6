//! Collector of output of any length in bounded memory.

use std::collections::VecDeque;

use super::{MOST_KEPT_BYTES, clean};

/// Room for the line about the omitted part.
const NOTE_BYTES: usize = 128;

/// Range around the cut in which a line end is searched.
const NEAR_BYTES: usize = 64 * 1024;

/// Size of the end that is searched for the newest line.
const NEWEST_BYTES: usize = 4 * 1024;

/// Longest newest line in characters.
const NEWEST_CHARS: usize = 200;

/// Head and tail of a stream of any length.
#[derive(Debug)]
pub struct Collector {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_bytes: usize,
    tail_bytes: usize,
    total: u64,
}

impl Default for Collector {
    fn default() -> Self {
        Self::new()
    }
}

impl Collector {
    /// Creates a collector of [`MOST_KEPT_BYTES`].
    pub fn new() -> Self {
        Self::keeping(MOST_KEPT_BYTES)
    }

    /// Creates a collector of this many bytes.
    ///
    /// A limit below the size of a note keeps almost nothing.
    pub fn keeping(most: usize) -> Self {
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            head_bytes: most / 2,
            tail_bytes: most - most / 2,
            total: 0,
        }
    }

    /// Adds the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let room = self.head_bytes - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.tail_bytes)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.tail_bytes);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    /// Returns the number of bytes received.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the allocated memory in bytes.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.head.capacity() + self.tail.capacity()
    }

    /// Returns the newest line with text, cleaned and shortened; empty if there is none.
    pub fn newest_line(&self) -> String {
        let kept = self.head.len() + self.tail.len();
        let end: Vec<u8> = self
            .head
            .iter()
            .chain(&self.tail)
            .skip(kept.saturating_sub(NEWEST_BYTES))
            .copied()
            .collect();
        let text = clean(&end);
        let line = text
            .lines()
            .rev()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .unwrap_or_default();
        let surplus = line.chars().count().saturating_sub(NEWEST_CHARS);
        let tail: String = line.chars().skip(surplus).collect();
        // Half a word may be half a secret, which would not be recognized and blanked.
        let word = tail.find(char::is_whitespace).filter(|_| surplus > 0);
        word.map_or_else(|| tail.clone(), |end| tail[end..].trim_start().to_owned())
    }

    /// Returns the whole stream, or head and tail with a note between them.
    ///
    /// Cuts between lines if there are any. Never returns more than the limit.
    pub fn into_body(mut self) -> Vec<u8> {
        let tail = self.tail.make_contiguous();
        let kept = self.head.len() + tail.len();
        if self.total == kept as u64 {
            self.head.extend_from_slice(tail);
            return self.head;
        }
        let head = &self.head[..end_near(&self.head)];
        let tail = &tail[NOTE_BYTES.min(tail.len())..];
        let tail = &tail[start_near(tail)..];
        let left_out = self.total - (head.len() + tail.len()) as u64;
        let note = format!("\n[… {left_out} bytes are left out here …]\n");
        [head, note.as_bytes(), tail].concat()
    }
}

/// Returns the end of the last whole line, else word, else character.
///
/// Words are not cut, so that secrets stay whole and are blanked.
fn end_near(bytes: &[u8]) -> usize {
    let near = bytes.len().saturating_sub(NEAR_BYTES);
    let window = &bytes[near..];
    let after = |found: usize| near + found + 1;
    window
        .iter()
        .rposition(|byte| *byte == b'\n')
        .or_else(|| window.iter().rposition(u8::is_ascii_whitespace))
        .map(after)
        .or_else(|| bytes.iter().rposition(|byte| !is_continuation(*byte)))
        .unwrap_or(bytes.len())
}

/// Returns the start of the first whole line, else word, else character.
fn start_near(bytes: &[u8]) -> usize {
    let window = &bytes[..bytes.len().min(NEAR_BYTES)];
    window
        .iter()
        .position(|byte| *byte == b'\n')
        .or_else(|| window.iter().position(u8::is_ascii_whitespace))
        .map(|found| found + 1)
        .or_else(|| bytes.iter().position(|byte| !is_continuation(*byte)))
        .unwrap_or_default()
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}
