//! Comparing: what is compared takes turns in one run, so that all see the same machine.

use std::time::Duration;

/// One of several things that are measured in turns.
pub struct Case<'a> {
    /// What the table calls it.
    pub name: String,
    /// Does it once and says how long it took.
    pub once: Box<dyn FnMut() -> Duration + 'a>,
}

impl<'a> Case<'a> {
    /// Something to measure.
    pub fn new(name: &impl ToString, once: impl FnMut() -> Duration + 'a) -> Self {
        Self {
            name: name.to_string(),
            once: Box::new(once),
        }
    }
}

/// The medians of what was measured, by name.
pub struct Medians(Vec<(String, Duration)>);

/// Measures each case once a round, each round beginning with another one. The first tenth of the
/// rounds warms up and is not counted.
pub fn rounds(count: usize, mut cases: Vec<Case<'_>>) -> Medians {
    let warming = count / 10 + 1;
    let mut times = vec![Vec::with_capacity(count); cases.len()];
    for round in 0..warming + count {
        for turn in 0..cases.len() {
            let index = (round + turn) % cases.len();
            let took = (cases[index].once)();
            if round >= warming {
                times[index].push(took);
            }
        }
    }
    let medians = cases.iter().zip(times).map(|(case, mut times)| {
        times.sort_unstable();
        (case.name.clone(), times[times.len() / 2])
    });
    Medians(medians.collect())
}

impl Medians {
    /// The median of a case.
    pub fn of(&self, name: &impl ToString) -> Duration {
        let name = name.to_string();
        let found = self.0.iter().find(|(other, _)| *other == name);
        found.map(|(_, median)| *median).unwrap()
    }

    /// How many times as long one case takes as another.
    pub fn ratio(&self, one: &impl ToString, other: &impl ToString) -> f64 {
        self.of(one).as_secs_f64() / self.of(other).as_secs_f64()
    }

    /// Prints all medians as a table.
    #[expect(clippy::print_stdout, reason = "it is what a bench is run for")]
    pub fn print(&self, title: &str) {
        let cells = |cell: &dyn Fn(&(String, Duration)) -> String| {
            self.0.iter().map(cell).collect::<Vec<_>>().join(" | ")
        };
        println!("\n| {title} | {} |", cells(&|(name, _)| name.clone()));
        println!("|---|{}", "---:|".repeat(self.0.len()));
        println!("| median, µs | {} |", cells(&|(_, it)| in_micros(*it)));
    }
}

fn in_micros(time: Duration) -> String {
    format!("{:.0}", time.as_secs_f64() * 1e6)
}

/// Prints a figure beside its target, and whether it is met.
#[expect(clippy::print_stdout, reason = "it is what a bench is run for")]
pub fn judge(what: &str, figure: f64, most: f64, unit: &str) {
    let verdict = if figure <= most { "PASS" } else { "over" };
    println!("{verdict}  {what}: {figure:.2}{unit}, at most {most}{unit}");
}
