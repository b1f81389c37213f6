//! Checks of marks: how far people have read.

use ikigai_core::Seq;
use ikigai_store::{AgentEffect, CommitError, Effect, SeenMark, Status};

use super::Rig;
use super::samples::user;
use super::workbench::Workbench;

/// Marks are kept by person and agent, never lowered, and every process reads them.
pub(super) async fn marks_of_readers_are_only_raised(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let other = desk.agent("other").await;
    let (agent, beside) = (holder.agent, other.agent);
    let rows = [user("one"), user("two"), user("three")];
    holder.append(rows).await.unwrap();
    let seen = |person: &str, read, dismissed| Effect::MarkSeen {
        person: person.to_owned(),
        mark: SeenMark {
            agent,
            read: Seq(read),
            dismissed: Seq(dismissed),
        },
    };
    let second = rig.second();
    assert_eq!(second.seen("ada").await.unwrap(), []);

    desk.effects([seen("ada", 2, 0)]).await.unwrap();
    desk.effects([seen("ada", 1, 3), seen("ben", 1, 0)])
        .await
        .unwrap();

    let mark = |agent, read, dismissed| SeenMark {
        agent,
        read: Seq(read),
        dismissed: Seq(dismissed),
    };
    assert_eq!(second.seen("ada").await.unwrap(), [mark(agent, 2, 3)]);
    assert_eq!(second.seen("ben").await.unwrap(), [mark(agent, 1, 0)]);
    // The empty name stands for everyone.
    desk.effects([seen("", 3, 0)]).await.unwrap();
    assert_eq!(second.seen("ben").await.unwrap(), [mark(agent, 3, 0)]);
    assert_eq!(second.seen("cleo").await.unwrap(), [mark(agent, 3, 0)]);
    // A row that does not exist was read by no one.
    let refused = desk.effects([seen("ada", 4, 0)]).await;
    assert!(
        matches!(refused, Err(CommitError::BadBatch(_))),
        "{refused:?}"
    );
    let status = Status::Dead;
    desk.effects([Effect::Agent(AgentEffect::SetStatus { agent, status })])
        .await
        .unwrap();
    assert_eq!(second.seen("ada").await.unwrap(), []);
    let marked = SeenMark::new(beside);
    let person = "ada".to_owned();
    desk.effects([Effect::MarkSeen {
        person,
        mark: marked,
    }])
    .await
    .unwrap();
    assert_eq!(second.seen("ada").await.unwrap(), [marked]);
}
