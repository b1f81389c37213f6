use super::display;

#[test]
fn cells_of_a_grapheme_fit_their_row() {
    let family = "👩\u{200d}👩\u{200d}👧";
    let marked = format!("e{}", "\u{301}".repeat(10_000));
    let cases = [
        ("a", 0, 10, "a", 1),
        ("e\u{301}", 0, 10, "e\u{301}", 1),
        ("中", 0, 10, "中", 2),
        ("中", 0, 1, "\u{fffd}", 1),
        (family, 0, 2, family, 2),
        (&marked, 0, 10, "\u{fffd}", 1),
        ("\t", 0, 10, "    ", 4),
        ("\t", 3, 10, " ", 1),
        ("\t", 8, 10, "  ", 2),
        ("\t", 10, 10, " ", 1),
        ("\u{1b}", 0, 10, "␛", 1),
        ("\u{301}", 0, 10, "⟨U+0301⟩", 8),
        ("\u{200b}", 0, 10, "⟨U+200B⟩", 8),
        ("\u{202e}", 0, 10, "⟨U+202E⟩", 8),
        ("\u{202e}", 0, 3, "\u{fffd}", 1),
    ];

    for (grapheme, column, row, text, cells) in cases {
        let found = display(grapheme, column, row);
        assert_eq!(found, (text.into(), cells), "{grapheme:?}");
    }
}
