use super::*;

#[test]
fn what_a_body_is_follows_from_its_type_or_its_bytes() {
    let other = |kind: &str| Content::Other(kind.to_owned());
    let table: [(&str, &[u8], Content); 16] = [
        ("text/html; charset=utf-8", b"", Content::Html),
        ("application/xhtml+xml", b"", Content::Html),
        ("text/plain", b"<html>", Content::Text),
        ("text/markdown", b"", Content::Text),
        ("application/json", b"", Content::Text),
        ("application/problem+json", b"", Content::Text),
        ("application/atom+xml", b"", Content::Text),
        ("application/pdf", b"", other("application/pdf")),
        ("image/png", b"", other("image/png")),
        ("image/svg+xml", b"", other("image/svg+xml")),
        (
            "application/octet-stream",
            b"text",
            other("application/octet-stream"),
        ),
        ("", b"  <!DOCTYPE html>", Content::Html),
        ("", b"<html>", Content::Html),
        ("", "gr\u{fc}n".as_bytes(), Content::Text),
        ("", b"a\0b", other("of no known type")),
        ("", b"\xff\xfeab", other("of no known type")),
    ];

    for (kind, body, wanted) in table {
        assert_eq!(content(kind, body), wanted, "{kind} {body:?}");
    }
}

#[test]
fn text_is_utf_8_or_what_is_declared() {
    let table: [(&str, &[u8], &str); 10] = [
        ("text/plain", "grün".as_bytes(), "grün"),
        ("text/plain", b"\xef\xbb\xbfa", "a"),
        ("text/plain", b"gr\xfcn", "gr\u{fffd}n"),
        ("text/plain; charset=iso-8859-1", b"gr\xfcn \x80", "grün €"),
        ("text/html; charset=\"windows-1252\"", b"\x93a\x94", "“a”"),
        ("text/html; charset=shift_jis", b"\x93\xfa\x96{", "日本"),
        ("text/plain; charset=utf-16le", b"a\0\xfc\0", "aü"),
        (
            "text/html",
            b"<meta charset=utf-16>a",
            "<meta charset=utf-16>a",
        ),
        (
            "text/html",
            b"<meta charset=latin1>\xfc",
            "<meta charset=latin1>ü",
        ),
        (
            "text/html; charset=utf-8",
            b"<meta charset=latin1>\xc3\xbc",
            "<meta charset=latin1>ü",
        ),
    ];

    for (kind, body, wanted) in table {
        assert_eq!(text_of(kind, body), wanted, "{kind} {body:?}");
    }
}
