//! Picker: a list that typing filters; Enter runs the line of the selected entry.

use std::ops::Range;

use ikigai_core::RowRef;
use ikigai_engine::UserInput;
use ikigai_engine::commands::{Candidate, KEY_PROVIDERS, THEMES, narrow};
use ikigai_engine::search::SearchCursor;

use super::draw::draw_status;
use super::hints::Hints;
use super::layer::{Area, Handled, Layer};
use super::{AgentActivity, UiContext, commands};
use crate::input::{EditCommand, Editor};
use crate::key::{KeyCode, KeyPress, MouseAction, MouseEvent};
use crate::keys::{self, Action, Meaning};
use crate::line::{TextLine, TextSpan};
use crate::list::ChoiceList;
use crate::look::{Look, Tone};
use crate::paint::Grid;
use crate::text::{clean, cut};
use crate::width::width;

/// Most entries on the screen.
const ROWS: usize = 12;

/// Entries of a page.
const PAGE: isize = 12;

/// Label of the filter.
const PROMPT: &str = "filter: ";

/// Rows of a picker besides its entries: title, filter, keys.
const FURTHER_ROWS: u16 = 3;

const KEYS: Hints<'_> = Hints {
    gap: "",
    keys: &["Enter select", "↑↓ move", "type to filter"],
    way_out: "Esc cancel",
    look: Look::of(Tone::Faint),
};

/// Choice whose entries are read from the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PickerKind {
    /// Models.
    Model,
    /// Sessions.
    Session,
}

/// List of entries to choose from.
#[derive(Clone, Debug)]
pub struct Picker {
    title: String,
    entries: Vec<PickerEntry>,
    /// The filter.
    typed: Editor,
    list: ChoiceList,
    /// First row of the list in the last frame.
    row: u16,
    /// True if its entries are the living agents.
    lists_agents: bool,
}

/// Entry of a picker.
#[derive(Clone, Debug)]
pub struct PickerEntry {
    /// Text that the filter matches.
    pub text: String,
    /// Description.
    pub about: String,
    /// Highlighted byte ranges of the description.
    pub marks: Vec<Range<usize>>,
    /// Effect of choosing it.
    pub action: PickerAction,
}

impl PickerEntry {
    /// Creates an entry without highlights.
    pub fn new(text: impl Into<String>, about: impl Into<String>, action: PickerAction) -> Self {
        Self {
            text: text.into(),
            about: about.into(),
            marks: Vec::new(),
            action,
        }
    }
}

/// Effect of choosing an entry.
#[derive(Clone, Debug)]
pub enum PickerAction {
    /// Runs this line.
    Run(String),
    /// Opens another picker.
    Choose(Box<Picker>),
    /// Goes to this row of the log.
    GoTo(RowRef),
    /// Looks for more hits.
    MoreHits(SearchCursor),
}

impl Picker {
    /// Creates a picker with the entry of text `marked` selected.
    pub fn new(title: impl Into<String>, entries: Vec<PickerEntry>, marked: Option<&str>) -> Self {
        let mut picker = Self {
            title: title.into(),
            entries,
            typed: Editor::default(),
            list: ChoiceList::default(),
            row: 0,
            lists_agents: false,
        };
        picker.narrow();
        if let Some(marked) = marked {
            picker.list.mark_text(marked);
        }
        picker
    }

    /// Filters the list.
    fn narrow(&mut self) {
        let entries = self.entries.iter();
        let all = entries.map(|entry| Candidate {
            marks: entry.marks.clone(),
            ..Candidate::new(&entry.text, entry.about.clone())
        });
        self.list = ChoiceList::new(narrow(all.collect(), &self.typed.text()), ROWS);
    }

    /// Updates the entries of a picker of agents; keeps the selection.
    fn follow_agents(&mut self, ctx: &UiContext) {
        if self.lists_agents {
            let before = self.list.clone();
            self.entries = agent_entries(ctx);
            self.narrow();
            self.list.mark_as(&before);
        }
    }

    fn insert(&mut self, text: &str) {
        let line = text.lines().next().unwrap_or_default();
        self.typed.insert(line);
        self.narrow();
    }

    fn edit(&mut self, edit: EditCommand) {
        if !matches!(
            edit,
            EditCommand::Newline | EditCommand::Up | EditCommand::Down
        ) {
            self.typed.apply(edit);
            self.narrow();
        }
    }

    fn selected_action(&self) -> Option<PickerAction> {
        let marked = self.list.selected()?;
        let mut entries = self.entries.iter();
        Some(entries.find(|entry| entry.text == marked)?.action.clone())
    }

    /// Executes the selected entry.
    fn take(&self, ctx: &mut UiContext) {
        let Some(action) = self.selected_action() else {
            return ctx.toast("No match");
        };
        ctx.close();
        match action {
            PickerAction::Run(line) => commands::submit(ctx, UserInput::parse(line)),
            PickerAction::Choose(picker) => open(ctx, *picker),
            PickerAction::GoTo(row) => ctx.go_to_hit(row),
            PickerAction::MoreHits(after) => ctx.more_hits(after),
        }
    }
}

/// Opens a picker, unless it is empty.
pub(super) fn open(ctx: &mut UiContext, picker: Picker) {
    // Agents may not be loaded yet; they arrive while the picker is open.
    if picker.entries.is_empty() && !picker.lists_agents {
        return ctx.toast("Nothing to choose from");
    }
    ctx.open(picker);
}

/// Opens a picker of living agents.
pub(super) fn choose_agent(ctx: &mut UiContext) {
    let marked = ctx.before.and_then(|before| ctx.name_of(before));
    let picker = Picker {
        lists_agents: true,
        ..Picker::new("Go to an agent", agent_entries(ctx), marked.as_deref())
    };
    open(ctx, picker);
}

/// Returns the entries of all living agents.
fn agent_entries(ctx: &UiContext) -> Vec<PickerEntry> {
    let living = ctx.roster.all();
    let living = living.filter(|(_, known)| known.state() != AgentActivity::Dead);
    let entries = living.map(|(_, known)| {
        let agent = &known.branch.agent;
        let state = match known.state() {
            AgentActivity::Asks => "asks",
            AgentActivity::Works => "works",
            AgentActivity::Done => "done",
            AgentActivity::Failed => "failed",
            AgentActivity::Merged => "merged",
            AgentActivity::Stopped => "stopped",
            AgentActivity::Idle | AgentActivity::Dead => "idle",
        };
        let about = format!("{state:<7} {}", known.live.summary.last.replace('\n', " "));
        let action = PickerAction::Run(format!("/switch {}", agent.name));
        PickerEntry::new(&agent.name, about, action)
    });
    entries.collect()
}

/// Opens a picker of providers that need a key.
pub(super) fn choose_key_provider(ctx: &mut UiContext) {
    let entries = KEY_PROVIDERS
        .iter()
        .map(|name| PickerEntry::new(*name, "", PickerAction::Run(format!("/key {name}"))));
    open(
        ctx,
        Picker::new("Choose a provider", entries.collect(), None),
    );
}

/// Opens a picker of themes.
pub(super) fn choose_theme(ctx: &mut UiContext) {
    let entries = THEMES.iter().map(|name| {
        let action = PickerAction::Run(format!("/theme {name}"));
        PickerEntry::new(*name, theme_about(name), action)
    });
    open(ctx, Picker::new("Choose a theme", entries.collect(), None));
}

impl Layer for Picker {
    fn bindings(&self, _ctx: &UiContext) -> Vec<keys::KeyMode> {
        vec![keys::KeyMode::Picker]
    }

    fn key(&mut self, key: KeyPress, ctx: &mut UiContext) -> Handled {
        self.follow_agents(ctx);
        let modes = [keys::KeyMode::Picker, keys::KeyMode::Input];
        match (ctx.bindings.meaning(&modes, &[key]), key.code) {
            (Meaning::Action(Action::PickerUp), _) => self.list.mark(-1),
            (Meaning::Action(Action::PickerDown), _) => self.list.mark(1),
            (Meaning::Action(Action::PickerPageUp), _) => self.list.mark(-PAGE),
            (Meaning::Action(Action::PickerPageDown), _) => self.list.mark(PAGE),
            (Meaning::Action(Action::PickerTake), _) => self.take(ctx),
            (Meaning::Action(Action::PickerLeave), _) => ctx.close(),
            (Meaning::Action(Action::Edit(edit)), _) => self.edit(edit),
            (Meaning::Nothing, KeyCode::Char(character)) if !key.ctrl && !key.alt => {
                self.insert(character.encode_utf8(&mut [0; 4]));
            }
            _ => return Handled::No,
        }
        Handled::Yes
    }

    fn paste(&mut self, text: &str, _ctx: &mut UiContext) -> Handled {
        self.insert(text);
        Handled::Yes
    }

    fn mouse(&mut self, mouse: MouseEvent, ctx: &mut UiContext) -> Handled {
        match mouse.action {
            MouseAction::WheelUp => self.list.mark(-1),
            MouseAction::WheelDown => self.list.mark(1),
            MouseAction::Press => {
                let entry = mouse.row.checked_sub(self.row).map(usize::from);
                if entry.is_some_and(|entry| self.list.click(entry)) {
                    self.take(ctx);
                }
            }
            MouseAction::Drag | MouseAction::Release => {}
        }
        Handled::Yes
    }

    fn covers_input(&self) -> bool {
        true
    }

    fn draw(&mut self, area: Area, ctx: &mut UiContext, grid: &mut Grid) -> Area {
        let (columns, bottom) = (area.columns, area.bottom() - 1);
        draw_status(ctx, grid, bottom);
        self.follow_agents(ctx);
        let room = usize::from(bottom.saturating_sub(FURTHER_ROWS)).max(1);
        self.list.set_rows(room.min(ROWS));
        let mut lines = self.list.lines(columns);
        if self.list.is_empty() {
            lines.push(TextLine::of("  no match", Tone::Faint));
        }
        let height = u16::try_from(lines.len()).unwrap_or(0) + FURTHER_ROWS;
        let top = bottom.saturating_sub(height);
        let title = TextLine::new(vec![
            TextSpan::new(clean(&self.title), Look::of(Tone::Heading).with(Look::BOLD)),
            TextSpan::new(format!("  {}", self.list.place()), Tone::Faint),
        ]);
        grid.line(top, 0, &cut(&title, columns, "…"));
        let indent = u16::try_from(width(PROMPT)).unwrap_or(0);
        let (typed, column) = self.typed.one_row(columns.saturating_sub(indent));
        grid.put(top + 1, 0, PROMPT, Tone::User);
        grid.line(top + 1, indent, &typed);
        grid.cursor = Some((top + 1, (indent + column).min(columns - 1)));
        self.row = top + 2;
        lines.push(KEYS.after(&TextLine::default(), columns));
        for (row, line) in (self.row..bottom).zip(&lines) {
            grid.line(row, 0, &cut(line, columns, "…"));
        }
        area.above(top)
    }
}

fn theme_about(name: &str) -> &'static str {
    match name {
        "terminal" => "your terminal's 16 colours",
        "dark" => "for dark backgrounds",
        "light" => "for light backgrounds",
        "daltonized" => "no red or green",
        _ => "no colours",
    }
}
