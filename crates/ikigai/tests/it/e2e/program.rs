//! The built program without a terminal, and its control socket.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

/// Longer than any answer takes; only a program that hangs gets there.
const PATIENCE: Duration = Duration::from_secs(90);

/// One running program.
pub(crate) struct Program {
    child: Child,
    socket: PathBuf,
}

impl Program {
    /// Starts it, and waits until it listens.
    pub(crate) fn start(mut command: Command) -> Result<Self, String> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            let read = BufReader::new(out).read_line(&mut line);
            read.map_err(|error| error.to_string())?;
        }
        let mut program = Self {
            child,
            socket: PathBuf::from(line.trim_end()),
        };
        if line.is_empty() {
            let mut said = String::new();
            if let Some(err) = &mut program.child.stderr {
                let _ = err.read_to_string(&mut said);
            }
            return Err(format!("the program did not start: {said}"));
        }
        Ok(program)
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks something, and reads the answer.
    pub(crate) fn ask(&self, request: &Value) -> Result<Value, String> {
        let answer = ask(&self.socket, request.to_string().as_bytes())?;
        match answer.get("error") {
            Some(error) => Err(format!("{request}: {error}")),
            None => Ok(answer),
        }
    }

    /// Ends it as a user or a system would, and waits until it has.
    pub(crate) fn end(mut self) -> Result<(), String> {
        self.signal("TERM");
        let status = self.child.wait().map_err(|error| error.to_string())?;
        if !status.success() {
            return Err(format!("the program ended with {status}"));
        }
        if self.socket.exists() {
            return Err("the socket is left behind".to_owned());
        }
        Ok(())
    }

    /// Kills it at once.
    pub(crate) fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits until it has ended by itself.
    pub(crate) fn wait(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a line to a socket, and reads the line that comes back.
pub(crate) fn ask(socket: &Path, line: &[u8]) -> Result<Value, String> {
    let mut stream = UnixStream::connect(socket).map_err(|error| format!("connect: {error}"))?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // A client that sends too much is answered before everything is read.
    let _ = stream
        .write_all(line)
        .and_then(|()| stream.write_all(b"\n"));
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    read.map_err(|error| format!("read: {error}, {} bytes", answer.len()))?;
    serde_json::from_str(&answer).map_err(|error| format!("{error}: `{answer}`"))
}
