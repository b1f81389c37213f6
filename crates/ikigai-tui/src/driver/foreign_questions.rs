//! Questions of agents that other processes hold: read there, and answered there.

use ikigai_core::AgentId;
use ikigai_engine::{Answer, ProcessRecord, Question, UserRequest};

use super::Driver;
use super::foreign_agents::ask;
use crate::protocol::{ApprovalWord, ControlAnswer, ControlOutput, ControlRequest};

/// Reads the open questions of an agent from the process that holds it.
///
/// Without an answer of that process the inbox says where to answer.
pub(super) async fn ask_holder(driver: &mut Driver, agent: AgentId) {
    let Some((owner, name)) = holder_of(driver, agent).await else {
        return;
    };
    let answer = ask(driver, &owner, ControlRequest::Agents).await;
    let Ok(ControlAnswer::Said(ControlOutput::Agents { agents })) = answer else {
        return;
    };
    let id = agent.to_string();
    let seen = agents.into_iter().filter(|seen| seen.id == id);
    let questions = seen.flat_map(|seen| seen.questions);
    let questions = questions.filter_map(|question| question.question(agent, &name));
    driver.app.add_foreign_questions(questions.collect());
}

/// Gives a request to another process if it answers a question of that one; false if not.
pub(super) async fn gives_to_holder(driver: &mut Driver, request: &UserRequest) -> bool {
    if let UserRequest::Answer { call, answer, .. } = request
        && let Some(question) = driver.app.take_foreign_question(*call)
    {
        answer_holder(driver, question, answer.clone()).await;
        return true;
    }
    false
}

/// Gives an answer to the process that asks.
async fn answer_holder(driver: &mut Driver, question: Question, answer: Answer) {
    let agent = question.call.agent;
    let Some((owner, _)) = holder_of(driver, agent).await else {
        return driver
            .app
            .warn(&"not answered: no other process holds this agent now");
    };
    let (answer, pattern, reason) = match answer {
        Answer::Once => (ApprovalWord::Once, None, None),
        Answer::Always(pattern) => (ApprovalWord::Always, Some(pattern), None),
        Answer::No(reason) => (ApprovalWord::No, None, reason),
    };
    let approve = ControlRequest::Approve {
        answer,
        agent: Some(agent.to_string()),
        call: Some(question.hash),
        pattern,
        reason,
    };
    let answered = match ask(driver, &owner, approve).await {
        Ok(ControlAnswer::Error { error }) => Err(error),
        answered => answered.map(drop),
    };
    let (pid, host) = (owner.pid, &owner.host);
    match answered {
        Ok(()) => driver
            .app
            .toast(format!("Answered in ikigai pid {pid} on {host}")),
        Err(reason) => driver.app.warn(&format!("not answered: {reason}")),
    }
}

/// Returns the process that holds an agent, and the agent's name.
async fn holder_of(driver: &Driver, agent: AgentId) -> Option<(ProcessRecord, String)> {
    let record = driver.engine.reader().agent(agent).await.ok()??;
    Some((record.owner?, record.name))
}
