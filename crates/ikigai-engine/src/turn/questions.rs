//! Questions about calls: what is asked, and what comes of the answer.

use ikigai_core::data::{AnsweredBy, CommandData, Verdict};
use ikigai_core::settings::Rule;
use ikigai_core::spelling::spell_out;
use ikigai_core::{Event, RowRef, Settings};
use ikigai_tools::arguments::call_hash;
use ikigai_tools::permission::{Decision, Sandbox};
use ikigai_tools::{Need, Output, Place, Prepared, Preview, Touches};

use super::Turn;
use super::calls::{Call, Round, Stage};
use crate::calls::{Came, OpenCall};
use crate::environment::CrashPoint;
use crate::frontend::{Answer, FrontEnd, Question, Stop, UiEvent, UserRequest};
use crate::grants::pending_tag;
use crate::hub::OpenQuestion;
use crate::ledger::{CommitPlan, read_held};
use crate::recall;
use crate::tools::Freedom;
use crate::{EngineError, Worker};

impl Worker {
    /// Whether a call may run.
    pub(crate) fn judge(
        &self,
        open: &OpenCall,
        prepared: &Prepared,
        place: &Place,
        sandbox: Sandbox,
    ) -> Decision {
        self.ledger
            .engine
            .judge(self.ledger.grant(), sandbox, &open.name, prepared, place)
    }

    /// Reports unfinished work and queued messages, and asks open questions again (E9d).
    pub(crate) async fn greet(&mut self, front: &mut FrontEnd<'_>) -> Result<(), EngineError> {
        self.tell_settled(front).await?;
        self.offer_grants(front);
        self.tell_queued(front).await?;
        let open = self.ledger.open_calls().await?;
        if open.is_empty() || !front.answers {
            return Ok(());
        }
        let tools = self.ledger.engine.toolset(self.ledger.settings()).await;
        for call in open {
            let Ok(prepared) = self.family().prepare_call(&tools, &call).await? else {
                continue;
            };
            let sandbox = self.ledger.engine.sandbox_for(prepared.class).await;
            let judged = self.judge(&call, &prepared, &tools.place, sandbox);
            if let Decision::Ask { pattern } = judged {
                let question = self.question(&call, &prepared, &tools.place, pattern);
                let preview = (prepared.preview, prepared.needs);
                let preview = match Box::pin(self.preview_call(preview, front)).await? {
                    Ok(preview) => preview,
                    // Without a question, nothing would have the stopped turn go on.
                    Err(output) => Some(spell_out(&format!("it will fail: {}", output.shown))),
                };
                front.tell(UiEvent::Question(Question {
                    preview,
                    ..question
                }));
            }
        }
        Ok(())
    }

    /// The question about a call, without its preview.
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
            agent: self.ledger.settings().name.clone().unwrap_or_default(),
            tool: call.name.clone(),
            shown: spell_out(&prepared.shown),
            hash: call_hash(&call.name, &call.arguments, &workdir, &pattern),
            workdir: spell_out(&workdir),
            preview: None,
            pattern,
        }
    }

    /// The preview of a call, or the output of one that is known to fail.
    pub(super) async fn preview_call(
        &mut self,
        (preview, needs): (Option<Preview>, Vec<Need>),
        front: &mut FrontEnd<'_>,
    ) -> Result<Result<Option<String>, Box<Output>>, EngineError> {
        let Some(make) = preview else {
            return Ok(Ok(None));
        };
        let given = read_held!(
            front,
            recall::given(&self.ledger.engine, &self.ledger.agent, &needs)
        );
        let preview = tokio::task::spawn_blocking(move || make(&given)).await;
        Ok(match preview {
            Ok(Ok(text)) => Ok(Some(spell_out(&text)).filter(|text| !text.is_empty())),
            Ok(Err(output)) => Err(output),
            // A preview that panicked shows nothing; the call itself is asked about all the same.
            Err(_) => Ok(None),
        })
    }

    /// Answers a call that is known to fail; it does not run.
    pub(super) async fn fail(
        &mut self,
        open: &OpenCall,
        output: Output,
        front: &mut FrontEnd<'_>,
    ) -> Result<Option<Stop>, EngineError> {
        let (result, _) = self.result_of(open, None, output, front).await?;
        self.ledger.crash_point(CrashPoint::BeforeResultStored);
        let rows = self
            .ledger
            .commit(CommitPlan::events(vec![result]).waiting(front))
            .await?;
        self.ledger.crash_point(CrashPoint::AfterResultStored);
        front.told(rows);
        Ok(None)
    }

    /// Stores what somebody answered, and only then does it.
    pub(super) async fn answered(
        &mut self,
        turn: &Turn,
        (call, answer, by): (RowRef, Answer, AnsweredBy),
        round: &mut Round,
        front: &mut FrontEnd<'_>,
    ) -> Result<(), EngineError> {
        let Some(index) = round.asked(call) else {
            return Ok(());
        };
        let mut events = vec![self.answer_row(call, &answer, by, &round.calls[index].open.name)];
        if let Answer::No(reason) = &answer {
            let reason = match reason {
                Some(reason) => format!("The user said no: {reason}"),
                None => "The user said no.".to_owned(),
            };
            let open = &round.calls[index].open;
            events.push(open.result(Came::failed(reason), Verdict::Refused));
        }
        self.ledger.crash_point(CrashPoint::BeforePermissionStored);
        let rows = self
            .ledger
            .commit(CommitPlan::events(events).waiting(front))
            .await?;
        self.ledger.crash_point(CrashPoint::AfterPermissionStored);
        front.told(rows);
        let covers = self.is_free(turn, &mut round.calls[index]).await;
        if let Answer::Always(pattern) = &answer
            && !covers
        {
            let text = format!("\"{pattern}\" does not fit this call: it runs this once");
            front.tell(UiEvent::Warning(text));
        }
        round.calls[index].answer(&answer);
        if let Answer::Always(_) = answer {
            if covers {
                self.answer_siblings(call, &answer, by, front);
            }
            self.ask_no_more(turn, round, front).await;
        }
        round
            .open_questions
            .retain(|question| question.call != call);
        Ok(())
    }

    /// Registers the question of a child, so that siblings can settle it.
    pub(super) async fn register(
        &self,
        question: &Question,
    ) -> Result<Option<OpenQuestion>, EngineError> {
        let own = self.ledger.engine.store.agent(question.call.agent).await?;
        let parent = own.and_then(|own| own.parent);
        let all = &self.ledger.engine.hub.open_questions;
        Ok(parent.map(|parent| all.add(question, parent)))
    }

    /// Gives the same answer to identical questions of siblings in this process.
    ///
    /// Each sibling stores its own answer, and gets the rule by it.
    fn answer_siblings(
        &self,
        call: RowRef,
        answer: &Answer,
        by: AnsweredBy,
        front: &mut FrontEnd<'_>,
    ) {
        let hub = &self.ledger.engine.hub;
        let mut names = Vec::new();
        for (call, name) in hub.open_questions.take_identical(call) {
            let answer = answer.clone();
            if hub.deliver(call.agent, UserRequest::Answer { call, answer, by }) {
                front.tell(UiEvent::Unasked(call));
                names.push(name);
            }
        }
        let questions = match names.len() {
            0 => return,
            1 => "1 identical question".to_owned(),
            several => format!("{several} identical questions"),
        };
        let text = format!("also answered {questions}: {}", names.join(", "));
        front.tell(UiEvent::Notice(text));
    }

    /// Whether the rules allow by now a call about which somebody is asked.
    async fn is_free(&self, turn: &Turn, call: &mut Call) -> bool {
        let class = match &call.stage {
            Stage::Asked(prepared) => prepared.class,
            _ => return false,
        };
        let sandbox = self.ledger.engine.sandbox_for(class).await;
        let Stage::Asked(prepared) = &call.stage else {
            return false;
        };
        let judged = self.judge(&call.open, prepared, &turn.tools.place, sandbox);
        judged == Decision::Allow
    }

    /// Lets other calls go about which somebody is asked and which the rules allow by now.
    async fn ask_no_more(&self, turn: &Turn, round: &mut Round, front: &mut FrontEnd<'_>) {
        for call in &mut round.calls {
            if self.is_free(turn, call).await {
                call.answer(&Answer::Once);
                front.tell(UiEvent::Unasked(call.open.at));
            }
        }
    }

    fn answer_row(&self, call: RowRef, answer: &Answer, by: AnsweredBy, tool: &str) -> Event {
        let (word, set) = match answer {
            Answer::Once => ("once", None),
            Answer::No(_) => ("no", None),
            Answer::Always(pattern) => {
                // Rules that are not in force are not granted with this one.
                let mut rules = self.ledger.grant().rules;
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
}

impl Round {
    /// True if a call that has not ended touches the same files.
    pub(super) fn is_touched(&self, touches: &Touches) -> bool {
        let is_open = |call: &&Call| !matches!(call.stage, Stage::Ended);
        let mut open = self.calls.iter().filter(is_open);
        open.any(|call| call.touches.conflicts_with(touches))
    }

    /// The call about which somebody is asked.
    fn asked(&self, at: RowRef) -> Option<usize> {
        let is_asked = |call: &Call| call.open.at == at && matches!(call.stage, Stage::Asked(..));
        self.calls.iter().position(is_asked)
    }
}

impl Call {
    fn answer(&mut self, answer: &Answer) {
        let stage = std::mem::replace(&mut self.stage, Stage::Ended);
        self.stage = match (stage, answer) {
            (Stage::Asked(prepared), Answer::Once | Answer::Always(_)) => {
                Stage::Ready(prepared, Freedom::Working)
            }
            (Stage::Asked(..), Answer::No(_)) => Stage::Ended,
            (stage, _) => stage,
        };
    }
}
