//! Calls of one answer run in parallel, in sequence if they conflict.

use std::path::PathBuf;
use std::time::Duration;

use ikigai_core::settings::Approve;
use ikigai_testkit::cases;
use ikigai_tools::Touches;
use proptest::prelude::*;
use tokio::time::Instant;

use crate::fakes::{FakeCall, Moment, calling};
use crate::support::{World, say};

/// Maximum number of parallel calls.
const MOST: usize = 8;

/// Call of a schedule.
#[derive(Clone, Debug)]
struct Planned {
    tool: &'static str,
    touched: Touched,
    seconds: u64,
}

#[derive(Clone, Debug)]
enum Touched {
    Reads(Vec<&'static str>),
    Writes(Vec<&'static str>),
    Anything,
}

impl Planned {
    fn fake(&self, index: usize) -> FakeCall {
        let fake =
            FakeCall::new(self.tool, &index.to_string()).taking(Duration::from_secs(self.seconds));
        match &self.touched {
            Touched::Reads(paths) => fake.reading(paths),
            Touched::Writes(paths) => fake.writing(paths),
            Touched::Anything => fake.anywhere(),
        }
    }

    fn touches(&self) -> Touches {
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        match &self.touched {
            Touched::Reads(read) => Touches::reading(paths(read)),
            Touched::Writes(written) => Touches::writing(paths(written)),
            Touched::Anything => Touches::everything(),
        }
    }
}

fn plans() -> impl Strategy<Value = Vec<Planned>> {
    let paths =
        proptest::sample::subsequence(vec!["src", "src/lib.rs", "src/a/b", "docs", "x"], 1..3);
    let touched = prop_oneof![
        4 => paths.clone().prop_map(Touched::Reads),
        4 => paths.prop_map(Touched::Writes),
        1 => Just(Touched::Anything),
    ];
    let tool = prop_oneof![Just("look"), Just("change"), Just("act")];
    let planned = (tool, touched, 0..20_u64).prop_map(|(tool, touched, seconds)| Planned {
        tool,
        touched,
        seconds,
    });
    proptest::collection::vec(planned, 1..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(64, 2000)))]

    /// Conflicting calls run in call order without overlap. A call without an unfinished
    /// conflicting predecessor runs at once unless eight run already.
    #[test]
    fn prop_calls_that_conflict_run_in_order_and_others_side_by_side(plans in plans()) {
        let moments = moments_of(&plans);

        let touches: Vec<_> = plans.iter().map(Planned::touches).collect();
        let mut running: Vec<usize> = Vec::new();
        let mut ended: Vec<usize> = Vec::new();
        let mut last = None;
        for (at, moment) in &moments {
            if last.replace(*at).is_some_and(|last| last != *at) && running.len() < MOST {
                // Time passed, so every call that could run was running.
                let is_free = |index: &usize| {
                    !running.contains(index)
                        && !ended.contains(index)
                        && (0..*index).all(|earlier| {
                            ended.contains(&earlier)
                                || !touches[earlier].conflicts_with(&touches[*index])
                        })
                };
                let idle = (0..plans.len()).find(is_free);
                prop_assert_eq!(idle, None, "it waits for nothing");
            }
            match moment {
                Moment::Began(label) => {
                    let began: usize = label.parse().unwrap();
                    for other in &running {
                        let conflict = touches[*other].conflicts_with(&touches[began]);
                        prop_assert!(!conflict, "{other} and {began} overlap");
                    }
                    for earlier in 0..began {
                        let conflict = touches[earlier].conflicts_with(&touches[began]);
                        prop_assert!(!conflict || ended.contains(&earlier), "{began} before {earlier}");
                    }
                    running.push(began);
                    prop_assert!(running.len() <= MOST, "{running:?} at once");
                }
                Moment::Ended(label) => {
                    let done: usize = label.parse().unwrap();
                    running.retain(|index| *index != done);
                    ended.push(done);
                }
                Moment::Stopped(label) => prop_assert!(false, "{label} was stopped"),
            }
        }
        prop_assert_eq!(ended.len(), plans.len());
    }
}

/// Lets a model make these calls; returns their events in order.
fn moments_of(plans: &[Planned]) -> Vec<(Instant, Moment)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let (world, call_log) = World::with_fakes();
        let mut worker = world.root().await;
        worker.approve_for_now(Approve::All).await.unwrap();
        let fakes: Vec<_> = plans
            .iter()
            .enumerate()
            .map(|(index, plan)| plan.fake(index))
            .collect();
        world.provider.will(calling(&fakes));
        world.provider.will_say("done");
        say(&mut worker, "go").await.unwrap();
        call_log.timed()
    })
}

/// Twenty independent calls run eight at a time.
#[test]
fn independent_calls_run_side_by_side_up_to_eight() {
    let plans: Vec<_> = (0..20)
        .map(|_| Planned {
            tool: "act",
            touched: Touched::Reads(vec!["src"]),
            seconds: 1,
        })
        .collect();

    let moments = moments_of(&plans);

    let mut most = 0;
    let mut running = 0;
    for (_, moment) in &moments {
        match moment {
            Moment::Began(_) => running += 1,
            Moment::Ended(_) | Moment::Stopped(_) => running -= 1,
        }
        most = most.max(running);
    }
    assert_eq!(most, MOST);
}
