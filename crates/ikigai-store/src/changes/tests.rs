//! Tests of the contents of notifications.

use ikigai_core::{AgentId, Seq};
use ikigai_testkit::IdSource;

use super::LogChanges;

fn agent(number: u64) -> AgentId {
    IdSource::new(number).agent().to_string().parse().unwrap()
}

fn changed(agents: impl Iterator<Item = u64>) -> LogChanges {
    let mut changes = LogChanges::default();
    for number in agents {
        changes.add_agent(agent(number), Seq(number));
        changes.stored += 1;
    }
    changes
}

#[test]
fn changes_arrive_as_they_were_sent() {
    let mut changes = changed(1..4);
    changes.drafts.insert(agent(4));
    changes.mail.insert(agent(5));
    changes.are_marks_changed = true;

    let arrived = LogChanges::decode(&changes.encode());

    assert_eq!(arrived, changes);
}

#[test]
fn more_changes_than_a_notification_holds_become_unknown() {
    let changes = changed(1..400);

    let sent = changes.encode();

    assert!(sent.len() < 8_000, "{}", sent.len());
    let arrived = LogChanges::decode(&sent);
    assert!(arrived.is_partial);
    assert_eq!(arrived.stored, 399);
    assert!(arrived.may_concern(agent(1_000)));
}

#[test]
fn a_notification_that_cannot_be_read_is_taken_as_any_change() {
    for text in ["", "x", "n", "rabc:1", "r", "é", "n1 q"] {
        assert!(LogChanges::decode(text).is_partial, "{text:?}");
    }
    assert!(!LogChanges::decode("n0").is_partial);
}

#[test]
fn later_changes_raise_the_newest_row() {
    let mut changes = changed(std::iter::once(3));
    let mut later = LogChanges::default();
    later.add_agent(agent(3), Seq(9));

    changes.add(&later);
    changes.add(&changed(std::iter::once(3)));

    assert_eq!(changes.agents[&agent(3)], Seq(9));
    assert!(!changes.may_concern(agent(1)));
}
