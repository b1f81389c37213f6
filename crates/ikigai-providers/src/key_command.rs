//! Command that prints a provider's key, run at the first use of the provider.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use secrecy::SecretString;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::credentials::{CredentialsError, MOST_FILE_BYTES};

/// Time limit of a command; it may ask for a passphrase.
pub(crate) const COMMAND_DEADLINE: Duration = Duration::from_mins(1);

/// Time to read the rest after the command ended: a process it left behind may keep the pipe open.
const REST: Duration = Duration::from_secs(1);

/// The command of one provider, and the key it printed.
pub(crate) struct KeyCommand {
    provider: String,
    command: String,
    /// Variables that hold other keys; the command's environment lacks them.
    hidden: Vec<String>,
    key: OnceCell<SecretString>,
}

impl KeyCommand {
    pub(crate) fn new(provider: &str, command: &str, hidden: Vec<String>) -> Self {
        Self {
            provider: provider.to_owned(),
            command: command.to_owned(),
            hidden,
            key: OnceCell::new(),
        }
    }

    /// Returns the key, if the command has already printed it.
    pub(crate) fn printed(&self) -> Option<&SecretString> {
        self.key.get()
    }

    /// Returns the key.
    ///
    /// The first caller runs the command, others wait for it. If the caller is dropped, the command
    /// is killed with all its processes, and the next caller runs it again.
    pub(crate) async fn key(&self) -> Result<SecretString, CredentialsError> {
        let key = self.key.get_or_try_init(|| self.run()).await;
        key.cloned().map_err(|reason| CredentialsError::Command {
            provider: self.provider.clone(),
            reason,
        })
    }

    async fn run(&self) -> Result<SecretString, String> {
        let mut shell = Command::new("sh");
        for name in &self.hidden {
            shell.env_remove(name);
        }
        let child = shell
            .arg("-c")
            .arg(&self.command)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn();
        let mut child = child.map_err(|error| error.to_string())?;
        let group = KilledGroup::of(&child);
        let printed = timeout(COMMAND_DEADLINE, read_and_wait(&mut child)).await;
        let Ok(printed) = printed else {
            let seconds = COMMAND_DEADLINE.as_secs();
            return Err(format!("it took longer than {seconds} s"));
        };
        let bytes = printed?;
        group.keep();
        match std::str::from_utf8(&bytes).map(str::trim) {
            Err(_) => Err("it printed no text".to_owned()),
            Ok("") => Err("it printed nothing".to_owned()),
            Ok(key) => Ok(SecretString::from(key)),
        }
    }
}

/// Reads the command's output until it ends.
async fn read_and_wait(child: &mut Child) -> Result<Vec<u8>, String> {
    let out = child.stdout.take().ok_or("its output is not there")?;
    let mut bytes = Vec::new();
    let mut out = out.take(MOST_FILE_BYTES);
    let mut read = std::pin::pin!(out.read_to_end(&mut bytes));
    let mut ended = std::pin::pin!(child.wait());
    let mut status = None;
    let mut is_read = false;
    std::future::poll_fn(|context| {
        if !is_read {
            is_read = read.as_mut().poll(context).is_ready();
        }
        if status.is_none()
            && let std::task::Poll::Ready(ended) = ended.as_mut().poll(context)
        {
            status = Some(ended);
        }
        if status.is_some() {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    if !is_read {
        let _ = timeout(REST, read).await;
    }
    match status {
        Some(Ok(status)) if status.success() => Ok(bytes),
        Some(Ok(status)) => Err(status.to_string()),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("it did not end".to_owned()),
    }
}

/// Process group that is killed on drop, unless the command ended well.
struct KilledGroup(Option<Pid>);

impl KilledGroup {
    fn of(child: &Child) -> Self {
        let pid = child.id().and_then(|id| i32::try_from(id).ok());
        Self(pid.and_then(Pid::from_raw))
    }

    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for KilledGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
