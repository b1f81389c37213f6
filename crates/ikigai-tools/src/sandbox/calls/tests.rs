use super::*;

/// Input of a filter, as the kernel gives it.
#[derive(Clone, Copy, Debug)]
struct Call {
    number: u32,
    architecture: u32,
    arguments: [u64; 6],
}

impl Call {
    fn load(&self, offset: u32) -> u32 {
        match offset {
            0 => self.number,
            4 => self.architecture,
            8 | 12 => 0,
            _ => {
                let argument = self.arguments[(offset as usize - 16) / 8];
                let shift = if offset.is_multiple_of(8) { 0 } else { 32 };
                u32::try_from(argument >> shift & 0xffff_ffff).unwrap()
            }
        }
    }
}

/// Runs a program; returns its answer and the number of steps.
fn run(program: &BpfProgram, call: &Call) -> (u32, usize) {
    let (mut at, mut accumulator, mut steps) = (0, 0_u32, 0);
    loop {
        let step = &program[at];
        let jump = |is_true: bool| usize::from(if is_true { step.jt } else { step.jf });
        steps += 1;
        at += 1;
        match step.code {
            0x20 => accumulator = call.load(step.k),
            0x54 => accumulator &= step.k,
            0x05 => at += step.k as usize,
            0x15 => at += jump(accumulator == step.k),
            0x25 => at += jump(accumulator > step.k),
            0x35 => at += jump(accumulator >= step.k),
            0x06 => return (step.k, steps),
            code => panic!("unknown step {code:#x}"),
        }
    }
}

fn architecture() -> u32 {
    let check = compile(Rules::new(), SeccompAction::Errno(1)).unwrap();
    check[1].k
}

const COMBINATIONS: [(Network, WriteAccess, IpcScope, CallJudge); 4] = [
    (
        Network::Refused,
        WriteAccess::Some,
        IpcScope::Private,
        CallJudge::Supervisor,
    ),
    (
        Network::Refused,
        WriteAccess::None,
        IpcScope::Shared,
        CallJudge::Supervisor,
    ),
    (
        Network::Allowed,
        WriteAccess::Some,
        IpcScope::Shared,
        CallJudge::Refusal,
    ),
    (
        Network::Allowed,
        WriteAccess::None,
        IpcScope::Private,
        CallJudge::Refusal,
    ),
];

#[test]
fn the_search_changes_no_answer_of_the_lists() {
    let architecture = architecture();
    let values = [
        0,
        1,
        2,
        3,
        10,
        16,
        17,
        62,
        80,
        1024,
        0x5412,
        0x541c,
        1 << 28,
        1 << 32,
        u64::MAX,
    ];
    for (network, writes, ipc, judge) in COMBINATIONS {
        let refusal = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let refused = compile(rules(network, writes, ipc).unwrap(), refusal).unwrap();
        let of_process = compile(process_rules().unwrap(), SeccompAction::Errno(9)).unwrap();
        let filter = filter(network, writes, ipc, judge, FileStops::None).unwrap();
        for number in (0..FIRST_NEW).filter(|number| i64::from(*number) != libc::SYS_clone3) {
            for index in 0..6 {
                for value in values {
                    let mut arguments = [1; 6];
                    arguments[index] = value;
                    let call = Call {
                        number,
                        architecture,
                        arguments,
                    };

                    let expected = match (run(&refused, &call).0, run(&of_process, &call).0) {
                        (libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_ALLOW) => {
                            libc::SECCOMP_RET_ALLOW
                        }
                        (libc::SECCOMP_RET_ALLOW, _) if judge == CallJudge::Supervisor => {
                            libc::SECCOMP_RET_USER_NOTIF
                        }
                        _ => libc::SECCOMP_RET_ERRNO | 1,
                    };
                    assert_eq!(run(filter, &call).0, expected, "{call:?}");
                }
            }
        }
    }
}

#[test]
fn unknown_calls_and_architectures_are_not_allowed() {
    let architecture = architecture();
    let no_such_call = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    let clone3 = u32::try_from(libc::SYS_clone3).unwrap();
    for (network, writes, ipc, judge) in COMBINATIONS {
        let filter = filter(network, writes, ipc, judge, FileStops::None).unwrap();
        let answer = |number, architecture| {
            let arguments = [0; 6];
            run(
                filter,
                &Call {
                    number,
                    architecture,
                    arguments,
                },
            )
            .0
        };

        for number in [
            clone3,
            FIRST_NEW,
            463,
            466,
            467,
            469,
            500,
            FIRST_X32,
            FIRST_X32 + 1,
            u32::MAX,
        ] {
            assert_eq!(answer(number, architecture), no_such_call, "{number}");
        }
        for number in 0..FIRST_NEW {
            let other = answer(number, architecture ^ 0x8000_0000);
            assert_eq!(other, libc::SECCOMP_RET_KILL_PROCESS, "{number}");
        }
    }
}

#[test]
fn usual_calls_are_allowed_after_few_steps() {
    let architecture = architecture();
    let filter = filter(
        Network::Refused,
        WriteAccess::Some,
        IpcScope::Private,
        CallJudge::Supervisor,
        FileStops::None,
    );
    for call in [
        libc::SYS_read,
        libc::SYS_openat,
        libc::SYS_execve,
        libc::SYS_futex,
    ] {
        let number = u32::try_from(call).unwrap();
        let arguments = [0; 6];
        let (answer, steps) = run(
            filter.as_ref().unwrap(),
            &Call {
                number,
                architecture,
                arguments,
            },
        );

        assert_eq!(answer, libc::SECCOMP_RET_ALLOW);
        assert!(steps < 40, "{call}: {steps} steps");
    }
}

/// A recorded command stops at calls that can change files, and at no others.
#[test]
fn calls_that_can_change_files_are_stopped_to_be_recorded() {
    let filter = filter(
        Network::Loopback,
        WriteAccess::Some,
        IpcScope::Private,
        CallJudge::Supervisor,
        FileStops::Recorded,
    );
    let opening = |flags: i32| {
        let flags = u64::from(flags.unsigned_abs());
        (libc::SYS_openat, [0, 0, flags, 0, 0, 0])
    };
    let named = |call| (call, [0; 6]);
    let cases = [
        (
            opening(libc::O_RDONLY | libc::O_CLOEXEC),
            libc::SECCOMP_RET_ALLOW,
        ),
        (opening(libc::O_PATH), libc::SECCOMP_RET_ALLOW),
        (opening(libc::O_WRONLY), libc::SECCOMP_RET_USER_NOTIF),
        (opening(libc::O_RDWR), libc::SECCOMP_RET_USER_NOTIF),
        (opening(libc::O_CREAT), libc::SECCOMP_RET_USER_NOTIF),
        (opening(libc::O_TRUNC), libc::SECCOMP_RET_USER_NOTIF),
        (named(libc::SYS_renameat2), libc::SECCOMP_RET_USER_NOTIF),
        (named(libc::SYS_unlinkat), libc::SECCOMP_RET_USER_NOTIF),
        (named(libc::SYS_write), libc::SECCOMP_RET_ALLOW),
        (named(libc::SYS_mount), libc::SECCOMP_RET_ERRNO | 1),
    ];
    for ((call, arguments), expected) in cases {
        let call = Call {
            number: u32::try_from(call).unwrap(),
            architecture: architecture(),
            arguments,
        };
        assert_eq!(run(filter.as_ref().unwrap(), &call).0, expected, "{call:?}");
    }
}
