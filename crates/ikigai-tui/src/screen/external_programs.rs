//! External programs: clipboard, editor, pager, notifications.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::fs::{Mode, OFlags};
use tokio::process::Command;

use super::foreground;
use crate::terminal::{BELL, Terminal, TerminalError, clipboard, copy_to_tmux, notification};
use crate::text::clean;

/// The longest text that is taken from an editor.
const LONGEST_TEXT: u64 = 16 * 1024 * 1024;

/// Variables that name an editor, and the default.
const EDITORS: [&str; 2] = ["VISUAL", "EDITOR"];
const USUAL_EDITOR: &str = "vi";

/// Variables that name a pager, and the default.
const PAGERS: [&str; 1] = ["PAGER"];
const USUAL_PAGER: &str = "less";

/// Copies text to the clipboard; returns false if it is too long.
pub(super) async fn copy(terminal: &mut Terminal, text: &str) -> Result<bool, TerminalError> {
    let Some(bytes) = clipboard(text) else {
        return Ok(false);
    };
    // Within tmux the sequence may be disabled; its own buffer never is.
    if std::env::var_os("TMUX").is_some() && copy_to_tmux(text).await.is_ok() {
        return Ok(true);
    }
    terminal.send(&bytes)?;
    Ok(true)
}

/// Kind of notification for an absent user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Notify {
    /// The terminal's own notification, and a bell for terminals without it.
    #[default]
    Osc9,
    /// A bell.
    Bell,
    /// This shell command, with the text as an argument.
    Command(String),
    /// Not at all.
    Off,
}

impl Notify {
    /// Parses the configuration: `osc9`, `bell`, `off`, or `command …`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name.trim() {
            "osc9" => Some(Self::Osc9),
            "bell" => Some(Self::Bell),
            "off" => Some(Self::Off),
            other => {
                let command = other.strip_prefix("command ")?.trim();
                (!command.is_empty()).then(|| Self::Command(command.to_owned()))
            }
        }
    }
}

/// Notifies an absent user.
pub(super) fn notify(
    terminal: &mut Terminal,
    how: &Notify,
    text: &str,
    secrets: &[String],
) -> Result<(), TerminalError> {
    match how {
        Notify::Off => Ok(()),
        Notify::Bell => terminal.send(BELL),
        Notify::Osc9 => {
            terminal.send(&notification(text))?;
            terminal.send(BELL)
        }
        Notify::Command(command) => {
            let mut shell = Command::new("sh");
            shell
                .args(["-c", &format!("{command} \"$1\""), "ikigai", text])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            for name in secrets {
                shell.env_remove(name);
            }
            // One that cannot be run is no reason to end.
            if let Ok(mut child) = shell.spawn() {
                tokio::spawn(async move { child.wait().await });
            }
            Ok(())
        }
    }
}

/// Lets the user edit a text in their editor. The terminal is theirs meanwhile.
pub(super) async fn edit(text: &str, secrets: &[String]) -> io::Result<String> {
    let file = Scratch::new(text)?;
    let editor = choose_program(&EDITORS, USUAL_EDITOR);
    if !run(&editor, &file, secrets).await? {
        return Err(io::Error::other(format!("`{editor}` failed")));
    }
    let read = tokio::task::spawn_blocking(move || file.read()).await;
    read.unwrap_or_else(|error| Err(error.into()))
}

/// Lets the user read a text in their pager. The terminal is theirs meanwhile.
pub(super) async fn page(text: &str, secrets: &[String]) -> io::Result<()> {
    let file = Scratch::new(&clean(text))?;
    let pager = choose_program(&PAGERS, USUAL_PAGER);
    if run(&pager, &file, secrets).await? {
        Ok(())
    } else {
        Err(io::Error::other(format!("`{pager}` failed")))
    }
}

/// Returns the user's program, from the first of these variables that is set.
fn choose_program(variables: &[&str], usual: &str) -> String {
    let named = variables.iter().filter_map(|name| std::env::var(name).ok());
    let chosen = named.into_iter().find(|name| !name.trim().is_empty());
    chosen.unwrap_or_else(|| usual.to_owned())
}

/// Runs a program on a file, without secret variables; returns true on success.
async fn run(program: &str, file: &Scratch, secrets: &[String]) -> io::Result<bool> {
    // By a shell, because users put arguments into the variable.
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", "exec $0 \"$1\"", program])
        .arg(&file.path);
    for name in secrets {
        command.env_remove(name);
    }
    Ok(foreground::run(command).await?.success())
}

/// Temporary file for one text, readable only by its user.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn new(text: &str) -> io::Result<Self> {
        let mut number = [0; 8];
        rustix::rand::getrandom(&mut number, rustix::rand::GetRandomFlags::empty())?;
        let number = u64::from_ne_bytes(number);
        let path = std::env::temp_dir().join(format!("ikigai-{number:016x}.md"));
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)?;
        let scratch = Self { path };
        std::fs::File::from(file).write_all(text.as_bytes())?;
        Ok(scratch)
    }

    #[expect(clippy::disallowed_methods, reason = "runs on a blocking thread")]
    fn read(&self) -> io::Result<String> {
        let file = std::fs::File::open(Path::new(&self.path))?;
        let mut bytes = Vec::new();
        file.take(LONGEST_TEXT).read_to_end(&mut bytes)?;
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| io::Error::other("the edited text is not UTF-8"))?;
        Ok(text.trim_end_matches('\n').to_owned())
    }
}

impl Drop for Scratch {
    #[expect(clippy::disallowed_methods, reason = "removes one temporary file")]
    fn drop(&mut self) {
        // It is in the directory for things that do not last.
        let _ = std::fs::remove_file(&self.path);
    }
}
