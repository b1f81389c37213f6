//! The head and the tail of what came.

use std::collections::VecDeque;

/// Keeps a bounded part of a stream.
#[derive(Debug)]
pub(crate) struct Collector {
    most_bytes: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
}

impl Collector {
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self {
            most_bytes,
            head: Vec::new(),
            tail: VecDeque::new(),
            left_out: 0,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = (self.most_bytes / 2).saturating_sub(self.head.len());
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let more = self.tail.len().saturating_sub(self.most_bytes / 2);
        self.tail.drain(..more);
        self.left_out += more as u64;
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        if self.left_out > 0 {
            let note = format!("\n[{} bytes left out]\n", self.left_out);
            self.head.extend_from_slice(note.as_bytes());
        }
        self.head.extend(self.tail);
        self.head
    }
}
