//! Case and accent folding, as in `unicode61`.

/// Base letters of U+00C0 to U+017F, in order; a dot marks a letter without one.
const PLAIN: &str = concat!(
    "aaaaaa.ceeeeiiii.nooooo..uuuuy..",
    "aaaaaa.ceeeeiiii.nooooo..uuuuy.y",
    "aaaaaaccccccccdd..eeeeeeeeeegggg",
    "gggghh..iiiiiiiii...jjkk.llllll.",
    "...nnnnnn...oooooo..rrrrrrssssss",
    "sstttt..uuuuuuuuuuuuwwyyyzzzzzz.",
);

const FIRST: u32 = 0xc0;

/// Returns true if the character only modifies the letter before it.
pub(super) fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// Appends the folded form of a letter.
pub(super) fn push(folded: &mut String, c: char) {
    if c.is_ascii() {
        folded.push(c.to_ascii_lowercase());
    } else if let Some(plain) = plain(c) {
        folded.push(plain);
    } else if c == 'µ' {
        // The micro sign is the Greek letter.
        folded.push('μ');
    } else if c == 'ſ' {
        folded.push('s');
    } else if !is_accent(c) {
        // A letter stays one letter: of several, as for the dotted I, keep the first.
        folded.extend(c.to_lowercase().take(1));
    }
}

fn plain(c: char) -> Option<char> {
    let place = usize::try_from(u32::from(c).checked_sub(FIRST)?).ok()?;
    let plain = *PLAIN.as_bytes().get(place)?;
    (plain != b'.').then(|| char::from(plain))
}
