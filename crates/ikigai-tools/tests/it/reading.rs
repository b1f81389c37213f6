//! `file_read` against files of all kinds.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use ikigai_core::EffectClass;
use ikigai_core::data::TouchedFile;
use ikigai_tools::output::{MOST_SENT_BYTES, present};
use ikigai_tools::{CallEnding, Need, Touches};
use rustix::fs::{CWD, FileType, Mode};
use serde_json::json;

use crate::desk::{Desk, text};

const HELLO_HASH: &str = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";

#[test]
fn lines_are_numbered_and_come_in_pages() {
    let desk = Desk::new();
    desk.put("five.txt", "1\n2\n3\n4\n5");
    let table = [
        (
            json!({}),
            "     1\t1\n     2\t2\n     3\t3\n     4\t4\n     5\t5\n",
        ),
        (json!({"offset": 4}), "     4\t4\n     5\t5\n"),
        (
            json!({"limit": 2}),
            "     1\t1\n     2\t2\n[lines 1-2 of 5; go on with offset=3]\n",
        ),
        (
            json!({"offset": 2, "limit": 1}),
            "     2\t2\n[lines 2-2 of 5; go on with offset=3]\n",
        ),
        (json!({"offset": 5, "limit": 1}), "     5\t5\n"),
    ];

    for (mut arguments, expected) in table {
        arguments["file_path"] = json!("five.txt");
        assert_eq!(desk.done("file_read", &arguments), expected, "{arguments}");
    }
}

#[test]
fn what_cannot_be_shown_is_explained() {
    let desk = Desk::new();
    desk.put("two.txt", "1\n2\n");
    desk.put("picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    desk.put("program", b"\x7fELF\x02\x01\x01\0");
    desk.put("other", b"some\0thing");
    desk.put("wide.txt", b"\xff\xfea\0b\0");
    fs::create_dir(desk.path("directory")).unwrap();
    symlink("nowhere", desk.path("dangling")).unwrap();
    symlink("loop-b", desk.path("loop-a")).unwrap();
    symlink("loop-a", desk.path("loop-b")).unwrap();
    rustix::fs::mknodat(CWD, desk.path("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let _listener = UnixListener::bind(desk.path("socket")).unwrap();
    let table = [
        (json!({"file_path": "directory"}), "is a directory; glob"),
        (json!({"file_path": ""}), "is a directory"),
        (json!({"file_path": "pipe"}), "is a named pipe"),
        (json!({"file_path": "socket"}), "is a socket"),
        (json!({"file_path": "/dev/zero"}), "is a device"),
        (json!({"file_path": "/dev/tty"}), "is a device"),
        (json!({"file_path": "dangling"}), "`nowhere` does not exist"),
        (json!({"file_path": "loop-a"}), "loop of symbolic links"),
        (json!({"file_path": "two.txt/x"}), "Not a directory"),
        (
            json!({"file_path": "tow.txt"}),
            "does not exist; in the same directory there is `two.txt`",
        ),
        (json!({"file_path": "nothing-like-it"}), "does not exist"),
        (json!({"file_path": "a\0b"}), "no path holds a zero byte"),
        (json!({"file_path": "picture"}), "is a damaged PNG image"),
        (
            json!({"file_path": "program"}),
            "a program or library (ELF)",
        ),
        (json!({"file_path": "other"}), "binary data, 10 bytes"),
        (json!({"file_path": "wide.txt"}), "UTF-16"),
        (
            json!({"file_path": "two.txt", "offset": 9}),
            "has only 2 lines: there is no line 9",
        ),
        (
            json!({"file_path": "two.txt", "limit": 0}),
            "`limit` counts from 1",
        ),
        (json!({"lines": 5}), "ignored unknown field `lines`"),
        (json!({"file_path": "blob:12"}), "64 hexadecimal digits"),
        (
            json!({"file_path": format!("blob:{}", "0".repeat(64))}),
            "there is no stored output",
        ),
    ];

    for (arguments, expected) in table {
        let reason = desk.failed("file_read", &arguments);
        assert!(reason.contains(expected), "{arguments}: {reason}");
    }
}

#[test]
fn a_file_that_vanishes_before_the_call_is_missed() {
    let desk = Desk::new();
    let path = desk.put("a.txt", "here\n");
    let prepared = desk
        .prepare("file_read", &json!({"file_path": "a.txt"}))
        .unwrap();

    fs::remove_file(path).unwrap();
    let output = desk.run(prepared);

    assert_eq!(text(&output), "`a.txt` does not exist");
}

#[test]
fn a_link_that_is_made_after_asking_is_not_followed() {
    let desk = Desk::new();
    let path = desk.put("a.txt", "here\n");
    desk.put("b.txt", "there\n");
    let prepared = desk
        .prepare("file_read", &json!({"file_path": "a.txt"}))
        .unwrap();

    fs::remove_file(&path).unwrap();
    symlink("b.txt", path).unwrap();
    let output = desk.run(prepared);

    assert!(!output.success);
    assert!(
        text(&output).contains("became a symbolic link"),
        "{}",
        text(&output)
    );
}

#[test]
fn the_hash_of_the_whole_file_is_recorded_whatever_is_shown() {
    let desk = Desk::new();
    let path = desk.put("hello.txt", "hello\n");
    let long = desk.put("long.txt", "x\n".repeat(100_000));
    let binary = desk.put("binary", b"\0");

    let output = desk.call("file_read", &json!({"file_path": "hello.txt"}));
    let page = desk.call(
        "file_read",
        &json!({"file_path": "long.txt", "offset": 5, "limit": 1}),
    );
    let nothing = desk.call("file_read", &json!({"file_path": "binary"}));

    let expected = TouchedFile {
        path: Some(path.to_str().unwrap().to_owned()),
        hash: Some(HELLO_HASH.to_owned()),
        wrote: Some(false),
        ..TouchedFile::default()
    };
    assert_eq!(output.files, [expected]);
    assert_eq!(output.shown, "hello.txt: line 1 of 1");
    let all = desk.call("file_read", &json!({"file_path": "long.txt"}));
    assert_eq!(page.files, all.files);
    assert_eq!(page.files[0].path.as_deref(), long.to_str());
    assert_eq!((nothing.files, binary.exists()), (Vec::new(), true));
}

#[test]
fn a_file_is_read_through_a_link_under_its_own_name() {
    let desk = Desk::new();
    let path = desk.put("sub/hello.txt", "hello\n");
    symlink("sub/hello.txt", desk.path("link")).unwrap();

    let prepared = desk
        .prepare("file_read", &json!({"file_path": "./x/../link"}))
        .unwrap();

    assert_eq!(prepared.class, EffectClass::Read);
    assert_eq!(prepared.touches, Touches::reading([path.clone()]));
    assert_eq!(prepared.subject, "sub/hello.txt");
    assert_eq!(prepared.pattern, "sub/**");
    assert_eq!(prepared.shown, r#"file_path="./x/../link""#);
    let output = desk.run(prepared);
    assert_eq!(output.files[0].path.as_deref(), path.to_str());
}

#[test]
fn a_huge_sparse_file_is_read_in_place() {
    let desk = Desk::new();
    let mut file = File::create(desk.path("huge")).unwrap();
    file.write_all(&b"text\n".repeat(4_000)).unwrap();
    file.seek(SeekFrom::Start(5 << 30)).unwrap();
    file.write_all(b"\nend\n").unwrap();

    let output = desk.call(
        "file_read",
        &json!({"file_path": "huge", "offset": 3, "limit": 2}),
    );

    assert_eq!(
        text(&output),
        "     3\ttext\n     4\ttext\n[lines 3-4 of a file of 5.0 GB; go on with offset=5]\n"
    );
    assert_eq!(output.files, []);
}

#[test]
fn a_huge_file_that_is_all_holes_is_not_text() {
    let desk = Desk::new();
    File::create(desk.path("holes"))
        .unwrap()
        .set_len(5 << 30)
        .unwrap();

    let reason = desk.failed(
        "file_read",
        &json!({"file_path": "holes", "offset": 1_000_000}),
    );

    assert!(reason.contains("binary data, 5.0 GB"), "{reason}");
}

#[test]
fn a_page_is_never_cut_again() {
    let desk = Desk::new();
    desk.put(
        "long.txt",
        "a line of some length, not much\n".repeat(5_000),
    );
    desk.put(
        "invalid.txt",
        [vec![0xff; 100_000], b"\n".to_vec()].concat(),
    );
    desk.put("wide.txt", format!("{}\n", "é".repeat(1_500)).repeat(100));

    for name in ["long.txt", "invalid.txt", "wide.txt"] {
        for extra in [json!({}), json!({"column": 2, "offset": 1})] {
            let mut arguments = extra;
            arguments["file_path"] = json!(name);
            let output = desk.call("file_read", &arguments);
            assert!(output.body.len() <= MOST_SENT_BYTES, "{name}");
            let presented = present(&output.body, &|bytes| bytes.into());
            assert_eq!(presented.blob, None, "{name}");
        }
    }
}

#[test]
fn all_of_a_long_file_can_be_paged() {
    let desk = Desk::new();
    let lines: Vec<String> = (0..5_000)
        .map(|i| format!("line {i} {}", "x".repeat(i % 50)))
        .collect();
    desk.put("long.txt", lines.join("\n"));
    let mut seen = Vec::new();
    let mut offset = 1;

    while seen.len() < lines.len() {
        let page = desk.done(
            "file_read",
            &json!({"file_path": "long.txt", "offset": offset}),
        );
        let shown = page.lines().filter_map(|line| line.split_once('\t'));
        seen.extend(shown.map(|(_, text)| text.to_owned()));
        let next = page
            .rsplit_once("offset=")
            .map(|(_, rest)| rest.trim_end_matches("]\n"));
        offset = next.map_or(0, |next| next.parse().unwrap());
    }

    assert_eq!(seen, lines);
}

#[test]
fn all_of_a_long_line_can_be_paged() {
    let desk = Desk::new();
    let line = "aé漢".repeat(10_000);
    desk.put("line.txt", format!("first\n{line}\r\nlast\n"));
    let first = desk.done("file_read", &json!({"file_path": "line.txt"}));
    let mut seen = String::new();
    let mut column = 1;

    while seen.len() < line.len() {
        let page = desk.done(
            "file_read",
            &json!({"file_path": "line.txt", "offset": 2, "column": column}),
        );
        let text = page.split_once('\t').unwrap().1;
        let end = text.find([' ', '\n']).unwrap();
        seen.push_str(&text[..end]);
        column = seen.len() + 1;
    }

    assert_eq!(seen, line);
    assert!(
        first.contains("[… line 2 has 60000 bytes; offset=2 column=2000 shows more]"),
        "{first}"
    );
    assert!(first.contains("     3\tlast\n"), "{first}");
}

#[test]
fn what_is_not_plain_text_is_remarked() {
    let desk = Desk::new();
    desk.put("windows.txt", "one\r\ntwo\r\n");
    desk.put("colour.txt", "\u{1b}[31mred\u{1b}[0m\ra");
    desk.put("empty.txt", "");
    let table = [
        (
            "windows.txt",
            "     1\tone\n     2\ttwo\n[lines end with CRLF]\n",
        ),
        (
            "colour.txt",
            "     1\t␛[31mred␛[0m␍a\n[control characters are shown as symbols such as ␛, what is \
             not UTF-8 as �]\n",
        ),
        ("empty.txt", "[it is empty]\n"),
    ];

    for (name, expected) in table {
        assert_eq!(
            desk.done("file_read", &json!({"file_path": name})),
            expected
        );
    }
}

#[test]
fn a_stored_output_is_paged_like_a_file() {
    let mut desk = Desk::new();
    let hash = "0123456789abcdef".repeat(4);
    let name = format!("blob:{hash}");
    desk.inputs.blob = Some(b"one\n\x1b[1mtwo\x1b[0m\nthree\n".to_vec());

    let prepared = desk
        .prepare(
            "file_read",
            &json!({"file_path": name.to_uppercase().replace("BLOB", "blob")}),
        )
        .unwrap();

    assert_eq!(prepared.needs, [Need::Blob(hash)]);
    assert_eq!(prepared.touches, Touches::default());
    assert_eq!(prepared.subject, name);
    let output = desk.run(prepared);
    assert_eq!(text(&output), "     1\tone\n     2\ttwo\n     3\tthree\n");
    assert_eq!(output.files, []);
    let page = desk.done(
        "file_read",
        &json!({"file_path": name, "offset": 2, "limit": 1}),
    );
    assert_eq!(page, "     2\ttwo\n[lines 2-2 of 3; go on with offset=3]\n");
}

#[test]
fn a_stopped_call_ends() {
    let desk = Desk::new();
    desk.put("a.txt", "here\n");
    desk.stop.cancel();

    let output = desk.call("file_read", &json!({"file_path": "a.txt"}));

    assert_eq!(
        (output.success, output.ending),
        (false, CallEnding::Stopped)
    );
}

#[test]
fn files_of_proc_are_read_though_they_say_they_are_empty() {
    let desk = Desk::new();

    let text = desk.done("file_read", &json!({"file_path": "/proc/version"}));

    assert!(text.contains("Linux"), "{text}");
}
