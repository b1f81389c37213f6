//! Costs do not grow with the history; measured in rows, not in time.

use std::sync::Arc;

use ikigai_core::data::{self, AgentKilledData, UsageData, Via};
use ikigai_core::fork::fork_events;
use ikigai_core::{AgentId, Event, Micros, Row, RowRef, Seq, Span};
use ikigai_store::{Agent, Batch, Effect, HeadClaim, Log, ReadLog, Snapshot};
use ikigai_testkit::{FaultyStore, TestLog, block_on};

use crate::support::{World, say};

/// Rows that fit on a screen.
const SCREEN: usize = 50;

/// Builds a history with snapshots; every third row is a mark or a rewind.
fn history(turns: u64) -> (TestLog, AgentId) {
    let mut log = TestLog::new(7);
    let agent = log.root();
    let mut control = 0;
    for turn in 1..=turns {
        let said = log.append(agent, Event::user(format!("question {turn}")));
        log.append(agent, Event::assistant(turn, format!("answer {turn}")));
        let event = if turn % 2 == 0 {
            Event::mark(None)
        } else {
            Event::rewind(said, RowRef::new(agent, Seq(3 * turn - 1)), Via::Undo)
        };
        let newest = log.append(agent, event);
        control += 1;
        if control % 8 == 0 {
            let folded = log.replayed_state(agent).to_snapshot();
            let snapshot = Effect::PutSnapshot(Snapshot {
                upto: newest,
                folded,
            });
            let batch = Batch {
                with: vec![snapshot],
                ..Batch::default()
            };
            block_on(log.store.commit(batch)).unwrap();
        }
    }
    (log, agent)
}

fn rows_read_to_open(log: &TestLog, agent: AgentId) -> usize {
    let store = FaultyStore::new(Arc::new(log.store.clone()));
    block_on(async {
        let mut opened = Agent::restore(&store, agent).await.unwrap();
        while opened.view.entries().len() < SCREEN {
            let missing = SCREEN - opened.view.entries().len();
            assert!(opened.lengthen(&store, missing).await.unwrap());
        }
    });
    store.rows_read()
}

/// Law 5: the first screen reads one screen and the control rows since the last snapshot.
#[test]
fn opening_an_agent_reads_as_much_whatever_its_history() {
    let (short, agent) = history(200);
    let (long, same) = history(2_000);

    let few = rows_read_to_open(&short, agent);
    let many = rows_read_to_open(&long, same);

    let most = SCREEN + 5 * 8 + 1;
    assert!(few <= most, "{few} rows");
    assert!(many <= most, "{many} rows");
}

/// Law 5: a fork writes a constant number of rows and reads none.
#[test]
fn a_fork_writes_as_much_whatever_the_history() {
    let counted = [20, 2_000].map(|turns| {
        let (log, agent) = history(turns);
        let state = log.replayed_state(agent);
        let events = fork_events(&state, "parent", log.order("child"));
        events.child.len() + 1
    });

    assert_eq!(counted, [2, 2]);
}

/// Snapshots are stored even if each process adds few control rows, as `run` does.
#[tokio::test(start_paused = true)]
async fn a_snapshot_is_stored_after_8_control_rows() {
    let mut world = World::with_window(2_500);
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    let mut snapshot = None;
    for turn in 0..200 {
        world
            .provider
            .will_say(&format!("answer {turn} {}", "word ".repeat(20)));
        say(&mut worker, &format!("question {turn}")).await.unwrap();
        let newest = RowRef::new(id, worker.agent().state.head());
        snapshot = world.store.snapshot(newest).await.unwrap();
        if snapshot.is_some() {
            break;
        }
        if turn % 2 == 1 {
            drop(worker);
            world = world.restarted();
            let agent = world.latest().await;
            worker = world.engine.open(&agent).await.unwrap();
        }
    }

    let snapshot = snapshot.expect("a snapshot is stored");
    let restarted = Agent::restore(&*world.store, id).await.unwrap();

    let kinds = world.kinds(id).await;
    let upto = usize::try_from(snapshot.upto.seq.0).unwrap();
    let control = ["system", "command", "summary"];
    let control = kinds[..upto]
        .iter()
        .filter(|kind| control.contains(&kind.as_str()))
        .count();
    assert_eq!(control, 8);
    assert_eq!(restarted.state.settings(), worker.agent().state.settings());
    assert_eq!(restarted.state.system(), worker.agent().state.system());
}

/// Sums continue after any number of rows without usage.
#[tokio::test(start_paused = true)]
async fn sums_go_on_after_any_number_of_other_rows() {
    let world = World::new();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    world.provider.will_say("one");
    say(&mut worker, "first").await.unwrap();
    drop(worker);
    let killed = Event::AgentKilled(AgentKilledData {
        target: Some(id),
        ..AgentKilledData::default()
    });
    let batch = Batch {
        heads: vec![HeadClaim {
            agent: id,
            lease: None,
        }],
        rows: vec![killed.into_row(id, Micros(5)); 5_000],
        with: Vec::new(),
    };
    world.store.commit(batch).await.unwrap();

    let world = world.restarted();
    let mut worker = world.reopened().await;
    world.provider.will_say("two");
    say(&mut worker, "second").await.unwrap();

    let usage = world.store.usage(Span::whole(id), 2).await.unwrap();
    let read = |row: &Row| -> UsageData { data::read(row.data.as_deref()) };
    let (last, first) = (read(&usage[0]), read(&usage[1]));
    let both = first.amounts.plus(&last.amounts);
    assert_eq!(last.sum, Some(both));
    assert_eq!((first.response, last.response), (Some(1), Some(2)));
}
