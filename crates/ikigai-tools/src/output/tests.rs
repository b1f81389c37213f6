use std::borrow::Cow;

use ikigai_testkit::cases;
use proptest::prelude::*;

use ikigai_core::project::estimate_tokens;

use super::{
    Collector, MOST_KEPT_BYTES, MOST_SENT_BYTES, OutputLimit, Presented, clean, present,
    present_within, visible,
};
use crate::files::sha256_hex;

fn as_it_is(bytes: &[u8]) -> Cow<'_, [u8]> {
    Cow::Borrowed(bytes)
}

#[test]
fn text_is_cleaned_as_a_terminal_would_leave_it() {
    let table: &[(&[u8], &str)] = &[
        (b"plain\n\ttext\n", "plain\n\ttext\n"),
        (b"one\r\ntwo\r\n", "one\ntwo\n"),
        (b"\x1b[31;1mred\x1b[0m", "red"),
        (b"10%\r50%\r100%\n", "100%\n"),
        (b"abcdef\rXY\n", "XYcdef\n"),
        (b"abcdef\r\x1b[Kxy\n", "xy\n"),
        (b"abcdef\x1b[2K\rxy\n", "xy\n"),
        (b"ab\x1b[2Kcd\n", "  cd\n"),
        (b"trailing\r", "trailing"),
        (b"typo\x08\x08\x08ext\n", "text\n"),
        (b"\x1b]0;title\x07after", "after"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "link\n"),
        (b"\x1bPq#0;2;0\x1b\\picture", "picture"),
        (b"\x1b(Bset\x1b=keys", "setkeys"),
        ("\u{9b}31mred \u{9d}title\u{9c}x".as_bytes(), "red x"),
        (
            b"never ended \x1b]0;title\nnext line\n",
            "never ended \nnext line\n",
        ),
        (b"half \x1b[31\nnext", "half \nnext"),
        (b"end \x1b", "end "),
        (b"\x1b\x1b[1mx", "x"),
        (b"a\0b\x01c\x7fd\x0be", "abcde"),
        (b"\xff\xfe ok \xc3", "\u{fffd}\u{fffd} ok \u{fffd}"),
        ("grün\r漢\n".as_bytes(), "漢rün\n"),
    ];

    for (bytes, expected) in table {
        assert_eq!(
            clean(bytes),
            *expected,
            "{:?}",
            String::from_utf8_lossy(bytes)
        );
    }
}

#[test]
fn what_is_visible_leaves_nothing_out() {
    assert_eq!(visible(b"a\tb\x1b[1m\r\0\x7f\xff"), "a\tb␛[1m␍␀␡\u{fffd}");
    assert_eq!(visible("\u{9b}1m".as_bytes()), "\u{fffd}1m");
}

#[test]
fn a_short_clean_output_needs_no_blob() {
    let presented = present(b"hello\n", &as_it_is);

    assert_eq!(
        presented,
        Presented {
            text: "hello\n".to_owned(),
            blob: None
        }
    );
}

#[test]
fn what_was_cleaned_is_kept_exact_beside_it() {
    let body = b"\x1b[1mbold\x1b[0m \xff\n";

    let presented = present(body, &as_it_is);

    assert_eq!(
        presented,
        Presented {
            text: "bold \u{fffd}\n".to_owned(),
            blob: Some(body.to_vec())
        }
    );
}

#[test]
fn a_long_output_keeps_head_and_tail_and_says_how_to_see_the_rest() {
    let lines: Vec<String> = (1..=20_000).map(|line| format!("line {line}\n")).collect();
    let body = lines.concat();

    let presented = present(body.as_bytes(), &as_it_is);

    let lines: Vec<&str> = presented.text.lines().collect();
    let note = lines
        .iter()
        .position(|line| line.starts_with("[…"))
        .unwrap();
    let shown = presented.text.len() - lines[note].len() - 1;
    let left_out = body.len() - shown;
    let missing = 20_000 - (lines.len() - 1);
    let hash = sha256_hex(body.as_bytes());
    assert_eq!(lines[0], "line 1");
    assert_eq!(lines[note - 1], format!("line {note}"));
    assert_eq!(lines[lines.len() - 1], "line 20000");
    assert_eq!(
        lines[note],
        format!(
            "[… {left_out} bytes ({missing} lines) are left out here; file_read with file_path \
             `blob:{hash}` pages through all of it …]"
        )
    );
    assert!(presented.text.len() > MOST_SENT_BYTES / 2);
    assert_eq!(presented.blob, Some(body.into_bytes()));
}

#[test]
fn secrets_are_blanked_before_anything_is_cut() {
    // The secret crosses the end of the head.
    let secret = "sk-0123456789abcdef".repeat(20);
    let mut body = vec![b'.'; MOST_SENT_BYTES / 2 - 300];
    body.extend_from_slice(secret.as_bytes());
    body.resize(MOST_SENT_BYTES * 2, b'.');

    let presented = present(&body, &|bytes| {
        let text = String::from_utf8_lossy(bytes);
        Cow::Owned(text.replace(&secret, "[blanked]").into_bytes())
    });

    assert!(presented.text.contains("[blanked]"));
    assert!(!presented.text.contains("sk-"));
    assert!(
        !String::from_utf8(presented.blob.unwrap())
            .unwrap()
            .contains("sk-")
    );
}

#[test]
fn blanks_longer_than_secrets_do_not_make_a_blob_too_large() {
    let body = vec![b'x'; MOST_KEPT_BYTES];

    let presented = present(&body, &|bytes| Cow::Owned([bytes, b"[blanked]"].concat()));

    assert!(presented.blob.unwrap().len() <= MOST_KEPT_BYTES);
}

#[test]
fn a_gigabyte_is_collected_in_bounded_memory() {
    let mut collector = Collector::new();
    let chunk: Vec<u8> = b"0123456789abcde\n".repeat(4096);

    for _ in 0..1 << 14 {
        collector.push(&chunk);
    }

    assert_eq!(collector.total(), 1 << 30);
    assert!(collector.held_bytes() <= 2 * MOST_KEPT_BYTES);
    assert_eq!(collector.newest_line(), "0123456789abcde");
    let body = collector.into_body();
    let text = std::str::from_utf8(&body).unwrap();
    let notes: Vec<&str> = text
        .lines()
        .filter(|line| *line != "0123456789abcde")
        .collect();
    let kept = body.len() - notes[1].len() - "\n\n".len();
    assert_eq!(
        notes,
        [
            "",
            &format!("[… {} bytes are left out here …]", (1 << 30) - kept)
        ]
    );
    assert!(body.len() <= MOST_KEPT_BYTES && body.len() > MOST_KEPT_BYTES - 1024);
}

#[test]
fn a_single_line_of_fifty_megabytes_is_collected_and_presented() {
    let mut collector = Collector::new();
    // Both halves then begin and end inside a character.
    let line = format!("{}!", "漢".repeat(17 * 1024 * 1024));

    for chunk in line.as_bytes().chunks(65_537) {
        collector.push(chunk);
    }

    assert_eq!(collector.newest_line(), format!("{}!", "漢".repeat(199)));
    let body = collector.into_body();
    assert!(body.len() <= MOST_KEPT_BYTES);
    assert!(
        std::str::from_utf8(&body).is_ok(),
        "no character is cut in half"
    );
    let presented = present(&body, &as_it_is);
    assert!(presented.text.len() <= MOST_SENT_BYTES);
    assert!(!presented.text.contains('\u{fffd}'));
}

#[test]
fn the_newest_line_is_the_last_with_text() {
    let table: &[(&[&str], &str)] = &[
        (&[], ""),
        (&["\n", " \n"], ""),
        (&["one\n", "two"], "two"),
        (&["one\ntwo\n\n"], "two"),
        (&["par", "tial"], "partial"),
        (&["10%\r", "20%"], "20%"),
        (&["\x1b[32mok\x1b[0m\n"], "ok"),
    ];

    for (pushes, expected) in table {
        let mut collector = Collector::new();
        for push in *pushes {
            collector.push(push.as_bytes());
        }
        assert_eq!(collector.newest_line(), *expected, "{pushes:?}");
    }
}

#[test]
fn a_cut_splits_no_word() {
    let secret = b"sk-0123456789abcdef";
    let mut collector = Collector::keeping(1024);
    let mut stream = vec![b'.'; 500];
    stream.push(b' ');
    stream.extend_from_slice(secret);
    stream.extend_from_slice(&[b' '; 10]);
    stream.resize(5000, b'.');

    collector.push(&stream);

    let body = collector.into_body();
    assert!(!body.windows(3).any(|window| window == b"sk-"));
}

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        Just(b"\x1b[".to_vec()),
        Just(b"\x1b]".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\n".to_vec()),
        Just("é漢\u{9b}".as_bytes().to_vec()),
        Just(vec![b'x'; 9_000]),
        Just(b"line of text\n".repeat(700)),
    ];
    proptest::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases(300, 20_000))
    })]

    #[test]
    fn anything_is_presented_within_bounds(body in any_bytes()) {
        let presented = present(&body, &as_it_is);

        prop_assert!(presented.text.len() <= MOST_SENT_BYTES);
        prop_assert!(!presented.text.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
        let text = presented.text.into_bytes();
        prop_assert_eq!(presented.blob.is_none(), text == body);
        prop_assert_eq!(presented.blob.unwrap_or(text), body);
    }

    #[test]
    fn anything_is_presented_within_a_limit_of_tokens(body in any_bytes(), tokens in 256..4_000_u64) {
        let limit = OutputLimit { bytes: MOST_SENT_BYTES, tokens };

        let presented = present_within(&body, &as_it_is, limit);

        prop_assert!(estimate_tokens(&presented.text) <= tokens);
        prop_assert!(presented.text.len() <= MOST_SENT_BYTES);
    }

    #[test]
    fn lines_are_cleaned_one_by_one(body in any_bytes()) {
        let whole = clean(&body);
        let by_line: String = body.split_inclusive(|byte| *byte == b'\n').map(clean).collect();

        prop_assert_eq!(&whole, &by_line);
        prop_assert_eq!(clean(whole.as_bytes()), whole);
    }

    #[test]
    fn a_collector_gives_all_or_head_and_tail(
        stream in any_bytes(),
        most in 300_usize..20_000,
        step in 1_usize..5_000,
    ) {
        let mut collector = Collector::keeping(most);
        for chunk in stream.chunks(step) {
            collector.push(chunk);
        }
        let body = collector.into_body();

        prop_assert!(body.len() <= most);
        if stream.len() <= most {
            prop_assert_eq!(body, stream);
        } else {
            let note = "\n[… ".as_bytes();
            let place = body.windows(note.len()).position(|window| window == note);
            let (head, rest) = body.split_at(place.unwrap());
            let end = " bytes are left out here …]\n".as_bytes();
            let place = rest.windows(end.len()).position(|window| window == end).unwrap();
            let number = std::str::from_utf8(&rest[note.len()..place]).unwrap();
            let tail = &rest[place + end.len()..];
            prop_assert!(stream.starts_with(head) && stream.ends_with(tail));
            prop_assert_eq!(number, (stream.len() - head.len() - tail.len()).to_string());
        }
    }
}

/// E15: a colour in the middle of a key does not hide it.
#[test]
fn a_secret_that_control_sequences_split_is_blanked() {
    let presented = present(b"key=sk-\x1b[31msecret\x1b[0m-1\n", &|bytes| {
        let text = String::from_utf8_lossy(bytes);
        Cow::Owned(text.replace("sk-secret-1", "[blanked]").into_bytes())
    });

    assert_eq!(presented.text, "key=[blanked]\n");
    let blob = presented.blob.unwrap_or_default();
    assert!(!String::from_utf8_lossy(&blob).contains("secret"));
}
