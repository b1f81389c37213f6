//! Comparison of cases that take turns in one run, under the same conditions.

use std::time::Duration;

/// One of several cases that are measured in turns.
pub struct Case<'a> {
    /// Name in the table.
    pub name: String,
    /// Runs it once; returns the duration.
    pub once: Box<dyn FnMut() -> Duration + 'a>,
}

impl<'a> Case<'a> {
    /// Makes a case.
    pub fn new(name: &impl ToString, once: impl FnMut() -> Duration + 'a) -> Self {
        Self {
            name: name.to_string(),
            once: Box::new(once),
        }
    }
}

/// Measurements.
pub struct Figures(Vec<Measured>);

struct Measured {
    name: String,
    median: Duration,
    /// Lowest decile: the cost without interference.
    low: Duration,
}

/// Measures each case once a round, starting each round with another one.
///
/// The first tenth of the rounds warms up and is not counted.
pub fn rounds(count: usize, mut cases: Vec<Case<'_>>) -> Figures {
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
    let measured = cases.iter().zip(times).map(|(case, mut times)| {
        times.sort_unstable();
        Measured {
            name: case.name.clone(),
            median: times[times.len() / 2],
            low: times[times.len() / 10],
        }
    });
    Figures(measured.collect())
}

impl Figures {
    fn of(&self, name: &impl ToString) -> &Measured {
        let name = name.to_string();
        self.0.iter().find(|it| it.name == name).unwrap()
    }

    /// Returns the median of a case.
    pub fn median(&self, name: &impl ToString) -> Duration {
        self.of(name).median
    }

    /// Returns the ratio of the medians of two cases.
    pub fn ratio(&self, one: &impl ToString, other: &impl ToString) -> f64 {
        self.of(one).median.as_secs_f64() / self.of(other).median.as_secs_f64()
    }

    /// Prints all figures as a table.
    #[expect(clippy::print_stdout, reason = "it is what a bench is run for")]
    pub fn print(&self, title: &str) {
        let cells = |cell: &dyn Fn(&Measured) -> String| {
            self.0.iter().map(cell).collect::<Vec<_>>().join(" | ")
        };
        println!("\n| {title} | {} |", cells(&|it| it.name.clone()));
        println!("|---|{}", "---:|".repeat(self.0.len()));
        println!("| median, µs | {} |", cells(&|it| in_micros(it.median)));
        println!("| fastest tenth, µs | {} |", cells(&|it| in_micros(it.low)));
    }

    /// Prints the ratio of two cases with its target, and if the medians meet it.
    pub fn judge(&self, what: &str, one: &impl ToString, other: &impl ToString, most: f64) {
        let low = self.of(one).low.as_secs_f64() / self.of(other).low.as_secs_f64();
        let (one_name, other_name) = (one.to_string(), other.to_string());
        let what = format!("{what}, {one_name} / {other_name} (fastest tenth {low:.2}×)");
        judge(&what, self.ratio(one, other), most, "×");
    }
}

fn in_micros(time: Duration) -> String {
    format!("{:.0}", time.as_secs_f64() * 1e6)
}

/// Prints a figure with its target, and if it is met.
#[expect(clippy::print_stdout, reason = "it is what a bench is run for")]
pub fn judge(what: &str, figure: f64, most: f64, unit: &str) {
    let verdict = if figure <= most { "PASS" } else { "over" };
    println!("{verdict}  {what}: {figure:.2}{unit}, at most {most}{unit}");
}
