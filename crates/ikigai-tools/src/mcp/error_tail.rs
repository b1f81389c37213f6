//! End of what a server printed to standard error, for the user.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use ikigai_core::spelling::clean_line;

use crate::arguments::one_line;

/// Most lines kept.
const MOST_LINES: usize = 40;

/// Most characters of a line.
const MOST_LINE_CHARS: usize = 400;

/// Most bytes of a line that has not ended.
const MOST_PART_BYTES: usize = 4 * 1024;

/// Last lines of a server's standard error, cleaned.
#[derive(Clone, Debug, Default)]
pub(crate) struct ErrorTail(Arc<Mutex<TailLines>>);

#[derive(Debug, Default)]
struct TailLines {
    lines: VecDeque<String>,
    /// Begun line.
    part: Vec<u8>,
}

impl ErrorTail {
    /// Adds what was printed.
    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = MOST_PART_BYTES.saturating_sub(tail.part.len());
            tail.part.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                let part = std::mem::take(&mut tail.part);
                tail.add(&part);
            }
        }
    }

    /// Adds a line of ikigai itself.
    pub(crate) fn note(&self, line: &str) {
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tail.add(line.as_bytes());
    }

    /// Returns the lines, oldest first.
    pub(crate) fn lines(&self) -> Vec<String> {
        let tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let part = String::from_utf8_lossy(&tail.part);
        let part = Some(clean(&part)).filter(|part| !part.is_empty());
        tail.lines.iter().cloned().chain(part).collect()
    }
}

impl TailLines {
    fn add(&mut self, line: &[u8]) {
        let line = clean(&String::from_utf8_lossy(line));
        if line.is_empty() {
            return;
        }
        if self.lines.len() >= MOST_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }
}

fn clean(line: &str) -> String {
    clean_line(&one_line(line, MOST_LINE_CHARS)).into_owned()
}
