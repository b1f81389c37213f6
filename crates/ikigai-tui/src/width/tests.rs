use ikigai_core::spelling::spell_out;
use proptest::prelude::*;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::*;

fn shown(text: &str) -> Vec<(&str, u16)> {
    pieces(text)
        .map(|piece| (piece.text, piece.width))
        .collect()
}

#[test]
fn a_character_is_one_piece_with_all_its_marks() {
    let table: [(&str, &[(&str, u16)]); 11] = [
        ("ab", &[("a", 1), ("b", 1)]),
        ("e\u{301}x", &[("e\u{301}", 1), ("x", 1)]),
        ("中a", &[("中", 2), ("a", 1)]),
        ("👨‍👩‍👧‍👦!", &[("👨‍👩‍👧‍👦", 2), ("!", 1)]),
        ("🇩🇪🇫🇷", &[("🇩🇪", 2), ("🇫🇷", 2)]),
        ("❤\u{fe0f}", &[("❤\u{fe0f}", 2)]),
        ("a\u{7}\r\nb\u{1b}\u{9b}c", &[("a", 1), ("b", 1), ("c", 1)]),
        ("\u{301}a\u{200b}\u{202e}b", &[("a", 1), ("b", 1)]),
        ("क्ष्म", &[("क्", 1), ("ष्म", 2)]),
        ("👨‍👩‍👧‍👦\u{ff9e}", &[("👨‍👩‍👧‍👦", 2), ("\u{ff9e}", 1)]),
        ("❤\u{fe0f}\u{ff9e}", &[("❤\u{fe0f}", 2), ("\u{ff9e}", 1)]),
    ];

    for (text, expected) in table {
        assert_eq!(shown(text), expected, "{text:?}");
    }
}

#[test]
fn marks_without_end_are_left_out() {
    let text = format!("a{}b", "\u{301}".repeat(10_000));

    let pieces = shown(&text);

    assert_eq!(pieces.len(), 2);
    assert!(pieces[0].0.len() <= LONGEST_PIECE);
    assert_eq!(pieces[1], ("b", 1));
}

#[test]
fn a_cut_text_is_never_wider_than_asked() {
    assert_eq!(cut("a中b", 0), "");
    assert_eq!(cut("a中b", 2), "a");
    assert_eq!(cut("a中b", 3), "a中");
    assert_eq!(cut("a中b", 9), "a中b");
}

proptest! {
    #[test]
    fn pieces_are_in_order_and_of_one_cell_or_two(
        text in prop_oneof![".{0,40}", "[a❤❤👍️‍\u{ff9e}ｶक\u{94d}ष🇩🏽]{0,20}"],
    ) {
        let mut at = 0;
        for piece in pieces(&text) {
            prop_assert!((1..=2).contains(&piece.width));
            prop_assert!(!piece.text.is_empty() && piece.text.len() <= LONGEST_PIECE);
            prop_assert!(!piece.text.contains(char::is_control));
            // A piece alone is the same as within a text.
            prop_assert_eq!(shown(piece.text), [(piece.text, piece.width)]);
            prop_assert!(text[at..piece.end].contains(piece.text));
            at = piece.end;
        }
    }

    #[test]
    fn plain_text_is_as_wide_as_anybody_says(text in "[ -~äöüß中文字한국]{0,40}") {
        prop_assert_eq!(width(&text), text.width());
    }

    #[test]
    fn a_cut_fits_and_loses_no_more_than_needed(text in ".{0,20}", cells in 0_usize..12) {
        let kept = cut(&text, cells);

        prop_assert!(width(kept) <= cells);
        prop_assert!(width(kept) == width(&text) || width(kept) + 2 > cells);
    }
}

/// Returns the text that the cells of `text` contain.
fn in_cells(text: &str) -> String {
    pieces(text).map(|piece| piece.text).collect()
}

/// Cells drop characters without a width, so an approved text must not contain any.
#[test]
fn cells_show_every_character_of_an_approved_text() {
    let has_no_width = |character: &char| character.width().unwrap_or(0) == 0;
    for character in ('\0'..=char::MAX).filter(has_no_width) {
        for base in ["", "a", "é", "日", "\u{1100}", "क"] {
            let text = format!("{base}{character}{character}{character}{character}b");

            let spelled = spell_out(&text).replace('\n', "");

            assert_eq!(in_cells(&spelled), spelled, "{text:?}");
        }
    }
}

proptest! {
    #[test]
    fn cells_show_every_approved_text(
        text in prop_oneof![".{0,80}", "[a❤👍\u{ff9e}ｶक\u{94d}ष🇩🏽\u{1100}\u{1161}\u{301}é\u{600}]{0,80}"],
    ) {
        let spelled = spell_out(&text).replace('\n', "");

        prop_assert_eq!(in_cells(&spelled), spelled);
    }
}
