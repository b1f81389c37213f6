use std::sync::Mutex;

use super::*;

/// Tells every chunk at once, and gives all that was told.
fn told(chunks: &[&[u8]]) -> Vec<String> {
    let all = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&all);
    let mut newest = NewestLine::new(Arc::new(move |line: &str| {
        kept.lock().unwrap().push(line.to_owned());
    }));
    for chunk in chunks {
        newest.see(chunk);
        newest.tell();
    }
    all.lock().unwrap().clone()
}

#[test]
fn the_newest_line_is_the_last_that_is_not_empty() {
    let cases: [(&[&[u8]], &[&str]); 7] = [
        (&[b"one\ntwo\n"], &["two"]),
        (&[b"one\ntw", b"o\n"], &["tw", "two"]),
        (&[b"10%\r20%\r"], &["20%"]),
        (&[b"10%\r20%", b"\r30%"], &["20%", "30%"]),
        (&[b"\n\n"], &[]),
        (&[b"\x1b[1;31mred\x1b[0m\x07\tand\n"], &["red and"]),
        (&[b"\xff\n"], &["\u{fffd}"]),
    ];

    for (chunks, expected) in cases {
        assert_eq!(told(chunks), expected, "{chunks:?}");
    }
}

#[test]
fn a_line_without_end_is_told_by_its_newest_part() {
    let long = vec![b'x'; 100_000];

    let told = told(&[&long]);

    assert_eq!(told, ["x".repeat(MOST_CHARACTERS)]);
}

#[tokio::test(start_paused = true)]
async fn many_lines_in_a_short_time_are_told_seldom_and_the_last_for_sure() {
    let all = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&all);
    let mut newest = NewestLine::new(Arc::new(move |line: &str| {
        kept.lock().unwrap().push(line.to_owned());
    }));

    for number in 0..1000 {
        newest.see(format!("{number}\n").as_bytes());
    }
    newest.due().await;
    newest.tell();

    assert_eq!(*all.lock().unwrap(), ["0", "999"]);
}
