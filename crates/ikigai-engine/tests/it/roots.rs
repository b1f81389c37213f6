//! Making and finding agents.

use ikigai_engine::EngineError;

use crate::support::{HERE, World, say};

/// S3-10: a root agent's first rows, the system prompt and the starting settings, are its own.
#[tokio::test(start_paused = true)]
async fn root_agent_first_rows_are_its_own() {
    let world = World::new();

    let worker = world.root().await;

    let id = worker.agent().state.agent();
    let rows = world.rows(id).await;
    let kinds: Vec<_> = rows.iter().map(|row| row.kind.name()).collect();
    assert_eq!(kinds, ["system", "command"]);
    assert!(rows.iter().all(|row| row.at.agent == id));
    let settings = worker.agent().state.settings();
    assert_eq!(settings.name.as_deref(), Some("parser"));
    assert_eq!(settings.workdir.as_deref(), Some(HERE));
    assert_eq!(worker.agent().state.system_row(), Some(rows[0].at));
}

#[tokio::test(start_paused = true)]
async fn roots_of_one_directory_share_a_session_and_have_names_of_their_own() {
    let world = World::new();
    let one = world.root().await;

    let other = world.root().await;

    assert_eq!(
        other.agent().state.settings().name.as_deref(),
        Some("parser-2")
    );
    assert_eq!(world.engine.sessions().await.unwrap().len(), 1);
    assert_eq!(world.latest().await.id, other.agent().state.agent());
    assert_ne!(one.agent().state.agent(), other.agent().state.agent());
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_found_by_name_id_and_unique_prefix() {
    let world = World::new();
    let id = world.root().await.agent().state.agent();
    let text = id.to_string();

    for name in ["parser", text.as_str(), &text[..4]] {
        assert_eq!(world.engine.find(name).await.unwrap().id, id, "{name}");
    }
    for name in ["parse", &text[..3], "", "none"] {
        let found = world.engine.find(name).await;
        assert!(matches!(found, Err(EngineError::NoSuchAgent(_))), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_blank_message_is_refused_and_leaves_no_row() {
    let world = World::new();
    let mut worker = world.root().await;
    let before = world.kinds(worker.agent().state.agent()).await;

    let refused = say(&mut worker, " \n\t").await;

    assert!(matches!(refused, Err(EngineError::EmptyMessage)));
    assert_eq!(world.kinds(worker.agent().state.agent()).await, before);
}
