//! Seccomp filters of a sandbox.
//!
//! A filter has two lists. The first refuses calls that lead out of the sandbox: sockets, other
//! processes' memory, mounts, namespaces, and kernel interfaces that no command needs. The second
//! matches calls that change a process named by its number; a static filter cannot know which
//! numbers are the caller's own, so a supervisor judges them ([`super::listener`]), and without one they
//! are refused. Programs of another architecture than ikigai's are killed.

use std::collections::BTreeMap;
use std::io;
use std::sync::OnceLock;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::FileStops;
use super::bpf::{
    self, JUMP_IF_EQUAL, JUMP_IF_GREATER_OR_EQUAL, LOAD_NUMBER, ListedCall, RETURN, step,
};
use super::call_lists::{
    FIRST_NEW, KNOWN_NEW, NAMESPACES, OF_A_PROCESS, READING_REQUESTS, REFUSED, REFUSED_WHEN_READING,
};
use super::loopback::SocketCall;
use crate::file_history::recorder::{FILE_CALLS, FileCall, FilterStop};

/// Resource limit that carries a run's tag (`RLIMIT_LOCKS`).
const LIMIT_OF_TAG: u64 = 10;

/// First system call number of the x32 interface, which these filters do not know.
const FIRST_X32: u32 = 0x4000_0000;

/// Operation of `fcntl` that delays every other process which opens the file.
const SET_LEASE: u64 = 1024;

/// Type of sockets for raw frames, which `libc` advises against.
const SOCK_PACKET: libc::c_int = 10;

/// Types of sockets other than streams.
const NO_STREAMS: &[libc::c_int] = &[
    libc::SOCK_DGRAM,
    libc::SOCK_RAW,
    libc::SOCK_RDM,
    libc::SOCK_SEQPACKET,
    libc::SOCK_DCCP,
    SOCK_PACKET,
];

/// Operation of `prctl` that ties processes to one core.
const SCHEDULE_CORE: u64 = 62;

/// Network access of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Network {
    Allowed,
    /// TCP on the loopback interface and sockets with paths, as far as a supervisor allows.
    Loopback,
    Refused,
}

/// Write access of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteAccess {
    Some,
    None,
}

/// Scope of the System V and POSIX queues, semaphores and segments of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IpcScope {
    /// Only objects of a private namespace.
    Private,
    /// All objects of the machine, so changing and removing them is refused.
    Shared,
}

/// Answer to a call that changes a process named by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallJudge {
    /// A supervisor decides.
    Supervisor,
    /// Refused.
    Refusal,
}

/// Returns the filter of a sandbox.
pub(super) fn filter(
    network: Network,
    writes: WriteAccess,
    ipc: IpcScope,
    judge: CallJudge,
    files: FileStops,
) -> io::Result<&'static BpfProgram> {
    static BUILT: [OnceLock<Option<BpfProgram>>; 48] = [const { OnceLock::new() }; 48];
    // Without a supervisor there is no one to judge addresses.
    let network = match (network, judge) {
        (Network::Loopback, CallJudge::Refusal) => Network::Refused,
        _ => network,
    };
    let index = usize::from(files == FileStops::Recorded) * 24
        + network as usize * 8
        + usize::from(writes == WriteAccess::Some) * 4
        + usize::from(ipc == IpcScope::Private) * 2
        + usize::from(judge == CallJudge::Supervisor);
    BUILT
        .get(index)
        .and_then(|built| {
            built
                .get_or_init(|| build(network, writes, ipc, judge, files).ok())
                .as_ref()
        })
        .ok_or_else(|| io::Error::other("this machine has no system call filter"))
}

/// Builds a filter: architecture, unknown calls, a search among the listed calls, then their rules.
fn build(
    network: Network,
    writes: WriteAccess,
    ipc: IpcScope,
    judge: CallJudge,
    files: FileStops,
) -> Result<BpfProgram, seccompiler::Error> {
    let refusal = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let (mut rules, mut judged) = (rules(network, writes, ipc)?, process_rules()?);
    if network == Network::Loopback {
        for call in SocketCall::NUMBERS {
            judged.insert(call, vec![all_of(&[(0, ALWAYS)])?]);
        }
    }
    if files == FileStops::Recorded {
        judged.extend(file_rules()?);
    }
    let mut listed: BTreeMap<u32, ListedCall> = BTreeMap::new();
    for (call, rules) in rules.iter().chain(&judged) {
        let verdict = if rules.is_empty() {
            ListedCall::Answered(u32::from(refusal.clone()))
        } else {
            ListedCall::Judged
        };
        // Numbers are positive; the first list counts before the second.
        let number = u32::try_from(*call).unwrap_or(u32::MAX);
        listed.entry(number).or_insert(verdict);
    }
    rules.retain(|_, rules| !rules.is_empty());

    // A filter without rules is the check of the architecture, and its answer.
    let mut program = compile(Rules::new(), refusal.clone())?;
    program.pop();
    program.extend(unknown_calls());
    program.extend(bpf::allow_unlisted(&Vec::from_iter(listed)));
    let judged = match judge {
        CallJudge::Supervisor => bpf::replace_return(
            compile(judged, SeccompAction::Trace(0))?,
            // seccompiler has no action for notifications.
            libc::SECCOMP_RET_TRACE,
            libc::SECCOMP_RET_USER_NOTIF,
        ),
        CallJudge::Refusal => compile(judged, refusal.clone())?,
    };
    program.extend(bpf::chain(compile(rules, refusal)?, judged));
    Ok(program)
}

/// Compiles rules: `action` if one matches.
fn compile(rules: Rules, action: SeccompAction) -> Result<BpfProgram, seccompiler::Error> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, architecture)?;
    Ok(BpfProgram::try_from(filter)?)
}

/// Answers `ENOSYS` to x32, to calls newer than this filter, and to `clone3`.
///
/// The flags of `clone3` are in memory, where a filter does not see them, and every C library then
/// uses `clone`.
fn unknown_calls() -> BpfProgram {
    const RETURN_NO_SUCH_CALL: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    let known = u8::try_from(KNOWN_NEW.len()).unwrap_or(0);
    let clone3 = u32::try_from(libc::SYS_clone3).unwrap_or(u32::MAX);
    let mut program = vec![
        step(LOAD_NUMBER, 0, 0, 0),
        step(JUMP_IF_GREATER_OR_EQUAL, known + 2, 0, FIRST_X32),
        step(JUMP_IF_EQUAL, known + 1, 0, clone3),
        step(JUMP_IF_GREATER_OR_EQUAL, 0, known + 1, FIRST_NEW),
    ];
    program.extend(
        KNOWN_NEW
            .iter()
            .zip((1..=known).rev())
            .map(|(call, past_the_answer)| step(JUMP_IF_EQUAL, past_the_answer, 0, *call)),
    );
    program.push(step(RETURN, 0, 0, RETURN_NO_SUCH_CALL));
    program
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn rules(
    network: Network,
    writes: WriteAccess,
    ipc: IpcScope,
) -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_unshare, namespaces(&[0x80])?);
    rules.insert(libc::SYS_clone, namespaces(&[])?);
    sockets(&mut rules, network)?;
    // A process that changes the tag of its run could not be found at the run's end.
    rules.insert(libc::SYS_setrlimit, vec![all_of(&[(0, Is(LIMIT_OF_TAG))])?]);
    rules.insert(
        libc::SYS_prlimit64,
        vec![all_of(&[(1, Is(LIMIT_OF_TAG)), (2, IsNot(0))])?],
    );
    let group_or_user = |group: u64, user: u64| {
        Ok::<_, seccompiler::BackendError>(vec![
            all_of(&[(0, Is(group)), (1, IsNot(0))])?,
            all_of(&[(0, Is(user))])?,
        ])
    };
    rules.insert(libc::SYS_setpriority, group_or_user(1, 2)?);
    rules.insert(libc::SYS_ioprio_set, group_or_user(2, 3)?);
    rules.insert(libc::SYS_fcntl, vec![all_of(&[(1, Is(SET_LEASE))])?]);
    rules.insert(libc::SYS_prctl, vec![all_of(&[(0, Is(SCHEDULE_CORE))])?]);
    // Typing on a terminal.
    rules.insert(
        libc::SYS_ioctl,
        vec![all_of(&[(1, Is(TIOCSTI))])?, all_of(&[(1, Is(TIOCLINUX))])?],
    );
    if ipc == IpcScope::Shared {
        shared_ipc(&mut rules)?;
    }
    if writes == WriteAccess::None {
        rules.extend(REFUSED_WHEN_READING.iter().map(|call| (*call, Vec::new())));
        let others: Vec<_> = READING_REQUESTS
            .iter()
            .map(|request| (1, IsNot(*request)))
            .collect();
        rules.insert(libc::SYS_ioctl, vec![all_of(&others)?]);
    }
    Ok(rules)
}

/// Refuses to change or remove System V objects and queues, which may be other processes'.
fn shared_ipc(rules: &mut Rules) -> Result<(), seccompiler::BackendError> {
    const REMOVE: u64 = 0;
    const SET: u64 = 1;
    const SET_VALUE: u64 = 16;
    const SET_ALL: u64 = 17;
    let any_of = |index: u8, commands: &[u64]| {
        commands
            .iter()
            .map(|command| all_of(&[(index, Is(*command))]))
            .collect::<Result<Vec<_>, _>>()
    };
    rules.insert(libc::SYS_shmctl, any_of(1, &[REMOVE, SET])?);
    rules.insert(libc::SYS_msgctl, any_of(1, &[REMOVE, SET])?);
    rules.insert(
        libc::SYS_semctl,
        any_of(2, &[REMOVE, SET, SET_VALUE, SET_ALL])?,
    );
    rules.insert(libc::SYS_mq_unlink, Vec::new());
    Ok(())
}

/// Calls that change a process by its number. Zero, the caller itself, matches none.
fn process_rules() -> Result<Rules, seccompiler::BackendError> {
    let mut rules = Rules::new();
    for call in OF_A_PROCESS {
        rules.insert(*call, vec![all_of(&[(0, IsNot(0))])?]);
    }
    rules.insert(
        libc::SYS_prlimit64,
        vec![all_of(&[(0, IsNot(0)), (2, IsNot(0))])?],
    );
    rules.insert(
        libc::SYS_setpriority,
        vec![all_of(&[(0, Is(0)), (1, IsNot(0))])?],
    );
    rules.insert(
        libc::SYS_ioprio_set,
        vec![all_of(&[(0, Is(1)), (1, IsNot(0))])?],
    );
    Ok(rules)
}

/// Calls that can change files, as far as registers tell.
fn file_rules() -> Result<Rules, seccompiler::BackendError> {
    let mut rules = Rules::new();
    for call in FILE_CALLS {
        let stops = match call.stops() {
            FilterStop::Always => vec![all_of(&[(0, ALWAYS)])?],
            FilterStop::WithFlags(index) => FileCall::changing_flags()
                .map(|flag| all_of(&[(index, Has(flag, flag))]))
                .collect::<Result<_, _>>()?,
        };
        rules.insert(call.number(), stops);
    }
    Ok(rules)
}

/// Returns the number of the process that a call of [`process_rules`] names.
pub(super) fn named_process(call: libc::c_int, arguments: &[u64; 6]) -> i32 {
    let by_kind = [libc::SYS_setpriority, libc::SYS_ioprio_set];
    let index = usize::from(by_kind.contains(&libc::c_long::from(call)));
    // The kernel reads the lower half, as a signed number.
    let low = u32::try_from(arguments[index] & u64::from(u32::MAX)).unwrap_or_default();
    low.cast_signed()
}

/// Refuses sockets of local daemons, and all others without network.
///
/// Some daemons do anything for any caller. A pair of connected sockets leads nowhere else, unless
/// its type can send to any name.
fn sockets(rules: &mut Rules, network: Network) -> Result<(), seccompiler::BackendError> {
    let family = |family: libc::c_int| u64::from(family.unsigned_abs());
    let kind = |kind: libc::c_int| Has(0xf, u64::from(kind.unsigned_abs()));
    let refused = match network {
        Network::Allowed => vec![
            all_of(&[
                (0, IsNot(family(libc::AF_INET))),
                (0, IsNot(family(libc::AF_INET6))),
                (0, IsNot(family(libc::AF_NETLINK))),
            ])?,
            // Netlink only for queries about interfaces, which name lookup needs.
            all_of(&[(0, Is(family(libc::AF_NETLINK))), (2, IsNot(0))])?,
        ],
        Network::Loopback => {
            // A connection with the first bytes is made without `connect`.
            let fast_open = u64::from(libc::MSG_FASTOPEN.unsigned_abs());
            for (call, flags) in [
                (libc::SYS_sendto, 3),
                (libc::SYS_sendmsg, 2),
                (libc::SYS_sendmmsg, 3),
            ] {
                rules.insert(call, vec![all_of(&[(flags, Has(fast_open, fast_open))])?]);
            }
            let mut refused = vec![
                all_of(&[
                    (0, IsNot(family(libc::AF_INET))),
                    (0, IsNot(family(libc::AF_INET6))),
                    (0, IsNot(family(libc::AF_UNIX))),
                ])?,
                all_of(&[(2, IsNot(0)), (2, IsNot(family(libc::IPPROTO_TCP)))])?,
            ];
            for other in NO_STREAMS {
                refused.push(all_of(&[(1, kind(*other))])?);
            }
            refused
        }
        Network::Refused => {
            rules.insert(libc::SYS_connect, Vec::new());
            Vec::new()
        }
    };
    rules.insert(libc::SYS_socket, refused);
    rules.insert(
        libc::SYS_socketpair,
        vec![
            all_of(&[(0, IsNot(family(libc::AF_UNIX)))])?,
            all_of(&[(1, kind(libc::SOCK_DGRAM))])?,
            all_of(&[(1, kind(libc::SOCK_RAW))])?,
        ],
    );
    Ok(())
}

fn namespaces(more: &[u64]) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    NAMESPACES
        .iter()
        .map(|flag| u64::from(flag.cast_unsigned()))
        .chain(more.iter().copied())
        .map(|flag| all_of(&[(0, Has(flag, flag))]))
        .collect()
}

/// Condition on an argument of a refused call.
#[derive(Clone, Copy)]
enum Argument {
    Is(u64),
    IsNot(u64),
    /// The bits under the mask (first) equal the value (second).
    Has(u64, u64),
}
use Argument::{Has, Is, IsNot};

/// Terminal requests that put bytes into the input queue. Their type in `libc` depends on the C
/// library.
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541c;

/// Condition that holds for any value.
const ALWAYS: Argument = Has(0, 0);

fn all_of(arguments: &[(u8, Argument)]) -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions = arguments
        .iter()
        .map(|(index, argument)| {
            let (operator, value) = match *argument {
                Is(value) => (SeccompCmpOp::Eq, value),
                IsNot(value) => (SeccompCmpOp::Ne, value),
                Has(mask, value) => (SeccompCmpOp::MaskedEq(mask), value),
            };
            // Pointers are only compared with zero. The kernel reads all other arguments as 32-bit
            // numbers, so the upper half must not matter.
            let length = match *argument {
                IsNot(0) if *index == 2 => SeccompCmpArgLen::Qword,
                _ => SeccompCmpArgLen::Dword,
            };
            SeccompCondition::new(*index, length, operator, value)
        })
        .collect::<Result<_, _>>()?;
    SeccompRule::new(conditions)
}

#[cfg(test)]
mod tests;
