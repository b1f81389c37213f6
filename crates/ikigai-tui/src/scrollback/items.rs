//! Items of a scrollback: rows of the path, usage of turns, start of the context.

use std::collections::HashMap;
use std::sync::Arc;

use ikigai_core::data::{
    self, CommandData, ForkData, ForkRole, ProcessData, ProcessState, SummaryData, UserData,
    UserOrigin,
};
use ikigai_core::view::Entry;
use ikigai_core::{AgentState, Kind, Row, RowRef, View};
use ikigai_engine::{Agent, TurnFigures};

use super::reports::add_report;
use crate::rows::Replaced;

/// Stable identifier of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Id {
    /// A row of the log.
    Row(RowRef),
    /// Usage of the turn that this row began.
    Turn(RowRef),
    /// Unstored rows, below everything else.
    Live,
    /// Last row that is not sent any more.
    Context(RowRef),
    /// A row that this rewind took off the path.
    Left {
        /// The rewind.
        by: RowRef,
        /// The row.
        row: RowRef,
    },
}

impl Id {
    /// Returns the row of the log, if it is one.
    pub const fn row(self) -> Option<RowRef> {
        match self {
            Self::Row(row) | Self::Left { row, .. } => Some(row),
            Self::Turn(_) | Self::Context(_) | Self::Live => None,
        }
    }
}

/// Visible rows that are off the agent's path.
#[derive(Clone, Copy)]
pub struct ExtraRows<'a> {
    /// Pages before the last clear, newest first, each as it was when cleared.
    pub before: &'a [Agent],
    /// Rows that rewinds left, by the row of the rewind.
    pub left: &'a HashMap<RowRef, Vec<Entry>>,
}

/// Item of the scrollback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrollbackItem {
    /// Its identifier.
    pub id: Id,
    /// Contents.
    pub what: ItemContent,
}

impl ScrollbackItem {
    /// Returns true if it is an answer of the model.
    pub fn is_said(&self) -> bool {
        matches!(&self.what, ItemContent::Row { row, .. } if row.kind.read_as() == Some(Kind::Assistant))
    }
}

/// Contents of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemContent {
    /// A row of the log.
    Row {
        /// As stored.
        row: Arc<Row>,
        /// Reason why it cannot be read.
        problem: Option<String>,
        /// Row of the command that made this event and reports it.
        report: Option<Arc<Row>>,
    },
    /// Usage of a turn.
    Turn(TurnFigures),
    /// The context begins below: rows above are not sent.
    Context {
        /// Row of the summary or cut.
        by: RowRef,
        /// Replacement of the rows above.
        replaced: Replaced,
    },
}

/// Builds the items, oldest first.
pub(super) fn items(
    state: &AgentState,
    view: &View,
    beside: Option<ExtraRows<'_>>,
) -> Vec<ScrollbackItem> {
    let mut items = Vec::new();
    let before = beside.map_or(&[][..], |beside| beside.before);
    for page in before.iter().rev() {
        add_page(&mut items, &page.state, &page.view, beside);
    }
    add_page(&mut items, state, view, beside);
    items
}

fn add_page(
    items: &mut Vec<ScrollbackItem>,
    state: &AgentState,
    view: &View,
    beside: Option<ExtraRows<'_>>,
) {
    let mut starts = view.turn_starts(state.path()).into_iter().peekable();
    let window = context_start(state, view);
    let mut turn: Option<(RowRef, TurnFigures)> = None;
    // Behind the newest row of the turn, so that later local output comes below the usage line.
    let mut end = items.len();
    for (index, entry) in view.entries().iter().enumerate() {
        let at = entry.at();
        if starts.next_if_eq(&at).is_some() {
            add_turn(items, end, turn.take());
            turn = Some((at, TurnFigures::starting_at(&entry.row)));
        }
        let is_after = turn
            .as_ref()
            .is_some_and(|(_, turn)| turn.ends_before(&entry.row));
        if let Some((_, turn)) = &mut turn {
            turn.add(&entry.row);
        }
        let problem = view.problem(index).map(|problem| problem.to_string());
        if problem.is_none() && add_report(items, entry, view.entries().iter().take(index).rev()) {
            continue;
        }
        if problem.is_some() || is_drawn(entry) {
            let row = entry.row.clone();
            items.push(ScrollbackItem {
                id: Id::Row(at),
                what: ItemContent::Row {
                    row,
                    problem,
                    report: None,
                },
            });
        }
        if is_of_turn(entry.kind()) && !is_after {
            end = items.len();
        }
        let left = beside.and_then(|beside| beside.left.get(&at));
        items.extend(
            left.into_iter()
                .flatten()
                .filter_map(|entry| left_by(at, entry)),
        );
        if let Some((_, what)) = window.as_ref().filter(|(to, _)| *to == at) {
            items.push(ScrollbackItem {
                id: Id::Context(at),
                what: what.clone(),
            });
        }
    }
    if view.is_busy(state.path()) == Some(false) {
        add_turn(items, end, turn);
    }
}

fn left_by(by: RowRef, entry: &Entry) -> Option<ScrollbackItem> {
    let problem = entry.loaded.as_ref().err().map(ToString::to_string);
    let is_seen = problem.is_some() || is_drawn(entry);
    is_seen.then(|| ScrollbackItem {
        id: Id::Left {
            by,
            row: entry.at(),
        },
        what: ItemContent::Row {
            row: entry.row.clone(),
            problem,
            report: None,
        },
    })
}

/// Returns true if a row belongs to the work of a turn.
fn is_of_turn(kind: Option<Kind>) -> bool {
    use Kind::{Assistant, Error, Interrupted, ToolCall, ToolResult, Usage, User};
    let of_turn = [
        User,
        Assistant,
        ToolCall,
        ToolResult,
        Usage,
        Error,
        Interrupted,
    ];
    kind.is_some_and(|kind| of_turn.contains(&kind))
}

/// Adds a turn's usage line if the model answered.
fn add_turn(items: &mut Vec<ScrollbackItem>, at: usize, turn: Option<(RowRef, TurnFigures)>) {
    if let Some((start, turn)) = turn.filter(|(_, turn)| turn.answered) {
        let used = ScrollbackItem {
            id: Id::Turn(start),
            what: ItemContent::Turn(turn),
        };
        items.insert(at.min(items.len()), used);
    }
}

/// Returns false for rows that are only for the program.
fn is_drawn(entry: &Entry) -> bool {
    let data = entry.row.data.as_deref();
    match entry.kind() {
        Some(Kind::Usage | Kind::Files) => false,
        Some(Kind::Command) => data::read::<CommandData>(data).echo.is_some(),
        // The rows of the call and its result name the child.
        Some(Kind::Fork) => {
            let fork: ForkData = data::read(data);
            fork.call.is_none() || fork.role != Some(ForkRole::Parent)
        }
        // Cuts of older stores appear at the start of the context.
        Some(Kind::Summary) => {
            let summary: SummaryData = data::read(data);
            entry.row.content.is_some() || summary.elide.is_some() || summary.cut == Some(true)
        }
        // The call that starts a process, and the row of its end, are drawn.
        Some(Kind::Process) => data::read::<ProcessData>(data).state == Some(ProcessState::Ended),
        Some(Kind::User) => {
            let user: UserData = data::read(data);
            user.origin != Some(UserOrigin::Notice) || user.typed.as_deref() != Some("")
        }
        Some(
            Kind::System
            | Kind::Assistant
            | Kind::ToolCall
            | Kind::ToolResult
            | Kind::Clear
            | Kind::Mark
            | Kind::Rewind
            | Kind::AgentKilled
            | Kind::Interrupted
            | Kind::Error,
        )
        | None => true,
    }
}

/// Returns true if a `summary` row only shortens tool outputs.
fn elides(entry: &Entry) -> bool {
    let summary: SummaryData = data::read(entry.row.data.as_deref());
    summary.elide.is_some()
}

/// Finds the last row that the newest summary or cut replaces, and its line.
fn context_start(state: &AgentState, view: &View) -> Option<(RowRef, ItemContent)> {
    let summaries = state.summaries();
    let newest_first = view.entries().iter().rev();
    let mut replacing =
        newest_first.filter(|entry| entry.kind() == Some(Kind::Summary) && !elides(entry));
    replacing.find_map(|entry| {
        let by = entry.at();
        let (_, _, to) = summaries.iter().find(|(row, _, _)| *row == by)?;
        let replaced = match entry.row.content {
            Some(_) => Replaced::BySummary,
            None => Replaced::ByCut,
        };
        Some((*to, ItemContent::Context { by, replaced }))
    })
}
