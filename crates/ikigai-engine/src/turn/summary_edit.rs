//! Summaries that the user edits before they are used.

use ikigai_core::data::{CommandData, SummaryData};
use ikigai_core::project::{Scale, estimate_tokens};
use ikigai_core::words::Severity;
use ikigai_core::{Event, RowRef};
use ikigai_store::Agent;

use super::Turn;
use super::compact::{ContextKeeper, NOT_ON_PATH, Shrunk, Summary, Written};
use crate::EngineError;
use crate::environment::CrashPoint;
use crate::figures::tokens;
use crate::frontend::{FrontEnd, SummaryDraft};
use crate::ledger::{CommitPlan, read_held};

impl ContextKeeper<'_> {
    /// Waits for a summary to edit, and stores its usage.
    pub(crate) async fn draft_summary(
        &mut self,
        mut summary: Summary,
        command: CommandData,
        front: &mut FrontEnd<'_>,
    ) -> Result<Result<SummaryDraft, Written>, EngineError> {
        let response = match self.summary_response(&mut summary, front).await? {
            Ok(Ok(response)) => response,
            Ok(Err(reason)) => return Ok(Err(Written::Nothing(reason))),
            Err(stop) => return Ok(Err(Written::Stopped(stop))),
        };
        let usage = self.summary_usage(&summary, &response);
        let judged = self.judge_summary(&summary, &response, front).await?;
        let usage = CommitPlan::events(vec![usage]).waiting(front);
        let rows = self.worker.commit(usage).await?;
        front.emit_rows(rows);
        Ok(match judged {
            Ok((text, _)) => Ok(SummaryDraft {
                text,
                data: summary.data(),
                edited: None,
                command,
                turns: summary.range.turns,
                before: summary.scale.counted(summary.range.tokens),
                verbatim: summary.range.verbatim,
                scale: summary.scale,
            }),
            Err(reason) => Err(Written::Nothing(reason)),
        })
    }

    /// Creates a draft of the summary in force.
    pub(crate) async fn draft_of(
        &self,
        (at, data, text): (RowRef, SummaryData, String),
        command: CommandData,
    ) -> Result<SummaryDraft, EngineError> {
        let turn = Turn::prepare(self.worker.ledger()).await?;
        let Agent { state, view, .. } = self.worker.agent();
        let scale = Scale::of(state, view, &turn.target, turn.scale);
        Ok(SummaryDraft {
            before: scale.counted(estimate_tokens(&text)),
            text,
            data,
            edited: Some(at),
            command,
            turns: 0,
            verbatim: 0,
            scale,
        })
    }

    /// Stores a summary as edited by the user; a missing or empty text changes nothing.
    pub(crate) async fn store_edited(
        &mut self,
        draft: SummaryDraft,
        edited: Result<String, String>,
        front: &mut FrontEnd<'_>,
    ) -> Result<(), EngineError> {
        let (row, severity, output) = match self.judge_edited(&draft, edited, front).await? {
            Ok(text) => {
                let after = estimate_tokens(&text) + draft.verbatim;
                let after = draft.scale.counted(after);
                let output = match draft.edited {
                    Some(at) => format!(
                        "summary #{} replaced: {} → {} tokens · /compact --undo",
                        at.seq,
                        tokens(draft.before),
                        tokens(after)
                    ),
                    None => Shrunk {
                        turns: draft.turns,
                        before: draft.before,
                        after,
                    }
                    .to_string(),
                };
                let data = draft.data.clone();
                let text = Some(text);
                (Some(Event::Summary { text, data }), None, output)
            }
            Err((severity, reason)) => (None, severity, reason),
        };
        let late = Event::Command {
            output: Some(output),
            data: CommandData {
                severity,
                ..draft.command
            },
        };
        self.worker.crash_point(CrashPoint::BeforeSummaryStored);
        let rows = row.into_iter().chain([late]).collect();
        let rows = CommitPlan::events(rows).waiting(front);
        let rows = self.worker.commit(rows).await?;
        self.worker.crash_point(CrashPoint::AfterSummaryStored);
        front.emit_rows(rows);
        Ok(())
    }

    /// Returns the text to store, or the severity and line of the reason not to.
    async fn judge_edited(
        &mut self,
        draft: &SummaryDraft,
        edited: Result<String, String>,
        front: &mut FrontEnd<'_>,
    ) -> Result<Result<String, (Option<Severity>, String)>, EngineError> {
        let unused = |reason: &str| {
            let kept = match draft.edited {
                Some(_) => "summary unchanged",
                None => "conversation unchanged",
            };
            let line = format!("summary not used: {reason} · {kept}");
            Ok(Err((Some(Severity::Warning), line)))
        };
        let text = match edited {
            Ok(text) => text,
            Err(reason) => return unused(&reason),
        };
        if text.trim().is_empty() {
            return unused("the text is empty");
        }
        if draft.edited.is_some() && text.trim_end() == draft.text.trim_end() {
            return Ok(Err((None, "summary unchanged".to_owned())));
        }
        let to = draft.data.to;
        let is_on_path = match to {
            Some(to) => read_held!(front, self.is_on_path(to)),
            None => false,
        };
        if !is_on_path {
            return unused(NOT_ON_PATH);
        }
        Ok(Ok(text))
    }
}
