//! Line about the sandbox in the result of a command that failed.

use std::path::PathBuf;

use ikigai_core::data::{RefusalKind, SandboxRefusal};

use crate::Confinement;
use crate::output::visible;

/// Bytes at the end of an output that are searched for signs of the sandbox.
const SEARCHED_BYTES: usize = 16 * 1024;

/// Texts of programs that were refused a file or a system call.
const REFUSED: &[&str] = &[
    "permission denied",
    "operation not permitted",
    "read-only file system",
];

/// Names of the same errors, as Node and others print them.
const REFUSED_CODES: &[&str] = &["EACCES", "EPERM", "EROFS"];

/// Texts of programs that found no network.
const UNREACHABLE: &[&str] = &[
    "could not resolve host",
    "could not resolve proxy",
    "couldn't resolve host",
    "name or service not known",
    "temporary failure in name resolution",
    "temporary failure resolving",
    "failed to lookup address",
    "network is unreachable",
    "address family not supported",
    "dns error",
    "no such host",
];

/// Names of the same errors.
const UNREACHABLE_CODES: &[&str] = &["EAI_AGAIN", "ENOTFOUND", "ENETUNREACH"];

/// File that git creates beside the repository's settings to delete a reference.
const REFERENCE_LOCK: &str = "packed-refs.lock': Permission denied";

/// Longest line of output in a refusal, in characters.
const LINE_CHARS: usize = 200;

/// Returns the last line of an output that has signs of the sandbox.
pub(super) fn evidence(output: &[u8]) -> Option<SandboxRefusal> {
    let has_signs = |line: &&[u8]| {
        let text = String::from_utf8_lossy(line);
        has(&text, REFUSED, REFUSED_CODES) || has(&text, UNREACHABLE, UNREACHABLE_CODES)
    };
    let line = end_of(output)
        .rsplit(|byte| *byte == b'\n')
        .find(has_signs)?;
    Some(SandboxRefusal {
        kind: Some(RefusalKind::Output),
        name: Some(visible(line).trim().chars().take(LINE_CHARS).collect()),
    })
}

/// Returns a line about an error that git prints in a worktree, also when it succeeds.
pub(super) fn git_hint(output: &[u8]) -> Option<String> {
    let is_locked = String::from_utf8_lossy(end_of(output)).contains(REFERENCE_LOCK);
    is_locked.then(|| {
        "in this worktree the sandbox keeps git from deleting branches and tags; ignore its error \
         about packed-refs.lock, and do not look for a lock: commits, new branches, rebase and \
         stash work"
            .to_owned()
    })
}

/// Returns a line for the model if the sandbox is a likely cause of a failure.
///
/// Refused accesses are known; everything else is read from the output.
pub(super) fn hint(
    output: &[u8],
    refused: &[SandboxRefusal],
    confinement: &Confinement,
) -> Option<String> {
    let Confinement::Sandbox {
        write,
        network,
        hosts,
        ..
    } = confinement
    else {
        return None;
    };
    if !refused.is_empty() {
        return Some(describe(refused));
    }
    let end = String::from_utf8_lossy(end_of(output));
    let has = |texts, codes| has(&end, texts, codes);
    if !network && !hosts.is_empty() && has(UNREACHABLE, UNREACHABLE_CODES) {
        return Some(
            "probably the sandbox: commands reach listed hosts only through the proxy in \
             HTTPS_PROXY. Use a program that reads it, or call again with `unconfined` and a \
             `reason`"
                .to_owned(),
        );
    }
    if !network && has(UNREACHABLE, UNREACHABLE_CODES) {
        return Some(
            "probably the sandbox: commands have no network. Use what is on this machine, or call \
             again with `unconfined` and a `reason`"
                .to_owned(),
        );
    }
    if !has(REFUSED, REFUSED_CODES) {
        return None;
    }
    if write.is_empty() {
        return Some(
            "probably the sandbox: this line was taken for one that only reads, so it can write \
             nothing"
                .to_owned(),
        );
    }
    Some(format!(
        "probably the sandbox: commands can write only in {}, and not read credentials. Use \
         another path, or call again with `unconfined` and a `reason`",
        list(write)
    ))
}

fn end_of(output: &[u8]) -> &[u8] {
    let start = output.len().saturating_sub(SEARCHED_BYTES);
    output.get(start..).unwrap_or_default()
}

fn has(text: &str, texts: &[&str], codes: &[&str]) -> bool {
    let lower = text.to_ascii_lowercase();
    texts.iter().any(|it| lower.contains(it)) || codes.iter().any(|code| text.contains(code))
}

fn describe(refused: &[SandboxRefusal]) -> String {
    let names = refused.iter().filter_map(|refusal| {
        let name = refusal.name.as_deref()?;
        Some(match refusal.kind? {
            RefusalKind::Connection => format!("a connection to {name}"),
            RefusalKind::Host => format!("the host {name}, which the user has not listed"),
            RefusalKind::Output => return None,
        })
    });
    let names: Vec<_> = names.collect();
    format!(
        "the sandbox refused {}. Use what is on this machine, or call again with `unconfined` and \
         a `reason`",
        names.join(", ")
    )
}

fn list(directories: &[PathBuf]) -> String {
    let names = directories.iter().map(|path| path.display().to_string());
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
