//! Checks of workspaces and authors.

use ikigai_core::find::Words;
use ikigai_core::{MachineId, PersonName, SessionId};
use ikigai_store::{
    AgentEffect, CommitError, Effect, MailEffect, MailOrigin, MailTopic, NewAgent, SearchQuery,
    SessionMove, SessionRecord, Status,
};

use super::Rig;
use super::samples::{at, user};
use super::workbench::Workbench;

fn person(name: &str) -> PersonName {
    name.parse().expect("a person's name")
}

fn machine(number: u8) -> Option<MachineId> {
    MachineId::from_random([number; 16])
}

fn record(session: SessionId, directory: &str, of: u8) -> SessionRecord {
    SessionRecord {
        id: session,
        name: "work".to_owned(),
        directory: directory.to_owned(),
        created_at: at(1),
        machine: machine(of),
        host: Some(format!("host-{of}")),
    }
}

/// E8b: the living of a workspace have different names; other workspaces may have the same ones.
pub(super) async fn names_are_unique_in_a_workspace_only(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let other = record(desk.ids.session(), "/home/ada/work", 2);
    desk.effects([Effect::MakeSession(other.clone())])
        .await
        .unwrap();
    let create = |session| {
        let agent = NewAgent {
            session,
            ..desk.new_agent("ada")
        };
        let id = agent.id;
        let owned = false;
        (id, Effect::Agent(AgentEffect::Create { agent, owned }))
    };
    let (here, first) = create(desk.session);
    let (there, second) = create(other.id);
    let store = &desk.store;

    desk.effects([first]).await.unwrap();
    desk.effects([second]).await.unwrap();
    let again = desk.effects([create(other.id).1]).await;
    let eve = desk.idle_agent("eve").await;
    let name = "ada".to_owned();
    let renamed = desk
        .effects([Effect::Agent(AgentEffect::SetName { agent: eve, name })])
        .await;

    assert!(matches!(again, Err(CommitError::NameTaken(_))), "{again:?}");
    assert!(
        matches!(renamed, Err(CommitError::NameTaken(_))),
        "{renamed:?}"
    );
    let ids = async |session| {
        let found = store.find_by_name(session, "ada").await.unwrap();
        found.iter().map(|agent| agent.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(None).await, [here, there]);
    assert_eq!(ids(Some(desk.session)).await, [here]);
    assert_eq!(ids(Some(other.id)).await, [there]);
    assert_eq!(
        store.living_names(desk.session, "").await.unwrap(),
        ["ada", "eve"]
    );
    assert_eq!(store.living_names(other.id, "a").await.unwrap(), ["ada"]);

    let (agent, status) = (here, Status::Dead);
    desk.effects([Effect::Agent(AgentEffect::SetStatus { agent, status })])
        .await
        .unwrap();
    let name = "ada".to_owned();
    desk.effects([Effect::Agent(AgentEffect::SetName { agent: eve, name })])
        .await
        .unwrap();
    let status = Status::Running;
    let revived = desk
        .effects([Effect::Agent(AgentEffect::SetStatus { agent, status })])
        .await;
    assert!(
        matches!(revived, Err(CommitError::NameTaken(_))),
        "{revived:?}"
    );
}

/// The sessions of one directory are those of all its machines; a session can move to another.
pub(super) async fn a_session_is_a_directory_of_a_machine(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let ids = [(); 3].map(|()| desk.ids.session());
    let sessions = [
        record(ids[0], "/srv/app", 1),
        record(ids[1], "/srv/app", 2),
        record(ids[2], "/srv/application", 1),
    ];
    desk.effects(sessions.iter().cloned().map(Effect::MakeSession))
        .await
        .unwrap();
    let store = &desk.store;
    let place = SessionMove {
        session: ids[2],
        machine: machine(3),
        host: Some("host-3".to_owned()),
        directory: "/srv/app".to_owned(),
    };
    let unknown = SessionMove {
        session: desk.ids.session(),
        ..place.clone()
    };

    let before = store.sessions_in("/srv/app").await.unwrap();
    desk.effects([Effect::MoveSession(place)]).await.unwrap();
    let refused = desk.effects([Effect::MoveSession(unknown)]).await;

    assert_eq!(before, sessions[..2]);
    let moved = SessionRecord {
        directory: "/srv/app".to_owned(),
        ..record(ids[2], "", 3)
    };
    let after = store.sessions_in("/srv/app").await.unwrap();
    assert_eq!(after, [&sessions[..2], &[moved]].concat());
    assert!(
        matches!(refused, Err(CommitError::BadBatch(_))),
        "{refused:?}"
    );
}

/// Rows and messages keep the person who caused them; search finds rows by person.
pub(super) async fn rows_and_mail_keep_their_authors(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let agent = holder.agent;
    let by = |text, author| user(text).into_row(agent, at(2)).by(author);
    let (ann, ben) = (Some(person("ann")), Some(person("Ben O'Hara")));
    let store = &desk.store;

    holder
        .commit(vec![by("first words", ann.clone())], Vec::new())
        .await
        .unwrap();
    holder
        .commit(
            vec![by("second words", ben.clone()), by("third words", None)],
            Vec::new(),
        )
        .await
        .unwrap();
    let send = |author, origin, from| {
        Effect::Mail(MailEffect::Send {
            mail: desk.ids.mail(),
            to: agent,
            origin,
            from,
            author,
            about: MailTopic::Message,
            text: "hello".to_owned(),
            at: at(3),
        })
    };
    desk.effects([
        send(ben.clone(), MailOrigin::User, None),
        send(None, MailOrigin::Agent, Some(agent)),
    ])
    .await
    .unwrap();
    let forged = desk
        .effects([send(ann.clone(), MailOrigin::Agent, Some(agent))])
        .await;

    let authors = |rows: Vec<ikigai_core::Row>| {
        let authors = rows.into_iter().map(|row| row.author);
        authors.collect::<Vec<_>>()
    };
    let all = [ann.clone(), ben.clone(), None];
    assert_eq!(authors(desk.rows(agent).await), all);
    let mail = store.mail(agent).await.unwrap();
    let mail: Vec<_> = mail.into_iter().map(|mail| mail.author).collect();
    assert_eq!(mail, [ben.clone(), None]);
    assert!(
        matches!(forged, Err(CommitError::BadBatch(_))),
        "{forged:?}"
    );
    for (author, rows) in [
        (ann, vec![1]),
        (ben, vec![2]),
        (Some(person("ANN")), vec![]),
    ] {
        let query = SearchQuery {
            words: Words::parse("words"),
            author: author.clone(),
            limit: 10,
            ..SearchQuery::default()
        };
        let hits = store.search(query).await.unwrap().hits;
        assert!(hits.iter().all(|hit| hit.author == author), "{hits:?}");
        let found: Vec<_> = hits.iter().map(|hit| hit.at.seq.0).collect();
        assert_eq!(found, rows, "{author:?}");
    }
}
