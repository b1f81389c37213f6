use super::{TypedKey, looks_like_key};

#[test]
fn what_looks_like_a_key_is_told_from_what_does_not() {
    let cases = [
        ("sk-ant-api03-AbCdEf0123456789abcdef", true),
        ("here it is: sk-proj-0123456789abcdefghijkl.", true),
        ("key=AIzaSyA0123456789abcdefghijklmnop", true),
        ("xai-0123456789abcdefghijklmnop", true),
        ("gsk_0123456789abcdefghijklmnop", true),
        ("sk-ant-short1", false),
        ("the branch sk-refactoring-of-all-the-parsers", false),
        ("risk-ant-0123456789abcdefghijklmnop", false),
        ("what is 2 + 2", false),
    ];

    for (text, looks) in cases {
        assert_eq!(looks_like_key(text), looks, "{text}");
    }
}

#[test]
fn a_typed_key_is_plain_characters_and_shown_nowhere() {
    let key = TypedKey::new("  sk-ant-secret1\n").unwrap();

    assert_eq!(format!("{key:?}"), "[key]");
    for typed in [
        "",
        "short",
        "two words are none",
        "quo\"ted-key",
        "sch\u{f6}nkey1",
    ] {
        assert_eq!(TypedKey::new(typed), None, "{typed}");
    }
}
