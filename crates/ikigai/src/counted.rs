//! Reading something long, while one line tells how far it is.

use std::io::{BufRead, Read, Result, Write};

/// After so many bytes it is told how far it is.
const TELL_EVERY: u64 = 1 << 20;

/// A reader that tells how far it is, if there is somebody to be told.
pub(crate) struct Counted<R, W: Write> {
    inner: R,
    read: u64,
    /// How much there is, if that is known.
    all: Option<u64>,
    out: Option<W>,
    told: u64,
}

impl<R, W: Write> Counted<R, W> {
    pub(crate) fn new(inner: R, all: Option<u64>, out: Option<W>) -> Self {
        Self {
            inner,
            read: 0,
            all,
            out,
            told: 0,
        }
    }

    fn count(&mut self, bytes: usize) {
        self.read = self.read.saturating_add(bytes as u64);
        if self.read - self.told < TELL_EVERY {
            return;
        }
        self.told = self.read;
        let megabytes = self.read >> 20;
        let percent = self
            .all
            .and_then(|all| self.read.saturating_mul(100).checked_div(all));
        let text = match percent {
            Some(percent) => format!("\r{megabytes} MB, {} %\x1b[K", percent.min(100)),
            None => format!("\r{megabytes} MB\x1b[K"),
        };
        if let Some(out) = &mut self.out {
            // Whoever does not listen misses nothing else.
            let _ = out.write_all(text.as_bytes());
        }
    }
}

impl<R, W: Write> Drop for Counted<R, W> {
    fn drop(&mut self) {
        if let Some(out) = self.out.as_mut().filter(|_| self.told > 0) {
            let _ = out.write_all(b"\r\x1b[K");
        }
    }
}

impl<R: BufRead, W: Write> Read for Counted<R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let bytes = self.inner.read(buffer)?;
        self.count(bytes);
        Ok(bytes)
    }
}

impl<R: BufRead, W: Write> BufRead for Counted<R, W> {
    fn fill_buf(&mut self) -> Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.inner.consume(bytes);
        self.count(bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};

    use super::Counted;

    #[test]
    fn it_is_told_how_far_reading_is() {
        let lines = format!("{}\n", "x".repeat(1023)).repeat(3 * 1024);
        let (all, mut with, mut without) = (lines.len() as u64, Vec::new(), Vec::new());

        let known = Counted::new(BufReader::new(lines.as_bytes()), Some(all), Some(&mut with));
        let read = known.lines().count();
        let unknown = Counted::new(lines.as_bytes(), None, Some(&mut without));
        unknown.lines().for_each(drop);

        assert_eq!(read, 3 * 1024);
        let with = String::from_utf8(with).unwrap();
        assert_eq!(
            with,
            "\r1 MB, 33 %\x1b[K\r2 MB, 66 %\x1b[K\r3 MB, 100 %\x1b[K\r\x1b[K"
        );
        let without = String::from_utf8(without).unwrap();
        assert_eq!(without, "\r1 MB\x1b[K\r2 MB\x1b[K\r3 MB\x1b[K\r\x1b[K");
    }
}
