use proptest::prelude::*;

use super::*;
use crate::line::{TextLine, TextSpan};
use crate::look::Tone;
use crate::paint::Colour;

const THEME: Theme = Theme::Terminal;

/// Emulated terminal with its painter.
struct Screen {
    parser: vt100::Parser,
    painter: Painter,
}

impl Screen {
    fn new(columns: u16, rows: u16) -> Self {
        Self {
            parser: vt100::Parser::new(size(rows), size(columns), 0),
            painter: Painter::new(),
        }
    }

    fn resize(&mut self, columns: u16, rows: u16) {
        self.parser.screen_mut().set_size(size(rows), size(columns));
    }

    /// Paints a grid; returns the bytes written.
    fn paint(&mut self, grid: &Grid, theme: Theme) -> Vec<u8> {
        let mut out = Vec::new();
        self.painter.paint(grid, theme, &mut out);
        self.parser.process(&out);
        out
    }
}

fn size(cells: u16) -> std::num::NonZeroU16 {
    std::num::NonZeroU16::new(cells).unwrap()
}

/// First difference between the terminal and the grid.
fn difference(screen: &vt100::Screen, grid: &Grid, theme: Theme) -> Option<String> {
    for row in 0..grid.rows() {
        if screen.row_wrapped(row) {
            return Some(format!("row {row} overflowed"));
        }
        for column in 0..grid.columns() {
            let cell = grid.cell(row, column).unwrap();
            let seen = screen.cell(row, column).unwrap();
            if !same(seen, cell, theme.style(cell.look())) {
                return Some(format!("{row}, {column}: {cell:?} is {seen:?}"));
            }
        }
    }
    let cursor = (!screen.hide_cursor()).then(|| screen.cursor_position());
    let wanted = grid
        .cursor
        .map(|(row, column)| (row.min(grid.rows() - 1), column.min(grid.columns() - 1)));
    (cursor != wanted).then(|| format!("cursor at {cursor:?}, not at {wanted:?}"))
}

fn same(seen: &vt100::Cell, cell: &GridCell, style: CellStyle) -> bool {
    // The emulator measures some pieces by their characters; the right half may be one of these.
    if cell.width() == 0 {
        return true;
    }
    let colour = |colour| match colour {
        Colour::Default => vt100::Color::Default,
        Colour::Indexed(index) => vt100::Color::Idx(index),
    };
    let lines = (seen.underline(), seen.inverse());
    if lines != (style.has(Look::UNDERLINE), style.has(Look::REVERSE)) {
        return false;
    }
    if seen.bgcolor() != colour(style.bg) {
        return false;
    }
    if cell.is_blank() {
        return matches!(seen.contents(), "" | " ");
    }
    let weight = (seen.bold(), seen.dim(), seen.italic());
    let wanted = (
        style.has(Look::BOLD),
        style.has(Look::DIM),
        style.has(Look::ITALIC),
    );
    let simple = cell
        .symbol()
        .chars()
        .all(|char| char < '\u{1f000}' && !matches!(char, '\u{200d}' | '\u{fe0f}' | '\u{fffd}'));
    let text = if simple && cell.width() == 1 {
        seen.contents() == cell.symbol()
    } else {
        cell.symbol().starts_with(seen.contents().trim_end())
    };
    // The emulator does not support bold with dim.
    let both = style.has(Look::BOLD) && style.has(Look::DIM);
    text && seen.fgcolor() == colour(style.fg) && (both || weight == wanted)
}

/// Operation on a grid.
#[derive(Clone, Debug)]
enum PaintAction {
    Put(u16, u16, String, Look),
    Link(u16, u16, String, u8),
    Fill(u16, Look),
    Scroll {
        from: u16,
        to: u16,
        by: u16,
        up: bool,
    },
    Cursor(Option<(u16, u16)>),
    Clear,
    Size(u16, u16),
    Theme(usize),
    Forget,
}

fn look() -> impl Strategy<Value = Look> {
    let role = prop::sample::select(vec![
        Tone::Text,
        Tone::Text,
        Tone::Faint,
        Tone::Error,
        Tone::Tool,
        Tone::Marked,
        Tone::Link,
        Tone::Match,
    ]);
    (role, prop_oneof![3 => Just(0_u8), 1 => 0_u8..64])
        .prop_map(|(role, set_off)| Look { role, set_off })
}

fn words() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => "[a-z ]{1,12}",
        1 => " {1,12}",
        2 => "[中文字あいう한국]{1,5}",
        1 => "[aeo][\u{301}\u{308}]{1,2}",
        1 => prop::sample::select(vec!["👨‍👩‍👧‍👦", "🇩🇪", "❤\u{fe0f}", "👍🏽", "🙂", "1\u{fe0f}\u{20e3}", "\u{fffd}", "क्ष", "각", "✅"]).prop_map(str::to_owned),
        1 => ".{1,4}",
    ];
    prop::collection::vec(piece, 1..4).prop_map(|pieces| pieces.concat())
}

fn action() -> impl Strategy<Value = PaintAction> {
    let row = 0_u16..12;
    let column = 0_u16..24;
    prop_oneof![
        12 => (row.clone(), column.clone(), words(), look())
            .prop_map(|(row, column, text, look)| PaintAction::Put(row, column, text, look)),
        2 => (row.clone(), column.clone(), words(), 0_u8..3)
            .prop_map(|(row, column, text, link)| PaintAction::Link(row, column, text, link)),
        2 => (row.clone(), look()).prop_map(|(row, look)| PaintAction::Fill(row, look)),
        6 => (row.clone(), row.clone(), 1_u16..4, any::<bool>())
            .prop_map(|(from, to, by, up)| PaintAction::Scroll { from, to, by, up }),
        3 => prop::option::of((row, column)).prop_map(PaintAction::Cursor),
        1 => Just(PaintAction::Clear),
        1 => (1_u16..24, 1_u16..12).prop_map(|(columns, rows)| PaintAction::Size(columns, rows)),
        1 => (0_usize..5).prop_map(PaintAction::Theme),
        1 => Just(PaintAction::Forget),
    ]
}

/// Rows of a grid as lines, to be written elsewhere.
fn lines(grid: &Grid) -> Vec<Vec<(String, Look, u16)>> {
    (0..grid.rows())
        .map(|row| {
            (0..grid.columns())
                .filter_map(|column| grid.cell(row, column))
                .filter(|cell| cell.width() > 0)
                .map(|cell| (cell.symbol().to_owned(), cell.look(), cell.width()))
                .collect()
        })
        .collect()
}

fn do_to(grid: &mut Grid, action: &PaintAction) {
    match action {
        PaintAction::Put(row, column, text, look) => {
            grid.put(*row, *column, text, *look);
        }
        PaintAction::Link(row, column, text, link) => {
            let mut span = TextSpan::new(text.clone(), Tone::Link);
            span.link = Some(format!("https://example.org/{link}").into());
            grid.line(*row, *column, &TextLine::new(vec![span]));
        }
        PaintAction::Fill(row, look) => grid.fill(*row, *look),
        PaintAction::Scroll { from, to, by, up } => {
            let mut rows = lines(grid);
            let (from, to) = (usize::from(*from.min(to)), usize::from(*from.max(to)));
            let to = to.min(rows.len());
            let Some(region) = rows.get_mut(from..to) else {
                return;
            };
            let by = usize::from(*by).min(region.len());
            if *up {
                region.rotate_left(by);
            } else {
                region.rotate_right(by);
            }
            let cursor = grid.cursor;
            grid.clear();
            grid.cursor = cursor;
            for (row, cells) in (0..).zip(rows) {
                let mut column = 0;
                for (text, look, width) in cells {
                    grid.put(row, column, &text, look);
                    column += width;
                }
            }
        }
        PaintAction::Cursor(cursor) => grid.cursor = *cursor,
        PaintAction::Clear => grid.clear(),
        PaintAction::Size(columns, rows) => grid.resize(*columns, *rows),
        PaintAction::Theme(_) | PaintAction::Forget => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ikigai_testkit::cases(256, 20_000)))]

    #[test]
    fn the_terminal_shows_what_the_grid_says(
        frames in prop::collection::vec(prop::collection::vec(action(), 1..6), 1..12),
    ) {
        let mut grid = Grid::new(20, 8);
        for row in 0..8 {
            // Rows that can be scrolled.
            grid.put(row, 0, &format!("{row} and its many words"), Tone::Text);
        }
        let mut screen = Screen::new(20, 8);
        let mut theme = THEME;
        for deeds in frames {
            for action in &deeds {
                do_to(&mut grid, action);
                match action {
                    PaintAction::Size(columns, rows) => screen.resize(*columns, *rows),
                    PaintAction::Theme(place) => theme = Theme::NAMES[*place].1,
                    PaintAction::Forget => {
                        screen.parser.process(b"\x1b[5;5Hsomebody else\x1b[1;31;44m");
                        screen.painter.forget();
                    }
                    _ => {}
                }
            }

            screen.paint(&grid, theme);

            let found = difference(screen.parser.screen(), &grid, theme);
            prop_assert!(found.is_none(), "{}", found.unwrap_or_default());
            prop_assert_eq!(screen.paint(&grid, theme), b"");
        }
    }
}

/// A screen of 120×40 with text in its upper part, and four unchanged rows below.
fn streaming(rows: &[String], last: &str) -> Grid {
    let mut grid = Grid::new(120, 40);
    let shown = rows.iter().skip(rows.len().saturating_sub(35));
    for (row, text) in (0..).zip(shown) {
        grid.put(row, 0, text, Tone::Text);
    }
    grid.put(35, 0, last, Tone::Text);
    for (row, text) in (36..).zip(["──── tree", "❯ input", "", " ~/src · model · ask"])
    {
        grid.put(row, 0, text, Tone::Status);
    }
    grid.cursor = Some((37, 9));
    grid
}

#[test]
fn text_that_grows_costs_little_more_than_itself() {
    let mut screen = Screen::new(120, 40);
    let mut rows: Vec<String> = (0..40).map(|n| format!("{n} {}", "x".repeat(97))).collect();
    screen.paint(&streaming(&rows, ""), THEME);
    let (mut written, mut text) = (0, 0);

    for n in 40..140 {
        let row = format!("{n} {}", "words and words ".repeat(6));
        text += row.len();
        rows.push(row);
        let grid = streaming(&rows, "");
        written += screen.paint(&grid, THEME).len();
        assert_eq!(difference(screen.parser.screen(), &grid, THEME), None);
    }

    let more = (written - text) / 100;
    assert!(more <= 60, "{more} bytes more than the text for each row");
}

#[test]
fn looking_back_row_by_row_costs_a_row_each() {
    let mut screen = Screen::new(120, 40);
    let rows: Vec<String> = (0..140)
        .map(|n| format!("{n} {}", "x".repeat(97)))
        .collect();
    screen.paint(&streaming(&rows, ""), THEME);
    let mut written = 0;

    for end in (100..140).rev() {
        let grid = streaming(&rows[..end], "");
        written += screen.paint(&grid, THEME).len();
        assert_eq!(difference(screen.parser.screen(), &grid, THEME), None);
    }

    let each = written / 40;
    assert!(each <= 160, "{each} bytes for each row of 100");
}

#[test]
fn a_letter_that_is_typed_costs_a_few_bytes() {
    let mut screen = Screen::new(120, 40);
    let mut grid = streaming(&[], "");
    screen.paint(&grid, THEME);
    grid.put(37, 9, "a", Tone::Status);
    grid.cursor = Some((37, 10));

    let written = screen.paint(&grid, THEME);

    assert_eq!(written, [BEGIN, b"a", END].concat());
}

#[test]
fn a_row_that_became_shorter_is_erased_to_its_end() {
    let mut screen = Screen::new(80, 3);
    let mut grid = Grid::new(80, 3);
    grid.put(1, 0, &"x".repeat(80), Tone::Text);
    screen.paint(&grid, THEME);
    grid.fill(1, Tone::Text);
    grid.put(1, 0, "xx", Tone::Text);

    let written = screen.paint(&grid, THEME);

    assert_eq!(written, [BEGIN, b"\x1b[3G\x1b[K", END].concat());
}

#[test]
fn behind_the_last_column_nobody_knows_where_the_cursor_is() {
    let mut grid = Grid::new(5, 1);
    grid.put(0, 0, "abcde", Tone::Text);
    grid.cursor = Some((0, 4));

    let written = Screen::new(5, 1).paint(&grid, THEME);

    let written = String::from_utf8(written).unwrap();
    assert!(written.contains("abcde\u{1b}[5G"), "{written:?}");
}

#[test]
fn links_are_told_to_the_terminal_and_cannot_break_out() {
    let mut grid = Grid::new(20, 2);
    for (row, target) in [(0, "https://example.org/a b"), (1, "x\u{1b}\\\u{7}evil")] {
        let mut span = TextSpan::new("here", Tone::Text);
        span.link = Some(target.into());
        grid.line(row, 0, &TextLine::new(vec![span]));
    }

    let written = Screen::new(20, 2).paint(&grid, THEME);

    let written = String::from_utf8(written).unwrap();
    let link = "\u{1b}]8;;https://example.org/a%20b\u{1b}\\here\u{1b}]8;;\u{1b}\\";
    assert!(written.contains(link), "{written:?}");
    assert!(!written.contains("evil"), "{written:?}");
}

#[test]
fn a_link_that_leads_elsewhere_is_written_again() {
    let linked = |target: &str| {
        let mut grid = Grid::new(20, 1);
        let mut span = TextSpan::new("here", Tone::Text);
        span.link = Some(target.into());
        grid.line(0, 0, &TextLine::new(vec![span]));
        grid
    };
    let mut screen = Screen::new(20, 1);
    screen.paint(&linked("https://example.org/a"), THEME);

    let again = screen.paint(&linked("https://example.org/a"), THEME);
    let other = screen.paint(&linked("https://example.org/b"), THEME);

    assert_eq!(again, b"");
    assert!(String::from_utf8_lossy(&other).contains("example.org/b"));
}

#[test]
fn ever_new_links_do_not_fill_the_memory() {
    let mut screen = Screen::new(20, 1);

    for n in 0..10_000 {
        let mut grid = Grid::new(20, 1);
        let mut span = TextSpan::new("here", Tone::Text);
        span.link = Some(format!("https://example.org/{n}").into());
        grid.line(0, 0, &TextLine::new(vec![span]));
        screen.paint(&grid, THEME);
    }

    assert!(screen.painter.links.len() <= MOST_LINKS);
}

#[test]
fn nothing_is_painted_on_a_screen_without_cells() {
    let mut out = Vec::new();
    let mut grid = Grid::new(0, 0);
    grid.cursor = Some((0, 0));

    Painter::new().paint(&grid, THEME, &mut out);

    assert!(!out.is_empty());
}
