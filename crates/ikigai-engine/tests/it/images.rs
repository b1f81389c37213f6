//! Images of messages and results: stored once, sent with their bytes, sent again after a restart.

use std::sync::Arc;

use ikigai_core::message::Image;
use ikigai_core::settings::Approve;
use ikigai_core::{AgentId, Request};
use ikigai_engine::{Outcome, Safety, Tools, UiEvent, Worker};
use ikigai_testkit::Step;
use ikigai_tools::builtin;
use ikigai_tools::process::ChildEnvironment;
use serde_json::json;
use tempfile::TempDir;

use crate::fakes::call;
use crate::support::{TestJob, World, active_agents, say};

/// A PNG image of two pixels.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x00\x02\x00\x00\x00\x01\x08\x00\x00\
\x00\x00\xd1\x49\x20\x56\x00\x00\x00\x0bIDAT\x78\x9c\x63\x60\xf8\x0f\x00\x01\x02\x01\x00\x42\xbe\xbc\
\x68\x00\x00\x00\x00IEND\xae\x42\x60\x82";

fn equipped(world: World) -> World {
    let tools: Arc<dyn Tools> = Arc::new(builtin::all(ChildEnvironment::default()));
    world.equipped(move |engine| engine.with_tools(tools.clone(), Safety::default()))
}

/// Creates an agent in a directory with two images of the same bytes.
async fn agent_with_images(world: &World) -> (TempDir, Worker) {
    let directory = TempDir::new().unwrap();
    for name in ["shot.png", "other.png"] {
        std::fs::write(directory.path().join(name), PNG).unwrap();
    }
    let workdir = directory.path().to_str().unwrap();
    let mut worker = world.engine.create_root(workdir, workdir).await.unwrap();
    worker.approve_for_now(Approve::All).await.unwrap();
    (directory, worker)
}

/// Sends a message with an image; the model reads another.
async fn show_and_read(world: &World, worker: &mut Worker) -> Vec<UiEvent> {
    let read = call("file_read", &json!({"file_path": "other.png"}));
    world.provider.will([Step::FinishWith(vec![read])]);
    world.provider.will_say("two pixels");
    let said = TestJob::Say("what is @shot.png?");
    let (outcome, events) = active_agents(worker, said, |_| Vec::new()).await;
    assert_eq!(outcome.unwrap(), Outcome::Completed);
    events
}

fn newest(world: &World) -> Request {
    world.provider.requests().pop().unwrap()
}

/// Returns the images of a request, each with whether their bytes are there.
fn images_of(request: &Request) -> Vec<(&Image, bool)> {
    let images = request.shown_images();
    let images = images.map(|image| (image, request.images.get(image) == Some(PNG)));
    images.collect()
}

fn id_of(worker: &Worker) -> AgentId {
    worker.agent().state.agent()
}

#[tokio::test(start_paused = true)]
async fn images_are_sent_with_their_bytes_also_after_a_restart() {
    let world = equipped(World::new());
    let (_directory, mut worker) = agent_with_images(&world).await;

    let events = show_and_read(&world, &mut worker).await;

    let attached = "@shot.png · PNG, 2 × 1 pixels, 68 bytes";
    assert!(
        events.contains(&UiEvent::Notice(attached.to_owned())),
        "{events:#?}"
    );
    let request = newest(&world);
    let images = images_of(&request);
    assert_eq!(images.len(), 2);
    assert!(images.iter().all(|(_, has_bytes)| *has_bytes), "{images:?}");
    assert_eq!(images[0].0, images[1].0, "stored once");
    assert_eq!((images[0].0.width, images[0].0.height), (2, 1));
    let result = world.results(id_of(&worker)).await.pop().unwrap();
    assert_eq!(
        result.output,
        "[image other.png: PNG, 2 × 1 pixels, 68 bytes]\n"
    );

    let id = id_of(&worker).to_string();
    let restarted = world.restarted();
    let record = restarted.engine.find(&id).await.unwrap();
    let mut worker = restarted.engine.open(&record).await.unwrap();
    restarted.provider.will_say("still two");
    say(&mut worker, "and now?").await.unwrap();
    let again = newest(&restarted);
    assert_eq!(
        again.messages[..request.messages.len()],
        request.messages[..]
    );
    assert_eq!(again.images, request.images);
}

#[tokio::test(start_paused = true)]
async fn a_model_without_images_gets_none_and_the_user_is_informed() {
    let world = equipped(World::without_images());
    let (_directory, mut worker) = agent_with_images(&world).await;

    let events = show_and_read(&world, &mut worker).await;

    let notice =
        UiEvent::Notice("scripted does not take images: it gets a note instead".to_owned());
    let notices = events.iter().filter(|event| **event == notice);
    assert_eq!(notices.count(), 2);
    let request = newest(&world);
    assert!(images_of(&request).iter().all(|(_, has_bytes)| !has_bytes));
}

#[tokio::test(start_paused = true)]
async fn recall_shows_the_image_of_a_row_again() {
    let world = equipped(World::new());
    let (_directory, mut worker) = agent_with_images(&world).await;
    show_and_read(&world, &mut worker).await;
    let rows = world.rows(id_of(&worker)).await;
    let mut results = rows.iter().filter(|row| row.kind.name() == "tool_result");
    let row = results.next().unwrap().at;

    let recall = call("recall", &json!({"row": format!("#{}", row.seq)}));
    world.provider.will([Step::FinishWith(vec![recall])]);
    world.provider.will_say("I see");
    say(&mut worker, "look again").await.unwrap();

    assert_eq!(images_of(&newest(&world)).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn damaged_images_are_not_sent() {
    let world = equipped(World::new());
    let (directory, mut worker) = agent_with_images(&world).await;
    std::fs::write(directory.path().join("half.png"), &PNG[..40]).unwrap();

    let refused = say(&mut worker, "see @half.png")
        .await
        .unwrap_err()
        .to_string();

    assert!(
        refused.contains("half.png is a damaged PNG image"),
        "{refused}"
    );
    assert_eq!(world.provider.requests(), []);
}
