//! The path of an agent: the one chain of rows from its newest to a root.
//!
//! Every row has one predecessor: of a `clear` none, of a `rewind` its target, of an inheriting
//! child's first row its fork point, of any other row the one before it. So a path is a short list
//! of spans, and only control rows bend it. It is known from its newest end as far as somebody
//! needed it; what lies before is one reference, resolved when asked for by reading a few control
//! rows more. So neither opening an agent nor forking it depends on how long its history is.

use std::collections::VecDeque;

use crate::data::{self, ErrorData, ForkContext, ForkData, ForkRole, RewindData, SummaryData};
use crate::event::Row;
use crate::ids::{AgentId, RowRef, Seq};
use crate::kind::{Kind, StoredKind};
use crate::query::{ControlQuery, Span};

/// How many control rows the first step reads; each further one reads twice as many. A step that
/// finds no bend among them is still a step.
const FIRST_STEP_ROWS: usize = 8;

/// No step reads more than this, so that one read stays short.
const LONGEST_STEP_ROWS: usize = 256;

/// Where a path leads below a row that bends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bend {
    /// Nowhere: the row is a root.
    Root,
    /// To this row, which need not be checked.
    To(RowRef),
    /// To this row of another agent, if the bending row's agent holds it.
    IfHeld(RowRef),
}

/// Reads off a control row whether and whereto it bends the path of its agent.
pub(crate) fn bend_of(row: &Row) -> Option<Bend> {
    match row.kind {
        StoredKind::Known(Kind::Clear) => Some(Bend::Root),
        StoredKind::Known(Kind::Rewind) => {
            let target = data::read::<RewindData>(row.data.as_deref()).target?;
            // A first row that is no fork has nothing before it that could be held.
            let older = target.agent != row.at.agent || target.seq < row.at.seq;
            if target.seq == Seq(0) || row.at.seq == Seq(1) || !older {
                None
            } else if target.agent == row.at.agent {
                Some(Bend::To(target))
            } else {
                Some(Bend::IfHeld(target))
            }
        }
        StoredKind::Known(Kind::Fork) if row.at.seq == Seq(1) => {
            fork_point_of(row.at.agent, &data::read(row.data.as_deref())).map(Bend::To)
        }
        _ => None,
    }
}

/// The row that an inheriting child's first row follows; sequence number 0 reads as absent, and
/// so does a row of the child itself.
pub(crate) fn fork_point_of(child: AgentId, fork: &ForkData) -> Option<RowRef> {
    let inherits = fork.role == Some(ForkRole::Child) && fork.context != Some(ForkContext::Fresh);
    fork.fork_point
        .filter(|point| inherits && point.seq > Seq(0) && point.agent != child)
}

/// Says whether no row precedes this one.
pub fn is_root(row: &Row) -> bool {
    match bend_of(row) {
        Some(Bend::Root) => true,
        Some(Bend::To(_) | Bend::IfHeld(_)) => false,
        None => row.at.seq == Seq(1),
    }
}

/// What a control row on the path says beside bending it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A place to return to, with its label.
    Mark(Option<String>),
    /// A range that a text, or nothing, stands for.
    Summary {
        /// First row of the range.
        from: RowRef,
        /// Last row of the range.
        to: RowRef,
    },
    /// A summary that is taken back.
    Undo(RowRef),
    /// Rows that are left out.
    Omit(Vec<RowRef>),
}

/// Reads off a control row what it notes.
pub(crate) fn note_of(row: &Row) -> Option<Note> {
    let data = row.data.as_deref();
    match row.kind {
        StoredKind::Known(Kind::Mark) => Some(Note::Mark(data::read::<data::MarkData>(data).label)),
        StoredKind::Known(Kind::Summary) => match data::read::<SummaryData>(data) {
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
        StoredKind::Known(Kind::Error) => data::read::<ErrorData>(data).omit.map(Note::Omit),
        _ => None,
    }
}

/// A path, known from its newest row back to some place.
#[derive(Clone, Debug, Default)]
pub struct Path {
    /// What is known, oldest first; neighbours of one agent that touch are one span.
    spans: VecDeque<Span>,
    /// What the control rows among them note, oldest first.
    notes: VecDeque<(RowRef, Note)>,
    /// The row at which the unknown part ends; none if the path is known to its root.
    below: Option<RowRef>,
    /// Agents whose first row lies above `below`. An honest log never comes back to one, so a
    /// path that would do so ends there: a forged fork point cannot make a walk endless.
    passed: Vec<AgentId>,
    /// How many steps were made, of which each reads more than the one before.
    steps: u32,
    /// A rewind into another agent's rows of which is not yet known whether it is valid.
    check: Option<Box<Check>>,
    /// The path that such a rewind was checked against in vain. It is where the walk comes to
    /// later, and what the next one is checked against: each ancestor is walked once.
    checked: Option<Box<Inherited>>,
}

/// The path of the first row of an agent.
#[derive(Clone, Debug)]
struct Inherited {
    by: AgentId,
    path: Path,
}

/// Two paths are equal if the same is known of them, however it became known.
impl PartialEq for Path {
    fn eq(&self, other: &Self) -> bool {
        self.spans == other.spans && self.notes == other.notes && self.below == other.below
    }
}

impl Eq for Path {}

/// Finds out whether a rewind's agent holds its target.
#[derive(Clone, Debug)]
struct Check {
    rewind: RowRef,
    target: RowRef,
    /// What the rewind's agent inherits.
    inherited: Path,
}

impl Path {
    /// The path of a row, of which nothing is known yet.
    pub fn of(row: Option<RowRef>) -> Self {
        Self {
            below: row.filter(|row| row.seq > Seq(0)),
            ..Self::default()
        }
    }

    /// The path of a row below which these control rows of its agent are the newest, newest first;
    /// `all` if there are no others.
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

    /// The path of the fork point of a child, of which nothing is known yet.
    pub(crate) fn inherited_by(child: AgentId, fork: Option<&ForkData>) -> Self {
        Self {
            passed: vec![child],
            ..Self::of(fork.and_then(|fork| fork_point_of(child, fork)))
        }
    }

    /// The known spans, oldest first.
    pub fn spans(&self) -> impl DoubleEndedIterator<Item = Span> + ExactSizeIterator + '_ {
        self.spans.iter().copied()
    }

    /// What control rows of the known part note, oldest first.
    pub fn notes(&self) -> impl DoubleEndedIterator<Item = (RowRef, &Note)> + '_ {
        self.notes.iter().map(|(row, note)| (*row, note))
    }

    /// Says whether the path is known to its root.
    pub fn is_complete(&self) -> bool {
        self.below.is_none()
    }

    /// The oldest row, if the path is known to its root.
    pub fn root(&self) -> Option<RowRef> {
        let first = self.spans.front().filter(|_| self.is_complete())?;
        Some(RowRef::new(first.agent, first.from))
    }

    /// Says whether the row is on the known part.
    pub fn contains(&self, row: RowRef) -> bool {
        self.spans.iter().rev().any(|span| span.contains(row))
    }

    /// What to read next to know more; none if the path is known to its root.
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

    /// Takes in the rows that [`Path::wants`] asked for, newest first.
    pub fn supply(&mut self, rows: &[Row]) {
        if let Some(check) = self.check.take() {
            self.go_on_checking(check, rows);
        } else if let Some(below) = self.below {
            let all = rows.len() < self.step_rows();
            self.steps = self.steps.saturating_add(1);
            self.step(below, rows.iter(), all);
        }
    }

    /// Walks down from `below` as far as `rows`, the newest control rows at or before it, reach;
    /// `all` if there are no others.
    fn step<'a>(&mut self, mut below: RowRef, rows: impl Iterator<Item = &'a Row>, all: bool) {
        let mut oldest = None;
        for row in rows {
            oldest = Some(row);
            if row.at.seq > below.seq {
                // It is on a branch that a newer rewind has left.
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
                    // The rows above are on the path whatever becomes of the question.
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

    /// What the agent inherits, as far as it is known.
    fn inherited_of(&mut self, by: AgentId) -> Self {
        match self.checked.take() {
            Some(checked) if checked.by == by => checked.path,
            _ => Self {
                passed: self.passed.clone(),
                ..Self::of(Some(RowRef::new(by, Seq(1))))
            },
        }
    }

    /// Goes on with what a rewind was checked against, if the walk has come to its agent's first
    /// row, which `next` precedes.
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

    /// Knows `below.agent`'s rows from `from` to `below` too, and that `next` precedes them.
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

    /// Forgets all that comes after a row of the known part.
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

    /// Goes on with a row that follows the newest one.
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

    /// Begins anew with nothing before.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Goes back to a row, known or not, so that the next one follows it.
    pub(crate) fn go_back_to(&mut self, target: RowRef) {
        if self.contains(target) {
            self.cut_after(target);
        } else {
            *self = Self::of(Some(target));
        }
    }

    /// The known spans before a row, or all if none is given, newest first, as far as they are
    /// needed for `rows` rows. Empty at the root, and where the path must be made known first.
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

    /// The row so many after another on the known part, or the newest if there are fewer; none if
    /// the row is not on it.
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

    /// Ends the path with this row of the known part, or before its newest row if none is given:
    /// what lies before cannot be read.
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
