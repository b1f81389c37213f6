//! Which system calls a sandbox refuses.
//!
//! Everything is allowed but what leads out: sockets, other processes' memory, mounts, namespaces,
//! and doors of the kernel that no command needs. A refused call fails with "operation not
//! permitted". Programs of another architecture than ikigai's are killed.

use std::collections::BTreeMap;
use std::io;
use std::sync::OnceLock;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

/// Calls that are refused whatever they are given.
const REFUSED: &[libc::c_long] = &[
    // The memory and the files of other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_perf_event_open,
    // Files by other ways than their paths, and requests that pass this filter by.
    libc::SYS_open_by_handle_at,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_fanotify_init,
    // What is mounted where.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
];

/// Calls that change what belongs to a file but is not in it: rights, owner, times, attributes.
/// Landlock does not judge these, and a filter does not see which file is meant.
const OF_METADATA: &[libc::c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
];

/// Flags of a new namespace. `CLONE_NEWTIME` is a flag of `unshare` only.
const NAMESPACES: &[libc::c_int] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// The limit whose value is the tag of a run.
const LIMIT_OF_TAG: u64 = 10;

/// A number from which on system calls are those of the x32 interface, which this filter does not
/// know.
const FIRST_X32: u32 = 0x4000_0000;

/// The program that the kernel runs for every system call of a sandbox.
pub(super) fn filter(network: Network, writes: Writes) -> io::Result<&'static BpfProgram> {
    static BUILT: [OnceLock<Option<BpfProgram>>; 4] = [const { OnceLock::new() }; 4];
    let index = usize::from(network == Network::Allowed) * 2 + usize::from(writes == Writes::Some);
    BUILT
        .get(index)
        .and_then(|built| built.get_or_init(|| build(network, writes).ok()).as_ref())
        .ok_or_else(|| io::Error::other("this machine has no filter of system calls"))
}

/// Whether there is network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Network {
    Allowed,
    Refused,
}

/// Whether there is anywhere to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writes {
    Some,
    None,
}

fn build(network: Network, writes: Writes) -> Result<BpfProgram, seccompiler::Error> {
    let filter = SeccompFilter::new(
        rules(network, writes)?,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM.unsigned_abs()),
        TargetArch::try_from(std::env::consts::ARCH)?,
    )?;
    let mut program = before_all_else();
    program.extend(BpfProgram::try_from(filter)?);
    Ok(program)
}

/// Answers "no such call" to x32, and to `clone3`: the flags of that are in memory, where a filter
/// does not see them, and every C library then uses `clone`.
fn before_all_else() -> BpfProgram {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_GREATER_OR_EQUAL: u16 = 0x35;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const RETURN_ERROR: u32 = 0x0005_0000;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        step(LOAD_NUMBER, 0, 0, 0),
        step(JUMP_IF_GREATER_OR_EQUAL, 1, 0, FIRST_X32),
        step(
            JUMP_IF_EQUAL,
            0,
            1,
            u32::try_from(libc::SYS_clone3).unwrap_or(u32::MAX),
        ),
        step(RETURN, 0, 0, RETURN_ERROR | libc::ENOSYS.unsigned_abs()),
    ]
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn rules(network: Network, writes: Writes) -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    if writes == Writes::None {
        rules.extend(OF_METADATA.iter().map(|call| (*call, Vec::new())));
    }
    rules.insert(libc::SYS_unshare, namespaces(&[0x80])?);
    rules.insert(libc::SYS_clone, namespaces(&[])?);
    sockets(&mut rules, network)?;
    // Whoever changes the tag of its run could not be found at its end.
    rules.insert(libc::SYS_setrlimit, vec![all_of(&[(0, Is(LIMIT_OF_TAG))])?]);
    rules.insert(
        libc::SYS_prlimit64,
        vec![all_of(&[(1, Is(LIMIT_OF_TAG)), (2, IsNot(0))])?],
    );
    // Typing on somebody's terminal.
    rules.insert(
        libc::SYS_ioctl,
        vec![
            all_of(&[(1, Is(libc::TIOCSTI))])?,
            all_of(&[(1, Is(libc::TIOCLINUX))])?,
        ],
    );
    Ok(rules)
}

/// No sockets by which daemons of this machine are reached, since some of these do anything for
/// anybody; others only with network. A pair of connected sockets leads nowhere else, if it is not
/// of the kind that can send to any name.
fn sockets(rules: &mut Rules, network: Network) -> Result<(), seccompiler::BackendError> {
    let family = |family: libc::c_int| u64::from(family.unsigned_abs());
    let refused = if network == Network::Allowed {
        vec![
            all_of(&[
                (0, IsNot(family(libc::AF_INET))),
                (0, IsNot(family(libc::AF_INET6))),
                (0, IsNot(family(libc::AF_NETLINK))),
            ])?,
            // Of netlink only what tells about interfaces, which looking up names needs.
            all_of(&[(0, Is(family(libc::AF_NETLINK))), (2, IsNot(0))])?,
        ]
    } else {
        rules.insert(libc::SYS_connect, Vec::new());
        Vec::new()
    };
    rules.insert(libc::SYS_socket, refused);
    let kind = |kind: libc::c_int| Has(0xf, u64::from(kind.unsigned_abs()));
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

/// What an argument must be for a call to be refused.
#[derive(Clone, Copy)]
enum Argument {
    Is(u64),
    IsNot(u64),
    /// Its bits under the mask are these.
    Has(u64, u64),
}
use Argument::{Has, Is, IsNot};

fn all_of(arguments: &[(u8, Argument)]) -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions = arguments
        .iter()
        .map(|(index, argument)| {
            let (operator, value) = match *argument {
                Is(value) => (SeccompCmpOp::Eq, value),
                IsNot(value) => (SeccompCmpOp::Ne, value),
                Has(mask, value) => (SeccompCmpOp::MaskedEq(mask), value),
            };
            // Pointers are compared with zero only, and all others are read by the kernel as
            // numbers of 32 bits: what is above them must not make a difference.
            let length = match *argument {
                IsNot(0) if *index == 2 => SeccompCmpArgLen::Qword,
                _ => SeccompCmpArgLen::Dword,
            };
            SeccompCondition::new(*index, length, operator, value)
        })
        .collect::<Result<_, _>>()?;
    SeccompRule::new(conditions)
}
