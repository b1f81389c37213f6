//! Properties of planned context rows: they shrink the request and leave it sendable.

use ikigai_core::data::SummaryData;
use ikigai_core::project::{
    ContextLimits, Keep, assemble, estimate_request, plan_elision, plan_summary, used_tokens,
};
use ikigai_core::{AgentId, Block, Budget, Event, Request, Target, project};
use ikigai_store::Agent;
use ikigai_testkit::generate::{History, OWN, actions};
use ikigai_testkit::{check_request, target};
use proptest::prelude::*;

use super::config;

const LOST: &str = "No outcome was recorded for this call.";

/// Results that stand for calls without an outcome.
fn lost_results(agent: &Agent, target: &Target) -> usize {
    let plenty = Budget::new(u64::MAX, None);
    let request = assemble(&agent.state, &agent.view, target, &plenty);
    let messages = request.map(|request| request.messages).unwrap_or_default();
    let blocks = messages.iter().flat_map(|message| &message.blocks);
    blocks
        .filter(|block| matches!(block, Block::ToolResult { content, .. } if content == LOST))
        .count()
}

/// Returns true if the whole conversation is sent.
///
/// Conversations of the program begin with the user; rows before the first message are left out.
fn is_all_sent(agent: &Agent, target: &Target) -> bool {
    let plenty = Budget::new(u64::MAX, None);
    let request = assemble(&agent.state, &agent.view, target, &plenty);
    let used = used_tokens(&agent.state, &agent.view, target);
    request.is_ok_and(|request| estimate_request(&request) == used)
}

fn sent(agent: &Agent, target: &Target) -> Option<Request> {
    let plenty = Budget::new(u64::MAX, None);
    project(&agent.state, &agent.view, target, &plenty).ok()
}

/// Appends a context row; returns the agent after checking it against a restart.
fn write(
    history: &mut History,
    id: AgentId,
    text: Option<&str>,
    data: SummaryData,
) -> Result<Agent, TestCaseError> {
    let text = text.map(str::to_owned);
    history.log.append(id, Event::Summary { text, data });
    let replayed = history.log.replayed(id);
    prop_assert_eq!(&history.log.live(id), &replayed);
    Ok(replayed)
}

proptest! {
    #![proptest_config(config())]

    /// E2a E2d: elisions save the tokens that they state; then a summary or cut follows.
    ///
    /// After each the request can be sent, no call loses its outcome, and a restart computes the
    /// same.
    #[test]
    fn prop_planned_context_rows_shrink_the_request(
        actions in actions(30),
        percent in 10..120_u64,
        cuts in any::<bool>(),
    ) {
        let mut history = History::of(&actions);
        let target = target(OWN.0, OWN.1);
        let limits = ContextLimits::default();
        for head in history.heads() {
            let id = head.agent;
            let mut agent = history.log.replayed(id);
            let Some(root) = agent.state.path().root().filter(|_| is_all_sent(&agent, &target)) else {
                continue;
            };
            let lost = lost_results(&agent, &target);
            let was_sendable = sent(&agent, &target).is_some();
            let used = used_tokens(&agent.state, &agent.view, &target);
            let budget = Budget::new(used * percent / 100, None);
            for _ in 0..20 {
                let Agent { state, view, .. } = &agent;
                let used = used_tokens(state, view, &target);
                let Some(elision) = plan_elision(state, view, &target, &budget, &limits) else {
                    break;
                };
                let data = SummaryData {
                    from: Some(root),
                    to: Some(elision.to),
                    elide: Some(elision.lines.clone()),
                    ..SummaryData::default()
                };
                agent = write(&mut history, id, None, data)?;
                let after = used_tokens(&agent.state, &agent.view, &target);
                prop_assert_eq!(after + elision.saved, used);
                prop_assert!(elision.saved > 0);
            }
            let Agent { state, view, .. } = &agent;
            prop_assert_eq!(plan_elision(state, view, &target, &budget, &limits), None);
            let keep = Keep::NewestResponse;
            if let Some(range) = plan_summary(state, view, &target, &budget, &limits, keep) {
                let used = used_tokens(state, view, &target);
                let data = SummaryData {
                    from: Some(root),
                    to: Some(range.to),
                    verbatim_from: range.verbatim_from,
                    cut: cuts.then_some(true),
                    ..SummaryData::default()
                };
                let text = (!cuts).then_some("S");
                agent = write(&mut history, id, text, data)?;
                let Agent { state, view, .. } = &agent;
                let after = used_tokens(state, view, &target);
                let most = used - range.tokens + range.verbatim + 100;
                prop_assert!(after <= most, "{} of {}", after, most);
                let again = plan_summary(state, view, &target, &budget, &limits, keep);
                prop_assert_eq!(again, None, "nothing new is left to summarise");
            }
            if let Some(request) = sent(&agent, &target) {
                prop_assert_eq!(check_request(&request, &target), Ok(()));
            }
            prop_assert!(sent(&agent, &target).is_some() || !was_sendable);
            prop_assert!(lost_results(&agent, &target) <= lost);
        }
    }
}
