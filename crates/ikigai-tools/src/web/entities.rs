//! Character references such as `&amp;`.

/// Longest name of a reference.
const MOST_NAME_BYTES: usize = 16;

/// Names of the characters from U+00A0 on, in order.
const LATIN: &[&str] = &[
    "nbsp", "iexcl", "cent", "pound", "curren", "yen", "brvbar", "sect", "uml", "copy", "ordf",
    "laquo", "not", "shy", "reg", "macr", "deg", "plusmn", "sup2", "sup3", "acute", "micro",
    "para", "middot", "cedil", "sup1", "ordm", "raquo", "frac14", "frac12", "frac34", "iquest",
    "Agrave", "Aacute", "Acirc", "Atilde", "Auml", "Aring", "AElig", "Ccedil", "Egrave", "Eacute",
    "Ecirc", "Euml", "Igrave", "Iacute", "Icirc", "Iuml", "ETH", "Ntilde", "Ograve", "Oacute",
    "Ocirc", "Otilde", "Ouml", "times", "Oslash", "Ugrave", "Uacute", "Ucirc", "Uuml", "Yacute",
    "THORN", "szlig", "agrave", "aacute", "acirc", "atilde", "auml", "aring", "aelig", "ccedil",
    "egrave", "eacute", "ecirc", "euml", "igrave", "iacute", "icirc", "iuml", "eth", "ntilde",
    "ograve", "oacute", "ocirc", "otilde", "ouml", "divide", "oslash", "ugrave", "uacute", "ucirc",
    "uuml", "yacute", "thorn", "yuml",
];

/// Other common names.
const OTHERS: &[(&str, char)] = &[
    ("amp", '&'),
    ("apos", '\''),
    ("asymp", '≈'),
    ("bull", '•'),
    ("check", '✓'),
    ("dagger", '†'),
    ("darr", '↓'),
    ("emsp", ' '),
    ("ensp", ' '),
    ("equiv", '≡'),
    ("euro", '€'),
    ("ge", '≥'),
    ("gt", '>'),
    ("harr", '↔'),
    ("hellip", '…'),
    ("infin", '∞'),
    ("larr", '←'),
    ("lbrace", '{'),
    ("lbrack", '['),
    ("ldquo", '“'),
    ("le", '≤'),
    ("lowbar", '_'),
    ("lsquo", '‘'),
    ("lt", '<'),
    ("mdash", '—'),
    ("minus", '−'),
    ("ndash", '–'),
    ("ne", '≠'),
    ("num", '#'),
    ("prime", '′'),
    ("quot", '"'),
    ("rarr", '→'),
    ("rbrace", '}'),
    ("rbrack", ']'),
    ("rdquo", '”'),
    ("rsquo", '’'),
    ("sbquo", '‚'),
    ("thinsp", ' '),
    ("trade", '™'),
    ("uarr", '↑'),
    ("vert", '|'),
    ("zwj", '\u{200d}'),
    ("zwnj", '\u{200c}'),
];

/// Characters of bytes 0x80 to 0x9f in Windows-1252, which replaces Latin-1 on the web.
const WINDOWS: &[char; 32] = &[
    '€', '\u{fffd}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{fffd}', 'Ž',
    '\u{fffd}', '\u{fffd}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{fffd}',
    'ž', 'Ÿ',
];

/// Decodes a byte of Windows-1252.
pub(super) fn windows_character(byte: u8) -> char {
    let special = byte.checked_sub(0x80).map(usize::from);
    let special = special.and_then(|at| WINDOWS.get(at));
    special.copied().unwrap_or(char::from(byte))
}

/// Replaces the references of a text; leaves everything else as it is.
pub(super) fn decoded(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some((character, length)) = reference(rest) {
            decoded.push(character);
            rest = &rest[length..];
        } else {
            decoded.push('&');
            rest = &rest[1..];
        }
    }
    decoded.push_str(rest);
    decoded
}

/// Parses a reference at the start of a text; returns the character and the length.
fn reference(text: &str) -> Option<(char, usize)> {
    let body = &text[1..];
    let length = body
        .bytes()
        .take(MOST_NAME_BYTES)
        .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'#')
        .count();
    let name = &body[..length];
    let character = match name.strip_prefix('#') {
        Some(number) => numbered(number)?,
        None => named(name)?,
    };
    // The semicolon may be missing, but not inside of a URL: `?a=1&copy=2`.
    match body.as_bytes().get(length) {
        Some(b';') => Some((character, length + 2)),
        Some(b'=') => None,
        Some(byte) if byte.is_ascii_alphanumeric() => None,
        _ => Some((character, length + 1)),
    }
}

fn numbered(number: &str) -> Option<char> {
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16),
        None => number.parse(),
    };
    let code = code.ok()?;
    Some(match u8::try_from(code) {
        Ok(byte) => windows_character(byte),
        Err(_) => char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
    })
}

fn named(name: &str) -> Option<char> {
    if let Some(at) = LATIN.iter().position(|known| *known == name) {
        return char::from_u32(0xa0 + u32::try_from(at).ok()?);
    }
    let other = OTHERS.iter().find(|(known, _)| *known == name);
    other.map(|(_, character)| *character)
}
