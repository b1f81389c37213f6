use std::path::Path;
use std::sync::Arc;

use ikigai_core::data::{RefusalKind, SandboxRefusal};

use super::{evidence, git_hint, hint};
use crate::{Confinement, sandbox};

#[test]
fn a_failure_is_explained_if_the_sandbox_is_a_likely_cause() {
    let working = |network| sandbox::usual(Path::new("/home/me/project"), network, Arc::from([]));
    let reading = sandbox::reading(Arc::from([]));
    let table = [
        (
            "touch: cannot touch '/usr/x': Permission denied",
            working(false),
            Some("can write only in /dev/shm, /home/me/project, /tmp, /var/tmp"),
        ),
        (
            "Error: EACCES: open '/usr/x'",
            working(true),
            Some("can write only in"),
        ),
        (
            "socket: Operation not permitted",
            working(true),
            Some("call again with `unconfined` and a `reason`"),
        ),
        (
            "curl: (6) Could not resolve host: example.org",
            working(false),
            Some("commands have no network"),
        ),
        (
            "getaddrinfo EAI_AGAIN registry",
            working(false),
            Some("commands have no network"),
        ),
        (
            "curl: (6) Could not resolve host: example.org",
            working(true),
            None,
        ),
        (
            "sed: couldn't open temporary file: Permission denied",
            reading,
            Some("it can write nothing"),
        ),
        ("assertion failed: left == right", working(false), None),
        (
            "touch: cannot touch '/usr/x': Permission denied",
            Confinement::None,
            None,
        ),
    ];

    for (output, confinement, expected) in table {
        let line = hint(output.as_bytes(), &[], &confinement);
        match (&line, expected) {
            (Some(line), Some(expected)) => assert!(line.contains(expected), "{line}"),
            _ => assert_eq!(line.as_deref(), expected, "{output}"),
        }
    }
}

#[test]
fn only_the_end_of_a_long_output_counts() {
    let confinement = sandbox::usual(Path::new("/w"), false, Arc::from([]));
    let mut output = b"Permission denied\n".to_vec();
    output.extend(vec![b'x'; 20_000]);

    assert_eq!(hint(&output, &[], &confinement), None);
}

#[test]
fn the_last_line_with_signs_is_the_evidence() {
    let output = "start\ntouch: cannot touch '/usr/x': Permission denied\nok\n\
                  mkdir: '/usr/y\u{1b}[31m': Read-only file system\nmake: *** Error 1\n";
    let long = format!("{} permission denied", "x".repeat(400));

    let found = evidence(output.as_bytes()).unwrap();

    assert_eq!(found.kind, Some(RefusalKind::Output));
    let name = found.name.unwrap();
    assert!(name.starts_with("mkdir: '/usr/y"), "{name}");
    assert!(!name.contains('\u{1b}'), "{name}");
    assert_eq!(evidence(long.as_bytes()).unwrap().name.unwrap().len(), 200);
    assert_eq!(evidence(b"assertion failed\n"), None);
    assert_eq!(evidence(b""), None);
}

/// Known refusals are named, whatever the command printed.
#[test]
fn refused_addresses_and_hosts_are_named() {
    let confinement = sandbox::usual(Path::new("/home/me/project"), false, Arc::from([]));
    let refusal = |kind, name: &str| SandboxRefusal {
        kind: Some(kind),
        name: Some(name.to_owned()),
    };
    let refused = [
        refusal(RefusalKind::Connection, "192.0.2.1:80"),
        refusal(RefusalKind::Host, "evil.com:443"),
    ];

    let line = hint(b"it failed\n", &refused, &confinement).unwrap();

    let expected = "the sandbox refused a connection to 192.0.2.1:80, the host evil.com:443, which the user \
                    has not listed.";
    assert!(line.starts_with(expected), "{line}");
}

/// Git's error in a worktree comes with an explanation, whatever the exit status.
#[test]
fn an_error_about_the_lock_of_references_is_explained() {
    let error = b"error: Unable to create '/p/.git/packed-refs.lock': Permission denied\n";

    let line = git_hint(error).unwrap();

    assert!(line.contains("ignore its error"), "{line}");
    let other = b"error: Unable to create '/p/.git/packed-refs.lock': File exists.\n";
    assert_eq!(git_hint(other), None);
}
