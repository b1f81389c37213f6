//! Correction of token estimates by the counts that providers report.

use ikigai_core::data::{Amounts, SummaryData, UsageData};
use ikigai_core::project::{SCALE_ROWS, Scale, estimate_request};
use ikigai_core::{Budget, Event, Settings};
use ikigai_store::Agent;
use ikigai_testkit::{TestLog, block_on, target};

const BUDGET: Budget = Budget {
    window: 100_000,
    cap: 50_000,
};

/// Returns a message with an estimate of `tokens`.
fn message(tokens: usize) -> Event {
    Event::user("a".repeat((tokens - 8) * 4))
}

/// Returns an answer with an estimate of `tokens`.
fn answer(response: u64, tokens: usize) -> Event {
    Event::assistant(response, "a".repeat((tokens - 8) * 4))
}

/// Returns a `usage` event with the model's input count, cached tokens included.
fn report(model: &str, response: u64, counted: u64) -> Event {
    let amounts = Amounts {
        input: Some(counted / 2),
        cache_read: Some(counted / 4),
        cache_write: Some(counted - counted / 2 - counted / 4),
        output: Some(1_000_000),
        ..Amounts::default()
    };
    Event::Usage(UsageData {
        response: Some(response),
        provider: Some("p".to_owned()),
        model: Some(model.to_owned()),
        amounts,
        ..UsageData::default()
    })
}

/// Returns a turn: a message, an answer and the reported usage.
fn turn(response: u64, tokens: usize, model: &str, counted: u64) -> Vec<Event> {
    vec![
        message(tokens),
        answer(response, 1000),
        report(model, response, counted),
    ]
}

fn scale_after(events: Vec<Event>, first: Scale) -> Scale {
    let mut log = TestLog::default();
    let agent = log.root();
    for event in events {
        log.append(agent, event);
    }
    let agent = block_on(async {
        let mut agent = Agent::restore(&log.store, agent).await.unwrap();
        agent.read_all(&log.store).await.unwrap();
        agent
    });
    Scale::of(&agent.state, &agent.view, &target("p", "m"), first)
}

/// Returns a context row, after which requests have other contents.
fn context_row() -> Event {
    let data = SummaryData::default();
    Event::Summary { text: None, data }
}

/// Returns a context row that has the scale of a model.
fn scaled_row(model: &str, thousandths: u64) -> Event {
    let first = Scale::default();
    let scale = Scale::thousandths(thousandths).stored(&target("p", model), first);
    let data = SummaryData {
        scale,
        ..SummaryData::default()
    };
    Event::Summary { text: None, data }
}

fn joined(turns: impl IntoIterator<Item = Vec<Event>>) -> Vec<Event> {
    turns.into_iter().flatten().collect()
}

#[test]
fn reports_of_the_model_correct_the_estimate() {
    let marks = |number: usize| std::iter::repeat_n(Event::mark(None), number).collect();
    // Enough rows that the beginning of the conversation is not read.
    let beginning = || joined([vec![message(100)], marks(SCALE_ROWS)]);
    let set = Settings {
        budget_tokens: Some(9),
        ..Settings::default()
    };
    let cases = [
        ("none", vec![], 1000),
        ("a whole conversation", turn(1, 9750, "m", 14_750), 1500),
        ("less", turn(1, 9750, "m", 6_750), 700),
        ("a short one", turn(1, 10, "m", 36), 1100),
        ("far too much", turn(1, 9000, "m", 900_000), 3000),
        ("only a part of it", turn(1, 9000, "m", 2_000), 1000),
        ("nothing", turn(1, 9000, "m", 0), 1000),
        ("another model's", turn(1, 9000, "n", 14_000), 1000),
        (
            "the difference of two",
            joined([
                beginning(),
                turn(1, 500, "m", 70_000),
                turn(2, 8750, "m", 84_750),
            ]),
            1500,
        ),
        (
            "one is no difference",
            joined([beginning(), turn(1, 9000, "m", 14_000)]),
            1000,
        ),
        (
            "another model's between two",
            joined([
                beginning(),
                turn(1, 500, "m", 70_000),
                turn(2, 3000, "n", 7_000),
                turn(3, 4750, "m", 84_750),
            ]),
            1500,
        ),
        (
            "requests that do not follow each other",
            joined([
                beginning(),
                turn(1, 500, "m", 70_000),
                vec![Event::set("budget", set.as_set())],
                turn(2, 8750, "m", 84_750),
            ]),
            1000,
        ),
        (
            "a context row after it",
            joined([turn(1, 9750, "m", 14_750), vec![context_row()]]),
            1500,
        ),
        (
            "one turn after a context row",
            joined([
                turn(1, 9750, "m", 14_750),
                vec![context_row()],
                turn(2, 500, "m", 3_000),
            ]),
            1500,
        ),
        (
            "another model's before a context row",
            joined([turn(1, 9750, "n", 14_750), vec![context_row()]]),
            1000,
        ),
        (
            "a context row that has the scale, far after it",
            joined([
                turn(1, 9750, "m", 14_750),
                marks(SCALE_ROWS),
                vec![scaled_row("m", 1500)],
                turn(2, 500, "m", 3_000),
            ]),
            1500,
        ),
        (
            "a context row that has another model's scale",
            joined([marks(SCALE_ROWS), vec![scaled_row("n", 1500)]]),
            1000,
        ),
        (
            "far back",
            joined([turn(1, 9000, "m", 14_000), marks(SCALE_ROWS)]),
            1000,
        ),
    ];

    for (name, events, thousandths) in cases {
        let scale = scale_after(events, Scale::default());
        assert_eq!(scale, Scale::thousandths(thousandths), "{name}");
    }
}

#[test]
fn what_is_known_of_a_dialect_counts_until_something_is_reported() {
    let first = Scale::thousandths(1150);

    assert_eq!(scale_after(vec![], first), first);
    let reported = turn(1, 99_750, "m", 99_713);
    assert_eq!(scale_after(reported, first), Scale::thousandths(1000));
}

#[test]
fn a_budget_shrinks_and_grows_with_the_scale() {
    let scaled = |thousandths| Scale::thousandths(thousandths).apply_to(BUDGET);

    assert_eq!(scaled(1000), BUDGET);
    assert_eq!(scaled(2000), Budget::new(50_000, Some(25_000)));
    assert_eq!(scaled(500), Budget::new(200_000, Some(100_000)));
    assert_eq!(scaled(0), scaled(500), "no scale is believed beyond this");
    let endless = Budget::new(u64::MAX, None);
    assert_eq!(Scale::thousandths(500).apply_to(endless), endless);
}

#[test]
fn a_request_is_estimated_by_all_that_it_holds() {
    let mut log = TestLog::default();
    let agent = log.root();
    log.append(agent, Event::user("a".repeat(400)));

    let request = log.assembled(agent, &target("p", "m"));

    let system = request.system.as_deref().map_or(0, str::len) as u64;
    assert_eq!(estimate_request(&request), system.div_ceil(4) + 100 + 8);
}
