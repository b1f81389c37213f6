//! Choosing one of many: letters narrow the choice, Enter takes what is marked. What is taken is a
//! line, carried out as if it had been typed; choosing itself leaves nothing behind.

use std::ops::Range;

use ikigai_core::RowRef;
use ikigai_engine::commands::{Candidate, KEY_PROVIDERS, THEMES, narrow};
use ikigai_engine::search::Cursor;

use super::hints::Hints;
use super::{App, Mode, State};
use crate::input::{Edit, Editor};
use crate::key::{Code, Key};
use crate::keys::{self, Action, Meaning};
use crate::line::{Line, Span};
use crate::list::List;
use crate::look::{Look, Role};
use crate::paint::Grid;
use crate::text::{clean, cut};
use crate::width::width;

/// How many entries are shown at once.
const ROWS: usize = 12;

/// How far a page is.
const PAGE: isize = 12;

/// What stands before what is typed.
const PROMPT: &str = "choose ";

/// Rows of a picker beside its entries: its title, what is typed, the keys.
const FURTHER_ROWS: u16 = 3;

const KEYS: Hints<'_> = Hints {
    gap: "",
    keys: &["Enter takes", "↑↓ mark", "type to narrow"],
    way_out: "Esc takes none",
    look: Look::of(Role::Faint),
};

/// What can be chosen from that has to be read first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choosing {
    /// Models.
    Model,
    /// Sessions.
    Session,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Picker {
    title: String,
    entries: Vec<Entry>,
    /// What narrows the choice.
    typed: Editor,
    list: List,
    /// Where the list was drawn last.
    row: u16,
    /// Its entries are the living agents, and follow them.
    lists_agents: bool,
}

/// Something that can be chosen.
#[derive(Clone, Debug)]
pub struct Entry {
    /// By what it is found.
    pub text: String,
    /// What it is.
    pub about: String,
    /// Which parts of that stand out, in bytes.
    pub marks: Vec<Range<usize>>,
    /// What taking it does.
    pub deed: Deed,
}

impl Entry {
    /// An entry of which no part stands out.
    pub fn new(text: impl Into<String>, about: impl Into<String>, deed: Deed) -> Self {
        Self {
            text: text.into(),
            about: about.into(),
            marks: Vec::new(),
            deed,
        }
    }
}

/// What taking an entry does.
#[derive(Clone, Debug)]
pub enum Deed {
    /// Carries this line out.
    Run(String),
    /// Has something more chosen.
    Choose(Box<Picker>),
    /// Goes to this row of the log.
    GoTo(RowRef),
    /// Looks for more hits.
    MoreHits(Cursor),
}

impl Picker {
    /// Entries to choose from, of which the one with the text `marked` is marked first.
    pub fn new(title: impl Into<String>, entries: Vec<Entry>, marked: Option<&str>) -> Self {
        let mut picker = Self {
            title: title.into(),
            entries,
            typed: Editor::default(),
            list: List::default(),
            row: 0,
            lists_agents: false,
        };
        picker.narrow();
        if let Some(marked) = marked {
            picker.list.mark_text(marked);
        }
        picker
    }

    /// Shows what fits what is typed.
    fn narrow(&mut self) {
        let entries = self.entries.iter();
        let all = entries.map(|entry| Candidate {
            marks: entry.marks.clone(),
            ..Candidate::new(&entry.text, entry.about.clone())
        });
        self.list = List::new(narrow(all.collect(), &self.typed.text()), ROWS);
    }

    /// Replaces the entries; the marked one stays marked if it is still there.
    fn renew(&mut self, entries: Vec<Entry>) {
        let before = self.list.clone();
        self.entries = entries;
        self.narrow();
        self.list.mark_as(&before);
    }

    fn insert(&mut self, text: &str) {
        let line = text.lines().next().unwrap_or_default();
        self.typed.insert(line);
        self.narrow();
    }

    fn edit(&mut self, edit: Edit) {
        if !matches!(edit, Edit::Newline | Edit::Up | Edit::Down) {
            self.typed.apply(edit);
            self.narrow();
        }
    }

    fn taken(self) -> Option<Deed> {
        let marked = self.list.marked()?.to_owned();
        let mut entries = self.entries.into_iter();
        Some(entries.find(|entry| entry.text == marked)?.deed)
    }
}

impl App {
    /// Lets the user choose, unless they do something else by now.
    pub fn choose(&mut self, picker: Box<Picker>) {
        if !matches!(self.mode, Mode::Input) {
            return;
        }
        // Agents may not be read yet; they come while the picker is open.
        if picker.entries.is_empty() && !picker.lists_agents {
            return self.say("there is nothing to choose from");
        }
        self.mode = Mode::Picker(picker);
    }

    /// Lets the user choose an agent to go to.
    pub(super) fn choose_agent(&mut self) {
        let marked = self.before.and_then(|before| self.name_of(before));
        let entries = self.agent_entries();
        let picker = Picker {
            lists_agents: true,
            ..Picker::new("go to an agent", entries, marked.as_deref())
        };
        self.choose(Box::new(picker));
    }

    /// Brings the entries of an open picker of agents up to date.
    fn renew_agent_picker(&mut self) {
        if matches!(&self.mode, Mode::Picker(picker) if picker.lists_agents) {
            let entries = self.agent_entries();
            if let Mode::Picker(picker) = &mut self.mode {
                picker.renew(entries);
            }
        }
    }

    /// Entries for all living agents.
    fn agent_entries(&self) -> Vec<Entry> {
        let living = self.roster.all();
        let living = living.filter(|(_, known)| known.state() != State::Dead);
        let entries = living.map(|(_, known)| {
            let agent = &known.branch.agent;
            let state = match known.state() {
                State::Asks => "asks",
                State::Works => "works",
                State::Done => "done",
                State::Failed => "failed",
                State::Merged => "merged",
                State::Stopped => "stopped",
                State::Idle | State::Dead => "idle",
            };
            let about = format!("{state:<7} {}", known.last.replace('\n', " "));
            let deed = Deed::Run(format!("/switch {}", agent.name));
            Entry::new(&agent.name, about, deed)
        });
        entries.collect()
    }

    /// Lets the user choose whose key to type.
    pub(super) fn choose_key_provider(&mut self) {
        let entries = KEY_PROVIDERS
            .iter()
            .map(|name| Entry::new(*name, "", Deed::Run(format!("/key {name}"))));
        let picker = Picker::new("whose key", entries.collect(), None);
        self.choose(Box::new(picker));
    }

    /// Lets the user choose colours.
    pub(super) fn choose_theme(&mut self) {
        let entries = THEMES.iter().map(|name| {
            let deed = Deed::Run(format!("/theme {name}"));
            Entry::new(*name, theme_about(name), deed)
        });
        let picker = Picker::new("which colours", entries.collect(), None);
        self.choose(Box::new(picker));
    }

    /// Takes a key for a picker; says whether it means something there.
    pub(super) fn picker_takes(&mut self, key: Key) -> bool {
        let modes = [keys::Mode::Picker, keys::Mode::Input];
        let meaning = self.bindings.meaning(&modes, &[key]);
        let is_begun = !self.pressed.is_empty();
        self.renew_agent_picker();
        let Mode::Picker(picker) = &mut self.mode else {
            return false;
        };
        if is_begun {
            return false;
        }
        match (meaning, key.code) {
            (Meaning::Action(Action::PickerUp), _) => picker.list.mark(-1),
            (Meaning::Action(Action::PickerDown), _) => picker.list.mark(1),
            (Meaning::Action(Action::PickerPageUp), _) => picker.list.mark(-PAGE),
            (Meaning::Action(Action::PickerPageDown), _) => picker.list.mark(PAGE),
            (Meaning::Action(Action::PickerTake), _) => self.take_picked(),
            (Meaning::Action(Action::PickerLeave), _) => self.mode = Mode::Input,
            (Meaning::Action(Action::Edit(edit)), _) => picker.edit(edit),
            (Meaning::Nothing, Code::Char(character)) if !key.ctrl && !key.alt => {
                picker.insert(character.encode_utf8(&mut [0; 4]));
            }
            _ => return false,
        }
        true
    }

    /// Takes pasted text for a picker; says whether there is one.
    pub(super) fn picker_pastes(&mut self, text: &str) -> bool {
        let Mode::Picker(picker) = &mut self.mode else {
            return false;
        };
        picker.insert(text);
        true
    }

    fn take_picked(&mut self) {
        let Mode::Picker(picker) = &self.mode else {
            return;
        };
        let Some(deed) = picker.clone().taken() else {
            return self.say("nothing is called so");
        };
        self.mode = Mode::Input;
        match deed {
            Deed::Run(line) => self.submit(line),
            Deed::Choose(picker) => self.choose(picker),
            Deed::GoTo(row) => self.go_to_hit(row),
            Deed::MoreHits(after) => self.more_hits(after),
        }
    }

    /// Takes the entry in a row of the screen; says whether a picker is there to be clicked.
    pub(super) fn click_picker(&mut self, row: u16) -> bool {
        let Mode::Picker(picker) = &mut self.mode else {
            return false;
        };
        let entry = row.checked_sub(picker.row).map(usize::from);
        if entry.is_some_and(|entry| picker.list.click(entry)) {
            self.take_picked();
        }
        true
    }

    /// Marks another entry by the wheel; says whether a picker is there.
    pub(super) fn wheel_picker(&mut self, by: isize) -> bool {
        let Mode::Picker(picker) = &mut self.mode else {
            return false;
        };
        picker.list.mark(by);
        true
    }

    /// Draws a picker above a row, if there is one. Returns the row that is left above it.
    pub(super) fn draw_picker(&mut self, grid: &mut Grid, bottom: u16) -> Option<u16> {
        let columns = self.columns;
        self.renew_agent_picker();
        let Mode::Picker(picker) = &mut self.mode else {
            return None;
        };
        let room = usize::from(bottom.saturating_sub(FURTHER_ROWS)).max(1);
        picker.list.set_rows(room.min(ROWS));
        let mut lines = picker.list.lines(columns);
        if picker.list.is_empty() {
            lines.push(Line::of("  nothing is called so", Role::Faint));
        }
        let height = u16::try_from(lines.len()).unwrap_or(0) + FURTHER_ROWS;
        let top = bottom.saturating_sub(height);
        let title = Line::new(vec![
            Span::new(
                clean(&picker.title),
                Look::of(Role::Heading).with(Look::BOLD),
            ),
            Span::new(format!("  {}", picker.list.place()), Role::Faint),
        ]);
        grid.line(top, 0, &cut(&title, columns, "…"));
        let indent = u16::try_from(width(PROMPT)).unwrap_or(0);
        let (typed, column) = picker.typed.one_row(columns.saturating_sub(indent));
        grid.put(top + 1, 0, PROMPT, Role::User);
        grid.line(top + 1, indent, &typed);
        grid.cursor = Some((top + 1, (indent + column).min(columns - 1)));
        picker.row = top + 2;
        lines.push(KEYS.after(&Line::default(), columns));
        for (row, line) in (picker.row..bottom).zip(&lines) {
            grid.line(row, 0, &cut(line, columns, "…"));
        }
        Some(top)
    }
}

fn theme_about(name: &str) -> &'static str {
    match name {
        "terminal" => "the terminal's own 16 colours on its own background",
        "dark" => "for dark backgrounds",
        "light" => "for light backgrounds",
        "daltonized" => "without red and green",
        _ => "without colours",
    }
}
