//! Rules of marks: how far people have read.

use ikigai_core::{RowRef, Seq};

use super::rules::{Decider, dangling};
use super::writes::Write;
use crate::error::CommitError;
use crate::records::SeenMark;

impl<'b> Decider<'_, 'b> {
    pub(super) fn mark_seen(&mut self, person: &'b str, mark: SeenMark) -> Result<(), CommitError> {
        let newest = mark.read.max(mark.dismissed);
        if newest > Seq(0) && !self.has_row(RowRef::new(mark.agent, newest))? {
            return Err(dangling());
        }
        self.list.push(Write::MarkSeen { person, mark });
        Ok(())
    }
}
