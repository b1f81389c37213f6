//! Tests of the lazy walk against the oracle.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::data::Via;
use crate::event::Event;
use crate::ids::Micros;
use crate::kind::StoredKind;
use crate::state::{AgentState, ApplyError, Change};

/// Limit of steps in these tests; a walk with more is endless.
const ENOUGH_STEPS: usize = 1_000;

/// A log that answers the queries of a path.
#[derive(Default)]
struct Log {
    rows: BTreeMap<AgentId, Vec<Row>>,
}

/// Returns the span just before a row.
fn before(path: &Path, row: Option<RowRef>) -> Option<Span> {
    path.spans_before(row, 1).first().copied()
}

fn agent(number: u8) -> AgentId {
    AgentId::from_random([number; 16]).unwrap()
}

fn at(agent: AgentId, seq: u64) -> RowRef {
    RowRef::new(agent, Seq(seq))
}

fn span(agent: AgentId, from: u64, to: u64) -> Span {
    Span::new(agent, Seq(from), Seq(to))
}

impl Log {
    fn push(&mut self, agent: AgentId, event: Event) -> RowRef {
        let rows = self.rows.entry(agent).or_default();
        let row = event.into_row(agent, Micros(0));
        let at = at(agent, rows.len() as u64 + 1);
        rows.push(Row {
            at,
            kind: StoredKind::Known(row.kind),
            content: row.content,
            data: row.data,
            created_at: row.created_at,
            author: None,
        });
        at
    }

    fn say(&mut self, agent: AgentId, times: usize) -> RowRef {
        (0..times)
            .map(|_| self.push(agent, Event::user("words")))
            .last()
            .unwrap()
    }

    fn fork(&mut self, child: AgentId, fork_point: RowRef) -> RowRef {
        let data = ForkData {
            role: Some(ForkRole::Child),
            context: Some(ForkContext::Inherit),
            fork_point: Some(fork_point),
            ..ForkData::default()
        };
        let text = "Forked from".to_owned();
        self.push(
            child,
            Event::Fork {
                text,
                data: Box::new(data),
            },
        )
    }

    fn rewind(&mut self, agent: AgentId, target: RowRef) -> RowRef {
        self.push(agent, Event::rewind(target, target, Via::Rewind))
    }

    fn row(&self, at: RowRef) -> &Row {
        &self.rows[&at.agent][usize::try_from(at.seq.0).unwrap() - 1]
    }

    fn head(&self, agent: AgentId) -> RowRef {
        at(agent, self.rows[&agent].len() as u64)
    }

    fn answer(&self, query: ControlQuery) -> Vec<Row> {
        let control = |row: &&Row| {
            let talk = matches!(row.kind, StoredKind::Known(Kind::User));
            !talk && query.span.contains(row.at)
        };
        let rows = self.rows[&query.span.agent].iter().rev();
        rows.filter(control).take(query.limit).cloned().collect()
    }

    fn extend(&self, path: &mut Path) {
        for _ in 0..ENOUGH_STEPS {
            match path.wants() {
                None => return,
                Some(query) => path.supply(&self.answer(query)),
            }
        }
        panic!("the walk does not end");
    }

    /// Returns the path of a row as a restart resolves it.
    fn walk(&self, row: RowRef) -> Path {
        let mut path = Path::of(Some(row));
        self.extend(&mut path);
        assert!(path.is_complete());
        path
    }

    /// Returns the grown path of an agent, and the change by its newest row.
    fn lived(&self, agent: AgentId) -> (Path, Change) {
        let mut state = AgentState::new(agent);
        let mut change = Change::Appended;
        for row in &self.rows[&agent] {
            change = match state.apply(row) {
                Ok(applied) => applied.change,
                Err(ApplyError::NeedsOlder) => {
                    self.extend(state.inherited_mut());
                    state.apply(row).unwrap().change
                }
                Err(error) => panic!("{error}"),
            };
        }
        self.extend(state.path_mut());
        (state.path().clone(), change)
    }

    /// Checks the path of an agent's newest row, walked and grown, against the oracle.
    fn check(&self, agent: AgentId, expected: &[Span]) {
        let walked = self.walk(self.head(agent));
        let spans: Vec<_> = walked.spans().collect();
        assert_eq!(spans, expected);
        let rows = spans
            .iter()
            .flat_map(|span| (span.from.0..=span.to.0).map(|seq| at(span.agent, seq)));
        assert_eq!(rows.collect::<Vec<_>>(), self.obvious(self.head(agent)));
        assert_eq!(self.lived(agent).0, walked);
    }

    /// Returns the path by its definition: predecessor by predecessor.
    fn obvious(&self, row: RowRef) -> Vec<RowRef> {
        let mut rows = vec![row];
        let mut row = row;
        while let Some(before) = self.predecessor(row) {
            rows.push(before);
            row = before;
            assert!(rows.len() < ENOUGH_STEPS, "only honest logs are walked so");
        }
        rows.reverse();
        rows
    }

    fn predecessor(&self, row: RowRef) -> Option<RowRef> {
        let previous = Some(row.seq.before())
            .filter(|seq| seq.0 > 0)
            .map(|seq| RowRef::new(row.agent, seq));
        let stored = self.row(row);
        match stored.kind {
            StoredKind::Known(Kind::Clear) => None,
            StoredKind::Known(Kind::Fork) => self.fork_point(row.agent),
            StoredKind::Known(Kind::Rewind) => {
                let target = data::read::<RewindData>(stored.data.as_deref()).target;
                target.filter(|to| self.holds(row, *to)).or(previous)
            }
            _ => previous,
        }
    }

    fn fork_point(&self, agent: AgentId) -> Option<RowRef> {
        let first = &self.rows[&agent][0];
        data::read::<ForkData>(first.data.as_deref())
            .fork_point
            .filter(|point| point.seq.0 > 0)
    }

    fn holds(&self, rewind: RowRef, target: RowRef) -> bool {
        if target.agent == rewind.agent {
            return (1..rewind.seq.0).contains(&target.seq.0);
        }
        let inherited = self.fork_point(rewind.agent);
        inherited.is_some_and(|point| self.obvious(point).contains(&target))
    }
}

#[test]
fn forged_fork_points_that_form_a_cycle_end() {
    for length in 1..=4 {
        let mut log = Log::default();
        for number in 0..length {
            let next = agent((number + 1) % length);
            log.fork(agent(number), at(next, 2));
            log.say(agent(number), 2);
        }
        let first = agent(0);
        log.rewind(first, at(agent(length - 1), 1));

        let walked = log.walk(log.head(first));

        let firsts = walked.spans().filter(|span| span.from == Seq(1));
        let mut agents: Vec<_> = firsts.map(|span| span.agent).collect();
        agents.sort();
        let mut once = agents.clone();
        once.dedup();
        assert_eq!(agents, once, "no agent is passed twice");
        assert_eq!(log.lived(first).0, walked);
    }
}

#[test]
fn rewinds_between_agents_that_form_a_cycle_end() {
    let (a, b) = (agent(1), agent(2));
    let mut log = Log::default();
    log.fork(a, at(b, 4));
    log.say(a, 2);
    log.rewind(a, at(b, 3));
    log.fork(b, at(a, 4));
    log.say(b, 2);
    log.rewind(b, at(a, 3));

    for agent in [a, b] {
        assert_eq!(log.lived(agent).0, log.walk(log.head(agent)));
    }
}

#[test]
fn a_rewind_to_a_row_off_the_fork_points_path_changes_nothing() {
    let (parent, child) = (agent(1), agent(2));
    let mut log = Log::default();
    log.say(parent, 3);
    log.rewind(parent, at(parent, 1));
    let fork_point = log.say(parent, 1);
    log.say(parent, 2);
    log.fork(child, fork_point);
    log.say(child, 1);

    for seq in [2, 3, 6, 7, 99] {
        log.rewind(child, at(parent, seq));

        assert_eq!(log.lived(child).1, Change::Appended);
        let rows = log.rows[&child].len() as u64;
        log.check(
            child,
            &[span(parent, 1, 1), span(parent, 4, 5), span(child, 1, rows)],
        );
    }

    let last = log.rewind(child, at(parent, 4)).seq.0;
    assert_eq!(log.lived(child).1, Change::WentBack(at(parent, 4)));
    log.check(
        child,
        &[
            span(parent, 1, 1),
            span(parent, 4, 4),
            span(child, last, last),
        ],
    );
}

#[test]
fn a_rewind_of_an_ancestor_leads_into_its_own_ancestor() {
    let [top, middle, leaf] = [1, 2, 3].map(agent);
    let mut log = Log::default();
    log.say(top, 4);
    log.fork(middle, at(top, 3));
    log.say(middle, 2);
    log.rewind(middle, at(top, 2));
    log.say(middle, 1);
    log.fork(leaf, at(middle, 5));
    log.say(leaf, 1);
    log.check(
        leaf,
        &[span(top, 1, 2), span(middle, 4, 5), span(leaf, 1, 2)],
    );

    // The leaf holds the path of its fork point: row 2 of the top, and not row 3.
    log.rewind(leaf, at(top, 3));
    log.check(
        leaf,
        &[span(top, 1, 2), span(middle, 4, 5), span(leaf, 1, 3)],
    );
    log.rewind(leaf, at(top, 1));
    log.check(leaf, &[span(top, 1, 1), span(leaf, 4, 4)]);
    log.rewind(leaf, at(leaf, 2));
    log.check(
        leaf,
        &[
            span(top, 1, 2),
            span(middle, 4, 5),
            span(leaf, 1, 2),
            span(leaf, 5, 5),
        ],
    );
    // An abandoned row of the middle is not on the fork point's path either.
    log.rewind(leaf, at(middle, 2));
    log.check(
        leaf,
        &[
            span(top, 1, 2),
            span(middle, 4, 5),
            span(leaf, 1, 2),
            span(leaf, 5, 6),
        ],
    );
}

#[test]
fn any_number_of_control_rows_may_lie_between_bends() {
    for marks in [0, 1, 62, 63, 64, 65, 66, 127, 128, 129, 200] {
        let (parent, child) = (agent(1), agent(2));
        let mut log = Log::default();
        let mark = |log: &mut Log, agent| {
            for number in 0..marks {
                log.push(agent, Event::mark(Some(&number.to_string())));
            }
        };
        log.push(parent, Event::Clear);
        mark(&mut log, parent);
        let left = log.say(parent, 1);
        mark(&mut log, parent);
        let back = log.rewind(parent, at(parent, 1));
        mark(&mut log, parent);
        let fork_point = log.say(parent, 1);
        log.fork(child, fork_point);
        mark(&mut log, child);
        let (from, to) = (back.seq.0, fork_point.seq.0);

        log.check(
            child,
            &[
                span(parent, 1, 1),
                span(parent, from, to),
                span(child, 1, 1 + marks),
            ],
        );
        let walked = log.walk(log.head(child));
        let labels: Vec<_> = walked.notes().map(|(_, note)| note.clone()).collect();
        let once = (0..marks).map(|number| Note::Mark(Some(number.to_string())));
        assert_eq!(labels, once.clone().chain(once).collect::<Vec<_>>());

        log.rewind(child, at(parent, 1));
        let last = log.head(child).seq.0;
        log.check(child, &[span(parent, 1, 1), span(child, last, last)]);
        log.rewind(child, left);
        log.check(child, &[span(parent, 1, 1), span(child, last, last + 1)]);
    }
}

#[test]
fn a_rewind_to_the_last_row_of_a_page_notes_it_once() {
    let agent = agent(1);
    for marks in 0..140 {
        let mut log = Log::default();
        log.say(agent, 1);
        let target = log.push(agent, Event::mark(Some("target")));
        for _ in 0..marks {
            log.push(agent, Event::mark(None));
        }
        let last = log.rewind(agent, target).seq.0;

        let walked = log.walk(log.head(agent));

        let noted: Vec<_> = walked.notes().map(|(row, _)| row).collect();
        assert_eq!(noted, [target]);
        if marks > 0 {
            log.check(agent, &[span(agent, 1, 2), span(agent, last, last)]);
        }
    }
}

#[test]
fn rewinds_of_many_ancestors_cost_one_walk() {
    let mut log = Log::default();
    let root = agent(0);
    log.say(root, 2);
    let mut spans = vec![span(root, 1, 2)];
    for number in 1..=40 {
        let (parent, child) = (agent(number - 1), agent(number));
        log.fork(child, log.head(parent));
        let last = if number % 5 == 0 {
            spans = vec![span(root, 1, 1)];
            let back = log.rewind(child, at(root, 1)).seq.0;
            spans.push(span(child, back, back));
            back
        } else {
            // Neither is held, so the rewinds change nothing.
            log.rewind(child, at(root, 99));
            let last = log.rewind(child, at(agent(99), 1)).seq.0;
            spans.push(span(child, 1, last));
            last
        };

        let walked = log.walk(at(child, last));

        assert_eq!(walked.spans().collect::<Vec<_>>(), spans);
        assert_eq!(log.lived(child).0, walked);
    }
}

#[test]
fn many_rewinds_are_walked_page_by_page() {
    let agent = agent(1);
    let mut log = Log::default();
    log.say(agent, 2);
    for _ in 0..150 {
        let head = log.head(agent).seq.0;
        log.rewind(agent, at(agent, head - 1));
    }
    let spans: Vec<_> = log.walk(log.head(agent)).spans().collect();

    log.check(agent, &spans);
}

#[test]
fn a_first_row_that_is_a_rewind_is_a_root() {
    let (agent, other) = (agent(1), agent(2));
    for target in [at(agent, 1), at(agent, 2), at(other, 1)] {
        let mut log = Log::default();
        log.say(other, 2);
        log.rewind(agent, target);
        log.say(agent, 2);

        log.check(agent, &[span(agent, 1, 3)]);
        assert!(is_root(log.row(at(agent, 1))));
    }
}

#[test]
fn a_fork_point_of_row_zero_is_none() {
    let (parent, child) = (agent(1), agent(2));
    let mut log = Log::default();
    log.say(parent, 2);
    log.fork(child, at(parent, 0));
    log.say(child, 1);
    log.check(child, &[span(child, 1, 2)]);

    log.rewind(child, at(parent, 1));
    log.check(child, &[span(child, 1, 3)]);
    assert_eq!(Path::of(Some(at(parent, 0))), Path::default());
}

#[test]
fn neighbours_of_one_agent_that_touch_are_one_span() {
    let agent = agent(1);
    let mut log = Log::default();
    let head = log.say(agent, 3);
    log.rewind(agent, head);
    log.say(agent, 1);
    log.check(agent, &[span(agent, 1, 5)]);

    log.rewind(agent, at(agent, 2));
    log.check(agent, &[span(agent, 1, 2), span(agent, 6, 6)]);
    log.rewind(agent, at(agent, 5));
    log.check(agent, &[span(agent, 1, 5), span(agent, 7, 7)]);
    log.rewind(agent, at(agent, 6));
    log.check(
        agent,
        &[span(agent, 1, 2), span(agent, 6, 6), span(agent, 8, 8)],
    );
    log.push(agent, Event::Clear);
    log.check(agent, &[span(agent, 9, 9)]);
    log.rewind(agent, at(agent, 9));
    log.check(agent, &[span(agent, 9, 10)]);
}

#[test]
fn what_lies_before_a_row_is_found_without_knowing_the_rest() {
    let (parent, child) = (agent(1), agent(2));
    let mut log = Log::default();
    log.say(parent, 4);
    log.fork(child, at(parent, 3));
    log.say(child, 2);

    let mut path = Path::of(Some(log.head(child)));
    assert_eq!((before(&path, None), path.root()), (None, None));
    path.supply(&log.answer(path.wants().unwrap()));
    assert_eq!(before(&path, None), Some(span(child, 1, 3)));
    assert_eq!(before(&path, Some(at(child, 2))), Some(span(child, 1, 1)));
    assert_eq!(
        (before(&path, Some(at(child, 1))), path.root()),
        (None, None)
    );
    path.supply(&log.answer(path.wants().unwrap()));
    assert_eq!(before(&path, Some(at(child, 1))), Some(span(parent, 1, 3)));
    assert_eq!(before(&path, Some(at(parent, 1))), None);
    assert_eq!(path.root(), Some(at(parent, 1)));
}

#[test]
fn what_lies_after_a_row_goes_round_what_was_left() {
    let (parent, child) = (agent(1), agent(2));
    let mut log = Log::default();
    log.say(parent, 4);
    log.fork(child, at(parent, 3));
    log.say(child, 4);
    log.rewind(child, at(child, 2));
    log.say(child, 1);
    let mut path = Path::of(Some(log.head(child)));
    while let Some(query) = path.wants() {
        path.supply(&log.answer(query));
    }

    let after = |row, rows| path.row_after(row, rows);
    assert_eq!(after(at(parent, 1), 0), Some(at(parent, 1)));
    assert_eq!(after(at(parent, 1), 2), Some(at(parent, 3)));
    assert_eq!(after(at(parent, 2), 3), Some(at(child, 2)));
    assert_eq!(after(at(child, 1), 2), Some(at(child, 6)));
    assert_eq!(after(at(child, 2), 9), Some(at(child, 7)));
    assert_eq!(after(at(child, 7), 1), Some(at(child, 7)));
    assert_eq!(after(at(child, 4), 1), None);
    assert_eq!(after(at(parent, 4), 1), None);
}

#[test]
fn a_span_of_all_numbers_can_be_counted() {
    let agent = agent(1);

    assert_eq!(span(agent, 1, u64::MAX).len(), u64::MAX - 1);
    assert_eq!(span(agent, 3, 4).len(), 2);
    assert_eq!(span(agent, 3, 2).len(), 0);
    assert!(span(agent, 3, 2).is_empty());
}

#[test]
fn a_snapshot_that_cannot_be_read_is_refused() {
    let agent = agent(1);
    let mut log = Log::default();
    let set = json!({"workdir": "/a"}).as_object().unwrap().clone();
    log.push(agent, Event::set("start", set));
    let mut state = AgentState::new(agent);
    state.apply(&log.rows[&agent][0]).unwrap();
    let snapshot = state.to_snapshot();

    assert!(crate::state::ReadSnapshot::read(&snapshot).is_some());
    let restored = AgentState::restored(
        agent,
        Seq(1),
        crate::state::ReadSnapshot::read(&snapshot),
        &[],
    );
    assert_eq!(restored.settings(), state.settings());
    for broken in [
        "",
        "{}",
        "[]",
        "null",
        "{",
        &snapshot[1..],
        &snapshot.replace("\"form\":5", "\"form\":0"),
    ] {
        assert!(
            crate::state::ReadSnapshot::read(broken).is_none(),
            "{broken}"
        );
        let restored = AgentState::restored(
            agent,
            Seq(1),
            crate::state::ReadSnapshot::read(broken),
            &log.rows[&agent],
        );
        assert_eq!(restored.settings(), state.settings());
    }
}
