//! Path of an agent: the chain of rows from its newest to a root.
//!
//! Every row has one predecessor: a `clear` has none, a `rewind` has its target, an inheriting
//! child's first row has its fork point, and any other row has the previous one. So a path is a
//! short list of spans, and only control rows bend it.
//!
//! A path is resolved lazily from its newest end. The unresolved part is one reference; callers
//! resolve it by reading a few more control rows. So the cost of opening or forking an agent does
//! not depend on the length of its history.

use std::collections::VecDeque;

use crate::data::{self, ErrorData, ForkContext, ForkData, ForkRole, RewindData, SummaryData};
use crate::event::Row;
use crate::ids::{AgentId, RowRef, Seq};
use crate::kind::Kind;
use crate::query::{ControlQuery, Span};

/// Number of control rows that the first step reads; each further step reads twice as many.
///
/// A step that finds no bend among them still counts.
const FIRST_STEP_ROWS: usize = 8;

/// Largest number of control rows in a step, so that one read stays short.
const LONGEST_STEP_ROWS: usize = 256;

/// Continuation of a path below a row that bends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bend {
    /// None: the row is a root.
    Root,
    /// This row, without a check.
    To(RowRef),
    /// This row of another agent, if the bending row's agent holds it.
    IfHeld(RowRef),
}

/// Returns the bend that a control row makes in its agent's path.
pub(crate) fn bend_of(row: &Row) -> Option<Bend> {
    match row.kind.known()? {
        Kind::Clear => Some(Bend::Root),
        Kind::Rewind => {
            let target = data::read::<RewindData>(row.data.as_deref()).target?;
            // A first row that is no fork has no earlier rows that it could return to.
            let older = target.agent != row.at.agent || target.seq < row.at.seq;
            if target.seq == Seq(0) || row.at.seq == Seq(1) || !older {
                None
            } else if target.agent == row.at.agent {
                Some(Bend::To(target))
            } else {
                Some(Bend::IfHeld(target))
            }
        }
        Kind::Fork if row.at.seq == Seq(1) => {
            fork_point_of(row.at.agent, &data::read(row.data.as_deref())).map(Bend::To)
        }
        Kind::System
        | Kind::User
        | Kind::Assistant
        | Kind::ToolCall
        | Kind::ToolResult
        | Kind::Mark
        | Kind::Fork
        | Kind::Command
        | Kind::AgentKilled
        | Kind::Usage
        | Kind::Interrupted
        | Kind::Error
        | Kind::Summary
        | Kind::Process
        | Kind::Files => None,
    }
}

/// Returns the row that an inheriting child's first row follows.
///
/// Sequence number 0 and rows of the child itself count as absent.
pub(crate) fn fork_point_of(child: AgentId, fork: &ForkData) -> Option<RowRef> {
    let inherits = fork.role == Some(ForkRole::Child) && fork.context != Some(ForkContext::Fresh);
    fork.fork_point
        .filter(|point| inherits && point.seq > Seq(0) && point.agent != child)
}

/// Returns true if the row has no predecessor.
pub fn is_root(row: &Row) -> bool {
    match bend_of(row) {
        Some(Bend::Root) => true,
        Some(Bend::To(_) | Bend::IfHeld(_)) => false,
        None => row.at.seq == Seq(1),
    }
}

/// Meaning of a control row on the path, apart from bends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A mark with its label.
    Mark(Option<String>),
    /// A range that a summary, or a gap, replaces.
    Summary {
        /// First row of the range.
        from: RowRef,
        /// Last row of the range.
        to: RowRef,
    },
    /// A summary that is undone.
    Undo(RowRef),
    /// Rows that requests leave out.
    Omit(Vec<RowRef>),
}

/// Returns the note of a control row.
pub(crate) fn note_of(row: &Row) -> Option<Note> {
    let data = row.data.as_deref();
    match row.kind.known()? {
        Kind::Mark => Some(Note::Mark(data::read::<data::MarkData>(data).label)),
        Kind::Summary => match data::read::<SummaryData>(data) {
            SummaryData {
                undo: Some(undone), ..
            } => Some(Note::Undo(undone)),
            SummaryData {
                from: Some(from),
                to: Some(to),
                ..
            } => Some(Note::Summary { from, to }),
            _ => None,
        },
        Kind::Error => data::read::<ErrorData>(data).omit.map(Note::Omit),
        Kind::System
        | Kind::User
        | Kind::Assistant
        | Kind::ToolCall
        | Kind::ToolResult
        | Kind::Clear
        | Kind::Rewind
        | Kind::Fork
        | Kind::Command
        | Kind::AgentKilled
        | Kind::Usage
        | Kind::Interrupted
        | Kind::Process
        | Kind::Files => None,
    }
}

/// A path, resolved from its newest row back to some row.
#[derive(Clone, Debug, Default)]
pub struct Path {
    /// Resolved spans, oldest first; adjacent spans of one agent are joined.
    spans: VecDeque<Span>,
    /// Notes of the control rows in the spans, oldest first.
    notes: VecDeque<(RowRef, Note)>,
    /// Newest row of the unresolved part; none if the path is resolved to its root.
    below: Option<RowRef>,
    /// Agents whose first row lies above `below`.
    ///
    /// A valid log never returns to such an agent, so the path ends there: a forged fork point
    /// cannot make a walk endless.
    passed: Vec<AgentId>,
    /// Number of steps so far; each reads more rows than the previous one.
    steps: u32,
    /// A rewind into another agent's rows that is not validated yet.
    check: Option<Box<Check>>,
    /// Inherited path that refuted such a rewind.
    ///
    /// The walk reaches it later and continues with it, and it checks the next rewind: each
    /// ancestor is walked once.
    checked: Option<Box<Inherited>>,
}

/// Path of the first row of an agent.
#[derive(Clone, Debug)]
struct Inherited {
    by: AgentId,
    path: Path,
}

/// Compares the resolved parts, however they were resolved.
impl PartialEq for Path {
    fn eq(&self, other: &Self) -> bool {
        self.spans == other.spans && self.notes == other.notes && self.below == other.below
    }
}

impl Eq for Path {}

/// Check that a rewind's agent holds the rewind's target.
#[derive(Clone, Debug)]
struct Check {
    rewind: RowRef,
    target: RowRef,
    /// Path that the rewind's agent inherits.
    inherited: Path,
}

impl Path {
    /// Makes the unresolved path of a row.
    pub fn of(row: Option<RowRef>) -> Self {
        Self {
            below: row.filter(|row| row.seq > Seq(0)),
            ..Self::default()
        }
    }

    /// Makes the path of a row from its agent's newest control rows, newest first.
    ///
    /// `all` says that there are no others.
    pub(crate) fn known<'a>(
        row: RowRef,
        control: impl Iterator<Item = &'a Row>,
        all: bool,
    ) -> Self {
        let mut path = Self::of(Some(row));
        if let Some(below) = path.below {
            path.step(below, control, all);
        }
        path
    }

    /// Makes the unresolved path of a child's fork point.
    pub(crate) fn inherited_by(child: AgentId, fork: Option<&ForkData>) -> Self {
        Self {
            passed: vec![child],
            ..Self::of(fork.and_then(|fork| fork_point_of(child, fork)))
        }
    }

    /// Returns the resolved spans, oldest first.
    pub fn spans(&self) -> impl DoubleEndedIterator<Item = Span> + ExactSizeIterator + '_ {
        self.spans.iter().copied()
    }

    /// Returns the notes of the resolved part, oldest first.
    pub fn notes(&self) -> impl DoubleEndedIterator<Item = (RowRef, &Note)> + '_ {
        self.notes.iter().map(|(row, note)| (*row, note))
    }

    /// Returns true if the path is resolved to its root.
    pub fn is_complete(&self) -> bool {
        self.below.is_none()
    }

    /// Returns the oldest row, if the path is resolved to its root.
    pub fn root(&self) -> Option<RowRef> {
        let first = self.spans.front().filter(|_| self.is_complete())?;
        Some(RowRef::new(first.agent, first.from))
    }

    /// Returns true if the row is on the resolved part.
    pub fn contains(&self, row: RowRef) -> bool {
        self.spans.iter().rev().any(|span| span.contains(row))
    }

    /// Returns the next query to resolve more; none if the path is resolved to its root.
    pub fn wants(&self) -> Option<ControlQuery> {
        if let Some(check) = &self.check {
            return check.inherited.wants();
        }
        self.below.map(|below| ControlQuery {
            span: Span::new(below.agent, Seq(1), below.seq),
            limit: self.step_rows(),
        })
    }

    fn step_rows(&self) -> usize {
        let doublings = self.steps.min(usize::BITS / 2);
        (FIRST_STEP_ROWS << doublings).min(LONGEST_STEP_ROWS)
    }

    /// Resolves more of the path with the rows that [`Path::wants`] asked for, newest first.
    pub fn supply(&mut self, rows: &[Row]) {
        if let Some(check) = self.check.take() {
            self.go_on_checking(check, rows);
        } else if let Some(below) = self.below {
            let all = rows.len() < self.step_rows();
            self.steps = self.steps.saturating_add(1);
            self.step(below, rows.iter(), all);
        }
    }

    /// Walks down from `below` with `rows`, the newest control rows at or before it.
    ///
    /// `all` says that there are no others.
    fn step<'a>(&mut self, mut below: RowRef, rows: impl Iterator<Item = &'a Row>, all: bool) {
        let mut oldest = None;
        for row in rows {
            oldest = Some(row);
            if row.at.seq > below.seq {
                // The row is on an abandoned branch.
                continue;
            }
            match bend_of(row) {
                Some(Bend::Root) => {
                    self.note(row);
                    return self.extend(below, row.at.seq, None);
                }
                Some(Bend::To(next)) => {
                    self.note(row);
                    self.extend(below, row.at.seq, Some(next));
                    self.reuse_checked(row.at, next);
                    match self.below {
                        Some(next) if next.agent == below.agent => below = next,
                        _ => return,
                    }
                }
                Some(Bend::IfHeld(target)) => {
                    // The rows above are on the path with either outcome of the check.
                    if row.at.seq < below.seq {
                        self.extend(below, row.at.seq.next(), Some(row.at));
                    }
                    let check = Check {
                        rewind: row.at,
                        target,
                        inherited: self.inherited_of(row.at.agent),
                    };
                    return self.settle(Box::new(check));
                }
                None => self.note(row),
            }
        }
        match oldest {
            _ if all => self.extend(below, Seq(1), None),
            Some(oldest) if oldest.at.seq <= below.seq => {
                let next = RowRef::new(below.agent, oldest.at.seq.before());
                let next = Some(next).filter(|next| next.seq > Seq(0));
                self.extend(below, oldest.at.seq, next);
            }
            _ => {}
        }
    }

    /// Returns the inherited path of an agent, as far as it is resolved.
    fn inherited_of(&mut self, by: AgentId) -> Self {
        match self.checked.take() {
            Some(checked) if checked.by == by => checked.path,
            _ => Self {
                passed: self.passed.clone(),
                ..Self::of(Some(RowRef::new(by, Seq(1))))
            },
        }
    }

    /// Continues with the path of a failed check at its agent's first row.
    ///
    /// `next` precedes that row.
    fn reuse_checked(&mut self, row: RowRef, next: RowRef) {
        let reaches = |checked: &Inherited| checked.by == row.agent && checked.path.contains(next);
        if row.seq == Seq(1) && self.checked.as_deref().is_some_and(reaches) {
            let mut rest = self.inherited_of(row.agent);
            rest.cut_after(next);
            self.put_below(rest);
        }
    }

    fn go_on_checking(&mut self, mut check: Box<Check>, rows: &[Row]) {
        check.inherited.supply(rows);
        self.settle(check);
    }

    fn settle(&mut self, check: Box<Check>) {
        let Check { rewind, target, .. } = *check;
        if check.inherited.contains(target) {
            let mut rest = check.inherited;
            rest.cut_after(target);
            self.extend(rewind, rewind.seq, Some(target));
            self.put_below(rest);
        } else if check.inherited.is_complete() {
            let next = RowRef::new(rewind.agent, rewind.seq.before());
            self.extend(
                rewind,
                rewind.seq,
                Some(next).filter(|next| next.seq > Seq(0)),
            );
            self.checked = Some(Box::new(Inherited {
                by: rewind.agent,
                path: check.inherited,
            }));
        } else {
            self.check = Some(check);
        }
    }

    fn note(&mut self, row: &Row) {
        if let Some(note) = note_of(row) {
            self.notes.push_front((row.at, note));
        }
    }

    /// Adds rows `from..=below` of `below.agent` to the resolved part; `next` precedes them.
    fn extend(&mut self, below: RowRef, from: Seq, next: Option<RowRef>) {
        let span = Span::new(below.agent, from, below.seq);
        match self.spans.front_mut() {
            Some(first) if first.agent == span.agent && first.from == span.to.next() => {
                first.from = span.from;
            }
            _ => self.spans.push_front(span),
        }
        if from == Seq(1) {
            self.passed.push(below.agent);
        }
        self.below = next.filter(|next| !self.passed.contains(&next.agent));
    }

    /// Puts another path, which ends at `below`, under this one.
    fn put_below(&mut self, mut rest: Self) {
        while let Some(span) = rest.spans.pop_back() {
            self.spans.push_front(span);
        }
        while let Some(note) = rest.notes.pop_back() {
            self.notes.push_front(note);
        }
        self.below = rest.below;
        self.passed = rest.passed;
        self.check = rest.check;
        self.checked = rest.checked;
    }

    /// Removes all rows after a row of the resolved part.
    fn cut_after(&mut self, row: RowRef) {
        while let Some(last) = self.spans.back().copied() {
            let found = last.contains(row);
            let gone = if found {
                Span {
                    from: row.seq.next(),
                    ..last
                }
            } else {
                last
            };
            while self.notes.back().is_some_and(|(at, _)| gone.contains(*at)) {
                self.notes.pop_back();
            }
            self.spans.pop_back();
            if found {
                self.spans.push_back(Span {
                    to: row.seq,
                    ..last
                });
                break;
            }
        }
    }

    /// Appends a row that follows the newest one.
    pub(crate) fn append(&mut self, row: &Row) {
        let at = row.at;
        match self.spans.back_mut() {
            Some(last) if last.agent == at.agent && last.to.next() == at.seq => last.to = at.seq,
            _ => self.spans.push_back(Span::new(at.agent, at.seq, at.seq)),
        }
        if at.seq == Seq(1) {
            self.passed.push(at.agent);
        }
        if let Some(note) = note_of(row) {
            self.notes.push_back((at, note));
        }
    }

    /// Empties the path.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns to a row, resolved or not, so that the next row follows it.
    pub(crate) fn go_back_to(&mut self, target: RowRef) {
        if self.contains(target) {
            self.cut_after(target);
        } else {
            *self = Self::of(Some(target));
        }
    }

    /// Returns resolved spans before `row`, or all without one, that hold `rows` rows, newest
    /// first.
    ///
    /// Empty at the root, and if the path must be resolved further first.
    pub fn spans_before(&self, row: Option<RowRef>, rows: usize) -> Vec<Span> {
        let (index, rest) = match row {
            None => (self.spans.len(), None),
            Some(row) => {
                let Some(index) = self.spans.iter().rposition(|span| span.contains(row)) else {
                    return Vec::new();
                };
                let rest = Span {
                    to: row.seq.before(),
                    ..self.spans[index]
                };
                (index, Some(rest).filter(|rest| !rest.is_empty()))
            }
        };
        let older = self.spans.iter().take(index).rev().copied();
        let mut missing = rows as u64;
        rest.into_iter()
            .chain(older)
            .take_while(|span| {
                let wanted = missing > 0;
                missing = missing.saturating_sub(span.len());
                wanted
            })
            .collect()
    }

    /// Returns the row `rows` rows after `row`, or the newest if there are fewer.
    ///
    /// None if the row is not on the resolved part.
    pub fn row_after(&self, row: RowRef, rows: usize) -> Option<RowRef> {
        let index = self.spans.iter().rposition(|span| span.contains(row))?;
        let rest = Span {
            from: row.seq.next(),
            ..*self.spans.get(index)?
        };
        let newer = self.spans.iter().skip(index + 1).copied();
        let mut missing = rows as u64;
        let mut found = row;
        for span in [rest].into_iter().chain(newer) {
            let taken = span.len().min(missing);
            if taken > 0 {
                found = RowRef::new(span.agent, Seq(span.from.0 + taken - 1));
            }
            missing -= taken;
        }
        Some(found)
    }

    /// Ends the path at this row, or before its newest row if none is given.
    ///
    /// For paths whose older rows cannot be read.
    pub fn end_at(&mut self, row: Option<RowRef>) {
        let index = row.and_then(|row| self.spans.iter().rposition(|span| span.contains(row)));
        let older = index.map_or(self.spans.len(), |index| index);
        for span in self.spans.drain(..older) {
            while self
                .notes
                .pop_front_if(|(at, _)| span.contains(*at))
                .is_some()
            {}
        }
        if let (Some(row), Some(first)) = (row, self.spans.front_mut()) {
            let gone = Span {
                to: row.seq.before(),
                ..*first
            };
            first.from = row.seq;
            while self
                .notes
                .pop_front_if(|(at, _)| gone.contains(*at))
                .is_some()
            {}
        }
        self.below = None;
        self.check = None;
    }
}

#[cfg(test)]
mod tests;
