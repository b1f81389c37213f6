//! Processes of a run: finding, ending and reaping them.
//!
//! A process can leave its run in several ways, so there are several ways to find it: by the run's
//! session or process group, by the cookie in its environment, by the run's *tag*, or as a
//! descendant of such a process. The tag is a number in the soft limit of file locks, which no
//! kernel since 2.6 uses: like every limit it is inherited through `fork`, `setsid` and `exec` with
//! an empty environment, it can be read from outside even for a zombie, and programs leave it alone
//! (in the sandbox they cannot change it).
//!
//! ikigai is a *subreaper*: it becomes the parent of orphaned descendants instead of process 1. So
//! once the main process of a run is gone, the rest of the run consists of children of ikigai and
//! their descendants. The usual case, that no process is left, needs no scan of all processes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, WaitId, WaitIdOptions, WaitOptions, getpid,
    getrlimit, kill_process, kill_process_group, pidfd_open, pidfd_send_signal,
    set_child_subreaper, setrlimit, waitid, waitpid,
};
use sha2::{Digest, Sha256};

use crate::COOKIE_VARIABLE;

/// Longest wait for the end of a killed process.
///
/// Only a process that hangs in the kernel, for example on a dead network disk, takes longer; it
/// cannot be ended at all.
const MOST_WAITED: Duration = Duration::from_secs(5);

/// Most processes waited for at a time, because each takes a file descriptor.
const MOST_WATCHED: usize = 64;

/// Wait of a round before the next scan for newly started processes.
const ROUND: Duration = Duration::from_millis(50);

/// Wait if there are no process handles.
const PAUSE: Duration = Duration::from_millis(1);

/// Identifying marks of the processes of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    entry: Vec<u8>,
    tag: u64,
}

/// One process. Its number and start time identify it uniquely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    group: i32,
    session: i32,
    started: u64,
    alive: bool,
}

/// Tag that a process can put on.
#[derive(Clone, Copy)]
pub(crate) struct Tag(Option<Rlimit>);

impl Tag {
    /// Tags this process and all its descendants. A forked child calls this: it makes one system
    /// call and nothing else.
    pub(crate) fn put_on(self) {
        if let Some(limit) = self.0 {
            // Without the tag, session, cookie and descent still identify the run.
            let _ = setrlimit(Resource::Locks, limit);
        }
    }
}

impl Mark {
    /// Returns the mark of the run with this cookie.
    pub(crate) fn new(cookie: &str) -> Self {
        let digest = Sha256::digest(cookie.as_bytes());
        let number = digest
            .iter()
            .take(8)
            .fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        Self {
            entry: format!("{COOKIE_VARIABLE}={cookie}").into_bytes(),
            // Larger than any limit that a user would set, smaller than "unlimited".
            tag: number >> 2 | 1 << 61,
        }
    }

    /// Returns the tag for a process of the run; empty if the hard limit is too low.
    pub(crate) fn tag(&self) -> Tag {
        let maximum = getrlimit(Resource::Locks).maximum;
        let has_room = maximum.is_none_or(|maximum| self.tag <= maximum);
        Tag(has_room.then_some(Rlimit {
            current: Some(self.tag),
            maximum,
        }))
    }

    fn is_on(&self, process: Process) -> bool {
        self.is_in_limits(process.pid) || (process.alive && self.is_in_environment(process.pid))
    }

    /// Returns true if a process or thread carries the tag of the run.
    pub(crate) fn is_in_limits(&self, pid: i32) -> bool {
        let Ok(limits) = fs::read_to_string(format!("/proc/{pid}/limits")) else {
            return false;
        };
        limits
            .lines()
            .find_map(|line| line.strip_prefix("Max file locks"))
            .and_then(|line| line.split_whitespace().next())
            .is_some_and(|soft| soft.parse() == Ok(self.tag))
    }

    fn is_in_environment(&self, pid: i32) -> bool {
        fs::read(format!("/proc/{pid}/environ")).is_ok_and(|all| {
            all.split(|byte| *byte == 0)
                .any(|entry| entry == self.entry)
        })
    }
}

/// Makes ikigai the parent of orphaned descendants. Called before every spawn, done once.
pub(crate) fn adopt_orphans() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        // Without it daemons are still found by their marks, only not as children.
        let _ = set_child_subreaper(Some(getpid()));
    });
}

/// Returns true if ikigai has no children, so that no run has processes left.
///
/// Counts zombies as children. One system call. Meaningful only after the main process was waited
/// for.
pub(crate) fn has_no_children() -> bool {
    /// Includes children of every kind (`__WALL`).
    const ALL: WaitIdOptions = WaitIdOptions::from_bits_retain(0x4000_0000);
    let without_effect = ALL
        | WaitIdOptions::EXITED
        | WaitIdOptions::STOPPED
        | WaitIdOptions::CONTINUED
        | WaitIdOptions::NOHANG
        | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::All, without_effect), Err(Errno::CHILD))
}

/// Returns true if processes of a run outlive its main process. Cheap if there are none.
///
/// The main process must have been waited for.
pub(crate) fn is_left(mark: &Mark) -> bool {
    let Some(children) = our_children() else {
        return !find(mark, None).is_empty();
    };
    children
        .into_iter()
        .filter_map(read_process)
        .any(|child| child.alive && mark.is_on(child))
}

/// Waits until a run has no processes left. Blocks.
///
/// The main process must have been waited for.
pub(crate) fn wait_until_gone(mark: &Mark, until: Instant) -> bool {
    loop {
        let left = find(mark, None);
        if left.is_empty() {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        wait_for(&left, until.min(Instant::now() + ROUND));
    }
}

/// Ends all processes of a run: asks them, waits for `grace`, then kills.
///
/// Blocks, at worst for `grace` and [`MOST_WAITED`]. `main` is the run's main process unless it was
/// waited for; reaping it is left to the caller. Returns the number of processes.
pub(crate) fn end(mark: &Mark, main: Option<i32>, grace: Duration) -> usize {
    let ended = end_living(mark, main, grace);
    for (pid, started) in &ended {
        if Some(*pid) != main {
            reap_one(*pid, *started);
        }
    }
    reap(mark, main);
    ended.len()
}

/// Returns the numbers of the living processes of another program's run.
pub(crate) fn find_living(mark: &Mark) -> Vec<i32> {
    let living = find(mark, None).into_iter();
    living.map(|process| process.pid).collect()
}

/// Ends all processes of another ikigai's run, without reaping them.
pub(crate) fn end_foreign(mark: &Mark, grace: Duration) -> usize {
    end_living(mark, None, grace).len()
}

/// Ends processes; returns their numbers and start times.
fn end_living(mark: &Mark, main: Option<i32>, grace: Duration) -> BTreeMap<i32, u64> {
    let mut known = BTreeMap::new();
    let mut look = || {
        let living = find(mark, main);
        known.extend(living.iter().map(|process| (process.pid, process.started)));
        living
    };

    let mut stopped = BTreeSet::new();
    let until = Instant::now() + grace;
    loop {
        let living = look();
        if living.is_empty() || Instant::now() >= until {
            break;
        }
        if stopped.is_empty() {
            signal_group(main, Signal::TERM);
        }
        for process in &living {
            if stopped.insert((process.pid, process.started)) {
                signal(process, Signal::TERM);
                // A stopped process handles the signal only after it continues.
                signal(process, Signal::CONT);
            }
        }
        wait_for(&living, until.min(Instant::now() + ROUND));
    }

    let until = Instant::now() + MOST_WAITED;
    loop {
        let living = look();
        if living.is_empty() || Instant::now() >= until {
            break;
        }
        signal_group(main, Signal::KILL);
        for process in &living {
            signal(process, Signal::KILL);
        }
        wait_for(&living, until.min(Instant::now() + ROUND));
    }
    known
}

/// Reaps zombies of a run that became children of ikigai.
///
/// The caller reaps the main process; other children of ikigai are left alone.
pub(crate) fn reap(mark: &Mark, main: Option<i32>) {
    for pid in our_children().unwrap_or_default() {
        if Some(pid) == main {
            continue;
        }
        if let Some(process) = read_process(pid)
            && !process.alive
            && mark.is_on(process)
        {
            reap_one(pid, process.started);
        }
    }
}

fn reap_one(pid: i32, started: u64) {
    let is_ours_and_dead = read_process(pid).is_some_and(|process| {
        process.started == started
            && !process.alive
            && process.parent == getpid().as_raw_nonzero().get()
    });
    if is_ours_and_dead && let Some(pid) = Pid::from_raw(pid) {
        // By number, never "any child": the runtime waits for its own children.
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

/// Finds the living processes of a run among all processes of the machine.
fn find(mark: &Mark, main: Option<i32>) -> Vec<Process> {
    let all = every_process();
    let mut of_run: BTreeSet<i32> = all
        .iter()
        .filter(|process| {
            // Group and session numbers belong to the run only until its main process was waited
            // for; after that they can be reused.
            main.is_some_and(|main| [process.pid, process.group, process.session].contains(&main))
                || (process.alive && mark.is_on(**process))
        })
        .map(|process| process.pid)
        .collect();
    loop {
        let before = of_run.len();
        let descendants: Vec<i32> = all
            .iter()
            .filter(|process| of_run.contains(&process.parent))
            .map(|process| process.pid)
            .collect();
        of_run.extend(descendants);
        if of_run.len() == before {
            break;
        }
    }
    all.into_iter()
        .filter(|process| process.alive && of_run.contains(&process.pid))
        .collect()
}

fn every_process() -> Vec<Process> {
    numbers_in("/proc")
        .into_iter()
        .filter_map(read_process)
        .collect()
}

/// Returns the children of ikigai; none if the kernel does not list them.
fn our_children() -> Option<Vec<i32>> {
    let mut children = Vec::new();
    for thread in numbers_in("/proc/self/task") {
        match fs::read_to_string(format!("/proc/self/task/{thread}/children")) {
            Ok(list) => children.extend(
                list.split_whitespace()
                    .filter_map(|pid| pid.parse::<i32>().ok()),
            ),
            // A thread may have ended meanwhile; a kernel without the file lacks it for all
            // threads.
            Err(_) if fs::exists("/proc/thread-self/children").unwrap_or(false) => {}
            Err(_) => return None,
        }
    }
    Some(children)
}

fn numbers_in(directory: &str) -> Vec<i32> {
    fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

fn read_process(pid: i32) -> Option<Process> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may contain anything, so search from the end.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields: Vec<&str> = std::str::from_utf8(stat.get(end + 1..)?)
        .ok()?
        .split_whitespace()
        .collect();
    let number = |index: usize| fields.get(index)?.parse::<i32>().ok();
    Some(Process {
        pid,
        parent: number(1)?,
        group: number(2)?,
        session: number(3)?,
        started: fields.get(19)?.parse().ok()?,
        // A process with an ended first thread looks dead while other threads run.
        alive: !matches!(fields.first(), Some(&("Z" | "X"))) || number(17)? > 1,
    })
}

/// Opens a handle to exactly this process, even if its number is reused later.
fn open(process: &Process) -> Result<OwnedFd, Errno> {
    let pid = Pid::from_raw(process.pid).ok_or(Errno::SRCH)?;
    let handle = pidfd_open(pid, PidfdFlags::empty())?;
    if is_still(process) {
        Ok(handle)
    } else {
        Err(Errno::SRCH)
    }
}

fn is_still(process: &Process) -> bool {
    read_process(process.pid).is_some_and(|current| current.started == process.started)
}

fn signal(process: &Process, signal: Signal) {
    match open(process) {
        Ok(handle) => {
            let _ = pidfd_send_signal(handle, signal);
        }
        Err(Errno::SRCH) => {}
        // No handle is available: use the number, checked just before.
        Err(_) => {
            if is_still(process)
                && let Some(pid) = Pid::from_raw(process.pid)
            {
                let _ = kill_process(pid, signal);
            }
        }
    }
}

/// Signals all processes of the group at once, even starting ones.
fn signal_group(main: Option<i32>, signal: Signal) {
    if let Some(main) = main.and_then(Pid::from_raw) {
        let _ = kill_process_group(main, signal);
    }
}

/// Waits until the first [`MOST_WATCHED`] of these have ended.
fn wait_for(processes: &[Process], until: Instant) {
    let mut handles: Vec<OwnedFd> = processes
        .iter()
        .take(MOST_WATCHED)
        .filter_map(|process| open(process).ok())
        .collect();
    if handles.is_empty() {
        // They are gone, or no handles are available: avoid a busy loop.
        std::thread::sleep(PAUSE.min(until.saturating_duration_since(Instant::now())));
    }
    while !handles.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        let Ok(timeout) = Timespec::try_from(left) else {
            return;
        };
        let mut polled: Vec<PollFd<'_>> = handles
            .iter()
            .map(|handle| PollFd::new(handle, PollFlags::IN))
            .collect();
        match rustix::event::poll(&mut polled, Some(&timeout)) {
            Ok(0) => return,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        let ended: Vec<bool> = polled.iter().map(|one| !one.revents().is_empty()).collect();
        let mut ended = ended.into_iter();
        handles.retain(|_| !ended.next().unwrap_or(false));
    }
}
