//! The generator makes what the properties are worth something for.

use ikigai_testkit::cases;
use ikigai_testkit::generate::{Counts, History, actions};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

/// Over a whole run there is enough of everything that is rare and breaks things.
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
