//! Terminals with other symbol widths show no stale cells.

use proptest::prelude::*;

use super::*;
use crate::look::Tone;

/// Width of a character on a terminal; 0 if it joins the last one.
type Widths = fn(char) -> usize;

fn is_joined(char: char) -> bool {
    unicode_width::UnicodeWidthChar::width(char).unwrap_or(0) == 0
}

fn usual(char: char) -> usize {
    unicode_width::UnicodeWidthChar::width(char).unwrap_or(0)
}

/// Counts emoji and other new symbols as one cell.
fn narrow(char: char) -> usize {
    match char {
        _ if is_joined(char) => 0,
        '\u{2300}'..='\u{2bff}' | '\u{1f000}'.. => 1,
        _ => usual(char),
    }
}

/// Counts all of them as two cells.
fn wide(char: char) -> usize {
    match char {
        _ if is_joined(char) => 0,
        '\u{1f000}'.. => 2,
        _ => usual(char),
    }
}

/// Counts marks and joiners as separate cells.
fn marks(char: char) -> usize {
    match char {
        '\u{300}'..='\u{36f}' => 0,
        _ => usual(char).max(1),
    }
}

const TERMINALS: [(&str, Widths); 4] = [
    ("usual", usual),
    ("narrow", narrow),
    ("wide", wide),
    ("marks", marks),
];

/// Minimal terminal model: interprets only the sequences that a painter writes.
struct TerminalModel {
    columns: usize,
    rows: Vec<Vec<String>>,
    at: (usize, usize),
    region: (usize, usize),
    wraps: bool,
    widths: Widths,
}

/// The right half of a wide character.
const TAIL: &str = "\0";

impl TerminalModel {
    fn new(columns: usize, rows: usize, widths: Widths) -> Self {
        Self {
            columns,
            rows: vec![vec![" ".to_owned(); columns]; rows],
            at: (0, 0),
            region: (0, rows),
            wraps: true,
            widths,
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        let text = std::str::from_utf8(bytes).unwrap();
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            match char {
                '\r' => self.at.1 = 0,
                '\n' => self.at.0 = (self.at.0 + 1).min(self.rows.len() - 1),
                '\x1b' => match chars.next() {
                    Some('[') => {
                        let mut parameters = String::new();
                        let last = loop {
                            match chars.next().unwrap() {
                                it @ ('0'..='9' | ';' | '?') => parameters.push(it),
                                it => break it,
                            }
                        };
                        self.control(&parameters, last);
                    }
                    // A link ends with `ESC \`.
                    Some(']') => while chars.next().is_some_and(|it| it != '\\') {},
                    other => panic!("{other:?}"),
                },
                char => self.put(char),
            }
        }
    }

    fn control(&mut self, parameters: &str, last: char) {
        let numbers: Vec<usize> = parameters
            .split(';')
            .map(|number| number.parse().unwrap_or(1))
            .collect();
        let first = numbers[0];
        match last {
            'H' => self.at = (first - 1, numbers.get(1).map_or(0, |column| column - 1)),
            'G' => self.at.1 = first - 1,
            'C' => self.at.1 += first,
            'D' => self.at.1 -= first,
            'K' => self.erase(self.at.0, self.at.1),
            'J' => {
                for row in 0..self.rows.len() {
                    self.erase(row, 0);
                }
            }
            'r' if parameters.is_empty() => self.region = (0, self.rows.len()),
            'r' => self.region = (first - 1, numbers[1]),
            'M' | 'L' => {
                let blank = vec![" ".to_owned(); self.columns];
                for _ in 0..first {
                    let end = self.region.1 - 1;
                    let (from, to) = if last == 'M' {
                        (self.at.0, end)
                    } else {
                        (end, self.at.0)
                    };
                    self.rows.remove(from);
                    self.rows.insert(to, blank.clone());
                }
            }
            'h' | 'l' if parameters == "?7" => self.wraps = last == 'h',
            'h' | 'l' | 'm' => {}
            other => panic!("{other}"),
        }
    }

    fn erase(&mut self, row: usize, from: usize) {
        for column in from..self.columns {
            self.set(row, column, " ");
        }
    }

    /// Changes one cell; the other half of a wide character becomes blank.
    fn set(&mut self, row: usize, column: usize, text: &str) {
        let cells = &mut self.rows[row];
        if cells[column] == TAIL && column > 0 {
            cells[column - 1] = " ".to_owned();
        }
        if cells.get(column + 1).is_some_and(|cell| cell == TAIL) {
            cells[column + 1] = " ".to_owned();
        }
        cells[column] = text.to_owned();
    }

    fn put(&mut self, char: char) {
        let width = (self.widths)(char);
        let (row, column) = self.at;
        if width == 0 {
            let before = column.min(self.columns).saturating_sub(1);
            self.rows[row][before].push(char);
            return;
        }
        if column + width > self.columns {
            assert!(!self.wraps, "row {row} overflowed with {char:?}");
            return;
        }
        self.set(row, column, &char.to_string());
        if width == 2 {
            self.set(row, column + 1, " ");
            self.rows[row][column] = char.to_string();
            self.rows[row][column + 1] = TAIL.to_owned();
        }
        self.at.1 = column + width;
    }
}

fn mixed_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z ]{1,9}",
        2 => "[中文字あいう한국]{1,4}",
        2 => "[אבגדהוזחטי]{1,6}",
        1 => "[ابتثجحخ]{1,6}",
        3 => prop::sample::select(vec![
            "👨‍👩‍👧‍👦", "🇩🇪", "❤\u{fe0f}", "👍🏽", "🙂", "1\u{fe0f}\u{20e3}", "\u{fffd}", "क्ष",
            "각", "✅", "🖼", "🖼\u{fe0f}", "שָׁ", "⏩", "🏳\u{fe0f}‍🌈",
        ]).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 1..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ikigai_testkit::cases(256, 20_000)))]

    /// After each frame the terminal equals a full repaint.
    /// Text of undisputed width is in its place.
    #[test]
    fn no_cell_is_stale_whatever_a_terminal_counts(
        frames in prop::collection::vec(
            prop::collection::vec((0_u16..5, 0_u16..20, mixed_text(), any::<bool>()), 1..4),
            1..6,
        ),
    ) {
        let mut grid = Grid::new(24, 5);
        let mut painter = Painter::new();
        let mut models = TERMINALS.map(|(name, widths)| (name, TerminalModel::new(24, 5, widths)));
        for row in 0..5 {
            grid.put(row, 0, "some words in each row", Tone::Text);
        }
        for puts in frames {
            for (row, column, text, clears) in puts {
                if clears {
                    grid.put(row, 0, &" ".repeat(24), Tone::Text);
                }
                grid.put(row, column, &text, Tone::Text);
            }
            let mut frame = Vec::new();
            painter.paint(&grid, Theme::Terminal, &mut frame);
            let mut anew = Vec::new();
            Painter::new().paint(&grid, Theme::Terminal, &mut anew);

            for (name, model) in &mut models {
                model.write(&frame);
                let mut fresh = TerminalModel::new(24, 5, model.widths);
                fresh.write(&anew);

                prop_assert_eq!(&model.rows, &fresh.rows, "{}", name);
                for row in 0..5 {
                    for column in 0..24 {
                        let cell = grid.cell(row, column).unwrap();
                        let seen = &model.rows[usize::from(row)][usize::from(column)];
                        if cell.symbol().is_ascii() && !cell.symbol().is_empty() {
                            prop_assert_eq!(seen, cell.symbol(), "{} {} {}", name, row, column);
                        }
                    }
                }
            }
        }
    }
}
