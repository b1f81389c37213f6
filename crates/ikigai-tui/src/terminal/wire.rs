//! Other terminal output: title, notification, clipboard.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::text::clean_line;
use crate::width::cut;

/// The longest text that is given to a terminal's clipboard, in bytes. Many take less.
pub const LONGEST_COPY: usize = 1 << 20;

/// Maximum width of a title or notification.
const LONGEST_WORDS: usize = 120;

/// Timeout of tmux.
const PATIENCE: Duration = Duration::from_secs(2);

/// Environment variables that tmux needs; it must not get providers' keys.
const PASSED_ON: [&str; 5] = ["PATH", "HOME", "TMUX", "TMUX_PANE", "TMUX_TMPDIR"];

/// Rings the bell.
pub const BELL: &[u8] = b"\x07";

/// Sets the title of the window.
pub fn title(text: &str) -> Vec<u8> {
    command("2", text)
}

/// Asks whether the terminal shows the status of programs.
pub const STATUS_QUERY: &[u8] = b"\x1b]7501;?\x1b\\";

/// Forgets the status of the program.
pub const STATUS_CLEAR: &[u8] = b"\x1b]7501;state=clear:app=ikigai\x1b\\";

/// Sets the status of the program, as the terminal shows it beside the window.
pub fn program_status(state: &str, kind: Option<&str>, message: &str) -> Vec<u8> {
    let mut text = format!("state={state}");
    if let Some(kind) = kind {
        text.push_str(":kind=");
        text.push_str(kind);
    }
    text.push_str(":app=ikigai");
    if !message.is_empty() {
        let mut encoded = Vec::new();
        base64(message.as_bytes(), &mut encoded);
        text.push_str(":msg=");
        text.extend(encoded.into_iter().map(char::from));
    }
    command("7501", &text)
}

/// Shows a desktop notification, if the terminal supports it.
pub fn notification(text: &str) -> Vec<u8> {
    command("9", text)
}

/// Copies text to the clipboard; none if it is too long.
pub fn clipboard(text: &str) -> Option<Vec<u8>> {
    (text.len() <= LONGEST_COPY).then(|| {
        let mut bytes = b"\x1b]52;c;".to_vec();
        base64(text.as_bytes(), &mut bytes);
        bytes.extend_from_slice(b"\x1b\\");
        bytes
    })
}

/// Copies text to the buffer of tmux, and so to the clipboard. For a process within tmux.
pub async fn copy_to_tmux(text: &str) -> io::Result<()> {
    let mut command = Command::new("tmux");
    command
        .args(["load-buffer", "-w", "-"])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    for name in PASSED_ON {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    let copied = async {
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(text.as_bytes()).await?;
        }
        child.wait().await
    };
    let status = tokio::time::timeout(PATIENCE, copied).await??;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other("tmux did not take the text"))
    }
}

/// Encodes an operating system command: a number and text, which cannot end it.
fn command(number: &str, text: &str) -> Vec<u8> {
    let words = clean_line(text);
    format!("\x1b]{number};{}\x1b\\", cut(&words, LONGEST_WORDS)).into_bytes()
}

/// Writes bytes in letters and digits, with padding.
fn base64(bytes: &[u8], out: &mut Vec<u8>) {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    out.reserve(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let byte = |place: usize| u32::from(part.get(place).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let index = bits >> (18 - 6 * place) & 0x3f;
            let letter = usize::try_from(index).ok().and_then(|at| LETTERS.get(at));
            let missing = place > part.len();
            out.push(letter.copied().filter(|_| !missing).unwrap_or(b'='));
        }
    }
}

#[cfg(test)]
mod tests;
