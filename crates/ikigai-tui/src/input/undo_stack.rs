//! Undo stack and kill ring of the input.

use std::collections::VecDeque;

use super::clip::Clip;

/// Most steps that can be undone.
const MOST_STEPS: usize = 1_000;
/// Most kills kept.
const MOST_KILLS: usize = 32;
/// Most bytes of steps, and of kills: twice the largest input.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// Edit step: a replacement of text.
#[derive(Clone, Debug)]
pub(super) struct EditStep {
    /// Position.
    pub(super) at: usize,
    pub(super) removed: Clip,
    pub(super) inserted: Clip,
    /// Cursor before the step.
    pub(super) cursor: usize,
}

impl EditStep {
    fn bytes(&self) -> usize {
        self.removed.whole_len() + self.inserted.whole_len()
    }

    /// Joins the next change to this one if it continues the same word.
    /// A step is a word with the blanks behind it.
    fn join(&mut self, next: &Self) -> bool {
        let blank = char::is_whitespace;
        if self.removed.is_empty() && next.removed.is_empty() {
            let (before, after) = (self.inserted.text(), next.inserted.text());
            let same_word = !before.ends_with(blank) || after.starts_with(blank);
            let joins = same_word && self.at + before.len() == next.at;
            if joins {
                self.inserted.append(&next.inserted);
            }
            return joins;
        }
        if self.inserted.is_empty() && next.inserted.is_empty() {
            let (before, after) = (self.removed.text(), next.removed.text());
            let same_word = !before.starts_with(blank) || after.ends_with(blank);
            let joins = same_word && next.at + after.len() == self.at;
            if joins {
                self.removed.prepend(&next.removed);
                self.at = next.at;
            }
            return joins;
        }
        false
    }
}

/// Steps that can be undone and redone.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    done: VecDeque<EditStep>,
    undone: Vec<EditStep>,
}

impl Steps {
    /// Adds a change; `goes_on` if it continues the previous one in the same way.
    pub(super) fn add(&mut self, change: EditStep, goes_on: bool) {
        self.undone.clear();
        if goes_on && self.done.back_mut().is_some_and(|last| last.join(&change)) {
            return;
        }
        self.done.push_back(change);
        let mut bytes: usize = self.done.iter().map(EditStep::bytes).sum();
        while self.done.len() > 1 && (self.done.len() > MOST_STEPS || bytes > MOST_BYTES) {
            bytes -= self.done.pop_front().map_or(0, |change| change.bytes());
        }
    }

    /// Moves one step back; returns the change to undo.
    pub(super) fn undo(&mut self) -> Option<&EditStep> {
        self.undone.push(self.done.pop_back()?);
        self.undone.last()
    }

    /// Moves one step forward; returns the change to redo.
    pub(super) fn redo(&mut self) -> Option<&EditStep> {
        self.done.push_back(self.undone.pop()?);
        self.done.back()
    }
}

/// Killed texts, the newest last.
#[derive(Clone, Debug, Default)]
pub(super) struct Kills {
    kept: VecDeque<Clip>,
}

/// Side on which a kill extends the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepSide {
    Before,
    Behind,
}

impl Kills {
    /// Adds a kill; `joins` if it extends the previous one.
    pub(super) fn add(&mut self, killed: &Clip, side: StepSide, joins: bool) {
        match self.kept.back_mut() {
            Some(last) if joins && side == StepSide::Before => last.prepend(killed),
            Some(last) if joins => last.append(killed),
            _ => self.kept.push_back(killed.clone()),
        }
        let mut bytes: usize = self.kept.iter().map(Clip::whole_len).sum();
        while self.kept.len() > 1 && (self.kept.len() > MOST_KILLS || bytes > MOST_BYTES) {
            bytes -= self.kept.pop_front().map_or(0, |clip| clip.whole_len());
        }
    }

    /// Returns the kill a number of steps before the newest, wrapping around.
    pub(super) fn nth(&self, back: usize) -> Option<&Clip> {
        let back = back.checked_rem(self.kept.len())?;
        self.kept.get(self.kept.len() - 1 - back)
    }
}
