//! Token counts that providers report correct the estimates.

use ikigai_core::Request;
use ikigai_core::project::estimate_request;
use ikigai_core::settings::ModelChoice;

use crate::support::{World, attended_line, say};

const WINDOW: u64 = 20_000;

const TURNS: usize = 80;

/// Creates a world whose model counts `thousandths` per mille of the estimate.
fn world_that_counts(thousandths: u64) -> World {
    let world = World::with_window(WINDOW);
    world.provider.will_count(thousandths);
    world
}

/// Runs turns of about 600 estimated tokens each.
async fn talk(world: &World, worker: &mut ikigai_engine::Worker, turns: std::ops::Range<usize>) {
    let long = "word ".repeat(240);
    for turn in turns {
        world.provider.will_say(&format!("answer {turn} {long}"));
        say(worker, &format!("question {turn} {long}"))
            .await
            .unwrap();
    }
}

/// Returns the requests of one conversation and its number of cuts.
async fn conversation(thousandths: u64) -> (Vec<Request>, usize) {
    let world = world_that_counts(thousandths);
    let mut worker = world.root().await;
    talk(&world, &mut worker, 0..TURNS).await;
    let kinds = world.kinds(worker.agent().state.agent()).await;
    let cuts = kinds.iter().filter(|kind| *kind == "summary").count();
    (world.provider.requests(), cuts)
}

/// Requests fill the window by the provider's count, above or below the estimate. The window moves
/// only by cuts.
#[tokio::test(start_paused = true)]
async fn the_window_is_as_large_as_the_provider_counts() {
    let mut cuts_before = 0;
    for thousandths in [600, 1000, 1800] {
        let (requests, cuts) = conversation(thousandths).await;

        let counted = |request: &Request| estimate_request(request) * thousandths / 1000;
        let largest = requests.iter().map(counted).max().unwrap();
        assert!(largest <= WINDOW, "{thousandths}: {largest}");
        assert!(largest > WINDOW * 85 / 100, "{thousandths}: {largest}");
        let extends = |pair: &[Request]| pair[1].messages.starts_with(&pair[0].messages);
        let moved = requests.windows(2).filter(|pair| !extends(pair)).count();
        assert_eq!(moved, cuts, "{thousandths}");
        assert!(cuts > cuts_before, "{thousandths}: {cuts}");
        cuts_before = cuts;
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_changes_no_request() {
    for thousandths in [600, 1800] {
        let (whole, _) = conversation(thousandths).await;
        for pause in [10, 37, 60] {
            let world = world_that_counts(thousandths);
            let mut worker = world.root().await;
            talk(&world, &mut worker, 0..pause).await;
            let id = worker.agent().state.agent();
            let live = world.engine.next_request(id).await.unwrap();

            let restarted = world.restarted();
            let again = restarted.engine.next_request(id).await.unwrap();
            let mut worker = restarted
                .engine
                .open(&restarted.latest().await)
                .await
                .unwrap();
            talk(&restarted, &mut worker, pause..TURNS).await;

            assert_eq!(again, live);
            let requests = restarted.provider.requests();
            assert!(requests == whole, "{thousandths}, paused at {pause}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_request_is_told_by_the_same_measure() {
    let world = world_that_counts(600);
    let mut worker = world.root().await;
    talk(&world, &mut worker, 0..46).await;
    let id = worker.agent().state.agent();

    let next = world.engine.next_request(id).await.unwrap();
    talk(&world, &mut worker, 46..47).await;

    assert_eq!(next.messages.len(), 92, "more than the estimate allows");
    let requests = world.provider.requests();
    assert!(requests[46].messages.starts_with(&next.messages));
}

/// Old reports are ignored. A live view still has them, a restored one does not.
#[tokio::test(start_paused = true)]
async fn reports_from_long_ago_count_for_nobody() {
    let world = world_that_counts(3000);
    let mut worker = world.root().await;
    talk(&world, &mut worker, 0..2).await;
    // These counts are too low for a whole request, so only the earlier reports are valid.
    world.provider.will_count(1);
    for _ in 0..25 {
        world.provider.will_say("yes");
        say(&mut worker, "really?").await.unwrap();
    }
    let id = worker.agent().state.agent();

    talk(&world, &mut worker, 2..20).await;

    assert!(!world.kinds(id).await.iter().any(|kind| kind == "summary"));
}

/// Counts of one model do not correct the estimates of another.
#[tokio::test(start_paused = true)]
async fn a_report_counts_for_its_own_model_only() {
    let world = world_that_counts(3000);
    let mut worker = world.root().await;
    talk(&world, &mut worker, 0..7).await;
    let id = worker.agent().state.agent();
    let other = ModelChoice {
        provider: Some("scripted".to_owned()),
        model: Some("another".to_owned()),
        level: None,
    };

    worker.choose_model(other).await.unwrap();
    world.provider.will_say("fine");
    say(&mut worker, &"word ".repeat(2400)).await.unwrap();

    assert!(!world.kinds(id).await.iter().any(|kind| kind == "summary"));
}

/// The estimate for a status line reads few rows, down to the provider's newest count.
#[tokio::test(start_paused = true)]
async fn the_share_of_a_large_window_is_estimated_from_few_rows() {
    let world = World::with_window(2_000_000);
    world.provider.will_count(1_000);
    let mut worker = world.root().await;
    for turn in 0..150 {
        world
            .provider
            .will_say(&format!("answer {turn}: {}", "words ".repeat(50)));
        say(&mut worker, "a question").await.unwrap();
    }
    let agent = worker.agent().state.agent();
    let exact = world.engine.context(agent).await.unwrap();
    let exact_tokens = exact.fixed_tokens() + exact.total_tokens();
    let before = world.store.rows_read();

    let estimate = world.engine.estimate_context(agent).await.unwrap();

    let read = world.store.rows_read() - before;
    assert!(read < 100, "{read} rows");
    assert_eq!(estimate.budget, exact.budget);
    let difference = estimate.used.abs_diff(exact_tokens);
    assert!(
        difference * 20 < exact_tokens,
        "{} estimated, {exact_tokens} counted",
        estimate.used
    );
}

/// After a summary or `/clear` no reported count applies, so the estimate counts all.
#[tokio::test(start_paused = true)]
async fn a_window_that_was_cleared_or_summarised_is_counted_exactly() {
    for line in ["/clear", "/compact"] {
        let world = World::with_window(2_000_000);
        world.provider.will_count(1_000);
        let mut worker = world.root().await;
        for _ in 0..40 {
            world.provider.will_say(&"words ".repeat(100));
            say(&mut worker, "a question").await.unwrap();
        }
        let agent = worker.agent().state.agent();
        world.provider.will_say("A summary.");
        attended_line(&mut worker, line, |_| Vec::new()).await;

        let estimate = world.engine.estimate_context(agent).await.unwrap();

        let exact = world.engine.context(agent).await.unwrap();
        let exact_tokens = exact.fixed_tokens() + exact.total_tokens();
        assert_eq!(estimate.used, exact_tokens, "{line}");
    }
}
