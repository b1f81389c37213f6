//! Output of any length in bounded memory.

use std::collections::VecDeque;

use super::{MOST_KEPT_BYTES, clean};

/// Room for the line that says what was left out.
const NOTE_BYTES: usize = 128;

/// How far from the cut an end of a line is looked for.
const NEAR_BYTES: usize = 64 * 1024;

/// How much of the end is looked at for the newest line.
const NEWEST_BYTES: usize = 4 * 1024;

/// How long the newest line may be, in characters.
const NEWEST_CHARS: usize = 200;

/// Keeps the head and the tail of a stream, whatever its length.
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
    /// Keeps [`MOST_KEPT_BYTES`].
    pub fn new() -> Self {
        Self::keeping(MOST_KEPT_BYTES)
    }

    /// Keeps so many bytes; fewer than what a note about the rest takes are as good as none.
    pub fn keeping(most: usize) -> Self {
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            head_bytes: most / 2,
            tail_bytes: most - most / 2,
            total: 0,
        }
    }

    /// Takes the next bytes of the stream.
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

    /// How many bytes have come.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How much memory the stream takes.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.head.capacity() + self.tail.capacity()
    }

    /// The newest line that has any text, cleaned and short; empty if there is none.
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
        // Half a word may be half a secret, which nobody would know and blank.
        let word = tail.find(char::is_whitespace).filter(|_| surplus > 0);
        word.map_or_else(|| tail.clone(), |end| tail[end..].trim_start().to_owned())
    }

    /// Everything that came, if it was not too much; else its head and its tail, cut between lines
    /// where there are lines, with one between them that says what was left out. Never more than
    /// was to be kept.
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

/// Where the last line, else the last word, else the last character that is whole ends. Cutting
/// no word keeps secrets whole, so that they are found and blanked.
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

/// Where the first line, else the first word, else the first character that is whole begins.
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
