use std::borrow::Cow;

use serde_json::{Value, json};

use super::{Edges, join, join_next, mark_halves};

fn parsed(json: &str) -> Value {
    serde_json::from_str(&mark_halves(json, Edges::Placeholder)).unwrap()
}

#[test]
fn whole_pairs_and_other_escapes_stay_as_they_are() {
    let table = [
        r#"{"a":"plain"}"#,
        r#"{"a":"\ud83d\ude00 \uD83D\uDE00"}"#,
        r#"{"a":"\\ud83d"}"#,
        r#"{"a":"\u00e9\ndone"}"#,
        r#"{"a":"\ud7ff\ue000"}"#,
    ];
    for json in table {
        assert!(
            matches!(mark_halves(json, Edges::Placeholder), Cow::Borrowed(_)),
            "{json}"
        );
    }
}

#[test]
fn a_half_that_no_other_string_can_complete_is_replaced() {
    let table = [
        (r#"{"a":"x\ud83dy"}"#, "x\u{fffd}y"),
        (r#"{"a":"x\ude00"}"#, "x\u{fffd}"),
        (r#"{"a":"\ud83d "}"#, "\u{fffd} "),
        (r#"{"a":"\ud83d\ud83d\ude00"}"#, "\u{fffd}😀"),
        (r#"{"a":"\ud83d\n"}"#, "\u{fffd}\n"),
        (r#"{"a":"\\\ud83d!"}"#, "\\\u{fffd}!"),
        (r#"{"a":"\"\ude00"}"#, "\"\u{fffd}"),
    ];
    for (json, expected) in table {
        assert_eq!(parsed(json), json!({ "a": expected }), "{json}");
    }
}

#[test]
fn halves_at_the_edges_of_two_strings_make_one_character() {
    let first = parsed(r#"{"a":"one \uD83D"}"#);
    let second = parsed(r#"{"a":"\uDE00 two"}"#);
    let (first, second) = (first["a"].as_str().unwrap(), second["a"].as_str().unwrap());

    assert_eq!(join(&format!("{first}{second}")), "one 😀 two");
    assert_eq!(join(&format!("{first}then")), "one \u{fffd}then");
    assert_eq!(join(&format!("then{second}")), "then\u{fffd} two");
    let mut held = None;
    assert_eq!(join_next(&mut held, first).as_deref(), Some("one "));
    assert_eq!(join_next(&mut held, second).as_deref(), Some("😀 two"));
    assert_eq!(held, None);
}

#[test]
fn no_byte_of_broken_json_is_lost_or_read_past() {
    for json in [
        r"\ud8",
        r#""\ud83d"#,
        r#""\ud83d\"#,
        r#""\ud83d\ude0"#,
        r"\ud83d\",
        "\\ud83é",
    ] {
        for end in (0..=json.len()).filter(|end| json.is_char_boundary(*end)) {
            let cut = &json[..end];
            let marked = mark_halves(cut, Edges::Replacement);
            assert!(marked.len() <= cut.len(), "{cut}");
        }
    }
}
