//! Lookup of the outcome of a commit that failed. It is read, never written again.

use ikigai_core::ProcessId;
use rusqlite::{Connection, ErrorCode, Result, TransactionBehavior};

use super::connect::SqliteTarget;
use super::errors::SharedSqliteError;
use super::queries;
use super::writer::AppliedJob;
use crate::batch::{CommitOutcome, is_same_row};

/// Marks a transaction without rows by a number that this process has not used.
pub(super) fn put_witness(connection: &Connection, process: ProcessId) -> Result<i64> {
    connection
        .prepare_cached(
            "INSERT INTO witnesses (process, number) VALUES (?1, 1)
             ON CONFLICT (process) DO UPDATE SET number = number + 1
             RETURNING number",
        )?
        .query_row([process.to_string()], |row| row.get(0))
}

/// Reads the outcome of the transaction of `applied` on a fresh connection.
///
/// Its frames may lie in the log although they were refused, and would come to life with the next
/// recovery. So another commit replaces them before any caller gets a reply. `witness` is the
/// number of a transaction without rows.
pub(super) fn read_outcome(
    target: &SqliteTarget,
    process: ProcessId,
    applied: &[AppliedJob],
    witness: Option<i64>,
    cause: &SharedSqliteError,
) -> Result<(CommitOutcome, Connection)> {
    let mut connection = target.connect()?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let outcome = if is_stored(&transaction, process, applied, witness)? {
        CommitOutcome::Stored
    } else {
        CommitOutcome::Absent
    };
    // Without room the frame that ends a transaction was never written whole, and there is no room
    // for another one either.
    if outcome == CommitOutcome::Absent && cause.sqlite_error_code() == Some(ErrorCode::DiskFull) {
        drop(transaction);
        return Ok((outcome, connection));
    }
    put_witness(&transaction, process)?;
    transaction.commit()?;
    if outcome == CommitOutcome::Stored {
        // These rows may not have reached the disk; moving them into the database writes them
        // again.
        connection.query_row("PRAGMA wal_checkpoint(FULL)", [], |_| Ok(()))?;
    }
    Ok((outcome, connection))
}

/// Returns true if the transaction is stored.
///
/// It was all or nothing, so one witness suffices. All rows are compared, because another process's
/// rows may have the same positions.
fn is_stored(
    connection: &Connection,
    process: ProcessId,
    applied: &[AppliedJob],
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
