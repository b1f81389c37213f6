//! Assembly of seccomp programs from parts.

use seccompiler::{BpfProgram, sock_filter};

/// Loads the number of the call.
pub(super) const LOAD_NUMBER: u16 = 0x20;
pub(super) const JUMP_IF_GREATER_OR_EQUAL: u16 = 0x35;
pub(super) const JUMP_IF_EQUAL: u16 = 0x15;
pub(super) const RETURN: u16 = 0x06;
const JUMP: u16 = 0x05;

/// Listed calls that a branch of the search compares one by one.
const LEAF_CALLS: usize = 3;

/// Returns one step of a program.
pub(super) fn step(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// Verdict on a listed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListedCall {
    /// Answered at once.
    Answered(u32),
    /// Judged by the steps after the search.
    Judged,
}

/// Allows all calls but the `listed` ones, which must be sorted by number.
///
/// Expects the number of the call to be loaded. When a filter is installed, the kernel translates
/// it and tries it for every number, so its length costs at every start of a process.
pub(super) fn allow_unlisted(listed: &[(u32, ListedCall)]) -> BpfProgram {
    let mut program = search(listed);
    let end = program.len();
    for (index, step) in program.iter_mut().enumerate() {
        if step.code == JUMP && step.k == u32::MAX {
            step.k = distance(index, end);
        }
    }
    program
}

/// Builds a binary search. A jump by [`u32::MAX`] leads to the end of the whole program.
fn search(listed: &[(u32, ListedCall)]) -> BpfProgram {
    let mut program = BpfProgram::new();
    if listed.len() <= LEAF_CALLS {
        for (call, verdict) in listed {
            program.push(step(JUMP_IF_EQUAL, 0, 1, *call));
            program.push(match verdict {
                ListedCall::Answered(answer) => step(RETURN, 0, 0, *answer),
                ListedCall::Judged => step(JUMP, 0, 0, u32::MAX),
            });
        }
        program.push(step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
        return program;
    }
    let (lower, upper) = listed.split_at(listed.len() / 2);
    let middle = upper.first().map_or(0, |(call, _)| *call);
    let (lower, upper) = (search(lower), search(upper));
    program.push(step(JUMP_IF_GREATER_OR_EQUAL, 0, 1, middle));
    program.push(step(JUMP, 0, 0, distance(0, lower.len() + 1)));
    program.extend(lower);
    program.extend(upper);
    program
}

/// Lets `second` judge the calls that `first` allows.
pub(super) fn chain(mut first: BpfProgram, second: BpfProgram) -> BpfProgram {
    let end = first.len();
    for (index, each) in first.iter_mut().enumerate() {
        if each.code == RETURN && each.k == libc::SECCOMP_RET_ALLOW {
            *each = step(JUMP, 0, 0, distance(index, end));
        }
    }
    first.extend(second);
    first
}

/// Replaces one answer of a program by another.
pub(super) fn replace_return(mut program: BpfProgram, old: u32, new: u32) -> BpfProgram {
    for step in &mut program {
        if step.code == RETURN && step.k == old {
            step.k = new;
        }
    }
    program
}

/// Returns the operand of a jump at `index` to step `target`.
fn distance(index: usize, target: usize) -> u32 {
    u32::try_from(target - index - 1).unwrap_or(u32::MAX)
}
