use proptest::prelude::*;

use super::*;
use crate::look::{Look, Tone};
use crate::width::width;

fn style(width: u16) -> MarkdownStyle {
    MarkdownStyle {
        width,
        ..MarkdownStyle::default()
    }
}

fn drawn(text: &str, width: u16) -> Vec<String> {
    lines(text, style(width))
        .iter()
        .map(|line| line.text().trim_end().to_owned())
        .collect()
}

#[test]
fn every_block_has_its_form() {
    let cases: [(&str, &[&str]); 17] = [
        ("", &[]),
        ("a *b* **c** `d`\n\ne", &["a b c d", "", "e"]),
        ("a\nb  \nc", &["a", "b", "c"]),
        ("# One\ntext\n## Two", &["One", "", "text", "", "Two"]),
        (
            "- a\n- b\n  - c\n  - d\n- e",
            &["• a", "• b", "  • c", "  • d", "• e"],
        ),
        (
            "- a\n\n- b\n\n  more\n\nend",
            &["• a", "• b", "", "  more", "", "end"],
        ),
        ("9. a\n10. b", &["9. a", "10. b"]),
        ("- [x] done\n- [ ] open", &["• ☑ done", "• ☐ open"]),
        ("> a\n> > b\n\nc", &["▌ a", "▌", "▌ ▌ b", "", "c"]),
        (
            "```rust\nfn a() {}\n\n  b\n```\nend",
            &["  fn a() {}", "", "    b", "", "end"],
        ),
        ("- a\n  ```\n  b\n  ```", &["• a", "    b"]),
        (
            "a\n\n---\n\nb",
            &["a", "", "────────────────────────────────────────", "", "b"],
        ),
        ("![a cat](x.png) [text](http://x.y/)", &["a cat text"]),
        (
            "<div>\n<b>x</b>\n</div>\n\na <i>b</i>",
            &["<div>", "<b>x</b>", "</div>", "", "a <i>b</i>"],
        ),
        ("~~a~~ &amp; &#x1b;[2J", &["a & ␛[2J"]),
        (
            "a\n\n[x]: http://y\n\n[x] b",
            &["a", "", "[x]: http://y", "", "[x] b"],
        ),
        ("    code\n\ntext", &["  code", "", "text"]),
    ];
    for (text, expected) in cases {
        assert_eq!(drawn(text, 60), expected, "{text:?}");
    }
}

#[test]
fn tables_stand_in_columns_give_way_and_become_lists() {
    let table = "| name | what it is |\n|:--|--:|\n| a | short |\n| `bcd` | a longer text |\n";

    let wide = [
        "name │    what it is",
        "─────┼──────────────",
        "a    │         short",
        "bcd  │ a longer text",
    ];
    let narrow = [
        "name │  what it",
        "     │       is",
        "─────┼─────────",
        "a    │    short",
        "bcd  │ a longer",
        "     │     text",
    ];
    let list = [
        "name: a",
        "what it is:",
        "short",
        "",
        "name: bcd",
        "what it is:",
        "a longer",
        "text",
    ];
    assert_eq!(drawn(table, 60), wide);
    assert_eq!(drawn(table, 15), narrow);
    assert_eq!(drawn(table, 12), list);
}

#[test]
fn looks_tell_what_is_set_off() {
    let lines = lines("**a *b*** `c` [d](http://e) http://f.g/h.", style(80));

    let spans: Vec<_> = lines[0]
        .spans
        .iter()
        .map(|span| (span.text.as_str(), span.look, span.link.as_deref()))
        .collect();

    let text = Look::of(Tone::Text);
    let link = Look::of(Tone::Link).with(Look::UNDERLINE);
    let expected = [
        ("a ", text.with(Look::BOLD), None),
        ("b", text.with(Look::BOLD | Look::ITALIC), None),
        (" ", text, None),
        ("c", Look::of(Tone::Code), None),
        (" ", text, None),
        ("d", link, Some("http://e")),
        (" ", text, None),
        ("http://f.g/h", link, Some("http://f.g/h")),
        (".", text, None),
    ];
    assert_eq!(spans, expected);
}

#[test]
fn signs_stand_before_all_rows() {
    let style = MarkdownStyle {
        width: 12,
        first: vec![TextSpan::new("● ", Tone::Assistant)],
        rest: vec![TextSpan::new("  ", Tone::Text)],
        ..MarkdownStyle::default()
    };

    let rows = lines("- one two three\n\n> x\n\n```\ny\n```", style);

    let texts: Vec<_> = rows
        .iter()
        .map(|line| line.text().trim_end().to_owned())
        .collect();
    assert_eq!(
        texts,
        ["● • one two", "    three", "", "  ▌ x", "", "    y"]
    );
    assert_eq!(rows[1].joined, Some(" "));
    let copied: Vec<_> = rows
        .iter()
        .map(|line| {
            line.spans[line.lead..]
                .iter()
                .map(|span| span.text.as_str())
                .collect::<String>()
        })
        .collect();
    assert_eq!(copied, ["one two", "three", "", "x", "", "y"]);
}

#[test]
fn what_is_narrower_than_its_signs_fits_all_the_same() {
    let texts = lines("* a\n\n\t\"", style(1));

    assert!(
        texts.iter().all(|line| width(&line.text()) <= 1),
        "{texts:?}"
    );
}

#[test]
fn finished_blocks_are_frozen() {
    let mut streaming = Streaming::new(style(40));
    streaming.push("one\n\ntwo\n\n```\na\nb\nc");
    streaming.lines(40);
    let in_code = streaming.frozen();

    streaming.push("\n```\n\nthr");
    let rows = streaming.lines(40).len();

    assert_eq!((in_code, rows), (6, 9));
    assert_eq!(streaming.lines(20).len(), 9);
}

/// Pieces of Markdown, whole and broken.
fn any_markdown() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => "[a-z]{1,8} ?",
        6 => "\n{1,2}",
        1 => "#{1,7} ?",
        1 => " {0,5}[-*+] ",
        1 => " {0,3}[0-9]{1,2}[.)] ",
        1 => " {0,2}> ?",
        1 => "[*_~`]{1,4}",
        1 => " {0,4}(`{3,4}|~{3,4})(rust|js)?\n",
        1 => "[|]( ?[a-z]{0,5} ?[|]){1,4}\n",
        1 => "[|](:?-{1,3}:?[|]){1,4}\n",
        1 => "\\[[a-z]{1,3}\\](: ?/[a-z]*|\\([a-z]*\\))?\n?",
        1 => "</?(div|b|!--|script)?>?",
        1 => "(-->|={1,4}|-{1,4}|\\*{3})\n?",
        1 => " {1,6}",
        1 => "[\t\r\u{1b}\\\\日👩&;\"'-]{1,3}",
        1 => "(http://a.b/c|- \\[[x ]\\] |\r\n|&#x1b;)",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_chunks_give_the_rows_of_the_whole(
        text in any_markdown(),
        cuts in prop::collection::vec(1..12_usize, 1..60),
        columns in 1..100_u16,
    ) {
        let mut streaming = Streaming::new(style(columns));
        let mut rest = text.as_str();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (chunk, after) = rest.split_at(rest.ceil_char_boundary(*cut));
            rest = after;
            let frozen = streaming.lines(columns)[..].to_vec();
            let frozen = frozen[..streaming.frozen()].to_vec();
            streaming.push(chunk);
            prop_assert_eq!(&streaming.lines(columns)[..frozen.len()], frozen);
            let so_far = text.len() - rest.len();
            let whole = lines(&text[..so_far], style(columns));
            prop_assert!(streaming.lines(columns) == whole, "{:?}", &text[..so_far]);
        }
    }

    #[test]
    fn rows_fit_and_hold_no_control(text in any_markdown(), columns in 1..100_u16) {
        for line in lines(&text, style(columns)) {
            let total: usize = line.spans.iter().map(|span| width(&span.text)).sum();
            prop_assert!(total <= usize::from(columns), "{line:?}");
            prop_assert!(!line.text().contains(char::is_control), "{line:?}");
        }
    }
}
