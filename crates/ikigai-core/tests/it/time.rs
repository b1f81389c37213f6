//! Marks, rewinds and clears: moving in time without losing anything.

use ikigai_core::data::{SystemOrigin, Via};
use ikigai_core::load::LoadError;
use ikigai_core::{AgentId, Event, RowRef, Seq, Span};
use ikigai_store::Agent;
use ikigai_testkit::{TestLog, block_on};
use serde_json::{Value, json};

use crate::reading::{kinds, labels, places, said, shown};

fn head_of(log: &TestLog, agent: AgentId) -> RowRef {
    RowRef::new(agent, log.live(agent).state.head())
}

fn rewind(log: &mut TestLog, agent: AgentId, target: RowRef) -> RowRef {
    let event = Event::rewind(target, head_of(log, agent), Via::Rewind);
    log.append(agent, event)
}

/// Restores an agent as it was when `row` was its newest row.
fn agent_at(log: &TestLog, row: RowRef) -> Agent {
    let mut agent = block_on(Agent::restore_at(&log.store, row)).unwrap();
    block_on(agent.know_all(&log.store)).unwrap();
    block_on(agent.read_all(&log.store)).unwrap();
    agent
}

fn owned(labels: &[Option<&str>]) -> Vec<Option<String>> {
    labels
        .iter()
        .map(|label| label.map(str::to_owned))
        .collect()
}

/// D11b: marks are kept with their labels over restarts; a label means its newest mark.
#[test]
fn marks_survive_restart_newest_label_wins() {
    let mut log = TestLog::default();
    let agent = log.root();
    log.append(agent, Event::user("one"));
    let first = log.append(agent, Event::mark(Some("a")));
    let other = log.append(agent, Event::mark(Some("b")));
    log.append(agent, Event::user("two"));
    let second = log.append(agent, Event::mark(Some("a")));
    let plain = log.append(agent, Event::mark(None));
    log.append(agent, Event::user("three"));

    for found in [log.live(agent), log.replayed(agent)] {
        let marks: Vec<_> = found.state.marks().collect();
        let expected = [
            (first, Some("a")),
            (other, Some("b")),
            (second, Some("a")),
            (plain, None),
        ];
        assert_eq!(marks, expected);
        assert_eq!(found.state.mark(None), Some(plain));
        assert_eq!(found.state.mark(Some("a")), Some(second));
        assert_eq!(found.state.mark(Some("b")), Some(other));
        assert_eq!(found.state.mark(Some("c")), None);
    }
}

/// D11c: a rewind to a mark keeps the rows up to the mark, and drops the rest, each time.
#[test]
fn rewind_truncates_to_mark_and_keeps_it() {
    for label in [Some("a"), None] {
        let mut log = TestLog::default();
        let agent = log.root();
        log.append(agent, Event::user("one"));
        log.append(agent, Event::mark(Some("old")));
        log.append(agent, Event::user("two"));
        log.append(agent, Event::mark(Some("a")));
        let kept = log.live(agent);

        for word in ["three", "four"] {
            log.append(agent, Event::user(word));
            if label.is_some() {
                log.append(agent, Event::mark(Some("later")));
            }
            let target = log.live(agent).state.mark(label).unwrap();

            let row = rewind(&mut log, agent, target);

            for agent in [log.live(agent), log.replayed(agent)] {
                let mut rows = places(&kept);
                rows.push(row);
                assert_eq!(places(&agent), rows);
                assert_eq!(said(&agent), ["one", "two"]);
                assert_eq!(shown(&agent)[..4], shown(&kept));
                assert_eq!(labels(&agent), owned(&[Some("old"), Some("a")]));
                assert_eq!(agent.state.mark(label), Some(target));
            }
        }
    }
}

/// D11d: a rewind goes to the mark it names, also if other marks share its label.
#[test]
fn rewind_targets_mark_by_identity() {
    let mut log = TestLog::default();
    let agent = log.root();
    let mut marks = Vec::new();
    for word in ["one", "two", "three"] {
        log.append(agent, Event::user(word));
        marks.push(log.append(agent, Event::mark(Some("same"))));
    }

    let row = rewind(&mut log, agent, marks[1]);

    let data: Value = serde_json::from_str(log.row(row).data.as_deref().unwrap()).unwrap();
    assert_eq!(data["target"], json!({"agent": agent, "seq": 4}));
    log.append(agent, Event::mark(Some("same")));
    for agent in [log.live(agent), log.replayed(agent)] {
        assert_eq!(said(&agent), ["one", "two"]);
        assert_eq!(labels(&agent).len(), 3);
    }
}

/// D11e: an unknown mark yields no row to go back to.
///
/// A stored `rewind` with a missing, malformed or unreachable target changes nothing and is
/// reported.
#[test]
fn bad_rewind_changes_nothing() {
    let mut log = TestLog::default();
    let parent = log.root();
    let kept = log.append(parent, Event::user("p1"));
    let left = log.append(parent, Event::user("left"));
    rewind(&mut log, parent, kept);
    let agent = log.fork(parent, log.order("child"));
    let sibling = log.fork(parent, log.order("sibling"));
    log.append(agent, Event::user("c2"));
    log.append(agent, Event::mark(Some("here")));
    let no_mark = log.live(parent).state;
    assert_eq!(
        (no_mark.mark(None), no_mark.mark(Some("here"))),
        (None, None)
    );
    assert_eq!(log.live(agent).state.mark(Some("there")), None);

    let row = |agent, seq| json!({"target": RowRef::new(agent, Seq(seq))}).to_string();
    let stranger = log.root();
    let cases = [
        None,
        Some(String::new()),
        Some("{".to_owned()),
        Some("[]".to_owned()),
        Some("{}".to_owned()),
        Some(json!({"target": null}).to_string()),
        Some(json!({"target": 2}).to_string()),
        Some(json!({"target": {"agent": agent}}).to_string()),
        Some(json!({"target": {"agent": "missing", "seq": 1}}).to_string()),
        Some(json!({"target": {"agent": agent, "seq": -1}}).to_string()),
        Some(json!({"target": {"agent": agent, "seq": "1"}}).to_string()),
        Some(row(agent, 0)),
        Some(row(agent, 1_000)),
        Some(row(agent, u64::MAX)),
        // The parent's rows that are not on the path of the fork point.
        Some(row(parent, left.seq.0)),
        Some(row(parent, 4)),
        Some(row(parent, 0)),
        Some(row(sibling, 1)),
        Some(row(stranger, 1)),
    ];
    for data in cases {
        let before = log.live(agent);

        let applied = log.inject(agent, "rewind", None, data.as_deref(), true);

        assert_eq!(applied.warning, Some(LoadError::RewindTarget), "{data:?}");
        let row = head_of(&log, agent);
        for after in [log.live(agent), log.replayed(agent)] {
            let mut rows = places(&before);
            rows.push(row);
            assert_eq!(places(&after), rows, "{data:?}");
            assert_eq!(after.view.conversation(), before.view.conversation());
            assert_eq!(labels(&after), labels(&before));
            let warning = format!(
                "⚠ event {row} of kind `rewind` is skipped: {}",
                LoadError::RewindTarget
            );
            assert_eq!(shown(&after).pop(), Some(warning), "{data:?}");
        }
    }
    let own = head_of(&log, agent).seq.next();
    let itself = row(agent, own.0);
    let applied = log.inject(agent, "rewind", None, Some(&itself), true);
    assert_eq!(applied.warning, Some(LoadError::RewindTarget));
    assert_eq!(log.replayed(agent), log.live(agent));
}

/// D11f: after a clear nothing older is in the state, whose first row is the clear itself.
#[test]
fn clear_is_a_replay_boundary() {
    let mut log = TestLog::default();
    let parent = log.root();
    log.append(parent, Event::user("inherited"));
    log.append(parent, Event::mark(Some("inherited")));
    let agent = log.fork(parent, log.order("child"));
    let first = log.append(agent, Event::user("one"));
    log.append(agent, Event::mark(Some("gone")));
    log.append(agent, Event::summary(Some("short"), first, first));
    assert_eq!(log.live(agent).state.summaries().len(), 1);

    for again in 0..2 {
        let prompt = Event::system("be terse", SystemOrigin::Clear);
        let cleared = log.append_all(agent, vec![Event::Clear, prompt])[0];

        for found in [log.live(agent), log.replayed(agent)] {
            assert_eq!(kinds(&found), ["clear", "system"]);
            assert_eq!(shown(&found), ["── cleared ──", "system: be terse"]);
            assert!(found.view.conversation().is_empty());
            assert_eq!(labels(&found), []);
            assert_eq!(found.state.summaries(), []);
            let span = Span::new(agent, cleared.seq, cleared.seq.next());
            assert_eq!(found.state.path().spans().collect::<Vec<_>>(), [span]);
        }

        log.append(agent, Event::user(format!("after {again}")));
        log.append(agent, Event::mark(Some("after")));
        for found in [log.live(agent), log.replayed(agent)] {
            assert_eq!(kinds(&found), ["clear", "system", "user", "mark"]);
            assert_eq!(said(&found), [format!("after {again}")]);
            assert_eq!(labels(&found), owned(&[Some("after")]));
        }
    }
    assert_eq!(log.replayed(agent), log.live(agent));
}

/// E4: a rewind goes to any reachable row, and another one undoes it.
///
/// Inherited rows and abandoned branches are reachable too.
#[test]
fn rewind_to_any_held_event_and_back() {
    let mut log = TestLog::default();
    let parent = log.root();
    log.append(parent, Event::user("p1"));
    log.append(parent, Event::mark(Some("p")));
    let gone = log.append(parent, Event::user("gone"));
    rewind(&mut log, parent, RowRef::new(parent, Seq(2)));
    log.append(parent, Event::user("p5"));
    let agent = log.fork(parent, log.order("child"));
    let first = log.append(agent, Event::user("c2"));
    log.append(agent, Event::mark(Some("c")));
    log.append(agent, Event::user("c4"));
    rewind(&mut log, agent, first);
    log.append(agent, Event::Clear);
    log.append(agent, Event::user("c7"));
    let inherited = [1, 2, 4, 5].map(|seq| RowRef::new(parent, Seq(seq)));
    let own = (1..=7).map(|seq| RowRef::new(agent, Seq(seq)));

    for target in inherited.into_iter().chain(own) {
        let from = head_of(&log, agent);
        let before = log.live(agent);
        let then = agent_at(&log, target);

        let there = rewind(&mut log, agent, target);

        for found in [log.live(agent), log.replayed(agent)] {
            let mut rows = places(&then);
            rows.push(there);
            assert_eq!(places(&found), rows);
            assert_eq!(found.view.conversation(), then.view.conversation());
            assert_eq!(labels(&found), labels(&then));
        }

        let back = log.append(agent, Event::rewind(from, there, Via::Redo));

        for found in [log.live(agent), log.replayed(agent)] {
            let mut rows = places(&before);
            rows.push(back);
            assert_eq!(places(&found), rows);
            assert_eq!(found.view.conversation(), before.view.conversation());
            assert_eq!(labels(&found), labels(&before));
        }
        assert_eq!(log.replayed(agent), log.live(agent));
    }
    assert_eq!(log.live(agent).state.holds(gone), Some(false));
}

/// D11h: a child has the marks on its path, and neither side's rewind or clear moves the other.
#[test]
fn child_rewind_does_not_touch_parent() {
    let mut log = TestLog::default();
    let parent = log.root();
    log.append(parent, Event::user("one"));
    let first = log.append(parent, Event::mark(Some("first")));
    log.append(parent, Event::user("two"));
    log.append(parent, Event::mark(Some("second")));
    let child = log.fork(parent, log.order("child"));
    assert_eq!(
        labels(&log.replayed(child)),
        owned(&[Some("first"), Some("second")])
    );

    let alone = log.replayed(parent);
    rewind(&mut log, child, first);
    assert_eq!(said(&log.replayed(child)), ["one"]);
    assert_eq!(labels(&log.replayed(child)), owned(&[Some("first")]));
    log.append(child, Event::mark(Some("child's")));
    assert_eq!(log.replayed(parent), alone);
    log.append(child, Event::Clear);
    assert_eq!(log.replayed(parent), alone);

    let sibling = log.fork(parent, log.order("sibling"));
    let alone = log.replayed(sibling);
    rewind(&mut log, parent, first);
    assert_eq!(said(&log.replayed(parent)), ["one"]);
    assert_eq!(log.replayed(sibling), alone);
    log.append(parent, Event::Clear);
    assert_eq!(log.replayed(sibling), alone);
    for agent in [parent, child, sibling] {
        assert_eq!(log.replayed(agent), log.live(agent));
    }
}
