//! After a commit whose answer was lost: was it stored? It is looked at, never written again.

use super::connect::Link;
use super::facts::WITNESS;
use super::values::{Failure, get};

/// What became of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All of it is stored.
    Stored,
    /// Nothing of it is stored, nor will it appear later.
    Absent,
}

/// Finds out what became of this process's transaction of that number.
///
/// The next number is drawn. That waits for a transaction which is still on its way, and counts on
/// from the one that was lost only if it was stored. The number is given back: an answer to this
/// may be lost too, and whoever looks again must see the same.
pub(super) async fn outcome(link: &Link, process: &str, witness: i64) -> Result<Outcome, Failure> {
    link.say("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
    let next: i64 = link.only(WITNESS, &[&process], |row| get(row, 0)).await?;
    link.say("ROLLBACK").await?;
    Ok(if next > witness {
        Outcome::Stored
    } else {
        Outcome::Absent
    })
}
