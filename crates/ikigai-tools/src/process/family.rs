//! Everything that a run started: finding it, ending it, and reaping what became ours.
//!
//! A process leaves its run in several ways, so it is looked for in several. It may be in the
//! run's session or process group, carry the cookie in its environment, carry the run's *tag*, or
//! descend from one that does. The tag is a number in the soft limit of file locks, which no
//! kernel since 2.6 looks at: like every limit it is inherited through `fork`, `setsid` and `exec`
//! with an empty environment, it can be read from outside even of a zombie, and programs leave it
//! alone (in the sandbox they cannot change it).
//!
//! ikigai is a *subreaper*: a process whose parent died becomes its child, not that of process 1.
//! So once the main process of a run is gone, whatever is left of the run is a child of ikigai or
//! below one, and the usual case, that nothing is left, is seen without looking at every process
//! of the machine.

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

/// How long the ending of a killed process is waited for. Only one that hangs in the kernel, on a
/// dead network disk for example, takes longer; nobody can end that one.
const MOST_WAITED: Duration = Duration::from_secs(5);

/// How many processes are waited for at a time, since each takes a file descriptor.
const MOST_WATCHED: usize = 64;

/// How long a round waits before it looks for processes that were started meanwhile.
const ROUND: Duration = Duration::from_millis(50);

/// How long it waits where there is nothing to wait on.
const PAUSE: Duration = Duration::from_millis(1);

/// By what the processes of one run are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    entry: Vec<u8>,
    tag: u64,
}

/// One process, as far as it matters here. Number and start together name it for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    group: i32,
    session: i32,
    started: u64,
    alive: bool,
}

/// A tag that a process can put on.
#[derive(Clone, Copy)]
pub(crate) struct Tag(Option<Rlimit>);

impl Tag {
    /// Puts it on, for this process and all that it starts. A forked child calls this: it makes
    /// one system call and nothing else.
    pub(crate) fn put_on(self) {
        if let Some(limit) = self.0 {
            // Without the tag the run is still found by session, cookie and descent.
            let _ = setrlimit(Resource::Locks, limit);
        }
    }
}

impl Mark {
    /// The mark of the run that has this cookie.
    pub(crate) fn new(cookie: &str) -> Self {
        let digest = Sha256::digest(cookie.as_bytes());
        let number = digest
            .iter()
            .take(8)
            .fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        Self {
            entry: format!("{COOKIE_VARIABLE}={cookie}").into_bytes(),
            // Larger than any limit that a person would set, smaller than "unlimited".
            tag: number >> 2 | 1 << 61,
        }
    }

    /// The tag for a process of the run: none where limits are too low for it.
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

    /// True if a process or thread carries the tag of the run.
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

/// Makes ikigai the parent of what its children leave behind. Called before every spawn, done once.
pub(crate) fn adopt_orphans() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        // Without it daemons are still found by their marks, only not as our children.
        let _ = set_child_subreaper(Some(getpid()));
    });
}

/// True if ikigai has no children at all, dead ones included, so that nothing is left of any run.
///
/// One system call. Meaningful only after the main process was waited for.
pub(crate) fn has_no_children() -> bool {
    /// Counts children of every kind (`__WALL`).
    const ALL: WaitIdOptions = WaitIdOptions::from_bits_retain(0x4000_0000);
    let without_effect = ALL
        | WaitIdOptions::EXITED
        | WaitIdOptions::STOPPED
        | WaitIdOptions::CONTINUED
        | WaitIdOptions::NOHANG
        | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::All, without_effect), Err(Errno::CHILD))
}

/// Whether anything of a run is left whose main process was waited for. Cheap when nothing is.
pub(crate) fn is_left(mark: &Mark) -> bool {
    let Some(children) = our_children() else {
        return !find(mark, None).is_empty();
    };
    children
        .into_iter()
        .filter_map(read_process)
        .any(|child| child.alive && mark.is_on(child))
}

/// Waits until nothing is left of a run whose main process was waited for. Blocks.
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

/// Ends everything of a run of ours: asks it to, waits for `grace`, then kills. Blocks, at worst
/// for `grace` and [`MOST_WAITED`]. `main` is the run's main process as long as it was not waited
/// for; that is left to whoever started it. Returns how many processes there were.
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

/// Ends everything of a run that somebody else began, so that the dead are not ours to reap.
pub(crate) fn end_foreign(mark: &Mark, grace: Duration) -> usize {
    end_living(mark, None, grace).len()
}

/// Ends processes; gives their numbers and starts.
fn end_living(mark: &Mark, main: Option<i32>, grace: Duration) -> BTreeMap<i32, u64> {
    let mut known = BTreeMap::new();
    let mut look = || {
        let living = find(mark, main);
        known.extend(living.iter().map(|process| (process.pid, process.started)));
        living
    };

    let mut asked = BTreeSet::new();
    let until = Instant::now() + grace;
    loop {
        let living = look();
        if living.is_empty() || Instant::now() >= until {
            break;
        }
        if asked.is_empty() {
            signal_group(main, Signal::TERM);
        }
        for process in &living {
            if asked.insert((process.pid, process.started)) {
                signal(process, Signal::TERM);
                // A stopped process sees the signal only when it goes on.
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

/// Reaps the dead of a run that became children of ikigai. Its main process is left to whoever
/// started it, and other children of ikigai to theirs.
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

/// Finds the living processes of a run, among all of the machine.
fn find(mark: &Mark, main: Option<i32>) -> Vec<Process> {
    let all = every_process();
    let mut of_run: BTreeSet<i32> = all
        .iter()
        .filter(|process| {
            // Numbers of a group and a session are the run's own only until its main process was
            // waited for: after that they may belong to others.
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

/// The children of ikigai, or none if the kernel does not list them.
fn our_children() -> Option<Vec<i32>> {
    let mut children = Vec::new();
    for thread in numbers_in("/proc/self/task") {
        match fs::read_to_string(format!("/proc/self/task/{thread}/children")) {
            Ok(list) => children.extend(
                list.split_whitespace()
                    .filter_map(|pid| pid.parse::<i32>().ok()),
            ),
            // A thread may have ended meanwhile; a kernel without the file lacks it for all.
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
    // The name is in parentheses and may hold anything, so what follows is found from its end.
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
        // A process whose first thread ended looks dead while others of its threads run.
        alive: !matches!(fields.first(), Some(&("Z" | "X"))) || number(17)? > 1,
    })
}

/// A handle of exactly this process, which a later one of the same number cannot take over.
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
        // No handles to be had: the number must do, looked at as shortly before as can be.
        Err(_) => {
            if is_still(process)
                && let Some(pid) = Pid::from_raw(process.pid)
            {
                let _ = kill_process(pid, signal);
            }
        }
    }
}

/// Reaches every process of the group at once, also those that are being started.
fn signal_group(main: Option<i32>, signal: Signal) {
    if let Some(main) = main.and_then(Pid::from_raw) {
        let _ = kill_process_group(main, signal);
    }
}

/// Waits until the first of these have ended, as many as are watched at a time.
fn wait_for(processes: &[Process], until: Instant) {
    let mut handles: Vec<OwnedFd> = processes
        .iter()
        .take(MOST_WATCHED)
        .filter_map(|process| open(process).ok())
        .collect();
    if handles.is_empty() {
        // They are gone, or there are no handles to be had: then at least without haste.
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
