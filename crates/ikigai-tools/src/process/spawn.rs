//! Creation of processes, in one place: session, tag and sandbox.
//!
//! Code between `fork` and `exec` must not allocate or take a lock, because another thread may have
//! held one at the fork. So everything is prepared before; only system calls remain.

use std::io;
use std::time::Duration;

use rustix::process::setsid;
use tokio::process::{Child, Command};

use super::family::{self, Mark, Tag};
use crate::sandbox::{Jail, give_up_namespaces};

/// Most attempts to start a program file that is open for writing.
const MOST_ATTEMPTS: u32 = 50;

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(4);

/// Starts `command` as the main process of a run. Blocks.
pub(crate) fn spawn(command: &mut Command, mark: &Mark, jail: Option<Jail>) -> io::Result<Child> {
    family::adopt_orphans();
    enter_before_exec(command, mark.tag(), jail);
    let mut attempts = 1;
    loop {
        match command.spawn() {
            // A freshly written program stays busy until children that were forked meanwhile have
            // called `exec`, which takes moments.
            Err(error)
                if error.kind() == io::ErrorKind::ExecutableFileBusy
                    && attempts < MOST_ATTEMPTS =>
            {
                attempts += 1;
                std::thread::sleep(PAUSE);
            }
            Err(error) if give_up_namespaces(&error) => {}
            spawned => return spawned,
        }
    }
}

#[expect(
    unsafe_code,
    reason = "a session, a limit and a sandbox can only be entered by the child itself"
)]
fn enter_before_exec(command: &mut Command, tag: Tag, mut jail: Option<Jail>) {
    // SAFETY: the closure runs in the forked child before `exec` and makes only system calls:
    // `setsid`, `close_range` and those of `Tag::put_on` and `Jail::enter`, all on values made
    // before the fork. It neither allocates nor takes a lock on its way to success; the errors it
    // returns are numbers.
    unsafe {
        command.pre_exec(move || {
            setsid()?;
            tag.put_on();
            close_on_exec();
            match jail.take() {
                Some(jail) => jail.enter(),
                None => Ok(()),
            }
        });
    }
}

/// Gives a child only its standard streams, none of the descriptors that ikigai inherited.
#[expect(
    unsafe_code,
    reason = "only the child itself can close its descriptors"
)]
pub(crate) fn close_inherited(command: &mut Command) {
    // SAFETY: the closure runs in the forked child before `exec` and makes one system call.
    unsafe {
        command.pre_exec(|| {
            close_on_exec();
            Ok(())
        });
    }
}

/// Keeps descriptors that ikigai inherited from the child. Our own are close-on-exec anyway.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the standard library does not offer this call")]
fn close_on_exec() {
    // SAFETY: it takes three numbers and changes a flag of open files; nothing is closed before
    // `exec`. An old kernel refuses it, and then the flags stay as they were.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3_u32,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        );
    }
}

#[cfg(not(target_os = "linux"))]
fn close_on_exec() {}
