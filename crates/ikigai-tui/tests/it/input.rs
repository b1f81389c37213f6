//! Random edits, compared with an oracle: a list of characters with full copies for undo.

use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

use ikigai_tui::input::{EditCommand, Editor};
use ikigai_tui::width::width;

#[derive(Clone, Debug, PartialEq)]
enum Unit {
    Letter(char),
    /// A paste that is shown as one piece.
    Fold(String),
}

use Unit::{Fold, Letter};

#[derive(Default)]
struct Model {
    text: Vec<Unit>,
    cursor: usize,
    kills: Vec<Vec<Unit>>,
    done: Vec<Step>,
    undone: Vec<Step>,
    last: Last,
}

/// Text and cursor before and after.
struct Step {
    before: (Vec<Unit>, usize),
    after: (Vec<Unit>, usize),
}

#[derive(Default, PartialEq)]
enum Last {
    #[default]
    Other,
    /// True if the typed text ended with a blank, and its end.
    Typed(bool, usize),
    /// True if the erased text began with a blank, and its start.
    Erased(bool, usize),
    Killed,
    /// Start, end, and number of kills back.
    Yanked(usize, usize, usize),
}

impl Unit {
    fn whole(&self) -> String {
        match self {
            Letter(letter) => letter.to_string(),
            Fold(text) => text.clone(),
        }
    }

    fn shown(&self) -> String {
        match self {
            Letter(letter) => letter.to_string(),
            Fold(text) => format!("[paste: {} lines]", text.lines().count()),
        }
    }

    fn is_blank(&self) -> bool {
        matches!(self, Letter(letter) if letter.is_whitespace())
    }

    fn is_word(&self) -> bool {
        matches!(self, Letter(letter) if letter.is_alphanumeric() || *letter == '_')
    }

    fn is_fold(&self) -> bool {
        matches!(self, Fold(_))
    }
}

fn letters(text: &str) -> Vec<Unit> {
    text.chars().map(Letter).collect()
}

impl Model {
    fn text(&self) -> String {
        self.text.iter().map(Unit::whole).collect()
    }

    fn shown(&self) -> String {
        self.text.iter().map(Unit::shown).collect()
    }

    fn bytes(&self, at: usize) -> usize {
        let shown = self.text[..at].iter().map(|unit| unit.shown().len());
        shown.sum()
    }

    /// Returns all positions of the cursor.
    fn places(&self) -> Vec<usize> {
        let mut places = vec![0];
        let mut at = 0;
        for piece in self.text.chunk_by(|a, b| !a.is_fold() && !b.is_fold()) {
            let text: String = piece.iter().map(Unit::whole).collect();
            let lengths: Vec<_> = if piece[0].is_fold() {
                vec![1]
            } else {
                let graphemes = text.graphemes(true);
                graphemes.map(|text| text.chars().count()).collect()
            };
            for length in lengths {
                at += length;
                places.push(at);
            }
        }
        places
    }

    fn left(&self, at: usize) -> usize {
        let places = self.places();
        places.into_iter().rfind(|place| *place < at).unwrap_or(0)
    }

    fn right(&self, at: usize) -> usize {
        let places = self.places();
        places.into_iter().find(|place| *place > at).unwrap_or(at)
    }

    fn put(&mut self, start: usize, end: usize, units: &[Unit], goes_on: bool) {
        let before = (self.text.clone(), self.cursor);
        self.text.splice(start..end, units.iter().cloned());
        let behind = start + units.len();
        let mut places = self.places().into_iter();
        self.cursor = places.find(|place| *place >= behind).unwrap_or(behind);
        let after = (self.text.clone(), self.cursor);
        self.undone.clear();
        match self.done.last_mut() {
            Some(step) if goes_on => step.after = after,
            _ => self.done.push(Step { before, after }),
        }
    }

    fn type_in(&mut self, text: &str) {
        let units = letters(text);
        let goes_on = matches!(self.last, Last::Typed(blank, end)
            if end == self.cursor && (!blank || units[0].is_blank()));
        self.last = Last::Typed(units[units.len() - 1].is_blank(), self.cursor + units.len());
        self.put(self.cursor, self.cursor, &units, goes_on);
    }

    fn erase(&mut self, start: usize, end: usize, last: &Last) {
        let goes_on = matches!(last, Last::Erased(blank, place)
            if *place == end && (!blank || self.text[end - 1].is_blank()));
        self.last = Last::Erased(self.text[start].is_blank(), start);
        self.put(start, end, &[], goes_on);
    }

    fn word_left(&self) -> usize {
        let mut at = self.cursor;
        let mut within = false;
        while at > 0 {
            let next = self.left(at);
            let unit = &self.text[next];
            if within && !unit.is_word() {
                break;
            }
            at = next;
            if unit.is_fold() {
                break;
            }
            within |= unit.is_word();
        }
        at
    }

    fn word_right(&self) -> usize {
        let mut at = self.cursor;
        let mut within = false;
        while at < self.text.len() {
            let unit = &self.text[at];
            if within && !unit.is_word() {
                break;
            }
            at = self.right(at);
            if unit.is_fold() {
                break;
            }
            within |= unit.is_word();
        }
        at
    }

    fn line_start(&self) -> usize {
        let before = &self.text[..self.cursor];
        let newline = before.iter().rposition(|unit| *unit == Letter('\n'));
        newline.map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        let behind = &self.text[self.cursor..];
        let newline = behind.iter().position(|unit| *unit == Letter('\n'));
        newline.map_or(self.text.len(), |length| self.cursor + length)
    }

    fn kill(&mut self, start: usize, end: usize, last: Last) {
        self.last = last;
        if start == end {
            return;
        }
        let killed = self.text[start..end].to_vec();
        let joins = self.last == Last::Killed;
        match self.kills.last_mut() {
            Some(newest) if joins && start == self.cursor => newest.extend(killed),
            Some(newest) if joins => *newest = [killed, newest.clone()].concat(),
            _ => self.kills.push(killed),
        }
        if self.kills.len() > 32 {
            self.kills.remove(0);
        }
        self.put(start, end, &[], false);
        self.last = Last::Killed;
    }

    fn yank(&mut self, start: usize, end: usize, back: usize) {
        if let Some(last) = self.kills.len().checked_sub(1) {
            let kill = self.kills[last - back % self.kills.len()].clone();
            self.put(start, end, &kill, false);
            self.last = Last::Yanked(start, start + kill.len(), back);
        }
    }

    fn apply(&mut self, edit: EditCommand) {
        let at = self.cursor;
        let last = std::mem::take(&mut self.last);
        match edit {
            EditCommand::Newline => self.put(at, at, &letters("\n"), false),
            EditCommand::Backspace if at > 0 => self.erase(self.left(at), at, &last),
            EditCommand::DeleteForward if at < self.text.len() => {
                self.put(at, self.right(at), &[], false);
            }
            EditCommand::Left => self.cursor = self.left(at),
            EditCommand::Right => self.cursor = self.right(at),
            EditCommand::WordLeft => self.cursor = self.word_left(),
            EditCommand::WordRight => self.cursor = self.word_right(),
            EditCommand::LineStart => self.cursor = self.line_start(),
            EditCommand::LineEnd => self.cursor = self.line_end(),
            EditCommand::TextStart => self.cursor = 0,
            EditCommand::TextEnd => self.cursor = self.text.len(),
            EditCommand::KillToEnd if self.line_end() == at => self.kill(at, self.right(at), last),
            EditCommand::KillToEnd => self.kill(at, self.line_end(), last),
            EditCommand::KillToStart if self.line_start() == at => {
                self.kill(self.left(at), at, last);
            }
            EditCommand::KillToStart => self.kill(self.line_start(), at, last),
            EditCommand::KillWordBack => self.kill(self.word_left(), at, last),
            EditCommand::KillWordForward => self.kill(at, self.word_right(), last),
            EditCommand::Yank => self.yank(at, at, 0),
            EditCommand::YankPop => {
                if let Last::Yanked(start, end, back) = last {
                    self.yank(start, end, back + 1);
                }
            }
            EditCommand::Undo => {
                if let Some(step) = self.done.pop() {
                    (self.text, self.cursor) = step.before.clone();
                    self.undone.push(step);
                }
            }
            EditCommand::Redo => {
                if let Some(step) = self.undone.pop() {
                    (self.text, self.cursor) = step.after.clone();
                    self.done.push(step);
                }
            }
            EditCommand::Backspace
            | EditCommand::DeleteForward
            | EditCommand::Up
            | EditCommand::Down => {}
        }
    }
}

#[derive(Clone, Debug)]
enum MouseAction {
    Type(String),
    /// Number of lines.
    Paste(usize),
    Apply(EditCommand),
    Clear,
    /// Wraps the rows at some width.
    Layout(u16),
}

const EDITS: [EditCommand; 19] = [
    EditCommand::Newline,
    EditCommand::Backspace,
    EditCommand::DeleteForward,
    EditCommand::Left,
    EditCommand::Right,
    EditCommand::WordLeft,
    EditCommand::WordRight,
    EditCommand::LineStart,
    EditCommand::LineEnd,
    EditCommand::TextStart,
    EditCommand::TextEnd,
    EditCommand::KillToEnd,
    EditCommand::KillToStart,
    EditCommand::KillWordBack,
    EditCommand::KillWordForward,
    EditCommand::Yank,
    EditCommand::YankPop,
    EditCommand::Undo,
    EditCommand::Redo,
];

/// Generates texts of pieces that join in every way.
fn some_text() -> impl Strategy<Value = String> {
    let pieces = [
        "a", "b", "word", " ", "  ", "_", "-", "\n", "é", "e", "\u{301}", "🇩", "🇪", "👩",
        "\u{200d}", "\u{fe0e}", "\u{fe0f}", "☃", "中", "\t", "\u{1b}", "\u{202e}", "क", "\u{94d}",
        "ष", "\u{ff9e}", "\u{200b}",
    ];
    let piece = proptest::sample::select(pieces.to_vec());
    proptest::collection::vec(piece, 1..4).prop_map(|pieces| pieces.concat())
}

fn deed() -> impl Strategy<Value = MouseAction> {
    prop_oneof![
        6 => some_text().prop_map(MouseAction::Type),
        1 => (1..12_usize).prop_map(MouseAction::Paste),
        10 => proptest::sample::select(&EDITS[..]).prop_map(MouseAction::Apply),
        1 => Just(MouseAction::Clear),
        2 => (1..20_u16).prop_map(MouseAction::Layout),
    ]
}

proptest! {
    #[test]
    fn prop_the_editor_equals_a_list_of_characters(deeds in prop::collection::vec(deed(), 1..60)) {
        let mut editor = Editor::default();
        let mut model = Model::default();
        let mut columns = 10;

        for deed in deeds {
            match &deed {
                MouseAction::Type(text) => {
                    editor.insert(text);
                    model.type_in(text);
                }
                MouseAction::Paste(lines) => {
                    let text = "line\n".repeat(*lines);
                    editor.paste(&text).unwrap();
                    let units = if *lines > 8 { vec![Fold(text)] } else { letters(&text) };
                    model.last = Last::Other;
                    model.put(model.cursor, model.cursor, &units, false);
                }
                MouseAction::Apply(edit) => {
                    editor.apply(*edit);
                    model.apply(*edit);
                }
                MouseAction::Clear => {
                    editor.clear();
                    model.kill(0, model.text.len(), Last::Other);
                    model.last = Last::Other;
                }
                MouseAction::Layout(width) => columns = *width,
            }

            prop_assert_eq!(editor.shown(), model.shown(), "{:?}", deed);
            prop_assert_eq!(editor.cursor(), model.bytes(model.cursor), "{:?}", deed);
            prop_assert_eq!(editor.text(), model.text(), "{:?}", deed);
            // Incremental wrapping gives the same rows as wrapping at once.
            let mut afresh = Editor::default();
            afresh.restore(editor.unsent());
            let layout = editor.layout(columns, u16::MAX);
            prop_assert_eq!(layout, afresh.layout(columns, u16::MAX), "{:?}", deed);
        }
    }

    #[test]
    fn prop_rows_fit_and_rejoin_and_every_place_is_found_again(
        texts_typed in prop::collection::vec(some_text(), 0..20),
        lines in 0..12_usize,
        columns in 1..24_u16,
    ) {
        let mut editor = Editor::default();
        editor.set(&texts_typed.concat());
        editor.paste(&"line\n".repeat(lines)).unwrap();
        editor.insert("end");

        let layout = editor.layout(columns, u16::MAX);

        let mut rejoined = String::new();
        for (index, row) in layout.rows.iter().enumerate() {
            prop_assert!(width(&row.text()) <= usize::from(columns), "{:?}", row);
            prop_assert!(!row.text().contains(char::is_control));
            if index > 0 {
                rejoined.push_str(row.joined.unwrap_or("\n"));
            }
            rejoined.push_str(&row.text());
        }
        // Narrow rows show a sign in place of wider characters.
        if columns >= 8 {
            let blank = |text: &str| text.replace([' ', '\t'], "");
            let shown = visible(editor.shown());
            prop_assert_eq!(blank(&rejoined), blank(&shown));
        }

        editor.apply(EditCommand::TextStart);
        loop {
            let at = editor.cursor();
            let (row, column) = editor.layout(columns, u16::MAX).cursor;
            prop_assert!(column < usize::from(columns));
            editor.click(row, column);
            prop_assert_eq!(editor.cursor(), at);
            if !editor.apply(EditCommand::Right) {
                break;
            }
        }
        prop_assert_eq!(editor.cursor(), editor.shown().len());
    }

    #[test]
    fn prop_up_and_down_cross_every_row(
        texts_typed in prop::collection::vec(some_text(), 0..20),
        columns in 1..24_u16,
    ) {
        let mut editor = Editor::default();
        editor.set(&texts_typed.concat());
        let rows = editor.layout(columns, u16::MAX).total_rows;

        for edit in [EditCommand::Up, EditCommand::Down] {
            let mut crossed = 1;
            while editor.apply(edit) {
                crossed += 1;
                prop_assert!(crossed <= rows);
            }
            prop_assert_eq!(crossed, rows);
        }
        prop_assert_eq!(editor.layout(columns, u16::MAX).cursor.0, rows - 1);
    }
}

/// Replaces control characters and lone combining marks by their visible signs.
fn visible(shown: &str) -> String {
    let show = |text: &str| match text {
        "\n" | "\t" => text.to_owned(),
        "\u{1b}" => "␛".to_owned(),
        _ if width(text) == 0 => {
            let first = text.chars().next().map_or(0, u32::from);
            format!("⟨U+{first:04X}⟩")
        }
        _ => text.to_owned(),
    };
    shown.graphemes(true).map(show).collect()
}
