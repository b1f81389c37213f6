//! Attempts of sandboxed processes to change processes, objects and files that are not theirs.
//!
//! An attempt is one system call, made by this test program started again as a child
//! (`attempt`). It must fail in the sandbox and succeed without it.

use std::fs;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;

use ikigai_tools::Confinement;
use ikigai_tools::sandbox::reading;

use crate::support::{Line, ORDINARY_USER, run_again, text};

/// Process outside of the sandbox in a separate group, and a shared memory segment.
struct Victim {
    process: Child,
    segment: i64,
}

impl Victim {
    fn new() -> Self {
        const PRIVATE: i64 = 0;
        const CREATE: i64 = 0o1600;
        let process = Command::new("sleep").arg("1000").process_group(0).spawn();
        Self {
            process: process.unwrap(),
            segment: call(libc::SYS_shmget, [PRIVATE, 4096, CREATE, 0, 0]).unwrap(),
        }
    }

    /// Makes an attempt; returns its error number, or zero if it succeeds.
    async fn try_call(&self, name: &str, confinement: Confinement, workdir: &Path) -> i32 {
        let mut line = Line::new("").within(workdir);
        line.job.program = std::env::current_exe().unwrap().into();
        line.job.arguments = [
            "--exact",
            "other_processes::attempt",
            "--ignored",
            "--nocapture",
        ]
        .map(Into::into)
        .to_vec();
        line.job.confinement = confinement;
        for (name, value) in [
            ("ATTEMPT", name.to_owned()),
            ("VICTIM", self.process.id().to_string()),
            ("SEGMENT", self.segment.to_string()),
        ] {
            line.job.variables.push((name.into(), value.into()));
        }
        let ended = line.run().await;
        let said = text(&ended.output);
        let number = said
            .lines()
            .find_map(|line| line.split_once("error number "))
            .unwrap_or_else(|| panic!("{name} was not attempted:\n{said}"));
        number.1.trim().parse().unwrap()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = call(libc::SYS_shmctl, [self.segment, 0, 0, 0, 0]);
    }
}

/// Makes one system call.
#[expect(
    unsafe_code,
    reason = "attempts are system calls that no library makes"
)]
fn call(number: libc::c_long, arguments: [i64; 5]) -> io::Result<i64> {
    let [first, second, third, fourth, fifth] = arguments;
    // SAFETY: pointers among the arguments come from live values of the caller, or are null.
    let result = unsafe { libc::syscall(number, first, second, third, fourth, fifth, 0_i64) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn address<T>(value: &T) -> i64 {
    std::ptr::from_ref(value)
        .addr()
        .cast_signed()
        .try_into()
        .unwrap()
}

/// Makes one attempt. Only run by the other tests.
#[test]
#[ignore = "run by another test, in the sandbox"]
fn attempt() {
    let variable = |name: &str| std::env::var(name).unwrap();
    let victim: i64 = variable("VICTIM").parse().unwrap();
    let segment: i64 = variable("SEGMENT").parse().unwrap();
    let result = match variable("ATTEMPT").as_str() {
        "on itself" => on_itself(),
        "new calls" => Ok(unknown_calls()),
        name => on_others(name, victim, segment).unwrap_or_else(|| on_files(name)),
    };
    let number = result.map_or_else(|error| error.raw_os_error().unwrap_or(-1), |_| 0);
    let line = format!("error number {number}\n");
    io::stdout().write_all(line.as_bytes()).unwrap();
}

/// Attempts on a process or object outside.
fn on_others(name: &str, victim: i64, segment: i64) -> Option<io::Result<i64>> {
    const CORE: i64 = 4;
    const IDLE_CLASS: i64 = 3 << 13;
    let limit = [0_u64, 0];
    let (mask, parameter) = (1_u64, 0_i32);
    let attributes = [48_u64, 0, 0, 0, 0, 0];
    let information = {
        let mut information = [0_i32; 32];
        information[0] = libc::SIGCONT;
        information[2] = -1;
        information
    };
    let handle = || call(libc::SYS_pidfd_open, [victim, 0, 0, 0, 0]);
    let signal = i64::from(libc::SIGCONT);
    Some(match name {
        "prlimit" => call(libc::SYS_prlimit64, [victim, CORE, address(&limit), 0, 0]),
        "setpriority" => call(libc::SYS_setpriority, [0, victim, 5, 0, 0]),
        "setpriority of a group" => call(libc::SYS_setpriority, [1, victim, 6, 0, 0]),
        "setpriority of the user" => call(libc::SYS_setpriority, [2, 0, 0, 0, 0]),
        "ioprio_set" => call(libc::SYS_ioprio_set, [1, victim, IDLE_CLASS, 0, 0]),
        "ioprio_set of a group" => call(libc::SYS_ioprio_set, [2, victim, IDLE_CLASS, 0, 0]),
        "ioprio_set of the user" => call(libc::SYS_ioprio_set, [3, 0, IDLE_CLASS, 0, 0]),
        "sched_setaffinity" => call(
            libc::SYS_sched_setaffinity,
            [victim, 8, address(&mask), 0, 0],
        ),
        "sched_setscheduler" => {
            let batch = i64::from(libc::SCHED_BATCH);
            call(
                libc::SYS_sched_setscheduler,
                [victim, batch, address(&parameter), 0, 0],
            )
        }
        "sched_setparam" => call(
            libc::SYS_sched_setparam,
            [victim, address(&parameter), 0, 0, 0],
        ),
        "sched_setattr" => call(
            libc::SYS_sched_setattr,
            [victim, address(&attributes), 0, 0, 0],
        ),
        "move_pages" => call(libc::SYS_move_pages, [victim, 0, 0, 0, 0]),
        "migrate_pages" => call(libc::SYS_migrate_pages, [victim, 0, 0, 0, 0]),
        "kill" => call(libc::SYS_kill, [victim, signal, 0, 0, 0]),
        "tkill" => call(libc::SYS_tkill, [victim, signal, 0, 0, 0]),
        "tgkill" => call(libc::SYS_tgkill, [victim, victim, signal, 0, 0]),
        "rt_sigqueueinfo" => call(
            libc::SYS_rt_sigqueueinfo,
            [victim, signal, address(&information), 0, 0],
        ),
        "pidfd_send_signal" => {
            handle().and_then(|handle| call(libc::SYS_pidfd_send_signal, [handle, signal, 0, 0, 0]))
        }
        "pidfd_getfd" => {
            handle().and_then(|handle| call(libc::SYS_pidfd_getfd, [handle, 0, 0, 0, 0]))
        }
        "shmctl" => call(libc::SYS_shmctl, [segment, 0, 0, 0, 0]),
        "oom_score_adj" => fs::write(format!("/proc/{victim}/oom_score_adj"), "7").map(|()| 0),
        _ => return None,
    })
}

/// Attempts on files, which commands that only read must not change.
fn on_files(name: &str) -> io::Result<i64> {
    const HERE: i64 = libc::AT_FDCWD as i64;
    let path = c"file";
    let path = address(&path.to_bytes_with_nul()[0]);
    let name_of_attribute = address(&c"user.x".to_bytes_with_nul()[0]);
    let value = address(&1_u64);
    let file = fs::File::open("file").unwrap();
    let opened = i64::from(std::os::fd::AsRawFd::as_raw_fd(&file));
    let ioctl =
        |request: i64, argument: i64| call(libc::SYS_ioctl, [opened, request, argument, 0, 0]);
    match name {
        "chmod" => call(libc::SYS_fchmodat, [HERE, path, 0o777, 0, 0]),
        "fchmod" => call(libc::SYS_fchmod, [opened, 0o777, 0, 0, 0]),
        "fchmodat2" => call(libc::SYS_fchmodat2, [HERE, path, 0o777, 0, 0]),
        "chown" => call(libc::SYS_fchownat, [HERE, path, -1, -1, 0]),
        "fchown" => call(libc::SYS_fchown, [opened, -1, -1, 0, 0]),
        "utimensat" => call(libc::SYS_utimensat, [HERE, path, 0, 0, 0]),
        "truncate" => call(libc::SYS_truncate, [path, 0, 0, 0, 0]),
        "setxattr" => call(libc::SYS_setxattr, [path, name_of_attribute, value, 1, 0]),
        "fsetxattr" => call(
            libc::SYS_fsetxattr,
            [opened, name_of_attribute, value, 1, 0],
        ),
        "removexattr" => call(libc::SYS_removexattr, [path, name_of_attribute, 0, 0, 0]),
        "setxattrat" => call(463, [HERE, path, 0, name_of_attribute, 0]),
        "removexattrat" => call(466, [HERE, path, 0, name_of_attribute, 0]),
        "file_setattr" => call(469, [HERE, path, address(&[0_u64; 4]), 24, 0]),
        "FS_IOC_SETFLAGS" => ioctl(0x4008_6602, address(&0x80_u64)),
        "FS_IOC_FSSETXATTR" => ioctl(0x401c_5820, address(&[0_u64; 4])),
        "FS_IOC_ENABLE_VERITY" => ioctl(0x4080_6685, address(&[0_u64; 16])),
        "FS_IOC_SETVERSION" => ioctl(0x4008_7602, value),
        "FICLONE" => ioctl(0x4004_9409, opened),
        "a lease" => call(libc::SYS_fcntl, [opened, 1024, 0, 0, 0]),
        "shmget" => call(libc::SYS_shmget, [0, 4096, 0o1600, 0, 0]),
        "mq_open" => call(libc::SYS_mq_open, [name_of_attribute, 0o102, 0o600, 0, 0]),
        other => panic!("there is no attempt `{other}`"),
    }
}

/// Changes that programs make to themselves: OpenMP, Python and glibc name themselves by number.
fn on_itself() -> io::Result<i64> {
    let (mask, limit) = ([u64::MAX; 16], [0_u64; 2]);
    let own = i64::from(std::process::id());
    let thread = call(libc::SYS_gettid, [0; 5])?;
    let victim: i64 = std::env::var("VICTIM").unwrap().parse().unwrap();
    let mut child = Command::new("sleep").arg("1000").spawn()?;
    for target in [0, own, thread, i64::from(child.id())] {
        call(
            libc::SYS_sched_setaffinity,
            [target, 128, address(&mask), 0, 0],
        )?;
        call(libc::SYS_setpriority, [0, target, 1, 0, 0])?;
        call(libc::SYS_ioprio_set, [1, target, 2 << 13 | 7, 0, 0])?;
        call(libc::SYS_prlimit64, [target, 4, address(&limit), 0, 0])?;
    }
    child.kill()?;
    child.wait()?;
    call(libc::SYS_setpriority, [1, 0, 2, 0, 0])?;
    // Reading the limits of others is harmless.
    call(libc::SYS_prlimit64, [victim, 4, 0, address(&limit), 0])?;
    // An unused process id belongs to no other process.
    let missing = call(
        libc::SYS_sched_setaffinity,
        [0x3fff_fff0, 128, address(&mask), 0, 0],
    );
    assert_eq!(missing.unwrap_err().raw_os_error(), Some(libc::ESRCH));
    let segment = call(libc::SYS_shmget, [0, 4096, 0o1600, 0, 0])?;
    if std::env::var_os("SHARED_IPC").is_none() {
        call(libc::SYS_shmctl, [segment, 0, 0, 0, 0])?;
    }
    Ok(0)
}

/// Calls newer than the filter do not exist, so that none can be a way around it.
fn unknown_calls() -> i64 {
    for number in 463..700 {
        let error = call(number, [-1, 0, 0, 0, 0]).unwrap_err();
        let only_reads = [464, 465, 468].contains(&number);
        assert!(
            only_reads || error.raw_os_error() == Some(libc::ENOSYS),
            "{number}: {error}"
        );
    }
    0
}

const ON_OTHERS: &[&str] = &[
    "prlimit",
    "setpriority",
    "setpriority of a group",
    "ioprio_set",
    "ioprio_set of a group",
    "sched_setaffinity",
    "sched_setscheduler",
    "sched_setparam",
    "sched_setattr",
    "kill",
    "tkill",
    "tgkill",
    "rt_sigqueueinfo",
    "pidfd_send_signal",
    "pidfd_getfd",
    "oom_score_adj",
    "shmctl",
];

/// These would reach all of the machine outside, or need hardware, so they are tried inside only.
const ON_ALL: &[&str] = &[
    "setpriority of the user",
    "ioprio_set of the user",
    "move_pages",
    "migrate_pages",
];

fn working(directory: &Path) -> Confinement {
    Confinement::Sandbox {
        write: vec![directory.to_path_buf()],
        network: false,
        hosts: Arc::default(),
        loopback: Arc::default(),
        hidden: Arc::from([]),
        guarded: Vec::new(),
    }
}

async fn assert_others_are_out_of_reach() {
    let directory = tempfile::tempdir().unwrap();
    let workdir = directory.path().canonicalize().unwrap();
    for name in ON_OTHERS.iter().chain(ON_ALL) {
        for confinement in [
            working(&workdir),
            reading(Arc::from([])),
            working(Path::new("/")),
        ] {
            let victim = Victim::new();
            let error = victim.try_call(name, confinement.clone(), &workdir).await;
            assert_ne!(error, 0, "`{name}` gets through in {confinement:?}");
        }
        if !ON_ALL.contains(name) {
            let victim = Victim::new();
            let error = victim.try_call(name, Confinement::None, &workdir).await;
            assert_eq!(error, 0, "`{name}` does not even work outside");
        }
    }
}

/// Attack: change processes and shared objects of others.
#[tokio::test]
async fn processes_and_objects_of_others_cannot_be_changed() {
    assert_others_are_out_of_reach().await;
}

#[tokio::test]
async fn a_process_changes_itself_and_its_own_run() {
    let directory = tempfile::tempdir().unwrap();
    let workdir = directory.path().canonicalize().unwrap();
    let mut confinement = working(&workdir);
    for _ in 0..2 {
        let error = Victim::new()
            .try_call("on itself", confinement, &workdir)
            .await;
        assert_eq!(error, 0);
        confinement = Confinement::None;
    }
}

/// Attack: system calls newer than the sandbox.
#[tokio::test]
async fn calls_newer_than_the_filter_do_not_exist() {
    let directory = tempfile::tempdir().unwrap();
    for confinement in [working(directory.path()), reading(Arc::from([]))] {
        let error = Victim::new()
            .try_call("new calls", confinement, directory.path())
            .await;
        assert_eq!(error, 0);
    }
}

#[tokio::test]
async fn a_reading_command_has_no_call_that_changes_a_file() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), "content").unwrap();
    for name in [
        "chmod",
        "fchmod",
        "fchmodat2",
        "chown",
        "fchown",
        "utimensat",
        "truncate",
        "setxattr",
        "fsetxattr",
        "removexattr",
        "setxattrat",
        "removexattrat",
        "file_setattr",
        "FS_IOC_SETFLAGS",
        "FS_IOC_FSSETXATTR",
        "FS_IOC_ENABLE_VERITY",
        "FS_IOC_SETVERSION",
        "FICLONE",
        "a lease",
        "shmget",
        "mq_open",
    ] {
        let error = Victim::new()
            .try_call(name, reading(Arc::from([])), directory.path())
            .await;
        let is_refused = [libc::EPERM, libc::EACCES, libc::ENOSYS].contains(&error);
        assert!(is_refused, "{name}: error {error}");
    }
}

const AGAIN: &[&str] = &[
    "other_processes::processes_and_objects_of_others_cannot_be_changed",
    "other_processes::a_process_changes_itself_and_its_own_run",
];

#[test]
fn all_of_it_holds_without_namespaces() {
    run_again(
        AGAIN,
        &[],
        &[("IKIGAI_TEST_NO_USERNS", "1"), ("SHARED_IPC", "1")],
    );
}

#[test]
fn all_of_it_holds_for_an_ordinary_user() {
    run_again(AGAIN, ORDINARY_USER, &[]);
    run_again(
        AGAIN,
        ORDINARY_USER,
        &[("IKIGAI_TEST_NO_USERNS", "1"), ("SHARED_IPC", "1")],
    );
}
