//! Cost of the screen: start, memory, streams, `/fork`. Runs the built program in a pseudoterminal.
//!
//! `scripts/bench screen` runs all of it; the names below as arguments choose a part.
#![expect(clippy::unwrap_used, reason = "a bench that cannot measure fails")]

mod forks;
mod home;
mod starts;
mod streams;

use std::path::Path;

use ikigai_testkit::stores;

type Part = (&'static str, fn(&Path));

const PARTS: [Part; 4] = [
    ("starts", starts::starts),
    ("memory", starts::memory),
    ("streams", streams::streams),
    ("forks", forks::forks),
];

fn main() {
    let home = tempfile::tempdir_in(stores::directory()).unwrap();
    let wanted: Vec<_> = std::env::args()
        .filter(|argument| PARTS.iter().any(|(name, _)| name == argument))
        .collect();
    for (name, measure) in PARTS {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            measure(home.path());
        }
    }
}
