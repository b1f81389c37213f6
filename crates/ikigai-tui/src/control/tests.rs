use super::*;

#[test]
fn keys_are_unescaped_and_any_other_backslash_is_itself() {
    let cases: [(&str, &[u8]); 8] = [
        ("plain", b"plain"),
        (r"a\rb\nc\td", b"a\rb\nc\td"),
        (r"\\r", b"\\r"),
        (r"\x1b[A\x04", b"\x1b[A\x04"),
        (r"\xC3\xa9", "é".as_bytes()),
        (r"\q \x \x1 \xzz", br"\q \x \x1 \xzz"),
        ("\\", b"\\"),
        ("é\r", "é\r".as_bytes()),
    ];

    for (text, bytes) in cases {
        assert_eq!(unescape(text), bytes, "{text}");
    }
}
