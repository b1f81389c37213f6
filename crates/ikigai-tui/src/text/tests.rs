use proptest::prelude::*;

use super::*;
use crate::line::{TextLine, TextSpan};
use crate::look::Tone;
use crate::width::{pieces, width};

/// Joins rows to their text, without leads.
fn rejoined(rows: &[TextLine]) -> String {
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        if index > 0 {
            text.push_str(row.joined.expect("a row that continues another"));
        }
        text.extend(row.spans[row.lead..].iter().map(|span| span.text.as_str()));
    }
    text
}

fn texts(rows: &[TextLine]) -> Vec<String> {
    rows.iter().map(TextLine::text).collect()
}

fn wrapped(text: &str, width: u16) -> Vec<String> {
    texts(&wrap(&TextLine::of(text, Tone::Text), width, &[]))
}

#[test]
fn what_steers_a_terminal_becomes_visible() {
    let cases = [
        (
            "plain ä 日本 👨\u{200d}👩\u{200d}👧",
            "plain ä 日本 👨\u{200d}👩\u{200d}👧",
        ),
        ("\u{1b}[2J\u{1b}]0;title\u{7}", "␛[2J␛]0;title␇"),
        ("a\r\nb\rc\td", "a\nb␍c\td"),
        ("\u{9b}31m\u{90}", "⟨U+009B⟩31m⟨U+0090⟩"),
        ("\u{7f}\0\u{8}", "␡␀␈"),
        ("if \u{202e}x\u{2066} {", "if ⟨U+202E⟩x⟨U+2066⟩ {"),
        ("\u{feff}a\u{2028}b\u{ad}", "⟨U+FEFF⟩a⟨U+2028⟩b⟨U+00AD⟩"),
    ];
    for (text, expected) in cases {
        assert_eq!(clean(text), expected, "{text:?}");
    }
}

#[test]
fn rows_end_between_words() {
    let cases: [(&str, u16, &[&str]); 13] = [
        ("", 5, &[""]),
        ("one two three", 9, &["one two", "three"]),
        ("one two three", 7, &["one two", "three"]),
        ("one   two", 4, &["one", "two"]),
        ("one    ", 5, &["one"]),
        ("abcdefgh", 3, &["abc", "def", "gh"]),
        ("go abcdefgh", 5, &["go", "abcde", "fgh"]),
        ("日本語の文", 5, &["日本", "語の", "文"]),
        ("ab日本。", 6, &["ab日", "本。"]),
        ("well-known", 7, &["well-", "known"]),
        ("use --all", 7, &["use", "--all"]),
        ("    deep code", 9, &["    deep", "code"]),
        ("日", 1, &["?"]),
    ];
    for (text, width, expected) in cases {
        assert_eq!(wrapped(text, width), expected, "{text:?} at {width}");
    }
}

#[test]
fn tabs_go_to_the_next_stop() {
    assert_eq!(wrapped("a\tb\t\tc", 20), ["a   b       c"]);
    assert_eq!(wrapped("\t\tx", 3), ["   ", "   ", "x"]);
}

#[test]
fn rows_tell_what_was_between_them() {
    let rows = wrap(&TextLine::of("one   two threefour", Tone::Text), 5, &[]);

    let joined: Vec<_> = rows.iter().map(|row| row.joined).collect();

    assert_eq!(texts(&rows), ["one", "two", "three", "four"]);
    assert_eq!(joined, [None, Some("   "), Some(" "), Some("")]);
}

#[test]
fn signs_stand_before_the_first_row_and_indentation_before_the_others() {
    let line = TextLine {
        spans: vec![
            TextSpan::new("● ", Tone::Assistant),
            TextSpan::new("one ", Tone::Text),
            TextSpan::new("two three", Tone::Code),
        ],
        lead: 1,
        joined: None,
    };

    let rows = wrap(&line, 12, &[TextSpan::new("  ", Tone::Text)]);

    let expected = [
        TextLine {
            spans: vec![
                TextSpan::new("● ", Tone::Assistant),
                TextSpan::new("one ", Tone::Text),
                TextSpan::new("two", Tone::Code),
            ],
            lead: 1,
            joined: None,
        },
        TextLine {
            spans: vec![
                TextSpan::new("  ", Tone::Text),
                TextSpan::new("three", Tone::Code),
            ],
            lead: 1,
            joined: Some(" "),
        },
    ];
    assert_eq!(rows, expected);
}

#[test]
fn a_long_line_is_laid_out_as_far_as_somebody_looks() {
    let line = TextLine::of("word ".repeat(1_000_000), Tone::Text);

    let (first, place) = wrap_some(&line, 14, &[], 3);
    let more = WrappedRows::from(&line, 14, &[], place.expect("more rows"));

    assert_eq!(texts(&first), ["word word word"; 3]);
    assert_eq!(
        more.take(2).map(|row| row.text()).collect::<Vec<_>>(),
        ["word word word"; 2]
    );
}

#[test]
fn what_takes_no_place_does_not_make_a_row_endless() {
    for piled in ["\u{301}", "\u{200b}", "\u{1100}", "👩\u{200d}"] {
        let line = TextLine::of(piled.repeat(100_000), Tone::Text);

        let (rows, _) = wrap_some(&line, 10, &[], 2);

        let most = rows.iter().map(|row| row.text().len()).max();
        assert!(most < Some(1000), "{piled:?}: {most:?}");
    }
}

#[test]
fn a_line_that_is_cut_says_so() {
    let line = TextLine {
        lead: 1,
        ..TextLine::new(vec![
            TextSpan::new("→ ", Tone::Tool),
            TextSpan::new("日本語", Tone::Text),
        ])
    };
    let cases = [
        (8, "→ 日本語"),
        (7, "→ 日本…"),
        (6, "→ 日…"),
        (3, "→ …"),
        (1, "…"),
    ];
    for (columns, expected) in cases {
        let cut = cut(&line, columns, "…");
        assert_eq!(cut.text(), expected);
        assert!(width(&cut.text()) <= usize::from(columns));
    }
}

/// Words, spaces, wide characters, marks and emoji, in any order.
fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => "[a-zA-Z0-9]{1,12}",
        6 => " {1,3}",
        2 => "[-/.,()\"]{1,3}",
        2 => "[日本語、。한국ﾞ]{1,4}",
        1 => Just("👨\u{200d}👩\u{200d}👧\u{200d}👦".to_owned()),
        1 => Just("❤\u{fe0f}".to_owned()),
        1 => "[\u{301}\u{200d}\u{200b}\u{1f1e9}\u{1f1ea}]{1,3}",
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..40)
        .prop_map(|pieces| clean(&pieces.concat()).replace(['\n', '\t'], " "))
}

/// The text cut into spans at random places.
fn any_line() -> impl Strategy<Value = TextLine> {
    prop::collection::vec(any_text(), 0..4).prop_map(|texts| {
        let roles = [Tone::Text, Tone::Code, Tone::Link];
        let spans = texts.into_iter().zip(roles);
        TextLine::new(
            spans
                .map(|(text, role)| TextSpan::new(text, role))
                .collect(),
        )
    })
}

proptest! {
    #[test]
    fn rows_rejoin_to_the_text_and_fit(line in any_line(), columns in 1..200_u16, sign in "[●→]? {0,12}") {
        let mut line = line;
        line.spans.insert(0, TextSpan::new(sign.clone(), Tone::Tool));
        line.lead = 1;
        let hanging = [TextSpan::new(" ".repeat(width(&sign)), Tone::Text)];
        let text: String = line.spans[1..].iter().map(|span| {
            pieces(&span.text).map(|piece| if piece.width > columns { "?" } else { piece.text }).collect::<String>()
        }).collect();

        let rows = wrap(&line, columns, &hanging);

        let told = rejoined(&rows);
        prop_assert_eq!(told.trim_end_matches(' '), text.trim_end_matches(' '));
        for row in &rows {
            let total: usize = row.spans.iter().map(|span| width(&span.text)).sum();
            prop_assert!(total <= usize::from(columns), "{row:?}");
        }
    }

    #[test]
    fn rows_from_a_place_are_the_rest(line in any_line(), columns in 1..40_u16, most in 0..5_usize) {
        let whole = wrap(&line, columns, &[]);

        let (mut rows, place) = wrap_some(&line, columns, &[], most);
        rows.extend(place.into_iter().flat_map(|place| WrappedRows::from(&line, columns, &[], place)));

        prop_assert_eq!(rows, whole);
    }

    #[test]
    fn cleaned_text_holds_no_control(text in any::<String>(), bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        for text in [text, String::from_utf8_lossy(&bytes).into_owned()] {
            let cleaned = clean(&text);
            prop_assert!(!cleaned.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
            prop_assert_eq!(clean(&cleaned), cleaned.clone());
        }
    }
}
