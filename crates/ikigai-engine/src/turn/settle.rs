//! Settlement: the new holder of a lease ends the former one's unfinished turn. Nothing is sent.

use ikigai_core::data::{self, Cause, CommandData, Verdict};
use ikigai_core::{Event, Kind, RowRef, Seq};
use ikigai_store::{DraftEffect, Effect, MailEffect, MailRecord, RunEffect, RunRecord};
use ikigai_tools::permission::Decision;

use super::restored_files::FileRestorer;
use crate::agent_tools::AgentTool;
use crate::calls::{Came, OpenCall};
use crate::changed_files::{remove_recorded, store_recording};
use crate::environment::CrashPoint;
use crate::family::Moment;
use crate::ledger::{CommitPlan, Ledger};
use crate::processes::{AdoptedProcesses, end_foreground};
use crate::response::partial;
use crate::tools::Toolset;
use crate::{EngineError, Worker};

/// Rows read at a time to find out whether a turn was running.
const PAGE_ROWS: usize = 64;

/// Row that closes a call, and the mail that it delivers.
struct Closed {
    event: Event,
    mail: Vec<MailRecord>,
}

impl From<Event> for Closed {
    fn from(event: Event) -> Self {
        Self {
            event,
            mail: Vec::new(),
        }
    }
}

/// Ends the turn that a former holder of the lease left unfinished.
pub(crate) struct Settlement<'a> {
    pub(super) worker: &'a mut Worker,
}

impl Settlement<'_> {
    /// Ends an unfinished turn. The draft's text becomes a row, calls are closed, and a row has the
    /// reason. A call that waits for an answer stays open.
    pub(crate) async fn settle(&mut self) -> Result<(), EngineError> {
        let id = self.worker.agent().state.agent();
        let store = self.worker.engine().reader();
        let (draft, runs) = tokio::join!(store.draft(id), store.open_runs(id));
        let (draft, runs) = (draft?, runs?);
        let (runs, restored) = FileRestorer {
            worker: self.worker,
        }
        .finish_restores(runs)
        .await?;
        let busy = self.is_busy().await?;
        let adopted = self.worker.processes().adopt().await?;
        let mut events = Vec::new();
        let mut handed = Vec::new();
        if let Some(draft) = draft.as_ref().filter(|draft| !draft.text.is_empty()) {
            let choice = self.worker.settings().model.clone();
            let target = choice.as_ref().map(crate::engine::model_of);
            let text = draft.text.clone();
            events.push(partial(
                text,
                "interrupted",
                &self.worker.ledger().tally,
                target.as_ref(),
            ));
        }
        if busy || !runs.is_empty() {
            for closed in self.settle_calls(&runs, &adopted).await? {
                let place = events.len() as u64 + 1;
                let mail = closed.mail.into_iter();
                handed.extend(mail.map(|mail| (mail.id, place)));
                events.push(closed.event);
            }
        }
        let stopped: Vec<_> = runs
            .iter()
            .filter(|run| !adopted.running.contains_key(&run.id))
            .collect();
        for run in &stopped {
            let changed = store_recording(self.worker.ledger(), (run.call, run.id), None).await?;
            events.extend(changed);
        }
        if busy || !events.is_empty() {
            let cause = self.worker.gave_up().unwrap_or(Cause::Crash);
            events.push(Event::interrupted(cause));
        }
        let drop = draft.map(|_| {
            Effect::Draft(DraftEffect::Drop {
                agent: id,
                epoch: self.worker.ledger().epoch,
            })
        });
        let ended = self.worker.engine().environment().now();
        let end = |run: &RunRecord| Effect::Run(RunEffect::End { run: run.id, ended });
        let with = drop.into_iter().chain(runs.iter().map(end));
        let with: Vec<_> = with.chain(restored).chain(adopted.effects).collect();
        events.extend(adopted.rows);
        if events.is_empty() && with.is_empty() {
            self.worker.set_gave_up(None);
            return Ok(());
        }
        let consume = |head: Seq| {
            let by = |place: u64| RowRef::new(id, Seq(head.0 + place));
            let consumed = handed.iter().map(|(mail, place)| {
                Effect::Mail(MailEffect::Consume {
                    mail: *mail,
                    by: by(*place),
                })
            });
            with.iter().cloned().chain(consumed).collect()
        };
        self.worker.crash_point(CrashPoint::BeforeSettlementStored);
        self.worker.ledger_mut().settled = self
            .worker
            .commit(CommitPlan::events(events).with_at(&consume))
            .await?;
        self.worker.set_gave_up(None);
        for run in stopped {
            remove_recorded(self.worker.engine(), id, run.id).await;
        }
        self.worker.crash_point(CrashPoint::AfterSettlementStored);
        Ok(())
    }

    /// Builds the rows that close calls that were open when the process died.
    async fn settle_calls(
        &mut self,
        runs: &[RunRecord],
        adopted: &AdoptedProcesses,
    ) -> Result<Vec<Closed>, EngineError> {
        // End all processes, even of closed calls, so that none runs without the user's knowledge.
        let mut left = Vec::new();
        for run in runs {
            // Its keeper lives, so it goes on in the background.
            if adopted.running.contains_key(&run.id) {
                continue;
            }
            let (engine, agent) = (self.worker.engine(), self.worker.ledger().id());
            left.push((run.call, end_foreground(engine, agent, run.id).await));
        }
        let open = self.worker.ledger_mut().open_calls().await?;
        if open.is_empty() {
            return Ok(Vec::new());
        }
        let tools = self.worker.engine().toolset(self.worker.settings()).await;
        let mut closed = Vec::new();
        for call in open {
            let found = left.iter().find(|(of, _)| *of == call.at);
            let started = runs.iter().find(|run| run.call == call.at);
            let started = started.and_then(|run| adopted.running.get(&run.id));
            if let Some(number) = started {
                let came = Came {
                    process: Some(*number),
                    ..Came::failed(goes_on(*number))
                };
                closed.push(call.result(came, Verdict::Unknown).into());
            } else if let Some((_, found)) = found {
                closed.push(
                    call.result(Came::failed(unknown(*found)), Verdict::Unknown)
                        .into(),
                );
            } else if tools.agent_tool(&call.name) == Some(AgentTool::Wait) {
                closed.extend(self.settle_wait(&call).await?);
            } else if !self.waits_for_an_answer(&call, &tools).await? {
                let reason = match self.worker.gave_up() {
                    None => "not run or not finished: ikigai stopped unexpectedly",
                    Some(_) => "not run or not finished: the turn was abandoned",
                };
                closed.push(
                    call.result(Came::failed(reason), Verdict::Interrupted)
                        .into(),
                );
            }
        }
        Ok(closed)
    }

    /// Answers a wait if its mail is there or its deadline has passed. Any other stays open.
    async fn settle_wait(&mut self, call: &OpenCall) -> Result<Option<Closed>, EngineError> {
        let wait = match self.worker.family().wait_of_call(call).await? {
            Ok(wait) => wait,
            Err(reason) => {
                let refused = call.result(Came::failed(reason), Verdict::Refused);
                return Ok(Some(refused.into()));
            }
        };
        let moment = if wait
            .left(self.worker.engine().environment().now())
            .is_zero()
        {
            Moment::Deadline
        } else {
            Moment::Settlement
        };
        let answered = self
            .worker
            .family()
            .answer_wait(call, &wait, moment)
            .await?;
        Ok(answered.map(|(event, mail)| Closed { event, mail }))
    }

    /// Returns true if a call that has not started waits for approval.
    async fn waits_for_an_answer(
        &mut self,
        call: &OpenCall,
        tools: &Toolset,
    ) -> Result<bool, EngineError> {
        let Ok(prepared) = self.worker.family().prepare_call(tools, call).await? else {
            return Ok(false);
        };
        let sandbox = self.worker.engine().sandbox_for(prepared.class).await;
        let decision = self
            .worker
            .tool_round()
            .judge(call, &prepared, &tools.place, sandbox);
        Ok(matches!(decision, Decision::Ask { .. }) && !self.is_answered(call.at))
    }

    fn is_answered(&self, call: RowRef) -> bool {
        let entries = self.worker.agent().view.entries().iter().rev();
        let mut since = entries.take_while(|entry| entry.at() != call);
        since.any(|entry| {
            entry.kind() == Some(Kind::Command) && {
                let command: CommandData = data::read(entry.row.data.as_deref());
                command.command.as_deref() == Some("answer") && command.of == Some(call)
            }
        })
    }

    async fn is_busy(&mut self) -> Result<bool, EngineError> {
        loop {
            let Ledger { agent, engine, .. } = self.worker.ledger_mut();
            let empty = agent.view.entries().is_empty();
            let busy = agent.view.is_busy(agent.state.path()).filter(|_| !empty);
            if let Some(busy) = busy {
                return Ok(busy);
            }
            if !agent.lengthen(engine.reader(), PAGE_ROWS).await? {
                return Ok(false);
            }
        }
    }
}

/// Describes the result of a call whose background process outlived the program.
fn goes_on(number: u64) -> String {
    format!(
        "Outcome unknown: ikigai stopped unexpectedly while this ran. The command goes on as \
         background process {number}: read it with `process`."
    )
}

/// Describes the result of a call that was running when the process died.
fn unknown(found: usize) -> String {
    let processes = match found {
        0 => "No process was left".to_owned(),
        1 => "One process was still running and was ended".to_owned(),
        found => format!("{found} processes were still running and were ended"),
    };
    format!(
        "Outcome unknown: ikigai stopped unexpectedly while this ran. {processes}. \
         It may have done all, part or nothing of its work: look before you repeat it."
    )
}
