//! Coverage of the history generator.

use ikigai_testkit::cases;
use ikigai_testkit::generate::{Counts, History, actions};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

/// A whole run generates enough of each rare case.
#[test]
fn the_generator_makes_enough_of_what_is_rare() {
    let mut runner = TestRunner::deterministic();
    let lists = actions(30);
    let mut counts = Counts::default();

    for _ in 0..cases(500, 20_000) {
        let list = lists.new_tree(&mut runner).unwrap().current();
        counts.add(&History::of(&list).counts);
    }

    assert_eq!(counts.check(), Ok(()), "{counts:#?}");
}
