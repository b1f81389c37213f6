//! Checks of the rows themselves: what goes in comes out, in order, and nothing else goes in.

use ikigai_core::kind::Part;
use ikigai_core::{Kind, NewRow, Seq};
use ikigai_store::CommitError;

use super::Rig;
use super::desk::{Desk, stored};
use super::samples::{at, one_of_each_kind, user_row};

/// S1-9: every kind is stored and reads back with the same kind, content, data and time.
pub(super) async fn insert_and_read_back_every_kind(rig: &dyn Rig) {
    let desk = Desk::first(rig).await;
    let mut holder = desk.agent("root").await;
    let events = one_of_each_kind(holder.agent);
    let rows: Vec<NewRow> = (0..)
        .zip(events)
        .map(|(n, event)| event.into_row(holder.agent, at(n)))
        .collect();

    holder.commit(rows.clone(), Vec::new()).await.unwrap();

    let expected: Vec<_> = (1..)
        .zip(rows)
        .map(|(seq, row)| stored(row, Seq(seq)))
        .collect();
    assert_eq!(expected.len(), Kind::ALL.len());
    assert_eq!(desk.rows(holder.agent).await, expected);
}

/// D4a: no name outside the enum, the legacy `tool` included, is a kind that a row can be made
/// of, and a row that breaks the rule of its kind is refused with its whole batch.
pub(super) async fn insert_refuses_unknown_kind(rig: &dyn Rig) {
    let desk = Desk::first(rig).await;
    let mut holder = desk.agent("root").await;

    for name in ["tool", "bogus", "", "User", "user ", "tool-call"] {
        assert!(name.parse::<Kind>().is_err(), "`{name}` is no kind");
    }
    for event in one_of_each_kind(holder.agent) {
        for row in rule_breakers(event.into_row(holder.agent, at(0))) {
            let batch = vec![user_row(holder.agent, "before"), row.clone()];
            let refused = holder.commit(batch, Vec::new()).await;
            assert!(
                matches!(refused, Err(CommitError::BadRow(_))),
                "{row:?}: {refused:?}"
            );
        }
    }

    assert_eq!(desk.rows(holder.agent).await, []);
    assert_eq!(desk.head(holder.agent).await.seq, Seq(0));
}

/// The row with each part taken away that it needs, and each added that it must not have.
fn rule_breakers(row: NewRow) -> Vec<NewRow> {
    let rule = row.kind.insert_rule();
    let mut broken = Vec::new();
    let break_part = |rule: Part, word: &str| match rule {
        Part::Required => Some(None),
        Part::Absent => Some(Some(word.to_owned())),
        Part::Optional => None,
    };
    if let Some(content) = break_part(rule.content, "text") {
        broken.push(NewRow {
            content,
            ..row.clone()
        });
    }
    if let Some(data) = break_part(rule.data, "{}") {
        broken.push(NewRow { data, ..row });
    }
    broken
}
