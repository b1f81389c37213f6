//! Successive requests, to check what must stay the same between them.

use ikigai_core::{Budget, Kind, Request, RowRef, Seq, Target, project};
use ikigai_store::Agent;

use crate::block_on;
use crate::generate::History;

/// Returns the pairs of successive requests that the agents of a history would send.
///
/// There is no control row but a mark between them, and none is sent while a call of the last
/// response can still get its result.
pub fn successive_requests(history: &History, target: &Target) -> Vec<(Request, Request)> {
    let heads = history.heads().into_iter();
    heads
        .flat_map(|head| pairs_of_agent(history, head, target))
        .collect()
}

fn pairs_of_agent(history: &History, head: RowRef, target: &Target) -> Vec<(Request, Request)> {
    let store = &history.log.store;
    let mut agent = Agent::new(head.agent);
    let mut sent: Option<(Vec<RowRef>, Request)> = None;
    let mut pairs = Vec::new();
    for seq in 1..=head.seq.0 {
        let at = RowRef::new(head.agent, Seq(seq));
        let row = history.log.row(at);
        if history.is_control(at) && row.kind.read_as() != Some(Kind::Mark) {
            sent = None;
        }
        block_on(agent.apply(store, row)).unwrap();
        block_on(agent.read_all(store)).unwrap();
        let path = history.oracle.path(at);
        let budget = Budget::new(u64::MAX, None);
        if history.oracle.last_response_is_open(&path) {
            continue;
        }
        let Ok(request) = project(&agent.state, &agent.view, target, &budget) else {
            continue;
        };
        let answers = history.oracle.answers(&path);
        if let Some((open, earlier)) = sent {
            // The program settles open calls before it sends, so no result comes late.
            let late = |call| matches!(answers.get(call), Some(Some(_)));
            if !open.iter().any(late) {
                pairs.push((earlier, request.clone()));
            }
        }
        let open = answers.iter().filter(|(_, by)| by.is_none());
        sent = Some((open.map(|(call, _)| *call).collect(), request));
    }
    pairs
}
