//! After a commit that failed: was it stored? It is read, never written again.

use ikigai_core::ProcessId;
use rusqlite::{Connection, ErrorCode, Result, TransactionBehavior};

use super::connect::Target;
use super::errors::Cause;
use super::queries;
use super::writer::Applied;
use crate::batch::is_same_row;

/// What became of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All of it is stored.
    Stored,
    /// Nothing of it is stored, nor will it appear later.
    Absent,
}

/// Leaves a trace of a transaction without rows, so that it can be recognised: a number that this
/// process has not used before.
pub(super) fn put_witness(connection: &Connection, process: ProcessId) -> Result<i64> {
    connection
        .prepare_cached(
            "INSERT INTO witnesses (process, number) VALUES (?1, 1)
             ON CONFLICT (process) DO UPDATE SET number = number + 1
             RETURNING number",
        )?
        .query_row([process.to_string()], |row| row.get(0))
}

/// Reads on a fresh connection what became of the transaction of `applied`.
///
/// Its frames may lie in the log although they were refused, and would come to life when the log
/// is next recovered. So before anybody is told, another commit is put in their place. `witness` is
/// that of a transaction without rows.
pub(super) fn outcome(
    target: &Target,
    process: ProcessId,
    applied: &[Applied],
    witness: Option<i64>,
    cause: &Cause,
) -> Result<(Outcome, Connection)> {
    let mut connection = target.connect()?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let outcome = if stands(&transaction, process, applied, witness)? {
        Outcome::Stored
    } else {
        Outcome::Absent
    };
    // Without room the frame that ends a transaction was never written whole, and there is no room
    // for another one either.
    if outcome == Outcome::Absent && cause.sqlite_error_code() == Some(ErrorCode::DiskFull) {
        drop(transaction);
        return Ok((outcome, connection));
    }
    put_witness(&transaction, process)?;
    transaction.commit()?;
    if outcome == Outcome::Stored {
        // What is read may never have reached the disk; moving it into the database writes it anew.
        connection.query_row("PRAGMA wal_checkpoint(FULL)", [], |_| Ok(()))?;
    }
    Ok((outcome, connection))
}

/// Says whether the transaction is there. It was all or nothing, so one witness is enough; all
/// rows are compared, because somebody else's may stand in the same place.
fn stands(
    connection: &Connection,
    process: ProcessId,
    applied: &[Applied],
    witness: Option<i64>,
) -> Result<bool> {
    if witness.is_some() {
        return Ok(queries::witness(connection, process)? == witness);
    }
    let rows = applied
        .iter()
        .flat_map(|it| it.done.rows.iter().zip(&it.job.batch.rows));
    for (at, written) in rows {
        let found = queries::stored_row(connection, *at)?;
        if !found.is_some_and(|found| is_same_row(&found, written)) {
            return Ok(false);
        }
    }
    Ok(true)
}
