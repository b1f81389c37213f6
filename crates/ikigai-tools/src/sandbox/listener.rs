//! Supervisor of the calls that a filter cannot judge.
//!
//! The child installs the filter and sends the descriptor of its notifications through a socket
//! pair; a thread of ikigai answers them until no process of the run is left. For calls on processes
//! it judges numbers in registers, which no other thread can change after the check, so the kernel
//! continues allowed ones. Calls on sockets it carries out itself ([`super::loopback`]).

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use landlock::RulesetCreated;
use rustix::event::epoll;
use rustix::io::Errno;
use seccompiler::BpfProgram;

use super::LoopbackReach;
use super::calls;
use super::loopback::{Loopback, SocketCall};
use crate::file_history::Recorder;
use crate::file_history::recorder::FileCall;

/// Bytes of a control message that carries one descriptor, with its alignment.
const CONTROL_BYTES: usize = 64;

/// Limit on questions that are read at a time.
const MOST_EVENTS: usize = 16;

/// Control message buffer, aligned as `cmsghdr` needs it.
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// Creates both ends of the way by which a listener reaches ikigai.
///
/// `files` are the rules of the command, under which ikigai carries out calls for it.
pub(super) fn channel(files: RulesetCreated) -> io::Result<(ListenerReceiver, ListenerSender)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let receiver = ListenerReceiver {
        socket: ours,
        files,
    };
    Ok((receiver, ListenerSender(theirs)))
}

/// Child's end: installs the filter and sends its listener.
#[derive(Debug)]
pub(super) struct ListenerSender(UnixStream);

impl ListenerSender {
    /// Installs `filter` with a listener and sends that to ikigai, with a word about mounts.
    ///
    /// A forked child calls this: it makes system calls and neither allocates nor locks.
    pub(super) fn install(&self, filter: &BpfProgram, has_mounts: bool) -> io::Result<()> {
        rustix::thread::set_no_new_privs(true)?;
        let listener = install_filter(filter)?;
        send(
            self.0.as_raw_fd(),
            listener.as_raw_fd(),
            u8::from(has_mounts),
        )
    }
}

/// Ikigai's end: receives the listener once the child runs its program.
#[derive(Debug)]
pub(crate) struct ListenerReceiver {
    socket: UnixStream,
    files: RulesetCreated,
}

impl ListenerReceiver {
    /// Receives the listener, if the child sent one.
    pub(crate) fn receive(self) -> Option<Listener> {
        // A start that was tried several times sent several listeners; the last one lives.
        let received = std::iter::from_fn(|| receive(self.socket.as_raw_fd())).last();
        received.map(|(notifications, has_mounts)| Listener {
            notifications,
            has_mounts,
            files: self.files,
        })
    }
}

/// Listener of a running command.
#[derive(Debug)]
pub(crate) struct Listener {
    notifications: OwnedFd,
    has_mounts: bool,
    files: RulesetCreated,
}

impl Listener {
    /// Returns true if all requested directories are mounted read-only.
    pub(crate) fn has_mounts(&self) -> bool {
        self.has_mounts
    }

    /// Lets the thread that serves all runs answer this one's questions.
    ///
    /// `is_of_run` returns true if a process belongs to the same run as the caller; it may connect
    /// to the addresses of `reach`. Calls that can change files go on after `recorder` saw them.
    pub(crate) fn serve(
        self,
        reach: LoopbackReach,
        recorder: Option<Recorder>,
        is_of_run: impl Fn(i32) -> bool + Send + Sync + 'static,
    ) -> io::Result<()> {
        let supervisor = Supervisor::get().ok_or(Errno::AGAIN)?;
        supervisor.add(SupervisedRun {
            notifications: self.notifications,
            is_of_run: Box::new(is_of_run),
            loopback: Loopback::new(reach, self.files),
            recorder,
        })
    }
}

/// Answers the questions of all runs, on one thread started on demand.
struct Supervisor {
    epoll: OwnedFd,
    runs: Mutex<SupervisedRuns>,
}

#[derive(Default)]
struct SupervisedRuns {
    by_key: HashMap<u64, Arc<SupervisedRun>>,
    next_key: u64,
}

struct SupervisedRun {
    notifications: OwnedFd,
    is_of_run: Box<dyn Fn(i32) -> bool + Send + Sync>,
    loopback: Loopback,
    /// Recorder of changed files, if the filter stops such calls.
    recorder: Option<Recorder>,
}

impl Supervisor {
    /// Returns the supervisor of this process; none if its thread could not be started.
    fn get() -> Option<&'static Self> {
        static STARTED: OnceLock<Option<Supervisor>> = OnceLock::new();
        let start = || {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).ok()?;
            let name = "sandbox judge".to_owned();
            let thread = std::thread::Builder::new().name(name);
            // The thread waits for the value that this function makes.
            let serve = || STARTED.wait().as_ref().map(Self::serve);
            thread.spawn(serve).ok()?;
            Some(Self {
                epoll,
                runs: Mutex::default(),
            })
        };
        STARTED.get_or_init(start).as_ref()
    }

    fn runs(&self) -> MutexGuard<'_, SupervisedRuns> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, run: SupervisedRun) -> io::Result<()> {
        let mut runs = self.runs();
        let key = runs.next_key;
        runs.next_key += 1;
        let data = epoll::EventData::new_u64(key);
        epoll::add(&self.epoll, &run.notifications, data, epoll::EventFlags::IN)?;
        runs.by_key.insert(key, Arc::new(run));
        Ok(())
    }

    fn serve(&self) {
        let mut events = Vec::with_capacity(MOST_EVENTS);
        loop {
            events.clear();
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                None,
            ) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            for event in events.drain(..) {
                let (key, flags) = (event.data.u64(), event.flags);
                let run = self.runs().by_key.get(&key).cloned();
                match run {
                    Some(run) if flags.contains(epoll::EventFlags::IN) => run.answer(),
                    // No process of the run is left. Closing the descriptor ends the watch.
                    _ => drop(self.runs().by_key.remove(&key)),
                }
            }
        }
    }
}

impl SupervisedRun {
    fn answer(self: Arc<Self>) {
        // A caller that was killed meanwhile has no question left.
        let Some(question) = receive_question(&self.notifications) else {
            return;
        };
        let caller = i32::try_from(question.pid).unwrap_or(0);
        if let Some(call) = SocketCall::of(question.data.nr, question.data.args) {
            return self.answer_socket(question.id, caller, call);
        }
        if let Some(call) = FileCall::of(question.data.nr) {
            if let Some(recorder) = &self.recorder {
                recorder.before(caller, call, question.data.args);
            }
            return send_answer(&self.notifications, question.id, Ok(Go::On));
        }
        let target = calls::named_process(question.data.nr, &question.data.args);
        let verdict = judge(caller, target, &self.is_of_run);
        send_answer(&self.notifications, question.id, verdict.map(|()| Go::On));
    }

    /// Carries out a call on a socket, on a separate thread: connecting can wait.
    fn answer_socket(self: Arc<Self>, id: u64, caller: i32, call: SocketCall) {
        let run = self.clone();
        let carry_out = move || {
            let is_valid = || is_waiting(&run.notifications, id);
            let done = run.loopback.carry_out(caller, &call, is_valid);
            send_answer(&run.notifications, id, done.map(|()| Go::Done));
        };
        let thread = std::thread::Builder::new().name("sandbox socket".to_owned());
        if thread.spawn(carry_out).is_err() {
            send_answer(&self.notifications, id, Err(Errno::AGAIN));
        }
    }
}

/// Fate of an allowed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Go {
    /// The kernel carries it out.
    On,
    /// The supervisor carried it out.
    Done,
}

/// Allows a call on process `target`, or returns the error that it gets.
fn judge(caller: i32, target: i32, is_of_run: &dyn Fn(i32) -> bool) -> Result<(), Errno> {
    let Some(process) = process_of(target) else {
        return Err(Errno::SRCH);
    };
    if process_of(caller) == Some(process) || is_of_run(target) {
        Ok(())
    } else {
        Err(Errno::PERM)
    }
}

/// Process that a thread belongs to.
pub(super) fn process_of(thread: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

#[expect(
    unsafe_code,
    reason = "no library offers a filter with a listener, or sends its descriptor without allocating"
)]
mod system {
    use super::{
        AsRawFd, BpfProgram, CONTROL_BYTES, Control, Errno, FromRawFd, Go, OwnedFd, RawFd, io,
    };

    /// Flag of an answer: the kernel carries the call out (`SECCOMP_USER_NOTIF_FLAG_CONTINUE`).
    const CONTINUE: u32 = 1;

    /// Installs a filter of this thread and returns its listener.
    ///
    /// Where the kernel can, only fatal signals interrupt a call that is being answered: a connection
    /// that was made must not be made again.
    pub(super) fn install_filter(filter: &BpfProgram) -> io::Result<OwnedFd> {
        let usual = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        install_with(filter, usual | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
            .or_else(|_| install_with(filter, usual))
    }

    fn install_with(filter: &BpfProgram, flags: libc::c_ulong) -> io::Result<OwnedFd> {
        let program = libc::sock_fprog {
            len: u16::try_from(filter.len()).map_err(|_| Errno::INVAL)?,
            filter: filter.as_ptr().cast_mut().cast(),
        };
        // SAFETY: the kernel copies the program, which has the right length and steps with the
        // layout of `sock_filter`, and returns a new descriptor or an error.
        let result = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const program,
            )
        };
        let descriptor = RawFd::try_from(result).map_err(|_| Errno::BADF)?;
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and belongs to nothing else.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }

    pub(super) fn send(socket: RawFd, descriptor: RawFd, byte: u8) -> io::Result<()> {
        let (mut byte, mut control) = ([byte], Control([0; CONTROL_BYTES]));
        let mut part = part_of(&mut byte);
        let message = message_of(&mut part, &mut control);
        // SAFETY: `message` points at live buffers on the stack; the control buffer is aligned and
        // has room for one descriptor, which the macros' offsets stay within.
        let sent = unsafe {
            let mut message = message;
            message.msg_controllen = libc::CMSG_SPACE(4) as _;
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(4) as _;
            libc::CMSG_DATA(header)
                .cast::<RawFd>()
                .write_unaligned(descriptor);
            libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL)
        };
        if sent == 1 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Receives a descriptor, if one is waiting.
    ///
    /// The byte is true if all requested directories are mounted read-only.
    pub(super) fn receive(socket: RawFd) -> Option<(OwnedFd, bool)> {
        let (mut byte, mut control) = ([0_u8], Control([0; CONTROL_BYTES]));
        let mut part = part_of(&mut byte);
        let mut message = message_of(&mut part, &mut control);
        // SAFETY: as in `send`; a descriptor that the kernel installed for us belongs to nothing
        // else.
        unsafe {
            let received = libc::recvmsg(
                socket,
                &raw mut message,
                libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC,
            );
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            if received != 1 || header.is_null() || (*header).cmsg_type != libc::SCM_RIGHTS {
                return None;
            }
            let descriptor = libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned();
            Some((OwnedFd::from_raw_fd(descriptor), byte == [1]))
        }
    }

    fn part_of(byte: &mut [u8; 1]) -> libc::iovec {
        libc::iovec {
            iov_base: byte.as_mut_ptr().cast(),
            iov_len: 1,
        }
    }

    fn message_of(part: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
        // SAFETY: all zeroes is a valid `msghdr`.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = CONTROL_BYTES as _;
        message
    }

    /// Receives the next call that waits for an answer.
    pub(super) fn receive_question(listener: &OwnedFd) -> Option<libc::seccomp_notif> {
        // SAFETY: all zeroes is a valid `seccomp_notif`, which the kernel demands and fills.
        unsafe {
            let mut question: libc::seccomp_notif = std::mem::zeroed();
            let result = libc::ioctl(
                listener.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV,
                &raw mut question,
            );
            (result == 0).then_some(question)
        }
    }

    /// Returns true if the caller still waits for its answer.
    pub(super) fn is_waiting(listener: &OwnedFd, id: u64) -> bool {
        // SAFETY: the kernel reads the number.
        let result = unsafe {
            libc::ioctl(
                listener.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
                &raw const id,
            )
        };
        result == 0
    }

    /// Lets a call go on, or answers it.
    pub(super) fn send_answer(listener: &OwnedFd, id: u64, verdict: Result<Go, Errno>) {
        let mut answer = libc::seccomp_notif_resp {
            id,
            val: 0,
            error: 0,
            flags: 0,
        };
        match verdict {
            Ok(Go::On) => answer.flags = CONTINUE,
            Ok(Go::Done) => {}
            Err(error) => answer.error = -error.raw_os_error(),
        }
        // SAFETY: the kernel reads the answer. It fails if the caller is gone, which is fine.
        unsafe {
            libc::ioctl(
                listener.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND,
                &raw mut answer,
            );
        }
    }
}
use system::{install_filter, is_waiting, receive, receive_question, send, send_answer};
