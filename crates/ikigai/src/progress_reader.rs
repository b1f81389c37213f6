//! Reader that reports its progress on one line.

use std::io::{BufRead, Read, Result, Write};

/// Bytes between two reports.
const REPORT_EVERY: u64 = 1 << 20;

/// Reader that writes its progress to `out`.
pub(crate) struct ProgressReader<R, W: Write> {
    inner: R,
    read: u64,
    /// Total bytes, if known.
    all: Option<u64>,
    out: Option<W>,
    /// Bytes at the last report.
    reported: u64,
}

impl<R, W: Write> ProgressReader<R, W> {
    pub(crate) fn new(inner: R, all: Option<u64>, out: Option<W>) -> Self {
        Self {
            inner,
            read: 0,
            all,
            out,
            reported: 0,
        }
    }

    fn count(&mut self, bytes: usize) {
        self.read = self.read.saturating_add(bytes as u64);
        if self.read - self.reported < REPORT_EVERY {
            return;
        }
        self.reported = self.read;
        let megabytes = self.read >> 20;
        let percent = self
            .all
            .and_then(|all| self.read.saturating_mul(100).checked_div(all));
        let text = match percent {
            Some(percent) => format!("\r{megabytes} MB, {} %\x1b[K", percent.min(100)),
            None => format!("\r{megabytes} MB\x1b[K"),
        };
        if let Some(out) = &mut self.out {
            // A failed report must not fail the read.
            let _ = out.write_all(text.as_bytes());
        }
    }
}

impl<R, W: Write> Drop for ProgressReader<R, W> {
    fn drop(&mut self) {
        if let Some(out) = self.out.as_mut().filter(|_| self.reported > 0) {
            let _ = out.write_all(b"\r\x1b[K");
        }
    }
}

impl<R: BufRead, W: Write> Read for ProgressReader<R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let bytes = self.inner.read(buffer)?;
        self.count(bytes);
        Ok(bytes)
    }
}

impl<R: BufRead, W: Write> BufRead for ProgressReader<R, W> {
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

    use super::ProgressReader;

    #[test]
    fn reading_reports_megabytes_and_percent() {
        let lines = format!("{}\n", "x".repeat(1023)).repeat(3 * 1024);
        let (all, mut with, mut without) = (lines.len() as u64, Vec::new(), Vec::new());

        let known =
            ProgressReader::new(BufReader::new(lines.as_bytes()), Some(all), Some(&mut with));
        let read = known.lines().count();
        let unknown = ProgressReader::new(lines.as_bytes(), None, Some(&mut without));
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
