//! The newest line of an output, told often enough to be seen and seldom enough to cost nothing.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// How often it is told at most.
const PAUSE: Duration = Duration::from_millis(50);

/// How much of a line is told.
const MOST_CHARACTERS: usize = 200;

/// How much of the end of a chunk is looked at.
const MOST_BYTES: usize = 4 * MOST_CHARACTERS;

/// Tells the newest line.
pub(crate) struct NewestLine {
    progress: Arc<dyn Fn(&str) + Send + Sync>,
    unfinished: Vec<u8>,
    waiting: Option<String>,
    told: Option<Instant>,
}

impl NewestLine {
    /// Tells it to `progress`.
    pub(crate) fn new(progress: Arc<dyn Fn(&str) + Send + Sync>) -> Self {
        Self {
            progress,
            unfinished: Vec::new(),
            waiting: None,
            told: None,
        }
    }

    /// Takes in what came.
    pub(crate) fn see(&mut self, bytes: &[u8]) {
        self.unfinished.extend_from_slice(bytes);
        let skip = self.unfinished.len().saturating_sub(MOST_BYTES);
        self.unfinished.drain(..skip);
        // A carriage return begins a line anew, as bars of progress do.
        let mut lines = self.unfinished.split(|byte| matches!(byte, b'\n' | b'\r'));
        let rest = lines.next_back().unwrap_or_default();
        let newest = [rest]
            .into_iter()
            .chain(lines.rev())
            .map(plain)
            .find(|line| !line.is_empty());
        let rest = rest.to_vec();
        self.unfinished = rest;
        if newest.is_some() {
            self.waiting = newest;
        }
        if self.told.is_none_or(|told| told.elapsed() >= PAUSE) {
            self.tell();
        }
    }

    /// Waits until there is something to be told; for ever if there is nothing.
    pub(crate) async fn due(&self) {
        match (&self.waiting, self.told) {
            (Some(_), Some(told)) => tokio::time::sleep_until(told + PAUSE).await,
            (Some(_), None) => {}
            (None, _) => std::future::pending().await,
        }
    }

    /// Tells what is waiting.
    pub(crate) fn tell(&mut self) {
        if let Some(line) = self.waiting.take() {
            (self.progress)(&line);
            self.told = Some(Instant::now());
        }
    }
}

/// A line without control sequences, since it is drawn on a screen as it is.
fn plain(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut plain = String::new();
    let mut characters = text.chars().peekable();
    let mut length = 0;
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            skip_sequence(&mut characters);
        } else if character == '\t' || !character.is_control() {
            plain.push(if character == '\t' { ' ' } else { character });
            length += 1;
            if length == MOST_CHARACTERS {
                break;
            }
        }
    }
    plain.trim_end().to_owned()
}

/// Skips what follows an escape: `[` and parameters up to a letter, or one character.
fn skip_sequence(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    if characters.next() == Some('[') {
        for character in characters.by_ref() {
            if ('\u{40}'..='\u{7e}').contains(&character) {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests;
