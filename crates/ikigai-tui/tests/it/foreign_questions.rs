//! Questions of agents that another process holds: read there, and answered from the inbox here.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ikigai_core::{Micros, RowRef, Seq};
use ikigai_engine::{InboxEntry, InboxKind, ProcessRecord};
use ikigai_tui::driver::{NeighbourAnswer, Neighbours};
use ikigai_tui::protocol::{
    AgentSeen, ApprovalWord, ControlAnswer, ControlOutput, ControlRequest, QuestionSeen,
};

use crate::support::Stage;

const SECOND: Duration = Duration::from_secs(1);

/// Another process with one question, or none that can be reached.
struct OtherProcess {
    agents: Option<Vec<AgentSeen>>,
    approved: Mutex<Vec<ControlRequest>>,
}

impl Neighbours for OtherProcess {
    fn ask<'a>(&'a self, _: &'a ProcessRecord, request: ControlRequest) -> NeighbourAnswer<'a> {
        Box::pin(async move {
            let agents = self.agents.clone().ok_or("it is not reached")?;
            if matches!(request, ControlRequest::Agents) {
                return Ok(ControlAnswer::Said(ControlOutput::Agents { agents }));
            }
            self.approved.lock().unwrap().push(request);
            Ok(ControlAnswer::OK)
        })
    }
}

/// Shows the inbox with a question of the agent that another screen holds.
async fn shown(stage: &mut Stage, is_reached: bool) -> Arc<OtherProcess> {
    let agent = stage.current();
    let record = stage.driver.engine.reader().agent(agent).await;
    let record = record.unwrap().unwrap();
    let question = QuestionSeen {
        tool: "bash".to_owned(),
        shown: "cargo doc".to_owned(),
        workdir: "/home/margaret/parser".to_owned(),
        preview: None,
        pattern: "cargo doc *".to_owned(),
        call: "9f2b6c0d1e8a4735".to_owned(),
        row: Some(5),
    };
    let seen = AgentSeen {
        id: agent.to_string(),
        name: record.name.clone(),
        parent: None,
        status: "running".to_owned(),
        working: true,
        current: true,
        head: 5,
        owner: None,
        questions: vec![question],
    };
    let other = Arc::new(OtherProcess {
        agents: is_reached.then(|| vec![seen]),
        approved: Mutex::default(),
    });
    stage.driver.set_neighbours(other.clone());
    stage.driver.app.set_inbox(vec![InboxEntry {
        agent: record,
        kind: InboxKind::Question,
        row: RowRef::new(agent, Seq(5)),
        at: Micros(5),
        text: "bash: cargo doc".to_owned(),
    }]);
    stage.press("alt-i").await;
    stage.sees("cargo doc").await;
    stage.pass(5 * SECOND).await;
    other
}

#[tokio::test]
async fn a_question_of_another_process_is_answered_there() {
    let (holder, _store) = Stage::with_faults(None).await;
    let mut stage = holder.beside().await;
    let other = shown(&mut stage, true).await;

    stage.press("y").await;
    stage.pass(SECOND).await;

    stage.sees("Answered in ikigai pid").await;
    stage.sees("nothing waits for you").await;
    let approve = ControlRequest::Approve {
        answer: ApprovalWord::Once,
        agent: Some(stage.current().to_string()),
        call: Some("9f2b6c0d1e8a4735".to_owned()),
        pattern: None,
        reason: None,
    };
    assert_eq!(*other.approved.lock().unwrap(), [approve]);
}

#[tokio::test]
async fn a_process_that_is_not_reached_is_named() {
    let (holder, _store) = Stage::with_faults(None).await;
    let mut stage = holder.beside().await;
    shown(&mut stage, false).await;

    stage.press("y").await;

    stage.sees("Answer it in the ikigai that asks: pid").await;
}
