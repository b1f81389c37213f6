use super::*;

fn taken(unseen: &mut UnseenLines) -> String {
    unseen.take().unwrap_or_default()
}

#[test]
fn whole_lines_come_once_and_cleaned() {
    let mut unseen = UnseenLines::default();

    unseen.push(b"one\n\x1b[31mtwo\x1b[0m\nhal");
    let first = taken(&mut unseen);
    unseen.push(b"f\n");
    let second = taken(&mut unseen);

    assert_eq!(first, "one\ntwo\n");
    assert_eq!(second, "half\n");
    assert_eq!(unseen.take(), None);
}

#[test]
fn a_flood_keeps_its_newest_lines_and_says_how_many_are_missing() {
    let mut unseen = UnseenLines::default();

    for number in 0..100_000 {
        unseen.push(format!("{number}\n").as_bytes());
        assert!(unseen.bytes.len() <= MOST_BYTES);
    }
    let text = taken(&mut unseen);

    let lines: Vec<&str> = text.lines().collect();
    let shown = lines.len() as u64 - 1;
    assert_eq!(
        lines[0],
        format!("[… {} lines not shown …]", 100_000 - shown)
    );
    assert_eq!(lines.last(), Some(&"99999"));
    assert_eq!(lines[1], (100_000 - shown).to_string());
}

#[test]
fn a_line_too_long_to_be_held_is_left_out() {
    let mut unseen = UnseenLines::default();

    unseen.push(b"before\n");
    for _ in 0..100 {
        unseen.push(&[b'x'; 4096]);
        assert!(unseen.bytes.len() <= MOST_BYTES);
    }
    unseen.push(b"xxx\nafter\n");

    assert_eq!(taken(&mut unseen), "[… 2 lines not shown …]\nafter\n");
}
