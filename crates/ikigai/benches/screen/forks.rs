//! Time from Enter after `/fork` to the child's prompt.

use std::path::Path;
use std::time::{Duration, Instant};

use ikigai_testkit::stores::rounds::{Case, judge, rounds};

use crate::home::{Home, wait_for_end};

/// Forks that are measured.
const FORKS: usize = 20;

/// Longest time to the child, in milliseconds.
const BUDGET: f64 = 15.0;

pub(crate) fn forks(under: &Path) {
    let home = Home::new(under, "forks");
    let figures = rounds(FORKS, vec![Case::new(&"/fork", || fork(&home))]);
    figures.print("Enter to the child's prompt");
    let median = figures.median(&"/fork").as_secs_f64() * 1e3;
    judge("/fork, Enter to the child's prompt", median, BUDGET, " ms");
}

fn fork(home: &Home) -> Duration {
    let mut pty = home.show(&["--new"]);
    pty.wait_for_text("❯");
    pty.send("hello\r");
    wait_for_end(&mut pty);
    pty.send("/fork");
    pty.wait_for_text("❯ /fork");
    // Waits for work that the turn left.
    pty.listen(Duration::from_millis(300));
    let begun = Instant::now();
    pty.send("\r");
    pty.wait_for("the child's prompt", |screen| {
        let contents = screen.contents();
        contents.contains("─ ↑") && !contents.contains("❯ /fork")
    });
    let took = begun.elapsed();
    pty.send("\x04");
    pty.wait_end();
    took
}
