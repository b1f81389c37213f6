//! Piped standard input of `ikigai run`, appended to the prompt.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;

use crate::output::print_stderr;

/// Most bytes; more does not fit into any model's window.
const MOST_BYTES: usize = 1 << 20;

/// Silence after which to check for a program that writes to the pipe.
const SILENCE: Duration = Duration::from_secs(2);

/// Most ancestors that are checked.
const MOST_ANCESTORS: usize = 64;

/// Appends the text on standard input, in a frame. Terminals, devices and empty input change
/// nothing.
pub(super) fn append_to(prompt: String) -> String {
    let stdin = io::stdin();
    let Ok(read) = read(stdin.as_fd()) else {
        return prompt;
    };
    frame(prompt, &read)
}

/// Bytes of standard input; `is_cut` if there were more.
struct Piped {
    bytes: Vec<u8>,
    is_cut: bool,
}

fn frame(prompt: String, piped: &Piped) -> String {
    let text = String::from_utf8_lossy(&piped.bytes);
    if text.trim().is_empty() {
        return prompt;
    }
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let cut = if piped.is_cut {
        print_stderr(&format!(
            "note: sending only the first {} KB of stdin",
            MOST_BYTES >> 10
        ));
        "[cut here: standard input was longer]\n"
    } else {
        ""
    };
    format!("{prompt}\n\n<stdin>\n{text}{end}{cut}</stdin>")
}

/// Reads to the end of a file or pipe, or to [`MOST_BYTES`].
///
/// A silent pipe is not waited for if only ancestors of this program can write to it: programs that
/// start others often leave one open. Any other producer is waited for.
fn read(stdin: BorrowedFd<'_>) -> io::Result<Piped> {
    let mut piped = Piped {
        bytes: Vec::new(),
        is_cut: false,
    };
    let found = fstat(stdin)?;
    let is_pipe = match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => false,
        FileType::Fifo | FileType::Socket => true,
        _ => return Ok(piped),
    };
    let mut is_waited_for = !is_pipe;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        if !is_waited_for && !is_ready(stdin, SILENCE)? {
            if !has_producer(found.st_ino) {
                print_stderr("note: no data on stdin; continuing without it");
                return Ok(piped);
            }
            print_stderr("note: reading stdin; press Ctrl-C to stop");
            is_waited_for = true;
        }
        match io::stdin().lock().read(&mut buffer) {
            Ok(0) => return Ok(piped),
            Ok(count) => {
                let room = MOST_BYTES - piped.bytes.len();
                piped
                    .bytes
                    .extend(buffer.iter().take(count.min(room)).copied());
                if count > room {
                    piped.is_cut = true;
                    return Ok(piped);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits until data or the end can be read.
fn is_ready(stdin: BorrowedFd<'_>, within: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + within;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut polled = [PollFd::from_borrowed_fd(stdin, PollFlags::IN)];
        match poll(&mut polled, Some(&timeout)) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns true if a process other than an ancestor has the pipe open for writing.
fn has_producer(pipe: u64) -> bool {
    let ancestors = ancestors();
    let own = std::process::id();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| *pid != own && !ancestors.contains(pid))
        .any(|pid| writes_to(pid, pipe))
}

fn writes_to(pid: u32, pipe: u64) -> bool {
    let process = Path::new("/proc").join(pid.to_string());
    let files = fs::read_dir(process.join("fd")).into_iter().flatten();
    files.flatten().any(|file| {
        let is_same = fs::metadata(file.path()).is_ok_and(|found| found.ino() == pipe);
        is_same && is_open_for_writing(&process, &file.file_name())
    })
}

/// Checks the access mode, the last octal digit of the flags.
fn is_open_for_writing(process: &Path, file: &OsStr) -> bool {
    let info = fs::read_to_string(process.join("fdinfo").join(file)).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    flags.is_some_and(|flags| matches!(flags.trim().chars().last(), Some('1' | '2' | '5' | '6')))
}

fn ancestors() -> Vec<u32> {
    let mut ancestors = Vec::new();
    let mut pid = std::os::unix::process::parent_id();
    while pid > 0 && ancestors.len() < MOST_ANCESTORS {
        ancestors.push(pid);
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name before it may contain anything but a closing bracket at its end.
        let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
        let parent = fields.split_whitespace().nth(1);
        pid = parent.and_then(|parent| parent.parse().ok()).unwrap_or(0);
    }
    ancestors
}

#[cfg(test)]
mod tests {
    use super::{Piped, frame};

    #[test]
    fn piped_text_is_framed_and_an_empty_one_changes_nothing() {
        let piped = |bytes: &[u8], is_cut| Piped {
            bytes: bytes.to_vec(),
            is_cut,
        };
        let table = [
            (piped(b"", false), "review"),
            (piped(b" \n\n", false), "review"),
            (piped(b"a\nb", false), "review\n\n<stdin>\na\nb\n</stdin>"),
            (piped(b"a\n", false), "review\n\n<stdin>\na\n</stdin>"),
            (
                piped(b"\xff", false),
                "review\n\n<stdin>\n\u{fffd}\n</stdin>",
            ),
            (
                piped(b"a\n", true),
                "review\n\n<stdin>\na\n[cut here: standard input was longer]\n</stdin>",
            ),
        ];
        for (piped, expected) in table {
            assert_eq!(frame("review".to_owned(), &piped), expected);
        }
    }
}
