//! Server-sent events: a parser that is pushed bytes in any chunking, and never waits.

use thiserror::Error;

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Its name; empty if it has none.
    pub event: String,
    /// Its data lines, joined by line feeds.
    pub data: String,
}

/// Why a stream cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SseError {
    /// An event is larger than anything a provider sends.
    #[error("an event of the stream is larger than {} MB", MOST_EVENT_BYTES >> 20)]
    TooLarge,
    /// An event is not UTF-8.
    #[error("the stream is not UTF-8")]
    NotText,
}

/// The largest event. A provider's largest, a whole response in its terminal event, is far smaller.
pub const MOST_EVENT_BYTES: usize = 8 << 20;

/// The parser. Bytes go in, whole frames come out.
#[derive(Debug, Default)]
pub struct Sse {
    /// The line that is not yet ended.
    line: Vec<u8>,
    frame: Frame,
    has_data: bool,
    /// A carriage return was the last byte: a line feed after it is part of the same line end.
    after_return: bool,
    /// Something but a byte order mark has come.
    begun: bool,
}

impl Sse {
    /// Takes in bytes and returns the frames that they complete.
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

    /// The frame that a stream left open at its end, if it left one. Servers that do not end their
    /// last event with a blank line have still sent it.
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
            // Comments (an empty field name), `id`, `retry` and whatever else say nothing to us.
            _ => {}
        }
        Ok(None)
    }

    /// Only a frame with data is one.
    fn take_frame(&mut self) -> Option<Frame> {
        let frame = std::mem::take(&mut self.frame);
        std::mem::take(&mut self.has_data).then_some(frame)
    }
}
