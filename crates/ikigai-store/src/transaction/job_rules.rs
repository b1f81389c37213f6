//! The decision about the record of a background process.

use std::collections::HashMap;

use super::rules::bad;
use super::writes::JobWrite;
use crate::batch::JobEffect;
use crate::error::CommitError;
use crate::records::RunId;

/// Decides about one change; `known` and `changed` say which processes have not ended.
pub(super) fn decide_job<'b>(
    known: &HashMap<RunId, bool>,
    changed: &mut HashMap<RunId, bool>,
    effect: &'b JobEffect,
) -> Result<JobWrite<'b>, CommitError> {
    let is_open = |job: &RunId, changed: &HashMap<RunId, bool>| {
        let found = changed.get(job).or_else(|| known.get(job)).copied();
        found.ok_or_else(|| bad("there is no such process"))
    };
    Ok(match effect {
        JobEffect::Start(job) => {
            if is_open(&job.id, changed).is_ok() {
                return Err(bad("the process was started before"));
            }
            changed.insert(job.id, true);
            JobWrite::Insert(job)
        }
        JobEffect::Read { job, bytes } => {
            is_open(job, changed)?;
            let (job, bytes) = (*job, *bytes);
            JobWrite::SetRead { job, bytes }
        }
        JobEffect::DropPattern { job } => {
            is_open(job, changed)?;
            JobWrite::DropPattern { job: *job }
        }
        JobEffect::End { job, ended } => {
            if !is_open(job, changed)? {
                return Err(bad("the process has ended already"));
            }
            changed.insert(*job, false);
            let (job, ended) = (*job, *ended);
            JobWrite::End { job, ended }
        }
    })
}
