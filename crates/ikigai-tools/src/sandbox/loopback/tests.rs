use landlock::RulesetAttr;

use super::*;

fn socket(ip: &str, port: u16, inode: u64) -> ListeningSocket {
    ListeningSocket {
        ip: ip.parse().unwrap(),
        port,
        inode,
    }
}

fn rules() -> RulesetCreated {
    let ruleset = landlock::Ruleset::default();
    let handled = ruleset.handle_access(landlock::AccessFs::Execute).unwrap();
    handled.create().unwrap()
}

#[test]
fn paths_end_at_their_zero_and_names_without_a_file_are_refused() {
    let unix = |rest: &[u8]| {
        let family = u16::try_from(libc::AF_UNIX).unwrap().to_ne_bytes();
        parse_address(&[&family[..], rest].concat())
    };
    for (rest, path) in [
        (&b"/a/b"[..], c"/a/b"),
        (b"a\0", c"a"),
        (b"a\0rest", c"a"),
        (b"\xff ", c"\xff "),
    ] {
        assert!(matches!(unix(rest), Ok(Address::Path(it)) if it.as_c_str() == path));
    }
    for rest in [&b""[..], b"\0", b"\0abstract"] {
        assert_eq!(unix(rest).err(), Some(Errno::PERM));
    }
}

#[test]
fn lines_of_the_kernel_give_listening_sockets() {
    let table = [
        (
            "   1: 0100007F:B197 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 736837 1 0",
            Some(socket("127.0.0.1", 0xb197, 736_837)),
        ),
        (
            "   0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 42 1 0",
            Some(socket("::1", 8080, 42)),
        ),
        // Version 4 on a socket of version 6.
        (
            "   0: 0000000000000000FFFF00000100007F:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 43 1 0",
            Some(socket("127.0.0.1", 8080, 43)),
        ),
        // An established connection.
        (
            "   2: 0100007F:B197 0100007F:0016 01 00000000:00000000 00:00000000 00000000     0        0 44 1 0",
            None,
        ),
        ("no socket", None),
        ("", None),
    ];

    for (line, expected) in table {
        assert_eq!(parse_socket(line), expected, "{line}");
    }
}

#[test]
fn only_sockets_of_the_command_are_connected_to() {
    let reach = LoopbackReach {
        ports: [5432].into(),
        ..LoopbackReach::default()
    };
    let loopback = Loopback::new(reach, rules());
    loopback.listening.lock().unwrap().extend([1, 2]);
    let listening = [
        socket("127.0.0.1", 8000, 1),
        socket("::1", 8001, 2),
        socket("127.0.0.1", 8001, 9),
        socket("0.0.0.0", 22, 9),
        // Another program listens on all addresses of the same port.
        socket("127.0.0.1", 8002, 1),
        socket("::", 8002, 9),
    ];
    let judged = |address: &str| loopback.judge_listener(address.parse().unwrap(), &listening);

    assert_eq!(judged("127.0.0.1:8000"), Ok(()));
    assert_eq!(judged("[::ffff:127.0.0.1]:8000"), Ok(()));
    assert_eq!(judged("[::1]:8001"), Ok(()));
    for address in [
        "127.0.0.1:8001",
        "127.0.0.1:22",
        "[::1]:22",
        "127.0.0.1:8002",
    ] {
        assert_eq!(judged(address), Err(Errno::ACCESS), "{address}");
    }
    for address in ["127.0.0.1:7", "127.0.0.2:8000", "[::1]:8000"] {
        assert_eq!(judged(address), Err(Errno::CONNREFUSED), "{address}");
    }
}

/// A server of another command of the agent opens no port of other programs.
#[test]
fn servers_of_the_same_agent_are_known_by_their_sockets() {
    let reach = LoopbackReach {
        sockets: Some(std::sync::Arc::new(|| [7].into())),
        ..LoopbackReach::default()
    };
    let loopback = Loopback::new(reach, rules());
    let listening = [
        socket("127.0.0.1", 5432, 9),
        socket("127.0.0.2", 5432, 7),
        socket("127.0.0.1", 8000, 7),
    ];
    let judged = |address: &str| loopback.judge_listener(address.parse().unwrap(), &listening);

    assert_eq!(judged("127.0.0.1:5432"), Err(Errno::ACCESS));
    assert_eq!(judged("127.0.0.2:5432"), Ok(()));
    assert_eq!(judged("127.0.0.1:8000"), Ok(()));
    assert_eq!(judged("127.0.0.1:5432"), Err(Errno::ACCESS));
}

#[test]
fn addresses_that_are_too_short_or_of_other_families_are_refused() {
    let inet = |family: libc::c_int, rest: &[u8]| {
        let family = u16::try_from(family).unwrap().to_ne_bytes();
        parse_address(&[&family[..], rest].concat())
    };

    assert!(matches!(
        inet(libc::AF_INET, &[0x1f, 0x90, 127, 0, 0, 1, 0, 0]),
        Ok(Address::Ip(address)) if address == "127.0.0.1:8080".parse().unwrap()
    ));
    assert!(matches!(inet(libc::AF_UNSPEC, &[]), Ok(Address::None)));
    for (family, rest) in [
        (libc::AF_INET, &[0x1f, 0x90, 127][..]),
        (libc::AF_INET6, &[0x1f, 0x90, 0, 0, 0, 0, 1, 2, 3]),
    ] {
        assert_eq!(inet(family, rest).err(), Some(Errno::INVAL));
    }
    assert_eq!(
        inet(libc::AF_BLUETOOTH, b"/x").err(),
        Some(Errno::AFNOSUPPORT)
    );
    assert_eq!(parse_address(&[1]).err(), Some(Errno::INVAL));
}
