use super::*;

fn told(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn words_cannot_end_the_command_that_they_stand_in() {
    assert_eq!(told(&title("ikigai fix ◐")), "\x1b]2;ikigai fix ◐\x1b\\");
    assert_eq!(
        told(&notification("a\x1b\\\x07\u{9c}b\n")),
        "\x1b]9;a␛\\␇⟨U+009C⟩b \x1b\\"
    );
}

#[test]
fn words_have_an_end() {
    let long = "x".repeat(10_000);

    assert!(title(&long).len() < 200);
}

#[test]
fn copied_text_is_spelled_as_terminals_want_it() {
    let table = [
        ("", ""),
        ("a", "YQ=="),
        ("ab", "YWI="),
        ("abc", "YWJj"),
        ("ä\u{1b}?>", "w6QbPz4="),
    ];

    for (text, letters) in table {
        let expected = format!("\x1b]52;c;{letters}\x1b\\");
        assert_eq!(told(&clipboard(text).unwrap()), expected);
    }
}

#[test]
fn text_without_end_is_not_copied() {
    assert!(clipboard(&"x".repeat(LONGEST_COPY)).is_some());
    assert!(clipboard(&"x".repeat(LONGEST_COPY + 1)).is_none());
}
