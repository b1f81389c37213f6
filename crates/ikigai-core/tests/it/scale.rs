//! How reports of providers correct estimates.

use ikigai_core::data::{Amounts, UsageData};
use ikigai_core::project::{SCALE_ROWS, Scale, estimate_request};
use ikigai_core::{Budget, Event};
use ikigai_store::Agent;
use ikigai_testkit::{TestLog, block_on, target};

const BUDGET: Budget = Budget {
    window: 100_000,
    cap: 50_000,
};

/// What a model counted, cached tokens included, where so many were estimated.
fn report(model: &str, estimate: Option<u64>, counted: u64) -> Event {
    let amounts = Amounts {
        input: Some(counted / 2),
        cache_read: Some(counted / 4),
        cache_write: Some(counted - counted / 2 - counted / 4),
        output: Some(1_000_000),
        ..Amounts::default()
    };
    Event::Usage(UsageData {
        response: Some(1),
        provider: Some("p".to_owned()),
        model: Some(model.to_owned()),
        amounts,
        estimate,
        ..UsageData::default()
    })
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
    Scale::of(&agent.view, &target("p", "m"), first)
}

#[test]
fn the_newest_report_of_the_model_corrects_the_estimate() {
    let plain = Scale::default();
    let marks = |number: usize| std::iter::repeat_n(Event::mark(None), number);
    let cases = [
        ("none", vec![], 1000),
        ("more", vec![report("m", Some(9_000), 14_000)], 1500),
        ("less", vec![report("m", Some(9_000), 6_000)], 700),
        (
            "the newest",
            vec![
                report("m", Some(9_000), 14_000),
                report("m", Some(9_000), 10_000),
            ],
            1100,
        ),
        (
            "another model's",
            vec![
                report("m", Some(9_000), 14_000),
                report("n", Some(9_000), 6_000),
            ],
            1500,
        ),
        ("a short one", vec![report("m", Some(10), 110)], 1099),
        (
            "far too much",
            vec![report("m", Some(9_000), 900_000)],
            3000,
        ),
        (
            "only a part",
            vec![
                report("m", Some(9_000), 14_000),
                report("m", Some(90_000), 2_000),
            ],
            1500,
        ),
        ("nothing", vec![report("m", Some(1), 0)], 1000),
        ("without an estimate", vec![report("m", None, 9_000)], 1000),
        (
            "far back",
            std::iter::once(report("m", Some(9_000), 14_000))
                .chain(marks(SCALE_ROWS))
                .collect(),
            1000,
        ),
        (
            "just near enough",
            std::iter::once(report("m", Some(9_000), 14_000))
                .chain(marks(SCALE_ROWS - 1))
                .collect(),
            1500,
        ),
    ];

    for (name, events, thousandths) in cases {
        let scale = scale_after(events, plain);
        assert_eq!(scale, Scale::thousandths(thousandths), "{name}");
    }
}

#[test]
fn what_is_known_of_a_dialect_counts_until_something_is_reported() {
    let first = Scale::thousandths(1150);

    assert_eq!(scale_after(vec![], first), first);
    let reported = vec![report("m", Some(99_000), 98_850)];
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
