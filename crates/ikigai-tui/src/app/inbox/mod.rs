//! The inbox: everything that waits for the user, newest first, answered in place.

mod layer;
mod rows;

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use ikigai_core::{AgentId, RowRef};
use ikigai_engine::{InboxEntry, InboxKind, Question};

pub(super) use self::layer::InboxLayer;
pub(super) use self::rows::status;
use super::{App, EngineRequest, TerminalAction, UiContext};

/// Everything that waits for the user, as it was last read.
#[derive(Default)]
pub(super) struct WaitingList {
    entries: Vec<InboxEntry>,
    /// Questions that other processes ask, as far as they have said them.
    foreign: HashMap<RowRef, Question>,
    /// False until it is read for the first time.
    is_read: bool,
}

/// One entry on the screen.
#[derive(Clone, Copy)]
pub(super) struct InboxItem<'a> {
    pub(super) agent: AgentId,
    pub(super) kind: InboxKind,
    /// Row that began the wait.
    pub(super) row: RowRef,
    /// The stored entry; none for a question that was only just asked.
    pub(super) entry: Option<&'a InboxEntry>,
    /// The question, if it can be answered here: of this process, or read from its holder.
    pub(super) question: Option<&'a Question>,
}

impl App {
    /// Sets everything that waits for the user, newest first.
    pub fn set_inbox(&mut self, entries: Vec<InboxEntry>) {
        let inbox = &mut self.ctx.inbox;
        let before: HashSet<RowRef> = inbox.entries.iter().map(|entry| entry.row).collect();
        let was_read = std::mem::replace(&mut inbox.is_read, true);
        inbox.entries = entries;
        let is_open = |row: &RowRef| inbox.entries.iter().any(|entry| entry.row == *row);
        inbox.foreign.retain(|row, _| is_open(row));
        self.read_current();
        if was_read && !self.ctx.is_focused {
            notify_of_entries(&mut self.ctx, &before);
        }
    }

    /// Adds the open questions of an agent that another process holds.
    pub fn add_foreign_questions(&mut self, questions: Vec<Question>) {
        let told = questions.into_iter().map(|it| (it.call, it));
        self.ctx.inbox.foreign.extend(told);
    }

    /// Removes a question that another process asks, because it gets its answer.
    pub fn take_foreign_question(&mut self, call: RowRef) -> Option<Question> {
        let question = self.ctx.inbox.foreign.remove(&call)?;
        self.ctx.inbox.remove(call);
        Some(question)
    }

    /// Sets whether someone looks at the screen.
    pub fn set_focused(&mut self, is_focused: bool) {
        self.ctx.is_focused = is_focused;
    }

    /// Marks the report of the current agent as read while its end is on the screen.
    pub(super) fn read_current(&mut self) {
        let ctx = &self.ctx;
        let shows_end = |pane: &super::Pane| !pane.is_elsewhere() && pane.scrollback.is_at_end();
        let is_covered = self.stack.iter().any(|layer| layer.covers_input());
        if !ctx.is_focused || is_covered || !ctx.pane().is_some_and(shows_end) {
            return;
        }
        let current = ctx.current;
        let is_read =
            |entry: &InboxEntry| entry.kind == InboxKind::Report && entry.row.agent == current;
        let entries = &mut self.ctx.inbox.entries;
        let read: Vec<RowRef> = (entries.iter().filter(|it| is_read(it)))
            .map(|it| it.row)
            .collect();
        entries.retain(|entry| !is_read(entry));
        for row in read {
            self.ctx.effects.push(EngineRequest::MarkRead(row));
        }
    }
}

/// Returns what waits for the user, newest first.
///
/// Events of this process are newer than the entries.
pub(super) fn waiting(ctx: &UiContext) -> Vec<InboxItem<'_>> {
    let asking = ctx.roster.all().filter(|(id, _)| ctx.lives(*id));
    let entries = &ctx.inbox.entries;
    let asked = asking.flat_map(|(agent, known)| {
        let questions = known.live.questions.iter();
        questions.map(move |question| InboxItem {
            agent,
            kind: InboxKind::Question,
            row: question.call,
            entry: entries.iter().find(|it| it.row == question.call),
            question: Some(question),
        })
    });
    let mut items: Vec<_> = asked.collect();
    let stored = entries.iter().filter(|it| is_current(it, ctx));
    items.extend(stored.map(|entry| InboxItem {
        agent: entry.agent.id,
        kind: entry.kind,
        row: entry.row,
        entry: Some(entry),
        question: ctx.inbox.foreign.get(&entry.row),
    }));
    // A question that was only just asked is newer than all entries.
    items.sort_by_key(|item| Reverse(item.entry.map_or(i64::MAX, |it| it.at.0)));
    items
}

/// Returns the number of entries.
pub(super) fn waiting_count(ctx: &UiContext) -> usize {
    let questions = ctx.roster.all().filter(|(id, _)| ctx.lives(*id));
    let questions: usize = questions.map(|(_, known)| known.live.questions.len()).sum();
    let stored = ctx.inbox.entries.iter().filter(|it| is_current(it, ctx));
    questions + stored.count()
}

/// Returns false if events of this process have settled an entry, or show it.
fn is_current(entry: &InboxEntry, ctx: &UiContext) -> bool {
    let Some(live) = ctx.roster.live(entry.agent.id).filter(|live| live.is_ours) else {
        return true;
    };
    match entry.kind {
        InboxKind::Question => false,
        InboxKind::Process => true,
        InboxKind::Failed | InboxKind::Budget | InboxKind::Interrupted | InboxKind::Report => {
            !live.is_busy()
        }
    }
}

impl WaitingList {
    /// Removes the entry of a row, which the user has dismissed or read.
    fn remove(&mut self, row: RowRef) -> Option<InboxEntry> {
        let place = self.entries.iter().position(|entry| entry.row == row)?;
        Some(self.entries.remove(place))
    }
}

/// Notifies the user of new entries that no event of this process has reported.
fn notify_of_entries(ctx: &mut UiContext, before: &HashSet<RowRef>) {
    let is_reported = |entry: &InboxEntry| {
        let known = ctx.roster.get(entry.agent.id);
        // The screen of another process reports its agents itself.
        let is_held = known.is_some_and(|it| it.branch.agent.owner.is_some());
        is_held && entry.kind != InboxKind::Process
    };
    let entries = ctx.inbox.entries.iter();
    let new = entries.filter(|entry| !before.contains(&entry.row) && !is_reported(entry));
    let texts: Vec<String> = new.map(rows::notification).collect();
    for text in texts {
        ctx.effects.push(TerminalAction::Notify(text));
    }
}
