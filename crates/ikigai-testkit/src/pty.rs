//! A program in a real terminal: a pseudoterminal with an emulator at its other end.
//!
//! The emulator answers no queries, which reveals a program that waits for an answer.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcgetpgrp, tcsetwinsize};

/// Time limit of expected events.
const PATIENCE: Duration = Duration::from_mins(1);

/// A program in a pseudoterminal, killed on drop.
pub struct Pty {
    /// The test's end of the terminal.
    controller: OwnedFd,
    /// The program's end, kept open to read its modes after the program ended.
    peer: File,
    process: ChildGuard,
    emulator: vt100::Parser,
    output: Vec<u8>,
    modes_at_start: Modes,
}

/// Terminal modes that a program changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modes(String);

/// Makes a command that runs a program as session leader of the terminal.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setsid");
    command.arg("--ctty").arg(program);
    command
}

impl Pty {
    /// Starts a command made by [`command`] in a terminal of this size.
    pub fn start(mut command: Command, columns: u16, rows: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let controller = openpt(flags).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        fcntl_setfl(&controller, OFlags::NONBLOCK).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let name = OsString::from_vec(name.into_bytes());
        let open = || {
            let mut options = File::options();
            // Otherwise a process without a terminal would get this one.
            let flags = i32::try_from(OFlags::NOCTTY.bits()).unwrap();
            std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
            options.read(true).write(true).open(&name).unwrap()
        };
        let peer = open();
        tcsetwinsize(&peer, size(columns, rows)).unwrap();
        let modes_at_start = Modes::of(&tcgetattr(&peer).unwrap());
        let child = command
            .stdin(open())
            .stdout(open())
            .stderr(open())
            .spawn()
            .expect("`setsid` of util-linux starts programs in terminals");
        Self {
            controller,
            peer,
            process: ChildGuard(child),
            emulator: vt100::Parser::new(cells(rows), cells(columns), 0),
            output: Vec::new(),
            modes_at_start,
        }
    }

    /// Waits until the screen is as wanted; panics with its content after the time limit.
    pub fn wait_for(&mut self, what: &str, mut wanted: impl FnMut(&vt100::Screen) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !wanted(self.screen()) {
            assert!(
                self.take_until(deadline),
                "waited for {what}; there is\n{}",
                self.text()
            );
        }
    }

    /// Waits until this text is somewhere on the screen.
    pub fn wait_for_text(&mut self, text: &str) {
        self.wait_for(text, |screen| screen.contents().contains(text));
    }

    /// Counts the bytes within some time, for programs that should write none.
    pub fn listen(&mut self, time: Duration) -> usize {
        let before = self.output.len();
        let deadline = Instant::now() + time;
        while self.take_until(deadline) {}
        self.output.len() - before
    }

    /// Sends bytes of a keyboard.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let mut rest = bytes.as_ref();
        let deadline = Instant::now() + PATIENCE;
        while !rest.is_empty() {
            match rustix::io::write(&self.controller, rest) {
                Ok(count) => rest = &rest[count..],
                Err(Errno::AGAIN | Errno::INTR) => {
                    // The program may wait until its output is read.
                    self.take();
                    let left = deadline.saturating_duration_since(Instant::now());
                    assert!(!left.is_zero(), "the program reads no keys");
                    let flags = PollFlags::IN | PollFlags::OUT;
                    wait(&[PollFd::new(&self.controller, flags)], left);
                }
                Err(error) => panic!("cannot send keys: {error}"),
            }
        }
    }

    /// Resizes the terminal and the emulator.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.emulator
            .screen_mut()
            .set_size(cells(rows), cells(columns));
        tcsetwinsize(&self.controller, size(columns, rows)).unwrap();
    }

    /// Sends a signal to the program.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Waits for the program's end, and reads all its output.
    pub fn wait_end(&mut self) -> ExitStatus {
        let handle = self.process.handle();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let ended = wait(&[PollFd::new(&handle, PollFlags::IN)], Duration::ZERO);
            while self.take() {}
            if ended {
                return self.process.0.wait().unwrap();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "it does not end; there is\n{}",
                self.text()
            );
            let either = [
                PollFd::new(&handle, PollFlags::IN),
                PollFd::new(&self.controller, PollFlags::IN),
            ];
            wait(&either, left);
        }
    }

    /// Waits for the program's end without reading its output.
    pub fn wait_end_unread(&mut self) -> ExitStatus {
        self.process.wait_end()
    }

    /// Closes the terminal under the program, and waits for its end.
    pub fn hang_up(self) -> ExitStatus {
        let mut process = self.process;
        drop((self.controller, self.peer));
        process.wait_end()
    }

    /// Returns the screen.
    pub fn screen(&self) -> &vt100::Screen {
        self.emulator.screen()
    }

    /// Returns the rows of the screen, without blanks at their ends.
    pub fn text(&self) -> String {
        let (_, columns) = self.screen().size();
        let rows: Vec<String> = self
            .screen()
            .rows(0, columns.get())
            .map(|row| row.trim_end().to_owned())
            .collect();
        rows.join("\n")
    }

    /// Returns all output of the program so far.
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// Returns the modes that the terminal had before the program started.
    pub fn modes_at_start(&self) -> &Modes {
        &self.modes_at_start
    }

    /// Returns the modes of the terminal.
    pub fn modes(&self) -> Modes {
        Modes::of(&tcgetattr(&self.peer).unwrap())
    }

    /// Returns the foreground process group of the terminal.
    pub fn foreground(&self) -> Pid {
        tcgetpgrp(&self.controller).unwrap()
    }

    /// Returns the process id.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.process.0)
    }

    /// Reads output of the program until the deadline; returns true if there was any.
    fn take_until(&mut self, deadline: Instant) -> bool {
        loop {
            if self.take() {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            wait(&[PollFd::new(&self.controller, PollFlags::IN)], left);
        }
    }

    /// Reads available output of the program; returns true if there was any.
    fn take(&mut self) -> bool {
        let mut buffer = [0; 4096];
        let Ok(count @ 1..) = rustix::io::read(&self.controller, &mut buffer) else {
            return false;
        };
        self.emulator.process(&buffer[..count]);
        self.output.extend_from_slice(&buffer[..count]);
        true
    }
}

/// A process that does not outlive its test.
struct ChildGuard(Child);

impl ChildGuard {
    fn handle(&self) -> OwnedFd {
        pidfd_open(Pid::from_child(&self.0), PidfdFlags::empty()).unwrap()
    }

    fn wait_end(&mut self) -> ExitStatus {
        let handle = self.handle();
        let ended = wait(&[PollFd::new(&handle, PollFlags::IN)], PATIENCE);
        assert!(ended, "it does not end");
        self.0.wait().unwrap()
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until one of these is ready; returns false after the time limit.
fn wait(polled: &[PollFd<'_>], time: Duration) -> bool {
    let timeout = Timespec::try_from(time).unwrap();
    let mut polled = polled.to_vec();
    matches!(poll(&mut polled, Some(&timeout)), Ok(1..))
}

impl Modes {
    fn of(termios: &Termios) -> Self {
        Self(format!(
            "{:?} {:?} {:?} {:?}",
            termios.input_modes, termios.output_modes, termios.control_modes, termios.local_modes
        ))
    }
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).unwrap()
}

#[cfg(test)]
mod tests;
