//! Server-sent events: a push parser for bytes in any chunking.

use thiserror::Error;

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Name of the event; empty if it has none.
    pub event: String,
    /// Its data lines, joined by line feeds.
    pub data: String,
}

/// Error of an unreadable stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SseError {
    /// An event exceeds the size limit.
    #[error("an event of the stream is larger than {} MB", MOST_EVENT_BYTES >> 20)]
    TooLarge,
    /// An event is not UTF-8.
    #[error("the stream is not UTF-8")]
    NotText,
}

/// Largest event. A provider's largest, a whole response in its terminal event, is far smaller.
pub const MOST_EVENT_BYTES: usize = 8 << 20;

/// The parser. It takes bytes and returns complete frames.
#[derive(Debug, Default)]
pub struct Sse {
    /// The incomplete last line.
    line: Vec<u8>,
    frame: Frame,
    has_data: bool,
    /// A carriage return was the last byte: a line feed after it is part of the same line end.
    after_return: bool,
    /// True after the first byte that is no byte order mark.
    begun: bool,
}

impl Sse {
    /// Parses bytes and returns the frames that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Frame>, SseError> {
        let mut frames = Vec::new();
        for byte in bytes {
            let follows_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if follows_return => {}
                b'\n' | b'\r' => frames.extend(self.end_line()?),
                _ => {
                    if self.line.len() + self.frame.data.len() >= MOST_EVENT_BYTES {
                        return Err(SseError::TooLarge);
                    }
                    self.line.push(*byte);
                }
            }
        }
        Ok(frames)
    }

    /// Returns the incomplete frame at the end of a stream, if there is one.
    ///
    /// Some servers do not end their last event with a blank line.
    pub fn end(mut self) -> Result<Option<Frame>, SseError> {
        if !self.line.is_empty() {
            self.end_line()?;
        }
        Ok(self.take_frame())
    }

    fn end_line(&mut self) -> Result<Option<Frame>, SseError> {
        let bytes = std::mem::take(&mut self.line);
        let line = std::str::from_utf8(&bytes).map_err(|_| SseError::NotText)?;
        let line = if std::mem::replace(&mut self.begun, true) {
            line
        } else {
            line.strip_prefix('\u{feff}').unwrap_or(line)
        };
        if line.is_empty() {
            return Ok(self.take_frame());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.frame.event),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.frame.data.push('\n');
                }
                self.frame.data.push_str(value);
            }
            // Comments (an empty field name), `id`, `retry` and unknown fields are ignored.
            _ => {}
        }
        Ok(None)
    }

    /// Takes the current frame; none if it has no data.
    fn take_frame(&mut self) -> Option<Frame> {
        let frame = std::mem::take(&mut self.frame);
        std::mem::take(&mut self.has_data).then_some(frame)
    }
}
