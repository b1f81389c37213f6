//! Requests of random histories.

use ikigai_core::{Budget, Request, Target, project};
use ikigai_store::Agent;

use crate::block_on;
use crate::generate::History;

/// Returns the requests that some prefixes of a history make for a target.
///
/// Each number of `picks` chooses a row, counted back from the newest. Prefixes with nothing to
/// answer make none.
pub fn requests_of(history: &History, picks: &[usize], target: &Target) -> Vec<Request> {
    let rows = history.rows();
    let places = picks.iter().filter_map(|pick| pick.checked_rem(rows.len()));
    let chosen = places.filter_map(|place| rows.iter().nth_back(place));
    let requests = chosen.filter_map(|at| {
        let store = &history.log.store;
        let mut agent = block_on(Agent::restore_at(store, *at)).unwrap();
        block_on(agent.know_all(store)).unwrap();
        block_on(agent.read_all(store)).unwrap();
        let budget = Budget::new(u64::MAX, None);
        project(&agent.state, &agent.view, target, &budget).ok()
    });
    requests.collect()
}
