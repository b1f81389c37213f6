//! Questions about calls, and the handling of answers.

use ikigai_core::counts::counted;
use ikigai_core::data::{AnsweredBy, CommandData, Verdict};
use ikigai_core::settings::Rule;
use ikigai_core::spelling::spell_out;
use ikigai_core::{Event, RowRef, Settings};
use ikigai_tools::arguments::call_hash;
use ikigai_tools::permission::{Decision, Sandbox, rule_tool};
use ikigai_tools::tool_names::current_name;
use ikigai_tools::{Need, Output, Place, Prepared, Preview, Touches};

use super::Turn;
use super::background_calls::ProcessCalls;
use super::calls::{Call, CallSet, Stage, ToolRound};
use crate::EngineError;
use crate::calls::{Came, OpenCall};
use crate::environment::CrashPoint;
use crate::frontend::{Answer, FrontEnd, Question, Stop, UiEvent, UserRequest};
use crate::grants::pending_tag;
use crate::hub::OpenQuestion;
use crate::ledger::{CommitPlan, Ledger, read_held};
use crate::recall;
use crate::tools::Freedom;

impl ToolRound<'_> {
    /// Decides whether a call may run.
    pub(crate) fn judge(
        &self,
        open: &OpenCall,
        prepared: &Prepared,
        place: &Place,
        sandbox: Sandbox,
    ) -> Decision {
        self.worker.engine().judge(
            self.worker.ledger().grant(),
            sandbox,
            &open.name,
            prepared,
            place,
        )
    }

    /// Builds the question about a call, without its preview.
    pub(super) fn question(
        &self,
        call: &OpenCall,
        prepared: &Prepared,
        place: &Place,
        pattern: String,
    ) -> Question {
        let workdir = place.workdir.display().to_string();
        Question {
            call: call.at,
            agent: self.worker.settings().name.clone().unwrap_or_default(),
            tool: rule_tool(&call.name, prepared),
            shown: spell_out(&prepared.shown),
            hash: call_hash(&call.name, &call.arguments, &workdir, &pattern),
            workdir: spell_out(&workdir),
            preview: None,
            pattern,
        }
    }

    /// Runs the preview of a call; returns the output of one known to fail.
    pub(super) async fn preview_call(
        &mut self,
        (preview, needs): (Option<Preview>, Vec<Need>),
        front: &mut FrontEnd<'_>,
    ) -> Result<Result<Option<String>, Box<Output>>, EngineError> {
        let Some(make) = preview else {
            return Ok(Ok(None));
        };
        let mut inputs = read_held!(
            front,
            recall::inputs(self.worker.engine(), self.worker.agent(), &needs)
        );
        inputs.processes = read_held!(front, ProcessCalls::of(self.worker).known_processes(&needs));
        let preview = tokio::task::spawn_blocking(move || make(&inputs)).await;
        Ok(match preview {
            Ok(Ok(text)) => Ok(Some(spell_out(&text)).filter(|text| !text.is_empty())),
            Ok(Err(output)) => Err(output),
            // A preview that panicked shows nothing; the question is asked anyway.
            Err(_) => Ok(None),
        })
    }

    /// Answers a call that is known to fail, without running it.
    pub(super) async fn fail(
        &mut self,
        open: &OpenCall,
        output: Output,
        front: &mut FrontEnd<'_>,
    ) -> Result<Option<Stop>, EngineError> {
        let (rows, _) = self.result_of(open, None, output, front).await?;
        self.worker.crash_point(CrashPoint::BeforeResultStored);
        let rows = self
            .worker
            .commit(CommitPlan::events(rows).waiting(front))
            .await?;
        self.worker.crash_point(CrashPoint::AfterResultStored);
        front.emit_rows(rows);
        Ok(None)
    }

    /// Stores an answer, and then acts on it.
    pub(super) async fn handle_answer(
        &mut self,
        turn: &Turn,
        (call, answer, by): (RowRef, Answer, AnsweredBy),
        round: &mut CallSet,
        front: &mut FrontEnd<'_>,
    ) -> Result<(), EngineError> {
        let Some(index) = round.open_question(call) else {
            return Ok(());
        };
        if !matches!(answer, Answer::No(_))
            && let Some(question) = Box::pin(self.changed_question(index, round, front)).await?
        {
            let text = format!("{}: the file changed, so the diff is new", question.tool);
            front.emit(UiEvent::Notice(text));
            front.emit(UiEvent::Question(question));
            return Ok(());
        }
        let (tool, advice) = round.calls[index].rule_tool();
        let mut events = vec![answer_row(self.worker.ledger(), call, &answer, by, &tool)];
        if let Answer::No(reason) = &answer {
            let reason = match reason {
                Some(reason) => format!("The user said no: {reason}{advice}"),
                None => format!("The user said no.{advice}"),
            };
            let open = &round.calls[index].open;
            events.push(open.result(Came::failed(reason), Verdict::Refused));
        }
        if let Answer::No(_) = answer {
            let open = round.calls[index].open.clone();
            round.count_refusal(&open);
        }
        self.worker.crash_point(CrashPoint::BeforePermissionStored);
        let rows = self
            .worker
            .commit(CommitPlan::events(events).waiting(front))
            .await?;
        self.worker.crash_point(CrashPoint::AfterPermissionStored);
        front.emit_rows(rows);
        let covers = self.is_free(turn, &mut round.calls[index]).await;
        if let Answer::Always(pattern) = &answer
            && !covers
        {
            let text = format!("\"{pattern}\" does not match this call: allowed once");
            front.emit(UiEvent::Warning(text));
        }
        round.calls[index].answer(&answer);
        if let Answer::Always(_) = answer {
            if covers {
                answer_siblings(self.worker.ledger(), call, &answer, by, front);
            }
            self.ask_no_more(turn, round, front).await;
        }
        round
            .open_questions
            .retain(|question| question.call != call);
        Ok(())
    }

    /// Returns a question with its new preview, if the change is no longer the one that was shown.
    async fn changed_question(
        &mut self,
        index: usize,
        round: &mut CallSet,
        front: &mut FrontEnd<'_>,
    ) -> Result<Option<Question>, EngineError> {
        let call = &round.calls[index];
        let Stage::Question(prepared) = &call.stage else {
            return Ok(None);
        };
        let preview = (prepared.preview.clone(), prepared.needs.clone());
        let mut questions = round.questions.iter_mut();
        // Without a question, it was answered before the turn continued.
        let Some(question) = questions.find(|question| question.call == call.open.at) else {
            return Ok(None);
        };
        let Ok(now) = self.preview_call(preview, front).await? else {
            return Ok(None);
        };
        if is_same_change(question.preview.as_deref(), now.as_deref()) {
            return Ok(None);
        }
        question.preview = now;
        Ok(Some(question.clone()))
    }

    /// Registers the question of a child, so that siblings can settle it.
    pub(super) async fn register(
        &self,
        question: &Question,
    ) -> Result<Option<OpenQuestion>, EngineError> {
        let own = self
            .worker
            .engine()
            .reader()
            .agent(question.call.agent)
            .await?;
        let parent = own.and_then(|own| own.parent);
        let all = &self.worker.engine().hub().open_questions;
        Ok(parent.map(|parent| all.add(question, parent)))
    }

    /// Returns true if the rules now allow a call with an open question.
    async fn is_free(&self, turn: &Turn, call: &mut Call) -> bool {
        let class = match &call.stage {
            Stage::Question(prepared) => prepared.class,
            _ => return false,
        };
        let sandbox = self.worker.engine().sandbox_for(class).await;
        let Stage::Question(prepared) = &call.stage else {
            return false;
        };
        let judged = self.judge(&call.open, prepared, &turn.tools.place, sandbox);
        judged == Decision::Allow
    }

    /// Starts other calls with open questions that the rules now allow.
    async fn ask_no_more(&self, turn: &Turn, round: &mut CallSet, front: &mut FrontEnd<'_>) {
        for call in &mut round.calls {
            if self.is_free(turn, call).await {
                call.answer(&Answer::Once);
                front.emit(UiEvent::Unasked(call.open.at));
            }
        }
    }
}

/// Returns true if two diffs remove and add the same lines, though elsewhere in the file.
fn is_same_change(one: Option<&str>, other: Option<&str>) -> bool {
    let lines = |diff: Option<&str>| -> Vec<String> {
        let lines = diff.unwrap_or_default().lines();
        let lines = lines.filter(|line| !line.starts_with(['@', ' ']));
        lines.map(str::to_owned).collect()
    };
    lines(one) == lines(other)
}

/// Gives the same answer to identical questions of siblings in this process.
///
/// Each sibling stores its own answer, and gets the rule by it.
fn answer_siblings(
    ledger: &Ledger,
    call: RowRef,
    answer: &Answer,
    by: AnsweredBy,
    front: &mut FrontEnd<'_>,
) {
    let hub = ledger.engine.hub();
    let mut names = Vec::new();
    for (call, name) in hub.open_questions.take_identical(call) {
        let answer = answer.clone();
        if hub.deliver(call.agent, UserRequest::Answer { call, answer, by }) {
            front.emit(UiEvent::Unasked(call));
            names.push(name);
        }
    }
    if names.is_empty() {
        return;
    }
    let questions = counted(names.len(), "identical question");
    let text = format!("also answered {questions}: {}", names.join(", "));
    front.emit(UiEvent::Notice(text));
}

/// Builds the row of an answer to a question.
fn answer_row(ledger: &Ledger, call: RowRef, answer: &Answer, by: AnsweredBy, tool: &str) -> Event {
    let (word, set) = match answer {
        Answer::Once => ("once", None),
        Answer::No(_) => ("no", None),
        Answer::Always(pattern) => {
            // Foreign rules that are not in force must not be granted with this one.
            let mut rules = ledger.grant().rules;
            rules.push(Rule {
                tool: Some(tool.to_owned()),
                pattern: Some(pattern.clone()),
            });
            let settings = Settings {
                rules: Some(rules),
                ..Settings::default()
            };
            ("always", Some(settings.as_set()))
        }
    };
    let data = CommandData {
        command: Some("answer".to_owned()),
        args: Some(word.to_owned()),
        of: Some(call),
        by: Some(by),
        grant: set.as_ref().and_then(pending_tag),
        set,
        ..CommandData::default()
    };
    Event::Command { output: None, data }
}

impl CallSet {
    /// Returns true if an unfinished call touches the same files.
    pub(super) fn is_touched(&self, touches: &Touches) -> bool {
        let is_open = |call: &&Call| !matches!(call.stage, Stage::Ended);
        let mut open = self.calls.iter().filter(is_open);
        open.any(|call| call.touches.conflicts_with(touches))
    }

    /// Returns the call of an open question.
    fn open_question(&self, at: RowRef) -> Option<usize> {
        let is_asked =
            |call: &Call| call.open.at == at && matches!(call.stage, Stage::Question(..));
        self.calls.iter().position(is_asked)
    }
}

impl Call {
    /// Returns the tool of a rule for this call, and advice for the model if it is refused.
    fn rule_tool(&self) -> (String, &'static str) {
        match &self.stage {
            Stage::Question(prepared) if prepared.unconfined.is_some() => (
                rule_tool(&self.open.name, prepared),
                " Work inside the sandbox, or tell the user which command to run.",
            ),
            _ => (current_name(&self.open.name).to_owned(), ""),
        }
    }

    fn answer(&mut self, answer: &Answer) {
        let stage = std::mem::replace(&mut self.stage, Stage::Ended);
        self.stage = match (stage, answer) {
            (Stage::Question(prepared), Answer::Once | Answer::Always(_)) => {
                let freedom = Freedom::of(&prepared);
                Stage::Ready(prepared, freedom)
            }
            (Stage::Question(..), Answer::No(_)) => Stage::Ended,
            (stage, _) => stage,
        };
    }
}
