//! Cost of the screen: start, memory, streams, `/fork`. Runs the built program in a pseudoterminal.
//!
//! `scripts/bench screen` runs all but sharing; the names below as arguments choose a part.
#![expect(clippy::unwrap_used, reason = "a bench that cannot measure fails")]

mod forks;
mod home;
mod sharing;
mod starts;
mod streams;

use std::path::Path;

use ikigai_testkit::stores;

type Part = (&'static str, fn(&Path));

/// Part that needs a PostgreSQL server, and runs only by name.
const ON_SERVER: &str = "sharing";

const PARTS: [Part; 5] = [
    ("starts", starts::starts),
    ("memory", starts::memory),
    ("streams", streams::streams),
    ("forks", forks::forks),
    (ON_SERVER, sharing::sharing),
];

fn main() {
    let home = tempfile::tempdir_in(stores::directory()).unwrap();
    let wanted: Vec<_> = std::env::args()
        .filter(|argument| PARTS.iter().any(|(name, _)| name == argument))
        .collect();
    for (name, measure) in PARTS {
        let is_default = wanted.is_empty() && name != ON_SERVER;
        if is_default || wanted.iter().any(|wanted| wanted == name) {
            measure(home.path());
        }
    }
}
