//! Properties over random histories: the laws hold for every history.
//!
//! A failing case prints the shortest list of actions that still fails.

mod context_rows;
mod found;
mod fuzz;
mod requests;

use ikigai_core::state::ReadSnapshot;
use ikigai_core::{AgentState, Event, Row, RowRef, Seq, View};
use ikigai_store::Agent;
use ikigai_testkit::generate::{History, actions};
use ikigai_testkit::{TestLog, block_on, cases};
use proptest::collection::vec;
use proptest::num;
use proptest::prelude::*;
use serde_json::json;

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: cases(500, 20_000),
        failure_persistence: None,
        max_shrink_iters: 50_000,
        ..ProptestConfig::default()
    }
}

/// Numbers that choose rows of a history, each counted back from the newest row.
fn picks(count: usize) -> impl Strategy<Value = Vec<usize>> {
    vec(0..1000_usize, count)
}

/// Returns the rows that the numbers choose.
fn chosen(history: &History, picks: &[usize]) -> Vec<RowRef> {
    let rows = history.rows();
    let places = picks.iter().filter_map(|pick| pick.checked_rem(rows.len()));
    places
        .filter_map(|place| rows.iter().nth_back(place).copied())
        .collect()
}

/// Returns the agent as it was at a row, with its path and all its rows known.
fn restored(history: &History, at: RowRef) -> Agent {
    let store = &history.log.store;
    let mut agent = block_on(Agent::restore_at(store, at)).unwrap();
    block_on(agent.know_all(store)).unwrap();
    block_on(agent.read_all(store)).unwrap();
    agent
}

/// Returns the rows of a view, oldest first.
fn rows_of(view: &View) -> Vec<Row> {
    let entries = view.entries().iter();
    entries.map(|entry| Row::clone(&entry.row)).collect()
}

fn references_of(view: &View) -> Vec<RowRef> {
    view.entries().iter().map(|entry| entry.row.at).collect()
}

proptest! {
    #![proptest_config(config())]

    /// D11a
    #[test]
    fn prop_live_state_equals_replayed_state(actions in actions(20)) {
        let mut history = History::default();
        for action in &actions {
            for agent in history.step(action) {
                let live = history.log.live(agent);
                let replayed = history.log.replayed(agent);

                prop_assert_eq!(&live.state, &replayed.state);
                prop_assert_eq!(live.view.conversation(), replayed.view.conversation());
                prop_assert!(live.view.scrollback().eq(replayed.view.scrollback()));
                prop_assert_eq!(&live.view, &replayed.view);
            }
        }
    }

    /// N4a: a number in a setting survives a snapshot to its last bit.
    #[test]
    fn prop_a_snapshot_keeps_every_number(usd in num::f64::NORMAL | num::f64::SUBNORMAL | num::f64::ZERO) {
        let mut log = TestLog::default();
        let agent = log.root();
        let set = json!({"spend": {"usd": usd}});
        let set = set.as_object().cloned().unwrap_or_default();
        log.append(agent, Event::set("budget", set));
        let state = log.replayed_state(agent);

        let restored = AgentState::restored(agent, state.head(), ReadSnapshot::read(&state.to_snapshot()), &[]);

        prop_assert_eq!(restored.settings(), state.settings());
    }

    /// S3-18 S3-15: the spans of a path hold the rows of the chain of predecessors, in its order.
    #[test]
    fn prop_span_path_equals_a_naive_walk(actions in actions(30), picks in picks(6)) {
        let history = History::of(&actions);
        for at in chosen(&history, &picks) {
            let agent = restored(&history, at);
            let walked = history.oracle.path(at);

            let spans = agent.state.path().spans();
            let rows = spans.flat_map(|span| {
                (span.from.0..=span.to.0).map(move |seq| RowRef::new(span.agent, Seq(seq)))
            });
            prop_assert_eq!(rows.collect::<Vec<_>>(), &walked[..]);
            prop_assert_eq!(references_of(&agent.view), walked);
            let conversation = agent.view.conversation();
            prop_assert_eq!(conversation.messages(), history.oracle.messages(at));
        }
    }

    /// D11b N4a D3b E4: the folded state equals the oracle's definitions.
    #[test]
    fn prop_folded_state_equals_the_definitions(actions in actions(30), picks in picks(6)) {
        let history = History::of(&actions);
        for at in chosen(&history, &picks) {
            let agent = restored(&history, at);
            let oracle = &history.oracle;

            let marks = agent.state.marks();
            let marks: Vec<_> = marks.map(|(row, label)| (row, label.map(str::to_owned))).collect();
            prop_assert_eq!(marks, oracle.marks(at));
            prop_assert_eq!(agent.state.settings(), &oracle.settings(at));
            let system = agent.state.system().map(str::to_owned);
            prop_assert_eq!(system, oracle.system(at));
            let held = oracle.held(at);
            for row in history.rows() {
                prop_assert_eq!(agent.state.holds(row), Some(held.contains(&row)), "{}", row);
            }
        }
    }

    /// D11e: exactly the rewinds without a valid target are reported.
    ///
    /// So is every row that does not load.
    #[test]
    fn prop_exactly_bad_rows_are_reported(actions in actions(30)) {
        let history = History::of(&actions);
        for at in history.heads() {
            let agent = restored(&history, at);
            for (index, row) in references_of(&agent.view).into_iter().enumerate() {
                let reported = agent.view.problem(index).is_some();
                prop_assert_eq!(reported, history.oracle.is_bad(row), "{}", row);
            }
        }
    }

    /// S0-2: pages of any size, read from the end, come to the same.
    #[test]
    fn prop_reading_lazily_equals_reading_everything(
        actions in actions(30),
        size in prop_oneof![Just(1_usize), Just(2), Just(7), Just(64)],
    ) {
        let history = History::of(&actions);
        let store = &history.log.store;
        for at in history.heads() {
            let whole = restored(&history, at);
            let all = rows_of(&whole.view);
            let mut lazy = block_on(Agent::restore_at(store, at)).unwrap();

            while block_on(lazy.lengthen(store, size)).unwrap() {
                let read = rows_of(&lazy.view);
                prop_assert!(all.ends_with(&read));
                let busy = lazy.view.is_busy(lazy.state.path());
                let told = busy.is_none() || busy == whole.view.is_busy(whole.state.path());
                prop_assert!(told, "the last {} rows tell {:?}", read.len(), busy);
            }

            prop_assert_eq!(&lazy.view, &whole.view);
            prop_assert_eq!(lazy.state.path(), whole.state.path());
        }
    }

    /// E7b
    #[test]
    fn prop_busy_is_read_off_the_path(actions in actions(30), picks in picks(6)) {
        let history = History::of(&actions);
        for at in chosen(&history, &picks) {
            let agent = restored(&history, at);
            let path = history.oracle.path(at);

            let busy = agent.view.is_busy(agent.state.path());

            prop_assert_eq!(busy, Some(history.oracle.is_busy(&path)));
        }
    }
}
