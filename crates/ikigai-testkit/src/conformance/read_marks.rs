//! Checks of marks: how far people have read.

use ikigai_core::Seq;
use ikigai_store::{CommitError, Effect, SeenMark, Status};

use super::Rig;
use super::samples::{set_status, user};
use super::workbench::Workbench;

/// Marks are kept by person and agent, never lowered, and every process reads them.
pub(super) async fn marks_of_readers_are_only_raised(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let other = desk.agent("other").await;
    let (agent, beside) = (holder.agent, other.agent);
    let rows = [user("one"), user("two"), user("three")];
    holder.add(rows).await;
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

    desk.done([seen("ada", 2, 0)]).await;
    desk.done([seen("ada", 1, 3), seen("ben", 1, 0)]).await;

    let mark = |agent, read, dismissed| SeenMark {
        agent,
        read: Seq(read),
        dismissed: Seq(dismissed),
    };
    assert_eq!(second.seen("ada").await.unwrap(), [mark(agent, 2, 3)]);
    assert_eq!(second.seen("ben").await.unwrap(), [mark(agent, 1, 0)]);
    // The empty name stands for everyone.
    desk.done([seen("", 3, 0)]).await;
    assert_eq!(second.seen("ben").await.unwrap(), [mark(agent, 3, 0)]);
    assert_eq!(second.seen("cleo").await.unwrap(), [mark(agent, 3, 0)]);
    // A row that does not exist was read by no one.
    let refused = desk.effects([seen("ada", 4, 0)]).await;
    assert_refused!(refused, CommitError::BadBatch(_));
    desk.done([set_status(agent, Status::Dead)]).await;
    assert_eq!(second.seen("ada").await.unwrap(), []);
    let marked = SeenMark::new(beside);
    let person = "ada".to_owned();
    desk.done([Effect::MarkSeen {
        person,
        mark: marked,
    }])
    .await;
    assert_eq!(second.seen("ada").await.unwrap(), [marked]);
}
