//! Job control data of a process: parent, group, session, terminal's foreground group.
//!
//! On Linux it comes from `/proc/PID/stat`. The system calls return 0 for processes outside of the
//! namespace, which the types of `rustix` cannot hold.

/// Ids of a process, from one pid namespace; 0 is a process outside of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    /// The group that may use the process's terminal.
    pub(super) foreground: i32,
}

#[cfg(target_os = "linux")]
impl Standing {
    /// This process.
    pub(super) fn own() -> Option<Self> {
        Self::read("/proc/self/stat")
    }

    /// Reads another process.
    pub(super) fn of(pid: i32) -> Option<Self> {
        Self::read(&format!("/proc/{pid}/stat"))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "reads from the kernel, not from a disk"
    )]
    fn read(path: &str) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(path).ok()?)
    }

    fn parse(stat: &str) -> Option<Self> {
        // The name, which may hold anything, is between parentheses.
        let (_, after) = stat.rsplit_once(')')?;
        let mut numbers = after.split_whitespace().skip(1).map(str::parse);
        let mut next = || numbers.next()?.ok();
        let (parent, group, session) = (next()?, next()?, next()?);
        let _terminal = next()?;
        Some(Self {
            parent,
            group,
            session,
            foreground: next()?,
        })
    }
}

#[cfg(not(target_os = "linux"))]
impl Standing {
    /// This process.
    #[expect(clippy::disallowed_methods, reason = "opens the terminal, not a file")]
    pub(super) fn own() -> Option<Self> {
        use rustix::process::{Pid, getpgrp, getppid, getsid};
        let terminal = std::fs::File::open("/dev/tty").ok();
        let foreground = terminal.and_then(|tty| rustix::termios::tcgetpgrp(tty).ok());
        Some(Self {
            parent: Pid::as_raw(getppid()),
            group: getpgrp().as_raw_pid(),
            session: getsid(None).ok()?.as_raw_pid(),
            foreground: Pid::as_raw(foreground),
        })
    }

    /// Reads another process, without its parent and terminal.
    pub(super) fn of(pid: i32) -> Option<Self> {
        use rustix::process::{Pid, getpgid, getsid};
        let pid = Pid::from_raw(pid)?;
        Some(Self {
            parent: 0,
            group: getpgid(Some(pid)).ok()?.as_raw_pid(),
            session: getsid(Some(pid)).ok()?.as_raw_pid(),
            foreground: 0,
        })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::Standing;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = "8 (a) S 1 2 (b) 3) R 7 0 0 34816 -1 4194304 1 2";

        let standing = Standing::parse(stat).unwrap();

        let expected = Standing {
            parent: 7,
            group: 0,
            session: 0,
            foreground: -1,
        };
        assert_eq!(standing, expected);
        assert_eq!(Standing::parse("8 (a) R 7"), None);
        assert_eq!(Standing::parse(""), None);
    }

    #[test]
    fn one_stands_where_the_system_says() {
        let own = Standing::own().unwrap();
        let by_number = Standing::of(std::process::id().cast_signed()).unwrap();

        assert_eq!(by_number, own);
        assert_eq!(
            own.parent,
            std::os::unix::process::parent_id().cast_signed()
        );
    }
}
