use super::*;

#[test]
fn output_cannot_steer_a_terminal_and_stays_readable() {
    let cases = [
        (
            "plain ä 日本\u{3000}語 x\u{a0}y",
            "plain ä 日本\u{3000}語 x\u{a0}y",
        ),
        (
            "👨\u{200d}👩\u{200d}👧 ❤\u{fe0f}\u{200d}🔥 1\u{fe0f}\u{20e3}",
            "👨\u{200d}👩\u{200d}👧 ❤\u{fe0f}\u{200d}🔥 1\u{fe0f}\u{20e3}",
        ),
        ("นี่\u{200b}คือ e\u{301}", "นี่\u{200b}คือ e\u{301}"),
        ("\u{1b}[2J\u{1b}]0;title\u{7}", "␛[2J␛]0;title␇"),
        ("a\r\nb\rc\td", "a\nb␍c\td"),
        ("\u{9b}31m\u{85}", "⟨U+009B⟩31m⟨U+0085⟩"),
        ("\u{7f}\0\u{8}", "␡␀␈"),
        (
            "if \u{202e}x\u{2066} {\u{61c}\u{200f}",
            "if ⟨U+202E⟩x⟨U+2066⟩ {⟨U+061C⟩⟨U+200F⟩",
        ),
        (
            "\u{feff}a\u{2028}b\u{ad}\u{3164}",
            "⟨U+FEFF⟩a⟨U+2028⟩b⟨U+00AD⟩⟨U+3164⟩",
        ),
        ("a\u{200b}b\u{200d}c\u{fe0f}", "a⟨U+200B⟩b⟨U+200D⟩c⟨U+FE0F⟩"),
        (
            "😀\u{e0101}\u{e0102}\u{e0041}",
            "😀\u{e0101}⟨U+E0102⟩⟨U+E0041⟩",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(clean(text), expected, "{text:?}");
        assert_eq!(clean(expected), expected, "cleaned twice: {text:?}");
    }
}

#[test]
fn approved_text_is_spelled_out_exactly() {
    let cases = [
        ("touch pwned #\rls -la", "touch pwned #␍ls -la"),
        ("rm x\u{1b}[2K\u{8}\u{8}", "rm x␛[2K␈␈"),
        ("# note\r\nrm -rf x\n\n\ty", "# note␍\nrm -rf x\n\n␉y"),
        (
            "a\u{a0}b\u{3000}c\u{2003}d\u{2800}",
            "a⟨U+00A0⟩b⟨U+3000⟩c⟨U+2003⟩d⟨U+2800⟩",
        ),
        (
            "ls\u{200b}\u{200d} 👨\u{200d}👩",
            "ls⟨U+200B⟩⟨U+200D⟩ 👨⟨U+200D⟩👩",
        ),
        ("e\u{301} x\u{338}\u{489}", "e⟨U+0301⟩ x⟨U+0338⟩⟨U+0489⟩"),
        ("นี่ हिन्दी שָׁ", "นี่ हिन्दी שָׁ"),
        (
            "\u{e000}\u{f0000}\u{378}\u{ffff}",
            "⟨U+E000⟩⟨U+F0000⟩⟨U+0378⟩⟨U+FFFF⟩",
        ),
        (
            "\u{115f}\u{1160}\u{3164}\u{ffa0}\u{180e}",
            "⟨U+115F⟩⟨U+1160⟩⟨U+3164⟩⟨U+FFA0⟩⟨U+180E⟩",
        ),
        (
            "ls\u{1161}\u{11a8} \u{d7b0}\u{13441}\u{1d159}",
            "ls⟨U+1161⟩⟨U+11A8⟩ ⟨U+D7B0⟩⟨U+13441⟩⟨U+1D159⟩",
        ),
        ("\u{1100}\u{1161} 가", "\u{1100}⟨U+1161⟩ 가"),
        ("❤\u{fe0f} \u{e0061}", "❤⟨U+FE0F⟩ ⟨U+E0061⟩"),
        ("é日本 ünï ✓ 😀", "é日本 ünï ✓ 😀"),
        ("\u{240d} ⟨U+202E⟩", "⟨U+240D⟩ ⟨U+27E8⟩U+202E⟩"),
        ("'it\\'s' \"q\" \\", "'it\\'s' \"q\" \\"),
    ];
    for (text, expected) in cases {
        assert_eq!(spell_out(text), expected, "{text:?}");
        assert_eq!(clean(expected), expected, "cleaned afterwards: {text:?}");
    }
}

#[test]
fn every_character_is_visible_once_it_is_spelled_out() {
    for character in '\0'..=char::MAX {
        let spelled = spell_out(&character.to_string());

        let is_exact = spelled == character.to_string();
        assert!(
            !spelled.contains(|c: char| c != '\n' && c.is_control()),
            "{character:?}"
        );
        assert!(
            !is_exact || matches!(character, '\n' | ' '..='~') || !is_unprintable(character),
            "{character:?} is not spelled out"
        );
    }
}

#[test]
fn runs_of_blanks_are_counted() {
    let text = format!("ls{}; rm x", " ".repeat(5000));

    assert_eq!(spell_out(&text), "ls⟨U+0020 × 5000⟩; rm x");
    assert_eq!(spell_out("    a  b "), "    a  b ");
    assert_eq!(spell_out(&" ".repeat(33)), "⟨U+0020 × 33⟩");
}

#[test]
fn too_many_marks_are_spelled_out() {
    let text = format!("é{}", "\u{301}".repeat(4));

    assert_eq!(spell_out(&text), "é\u{301}\u{301}⟨U+0301⟩⟨U+0301⟩");
}

#[test]
fn a_preview_shows_where_lines_end() {
    assert_eq!(one_line("# note\nrm -rf x\n"), "# note ⏎ rm -rf x");
    assert_eq!(one_line("a\tb\u{1b}"), "a b␛");
}

#[test]
fn json_means_the_same_without_hidden_characters() {
    let value = serde_json::json!({"a\u{202e}": "\u{1b}\u{9b}\u{7f} é 👨\u{200d}👩 \u{e0041}"});
    let json = value.to_string();

    let escaped = escape_json(&json);

    assert_eq!(
        escaped,
        r#"{"a\u202e":"\u001b\u009b\u007f é 👨‍👩 \udb40\udc41"}"#
    );
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&escaped).unwrap(),
        value
    );
}
