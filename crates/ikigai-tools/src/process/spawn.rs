//! The one place where a process is made: its own session, its tag, its sandbox.
//!
//! What happens between `fork` and `exec` must not allocate or take a lock, because another thread
//! may have held one at the fork. So everything is prepared before; only system calls remain.

use std::io;
use std::time::Duration;

use rustix::process::setsid;
use tokio::process::{Child, Command};

use super::family::{self, Mark, Tag};
use crate::sandbox::{Jail, give_up_namespaces};

/// How often a program is tried that is being written to.
const MOST_ATTEMPTS: u32 = 50;

/// How long it is waited between two attempts.
const PAUSE: Duration = Duration::from_millis(4);

/// Starts `command` as the main process of a run. Blocks.
pub(crate) fn spawn(command: &mut Command, mark: &Mark, jail: Option<Jail>) -> io::Result<Child> {
    family::adopt_orphans();
    enter_before_exec(command, mark.tag(), jail);
    let mut attempts = 1;
    loop {
        match command.spawn() {
            // A program that was just written counts as being written to while any child that was
            // forked at that time has not come to its own program, which is a matter of moments.
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
    // SAFETY: the closure runs in the forked child before `exec` and does nothing but system
    // calls: `setsid`, `close_range` and those of `Tag::put_on` and `Jail::enter`, all on values that
    // were made before the fork. It neither allocates nor takes a lock on its way to success; the
    // errors it returns are numbers.
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

/// Keeps files from the child that ikigai itself was handed by whoever started it. Our own are
/// never passed on anyway.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the standard library does not offer this call")]
fn close_on_exec() {
    // SAFETY: it takes three numbers and changes a flag of open files; nothing is closed before
    // `exec`. An old kernel refuses it, and then files are as they were.
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
