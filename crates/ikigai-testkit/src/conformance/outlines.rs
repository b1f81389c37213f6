//! Checks of lists of agents, and of merges into parents.

use ikigai_core::data::{CommandData, ErrorData, Merge, UserData};
use ikigai_core::{Event, Kind, Micros, Seq};
use ikigai_store::{AgentEffect, AgentOutline, Effect, Status};

use super::Rig;
use super::samples::{at, mark, one_of_each_kind, parents_fork_row, rewind, usage, user};
use super::workbench::Workbench;

/// A list names the newest row that may begin, continue or end a turn, and the living owner.
pub(super) async fn outlines_name_the_row_that_decides(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let second = desk.second(rig);
    let mut holder = desk.agent("one").await;
    let agent = holder.agent;
    let one = |kind: Kind| {
        let place = Kind::ALL.iter().position(|it| *it == kind).unwrap();
        one_of_each_kind(agent).remove(place)
    };
    let resume = |resume| Event::Command {
        output: None,
        data: CommandData {
            command: Some("resume".to_owned()),
            resume: Some(resume),
            ..CommandData::default()
        },
    };
    let omission = Event::Error {
        text: "left out".to_owned(),
        data: ErrorData::default(),
    };
    // Each row with the kind that decides after it, and if a call is near.
    let rows = [
        (mark("a"), None, false),
        (one(Kind::Command), None, false),
        (user("go"), Some(Kind::User), false),
        (one(Kind::ToolCall), Some(Kind::ToolCall), false),
        (one(Kind::Assistant), Some(Kind::Assistant), true),
        (usage(1), Some(Kind::Assistant), true),
        (one(Kind::ToolResult), Some(Kind::ToolResult), false),
        (one(Kind::System), Some(Kind::ToolResult), false),
        (one(Kind::Assistant), Some(Kind::Assistant), false),
        (one(Kind::Fork), Some(Kind::Assistant), false),
        (one(Kind::Process), Some(Kind::Assistant), false),
        (one(Kind::Summary), Some(Kind::Assistant), false),
        (one(Kind::Interrupted), Some(Kind::Interrupted), false),
        (resume(true), Some(Kind::Command), false),
        (omission, Some(Kind::Error), false),
        (rewind(agent, 3, 9), Some(Kind::Rewind), false),
        (one(Kind::Clear), Some(Kind::Clear), false),
    ];
    for (event, kind, follows_call) in rows {
        let row = event.clone().into_row(agent, at(0));
        holder.append([event]).await.unwrap();

        for store in [&desk.store, &second.store] {
            let outlines = store.outlines().await.unwrap();
            let [outline] = outlines.as_slice() else {
                panic!("{outlines:?}");
            };
            let record = store.agent(agent).await.unwrap();
            assert_eq!(Some(&outline.agent), record.as_ref());
            assert!(outline.is_held, "{row:?}");
            let decides = outline.turn_row.as_ref();
            assert_eq!(decides.map(|row| row.kind), kind, "{row:?}");
            let has_data = matches!(row.kind, Kind::User | Kind::Interrupted | Kind::Command);
            if has_data && decides.is_some_and(|it| it.kind == row.kind) {
                assert_eq!(decides.and_then(|it| it.data.clone()), row.data);
            }
            let calls = decides.is_some_and(|row| row.follows_call);
            assert_eq!(calls, follows_call, "{row:?}");
        }
    }
}

/// A list leaves reaped agents out, and names no row of the dead and no owner of free agents.
pub(super) async fn outlines_show_the_living_and_the_dead(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut parent = desk.agent("parent").await;
    let free = desk.idle_agent("free").await;
    let mut dead = desk.agent("dead").await;
    let reaped = desk.idle_agent("reaped").await;
    for holder in [&mut parent, &mut dead] {
        holder.append([user("go")]).await.unwrap();
    }
    desk.lease_free(parents_fork_row(parent.agent, free))
        .await
        .unwrap();
    let set = |agent, status| Effect::Agent(AgentEffect::SetStatus { agent, status });
    desk.effects([set(dead.agent, Status::Dead), set(reaped, Status::Reaped)])
        .await
        .unwrap();

    let outlines = desk.store.outlines().await.unwrap();

    let shown = |outline: &AgentOutline| {
        let kind = outline.turn_row.as_ref().map(|row| row.kind);
        (outline.agent.id, outline.is_held, kind)
    };
    assert_eq!(
        outlines.iter().map(shown).collect::<Vec<_>>(),
        [
            (parent.agent, true, Some(Kind::User)),
            (free, false, None),
            (dead.agent, outlines[2].is_held, None),
        ]
    );
}

/// Rows that merge a child come without their text, with those that may leave them behind.
pub(super) async fn merges_are_found_with_the_rows_that_bend_the_path(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut one = desk.agent("one").await;
    let mut two = desk.agent("two").await;
    let child = desk.idle_agent("child").await;
    let merge = Event::User {
        text: "its result".to_owned(),
        data: UserData {
            merge: Some(Merge {
                agent: Some(child),
                to: Some(Seq(3)),
                ..Merge::default()
            }),
            ..UserData::default()
        },
    };
    let events = [
        user("go"),
        merge.clone(),
        mark("a"),
        rewind(one.agent, 1, 2),
    ];
    one.append(events).await.unwrap();
    two.append([merge, user("\"merge\"")]).await.unwrap();

    let asked = vec![(two.agent, at(0)), (child, at(0)), (one.agent, at(0))];
    let rows = desk.store.merge_rows(asked).await.unwrap();

    let found: Vec<_> = rows.iter().map(|row| row.at).collect();
    assert_eq!(found, [two.row(1), one.row(4), one.row(2)]);
    assert!(rows.iter().all(|row| row.content.is_none()));
    let data: UserData = ikigai_core::data::read(rows[2].data.as_deref());
    assert_eq!(data.merge.and_then(|merge| merge.to), Some(Seq(3)));
    let later = vec![(one.agent, Micros(at(0).0 + 1))];
    assert_eq!(desk.store.merge_rows(later).await.unwrap(), []);
}
