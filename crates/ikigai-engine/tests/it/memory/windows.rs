//! Windows of models: corrected by refusals, and stated by servers.

use super::*;

/// A request refused as too long is sent once more, shorter; the corrected window stays.
#[tokio::test(start_paused = true)]
async fn an_overflow_corrects_the_window_and_the_turn_goes_on() {
    let world = world(100_000);
    let mut worker = world.root().await;
    for turn in 0..6 {
        world
            .provider
            .will_say(&format!("answer {turn} {}", "word ".repeat(1_600)));
        say(&mut worker, &format!("question {turn}")).await.unwrap();
    }
    let message = "maximum context length is 10000 tokens, you requested 12,900".to_owned();
    world.provider.will([Step::Overflow(message, Some(10_000))]);
    // The conversation does not fit the corrected window: it is summarised in chunks.
    for _ in 0..8 {
        world.provider.will_summarise_as("They talked about words.");
    }
    world.provider.will_say("still here");

    let outcome = say(&mut worker, "go on").await.unwrap();

    assert_eq!(outcome, Outcome::Completed);
    let last = world.provider.requests().pop().unwrap();
    assert!(
        estimate_request(&last) <= 8_500,
        "{}",
        estimate_request(&last)
    );
    assert!(texts(&last).contains(&"question 0"));
    let window = world
        .engine
        .context(worker.agent().state.agent())
        .await
        .unwrap()
        .window;
    assert_eq!(window, 8_500);
}

/// A refusal without a number lowers the window below the refused size. It stays above half of that
/// size.
#[tokio::test(start_paused = true)]
async fn an_overflow_without_a_number_corrects_the_window_by_what_was_sent() {
    let world = world(100_000);
    let mut worker = world.root().await;
    for turn in 0..6 {
        world
            .provider
            .will_say(&format!("answer {turn} {}", "word ".repeat(1_600)));
        say(&mut worker, &format!("question {turn}")).await.unwrap();
    }
    let message = "request 20251116 of model-20241022 is too long".to_owned();
    world.provider.will([Step::Overflow(message, None)]);
    for _ in 0..8 {
        world.provider.will_summarise_as("They talked about words.");
    }
    world.provider.will_say("still here");

    let outcome = say(&mut worker, "go on").await.unwrap();

    assert_eq!(outcome, Outcome::Completed);
    let requests = world.provider.requests();
    let refused = &requests[6];
    let context = world.engine.context(worker.agent().state.agent()).await;
    let context = context.unwrap();
    assert!(context.window < estimate_request(refused), "{context:?}");
    assert!(
        context.window > estimate_request(refused) / 2,
        "{context:?}"
    );
    assert_eq!(context.source, WindowSource::Refusal);
}

/// A window stated by the server is used even above the refused request's estimate. The server
/// counts more tokens than estimated, so the retry is shorter.
#[tokio::test(start_paused = true)]
async fn a_stated_window_is_kept_where_estimates_are_too_low() {
    let world = world(100_000);
    let mut worker = world.root().await;
    for turn in 0..6 {
        world
            .provider
            .will_say(&format!("answer {turn} {}", "word ".repeat(1_600)));
        say(&mut worker, &format!("question {turn}")).await.unwrap();
    }
    let message = "exceeds the available context size (40000 tokens)".to_owned();
    world.provider.will([Step::Overflow(message, Some(40_000))]);
    for _ in 0..8 {
        world.provider.will_summarise_as("They talked about words.");
    }
    world.provider.will_say("still here");

    let outcome = say(&mut worker, "go on").await.unwrap();

    assert_eq!(outcome, Outcome::Completed);
    let requests = world.provider.requests();
    let (refused, last) = (&requests[6], requests.last().unwrap());
    assert!(estimate_request(last) < estimate_request(refused));
    let context = world.engine.context(worker.agent().state.agent()).await;
    assert_eq!(context.unwrap().window, 34_000);
}

/// The engine asks an unknown model's server for its window before the first request. Every request
/// stays within it.
#[tokio::test(start_paused = true)]
async fn an_unknown_model_gets_the_window_that_its_server_states() {
    let world = world(1_000_000);
    world.provider.will_state_window(9_000);
    let mut worker = world.root().await;
    assert_eq!(
        world.provider.window_lookups(),
        0,
        "nothing is asked at start"
    );

    for turn in 0..12 {
        let answer = format!("answer {turn} {}", "word ".repeat(1_600));
        world.provider.will_say(&answer);
        world.provider.will_summarise_as("They talked about words.");
        world.provider.will_summarise_as("They talked about words.");
        let outcome = say(&mut worker, &format!("question {turn}")).await;
        assert_eq!(outcome.unwrap(), Outcome::Completed);
    }

    let requests = world.provider.requests();
    for request in &requests {
        let size = estimate_request(request);
        assert!(size <= 9_000, "{size} of {} requests", requests.len());
    }
    let context = world.engine.context(worker.agent().state.agent()).await;
    let context = context.unwrap();
    assert_eq!(
        (context.window, context.source),
        (9_000, WindowSource::Served)
    );
}

/// A first message over the server's window is refused before anything is stored.
#[tokio::test(start_paused = true)]
async fn a_long_first_message_is_judged_by_the_window_that_the_server_states() {
    let world = world(1_000_000);
    world.provider.will_state_window(9_000);
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    let rows = world.rows(id).await.len();

    let refused = say(&mut worker, &"many words ".repeat(2_000)).await;

    let error = refused.unwrap_err().to_string();
    assert!(error.contains("at most 4.5k"), "{error}");
    assert_eq!(world.rows(id).await.len(), rows);
    assert_eq!(world.provider.requests().len(), 0);
}
