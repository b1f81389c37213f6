use proptest::prelude::*;

use super::{EditorRows, simple, units};
use crate::input::clip::Clip;
use crate::input::display_text::display;

/// The fast path for simple letters agrees with the Unicode tables.
#[test]
fn simple_letters_are_as_wide_as_they_are_shown() {
    for letter in '\0'..='\u{ffff}' {
        let text = letter.to_string();
        if let Some(found) = simple(&text) {
            let columns = display(&text, 0, 9).1;
            assert_eq!(found, (text.len(), columns), "{letter:?}");
            for second in ["a", "é", "中", "한"] {
                let both = Clip::plain(format!("{text}{second}"));
                assert_eq!(units(&both, 0..both.len()).count(), 2, "{letter:?}");
            }
        }
    }
    assert_eq!(simple("e\u{301}"), None);
    assert_eq!(simple("한\u{11a8}"), None);
}

fn text() -> impl Strategy<Value = String> {
    let pieces = vec![
        "a", "bcd", "\n", "é", "中", "한", "e\u{301}", "\u{301}", "☃", "\u{fe0e}", "🇩", "\t",
        "\u{ff9e}",
    ];
    let piece = proptest::sample::select(pieces);
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// Many firm rows, so that changes meet them in every way.
    #[test]
    fn prop_rows_with_firm_ones_among_them_fill_the_text(
        first in text(),
        changes in prop::collection::vec((0..40_usize, 0..10_usize, text()), 0..12),
        width in 1..9_usize,
        stretch in 1..12_usize,
    ) {
        let mut clip = Clip::plain(first);
        let mut rows = EditorRows { stretch, ..EditorRows::default() };
        rows.fit(&clip, width);

        for (at, length, put) in changes {
            let start = clip.cursor_place(at.min(clip.len()));
            let end = clip.cursor_place((start + length).min(clip.len()));
            clip.replace(start..end, &Clip::plain(put.clone()));
            rows.changed(&clip, start, end - start, put.len());

            prop_assert_eq!(rows.starts.first(), Some(&0));
            prop_assert!(rows.starts.is_sorted() && rows.firm.is_sorted());
            for firm in &rows.firm {
                prop_assert!(rows.starts.contains(firm));
            }
            for (at, _) in clip.text().match_indices('\n') {
                prop_assert!(rows.starts.contains(&(at + 1)));
            }
            for row in 0..rows.count() {
                let range = rows.range(&clip, row);
                prop_assert_eq!(clip.cursor_place(range.start), range.start);
                let mut column = 0;
                for unit in units(&clip, range) {
                    prop_assert!(unit != "\n");
                    column += rows.display(unit, column).1;
                }
                prop_assert!(column <= width);
            }
            let mut place = Some(0);
            while let Some(at) = place {
                let (row, column) = rows.locate(&clip, at);
                prop_assert!(column < width);
                prop_assert_eq!(rows.place(&clip, row, column), at);
                place = clip.right(at);
            }
        }
    }
}

#[test]
fn flags_pair_anew_however_far_a_letter_is_put_before_them() {
    let flag = '\u{1f1e9}';
    let mut clip = Clip::plain(flag.to_string().repeat(4));
    let mut rows = EditorRows {
        stretch: 1,
        ..EditorRows::default()
    };
    rows.fit(&clip, 2);
    assert_eq!(rows.starts, [0, 8, 16]);

    clip.replace(0..0, &Clip::plain(flag.to_string()));
    rows.changed(&clip, 0, 0, 4);

    assert_eq!(rows.starts, [0, 8, 16]);
}

#[test]
fn a_key_in_a_long_line_touches_only_the_rows_near_it() {
    let mut clip = Clip::plain("0123456789".repeat(20));
    let mut rows = EditorRows {
        stretch: 30,
        ..EditorRows::default()
    };
    rows.fit(&clip, 10);
    let before = rows.starts.clone();

    clip.replace(5..5, &Clip::plain("x"));
    rows.changed(&clip, 5, 0, 1);

    let after: Vec<_> = before.iter().skip(3).map(|start| start + 1).collect();
    assert_eq!(rows.starts[..5], [0, 10, 20, 30, 31]);
    assert_eq!(rows.starts[4..], after);
    clip.replace(5..6, &Clip::default());
    rows.changed(&clip, 5, 1, 0);
    assert_eq!(rows.starts, before);
}
