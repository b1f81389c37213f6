//! Lookup of the outcome of a commit whose reply was lost. It is read, never written again.

use super::connect::Link;
use super::facts::WITNESS;
use super::values::{QueryFailure, get};
use crate::batch::CommitOutcome;

/// Reads the outcome of this process's transaction with that witness.
///
/// It draws the next witness, which waits for a transaction in flight, and continues from the lost
/// one only if that was stored. The witness is rolled back, so that a repeated lookup sees the
/// same.
pub(super) async fn read_outcome(
    link: &Link,
    process: &str,
    witness: i64,
) -> Result<CommitOutcome, QueryFailure> {
    link.command("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
    let next: i64 = link.only(WITNESS, &[&process], |row| get(row, 0)).await?;
    link.command("ROLLBACK").await?;
    Ok(if next > witness {
        CommitOutcome::Stored
    } else {
        CommitOutcome::Absent
    })
}
