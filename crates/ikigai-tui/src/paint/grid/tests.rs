use super::*;
use crate::line::TextSpan;
use crate::look::Tone;
use crate::paint::Colour;

fn row(grid: &Grid, row: u16) -> String {
    grid.text(row).trim_end().to_owned()
}

#[test]
fn text_is_cut_at_the_right_edge() {
    let mut grid = Grid::new(4, 2);

    let next = grid.put(0, 1, "abcdef", Tone::Text);

    assert_eq!((row(&grid, 0).as_str(), next), (" abc", 4));
    assert_eq!(row(&grid, 1), "");
}

#[test]
fn half_a_wide_character_is_never_shown() {
    let mut grid = Grid::new(4, 4);
    for row in 0..4 {
        grid.put(row, 0, "a中b", Tone::Text);
    }

    grid.put(0, 1, "x", Tone::Text);
    grid.put(1, 2, "x", Tone::Text);
    grid.put(2, 0, "字", Tone::Text);
    let next = grid.put(3, 3, "字", Tone::Text);

    assert_eq!(row(&grid, 0), "ax b");
    assert_eq!(row(&grid, 1), "a xb");
    assert_eq!(row(&grid, 2), "字 b");
    assert_eq!((row(&grid, 3).as_str(), next), ("a中", 4));
}

#[test]
fn a_wide_cell_says_what_it_is() {
    let mut grid = Grid::new(3, 1);

    grid.put(0, 0, "中", Tone::Tool);

    let cells: Vec<_> = (0..3)
        .map(|column| {
            let cell = grid.cell(0, column).unwrap();
            (cell.symbol(), cell.width(), cell.look().role)
        })
        .collect();
    assert_eq!(
        cells,
        [
            ("中", 2, Tone::Tool),
            ("", 0, Tone::Tool),
            (" ", 1, Tone::Text)
        ]
    );
}

#[test]
fn control_and_invisible_characters_are_named() {
    let mut grid = Grid::new(60, 1);

    let hostile = "a\u{1b}[31mb\u{9b}\u{7}\u{202e}c\u{2028}d\n";
    let next = grid.put(0, 0, hostile, Tone::Text);

    let named = "a␛[31mb⟨U+009B⟩␇⟨U+202E⟩c⟨U+2028⟩d";
    assert_eq!((row(&grid, 0).as_str(), next), (named, 34));
}

#[test]
fn long_pieces_are_kept() {
    let family = "👨🏽‍👩🏽‍👧🏽‍👦🏽";
    let mut grid = Grid::new(3, 1);

    grid.put(0, 0, family, Tone::Text);

    assert_eq!(grid.cell(0, 0).unwrap().symbol(), family);
    assert_eq!(row(&grid, 0), family);
}

#[test]
fn outside_of_the_screen_is_nothing() {
    let mut grid = Grid::new(2, 1);

    assert_eq!(grid.put(0, 9, "x", Tone::Text), 9);
    grid.put(7, 0, "x", Tone::Text);
    grid.fill(7, Tone::Text);
    grid.restyle(7, 0..9, Tone::Text);

    assert_eq!(grid.text(7), "");
    assert!(grid.cell(0, 2).is_none());
    assert_eq!(row(&grid, 0), "");
}

#[test]
fn runs_have_their_style_and_their_link() {
    let mut grid = Grid::new(8, 1);
    let target: Arc<str> = "https://example.org".into();
    let mut span = TextSpan::new("it", Tone::Text);
    span.link = Some(Arc::clone(&target));
    let line = TextLine::new(vec![TextSpan::new("see ", Tone::Error), span]);

    grid.line(0, 0, &line);

    let bold_red = CellStyle {
        fg: Colour::Indexed(9),
        set_off: Look::BOLD,
        ..CellStyle::default()
    };
    let run = |text: &str, style, link| StyledRun {
        text: text.to_owned(),
        style,
        link,
    };
    assert_eq!(
        grid.spans(0, Theme::Terminal),
        [
            run("see ", bold_red, None),
            run("it", CellStyle::default(), Some(Arc::clone(&target))),
            run("  ", CellStyle::default(), None),
        ]
    );
    assert_eq!(grid.link_at(0, 5), Some(&target));
    assert_eq!(grid.link_at(0, 6), None);
}

#[test]
fn a_new_look_takes_wide_cells_whole() {
    let mut grid = Grid::new(5, 1);
    grid.put(0, 0, "a中字", Tone::Text);

    grid.restyle(0, 2..4, Tone::Selected);

    let roles: Vec<_> = (0..5)
        .map(|column| grid.cell(0, column).unwrap().look().role)
        .collect();
    assert_eq!(
        roles,
        [
            Tone::Text,
            Tone::Selected,
            Tone::Selected,
            Tone::Selected,
            Tone::Selected
        ]
    );
}

#[test]
fn a_cell_is_small() {
    assert!(size_of::<GridCell>() <= 24);
}
