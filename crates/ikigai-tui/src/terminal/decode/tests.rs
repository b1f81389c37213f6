use proptest::prelude::*;

use super::*;

/// Events of these bytes, if no more follow.
fn read(bytes: &[u8]) -> Vec<TerminalEvent> {
    let mut out = Vec::new();
    let mut decoder = KeyDecoder::default();
    decoder.feed(bytes, &mut out);
    decoder.finish(&mut out);
    out
}

fn keys(bytes: &[u8]) -> Vec<KeyPress> {
    read(bytes)
        .into_iter()
        .map(|happening| match happening {
            TerminalEvent::Key(key) => key,
            other => panic!("{other:?}"),
        })
        .collect()
}

const fn key(code: KeyCode) -> KeyPress {
    KeyPress::of(code)
}

const fn char(char: char) -> KeyPress {
    KeyPress::of(KeyCode::Char(char))
}

const CTRL_SHIFT_A: KeyPress = KeyPress {
    shift: true,
    ..KeyPress::ctrl('a')
};

const CTRL_LEFT: KeyPress = KeyPress {
    ctrl: true,
    ..KeyPress::of(KeyCode::Left)
};

#[test]
fn keys_of_all_kinds_of_terminals_are_understood() {
    let table: &[(&str, &[KeyPress])] = &[
        ("aÄ中🙂", &[char('a'), char('Ä'), char('中'), char('🙂')]),
        (
            "\r\n\t",
            &[key(KeyCode::Enter), KeyPress::ctrl('j'), key(KeyCode::Tab)],
        ),
        (
            "\u{7f}\u{8}",
            &[key(KeyCode::Backspace), key(KeyCode::Backspace)],
        ),
        ("\u{1}\u{1a}", &[KeyPress::ctrl('a'), KeyPress::ctrl('z')]),
        (
            "\0\u{1f}\u{1c}",
            &[
                KeyPress::ctrl(' '),
                KeyPress::ctrl('_'),
                KeyPress::ctrl('\\'),
            ],
        ),
        ("\x1b", &[key(KeyCode::Escape)]),
        ("\x1b\x1b", &[key(KeyCode::Escape), key(KeyCode::Escape)]),
        (
            "\x1bx\x1bä",
            &[
                KeyPress::alt(KeyCode::Char('x')),
                KeyPress::alt(KeyCode::Char('ä')),
            ],
        ),
        (
            "\x1b\r\x1b\u{7f}",
            &[
                KeyPress::alt(KeyCode::Enter),
                KeyPress::alt(KeyCode::Backspace),
            ],
        ),
        ("\x1b[", &[KeyPress::alt(KeyCode::Char('['))]),
        ("\x1bO", &[KeyPress::alt(KeyCode::Char('O'))]),
        ("\x1b]", &[KeyPress::alt(KeyCode::Char(']'))]),
        ("\x1b[A\x1bOB", &[key(KeyCode::Up), key(KeyCode::Down)]),
        (
            "\x1b[H\x1b[4~\x1bOF",
            &[key(KeyCode::Home), key(KeyCode::End), key(KeyCode::End)],
        ),
        ("\x1b[1;5D\x1bO5D", &[CTRL_LEFT, CTRL_LEFT]),
        (
            "\x1b[1;2A\x1b[a",
            &[KeyPress::shift(KeyCode::Up), KeyPress::shift(KeyCode::Up)],
        ),
        (
            "\x1b[3~\x1b[3;3~",
            &[key(KeyCode::Delete), KeyPress::alt(KeyCode::Delete)],
        ),
        (
            "\x1b[5~\x1b[6~\x1b[2~",
            &[
                key(KeyCode::PageUp),
                key(KeyCode::PageDown),
                key(KeyCode::Insert),
            ],
        ),
        (
            "\x1b[Z\x1b[9;2u",
            &[KeyPress::shift(KeyCode::Tab), KeyPress::shift(KeyCode::Tab)],
        ),
        (
            "\x1bOP\x1b[15~\x1b[24~\x1b[[C",
            &[
                key(KeyCode::F(1)),
                key(KeyCode::F(5)),
                key(KeyCode::F(12)),
                key(KeyCode::F(3)),
            ],
        ),
        (
            "\x1b[1;2R\x1b[25~",
            &[KeyPress::shift(KeyCode::F(3)), key(KeyCode::F(13))],
        ),
        (
            "\x1bOj\x1bOp\x1bOM",
            &[char('*'), char('0'), key(KeyCode::Enter)],
        ),
    ];

    assert_keys(table);
}

#[test]
fn keys_of_extended_protocols_are_understood() {
    let table: &[(&str, &[KeyPress])] = &[
        // The kitty protocol: disambiguated keys, alternates, kinds of events, text.
        (
            "\x1b[27u\x1b[13;2u",
            &[key(KeyCode::Escape), KeyPress::shift(KeyCode::Enter)],
        ),
        (
            "\x1b[97;5u\x1b[97:65;6u",
            &[KeyPress::ctrl('a'), CTRL_SHIFT_A],
        ),
        (
            "\x1b[97:65;2u\x1b[97;4u",
            &[char('A'), KeyPress::alt(KeyCode::Char('A'))],
        ),
        ("\x1b[49:33;2u\x1b[228;;228u", &[char('!'), char('ä')]),
        (
            "\x1b[97;1:1u\x1b[97;1:2u\x1b[97;1:3u",
            &[char('a'), char('a')],
        ),
        ("\x1b[1;1:3A\x1b[3;5:3~", &[]),
        ("\x1b[97;65u\x1b[97;129u", &[char('a'), char('a')]),
        (
            "\x1b[57400u\x1b[57421u\x1b[57376u",
            &[char('1'), key(KeyCode::PageUp), key(KeyCode::F(13))],
        ),
        ("\x1b[57441;2u\x1b[97;9u\x1b[0u\x1b[4294967295u", &[]),
        // The same for xterm.
        (
            "\x1b[27;2;13~\x1b[27;5;97~\x1b[27;6;65~",
            &[
                KeyPress::shift(KeyCode::Enter),
                KeyPress::ctrl('a'),
                CTRL_SHIFT_A,
            ],
        ),
    ];

    assert_keys(table);
}

fn assert_keys(table: &[(&str, &[KeyPress])]) {
    for (bytes, expected) in table {
        assert_eq!(keys(bytes.as_bytes()), *expected, "{bytes:?}");
    }
}

#[test]
fn what_is_no_key_is_swallowed_whole() {
    let table: [&[u8]; 15] = [
        b"\x1b[?62;4c",
        b"\x1b[>0;276;0c",
        b"\x1b[?1u",
        b"\x1b[?2026;2$y",
        b"\x1b[12;40R",
        b"\x1b]11;rgb:0000/0000/0000\x1b\\",
        b"\x1b]11;rgb:0000/0000/0000\x07",
        b"\x1bP>|xterm(390)\x1b\\",
        b"\x1b_Gi=1;OK\x1b\\",
        b"\x1b[201~",
        b"\x1b[1;2;3;4x",
        b"\x1b[M !\"",
        b"\x1b[<35;1;1M",
        b"\x1b[<0;1M\x1b[<:;1;1M",
        b"\x80\xff\xc0\xed\xa0\x80",
    ];

    for bytes in table {
        let mut bytes = bytes.to_vec();
        assert_eq!(read(&bytes), [], "{:?}", String::from_utf8_lossy(&bytes));
        bytes.push(b'k');
        assert_eq!(keys(&bytes), [char('k')]);
    }
}

#[test]
fn an_endless_sequence_is_swallowed_in_little_room() {
    let mut decoder = KeyDecoder::default();
    let mut out = Vec::new();

    decoder.feed(b"\x1b[", &mut out);
    for _ in 0..1_000 {
        decoder.feed(&[b'1'; 1_000], &mut out);
    }
    decoder.feed(b"~a", &mut out);

    assert_eq!(out, [TerminalEvent::Key(char('a'))]);
    assert!(decoder.held.capacity() <= 2 * LONGEST_SEQUENCE + 2);
}

#[test]
fn a_key_ends_an_answer_that_never_ends() {
    assert_eq!(keys(b"\x1b]11;rgb\x03"), [KeyPress::ctrl('c')]);
    assert_eq!(keys(b"\x1b]11;rgb\x1b[A"), [key(KeyCode::Up)]);
    assert_eq!(keys(b"\x1b[12\x03"), [KeyPress::ctrl('c')]);
    assert_eq!(keys(b"\xc3a"), [char('a')]);
}

#[test]
fn the_mouse_tells_where_it_did_what() {
    let mouse = |action, column, row| {
        TerminalEvent::Mouse(MouseEvent {
            action,
            column,
            row,
        })
    };

    let read =
        read(b"\x1b[<0;1;1M\x1b[<32;5;2M\x1b[<0;5;2m\x1b[<64;9;9M\x1b[<81;300;9M\x1b[<2;1;1M");

    assert_eq!(
        read,
        [
            mouse(MouseAction::Press, 0, 0),
            mouse(MouseAction::Drag, 4, 1),
            mouse(MouseAction::Release, 4, 1),
            mouse(MouseAction::WheelUp, 8, 8),
            mouse(MouseAction::WheelDown, 299, 8),
        ]
    );
}

#[test]
fn the_answer_about_the_status_of_programs_is_found() {
    let supported = [TerminalEvent::StatusSupported];
    assert_eq!(read(b"\x1b]7501;1\x1b\\"), supported);
    assert_eq!(read(b"\x1b]7501;supported=1\x07"), supported);
    for other in [
        &b"\x1b]7500;1\x1b\\"[..],
        b"\x1b]11;rgb:0/0/0\x07",
        b"\x1b]750\x07",
    ] {
        assert_eq!(read(other), []);
    }
}

#[test]
fn the_focus_comes_and_goes() {
    assert_eq!(
        read(b"\x1b[I\x1b[O"),
        [TerminalEvent::Focus(true), TerminalEvent::Focus(false)]
    );
}

#[test]
fn a_paste_is_text_whatever_it_holds() {
    let paste = |text: &str| TerminalEvent::Paste(text.to_owned());
    let table: [(&[u8], &str); 5] = [
        (b"a\rb\r\nc\nd\t\x03", "a\nb\nc\nd\t\u{3}"),
        (b"\x1b[A\x1b[20\x1b", "\x1b[A\x1b[20\x1b"),
        (b"\x1b[200~x\x1b\x1b[201", "\x1b[200~x\x1b\x1b[201"),
        (b"\xff\xc3", "\u{fffd}\u{fffd}"),
        (b"", ""),
    ];

    for (bytes, text) in table {
        let whole = [b"\x1b[200~".as_slice(), bytes, b"\x1b[201~z"].concat();

        assert_eq!(read(&whole), [paste(text), TerminalEvent::Key(char('z'))]);
    }
}

#[test]
fn a_paste_without_end_is_bounded() {
    let mut decoder = KeyDecoder::default();
    let mut out = Vec::new();
    decoder.feed(b"\x1b[200~", &mut out);
    let part = vec![b'x'; 1 << 20];

    for _ in 0..20 {
        decoder.feed(&part, &mut out);
        decoder.finish(&mut out);
    }
    decoder.feed(b"\x1b[201~a", &mut out);

    let text = "x".repeat(LONGEST_PASTE);
    assert_eq!(
        out,
        [TerminalEvent::Paste(text), TerminalEvent::Key(char('a'))]
    );
}

/// Bytes as terminals send them, and others.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        any::<Vec<u8>>(),
        "[a-zÄ中🙂]{1,3}".prop_map(String::into_bytes),
        "\x1b\\[[0-9;:<?]{0,8}[A-Za-z~$]".prop_map(String::into_bytes),
        "\x1b[O\\]P_]?[a-z0-9]{0,3}(\x1b\\\\|\x07)?".prop_map(String::into_bytes),
        "\x1b\\[200~[a-z\x1b\\[2]{0,6}(\x1b\\[201~)?".prop_map(String::into_bytes),
    ];
    prop::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn in_whatever_parts_bytes_come_they_are_the_same(
        bytes in bytes(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let mut decoder = KeyDecoder::default();
        let mut out = Vec::new();

        for cut in cuts.windows(2) {
            decoder.feed(&bytes[cut[0]..cut[1]], &mut out);
        }
        decoder.finish(&mut out);

        prop_assert_eq!(out, read(&bytes));
    }

    #[test]
    fn no_key_is_a_control_character(bytes in bytes()) {
        for happening in read(&bytes) {
            if let TerminalEvent::Key(KeyPress { code: KeyCode::Char(char), .. }) = happening {
                prop_assert!(!char.is_control());
            }
        }
    }
}
