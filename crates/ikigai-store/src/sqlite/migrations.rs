//! Schema migrations: forward only, in one transaction, after a backup.

use std::fs;
use std::io;
use std::path::Path;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use super::connect::{FileState, SqliteTarget};
use super::errors::{file_error, sql_error};
use super::paths::{create_new, sync_parent};
use crate::error::StoreError;
use crate::sql_common::Migrations;

/// Migrations of this program.
pub const MIGRATIONS: Migrations = &[
    include_str!("schema/001.sql"),
    include_str!("schema/002.sql"),
    include_str!("schema/003.sql"),
    include_str!("schema/004.sql"),
    include_str!("schema/005.sql"),
    include_str!("schema/006.sql"),
    include_str!("schema/007.sql"),
    include_str!("schema/008.sql"),
    include_str!("schema/009.sql"),
    include_str!("schema/010.sql"),
    include_str!("schema/011.sql"),
    include_str!("schema/012.sql"),
    include_str!("schema/013.sql"),
    include_str!("schema/014.sql"),
    include_str!("schema/015.sql"),
    include_str!("schema/016.sql"),
    include_str!("schema/017.sql"),
    include_str!("schema/018.sql"),
    include_str!("schema/019.sql"),
];

/// Limit of backups of one version.
const MAX_BACKUPS: u32 = 100;

/// Migrates an older database, unless another process did.
pub(super) fn migrate(
    target: &SqliteTarget,
    connection: &mut Connection,
) -> Result<(), StoreError> {
    let fail = |error| sql_error(target.path(), error);
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(fail)?;
    let version = match target.state(&transaction)? {
        FileState::Version(version) if version < target.version() => version,
        FileState::Version(_) | FileState::Empty => return Ok(()),
    };
    // The transaction excludes writers, so the copy equals the migrated database.
    back_up(target, version)?;
    apply(target, &transaction, version)?;
    transaction.commit().map_err(fail)
}

/// Runs the statements after version `from`.
pub(super) fn apply(
    target: &SqliteTarget,
    transaction: &Transaction<'_>,
    from: u32,
) -> Result<(), StoreError> {
    let fail = |error| sql_error(target.path(), error);
    let done = usize::try_from(from).unwrap_or(usize::MAX);
    for statements in target.migrations.iter().skip(done) {
        transaction.execute_batch(statements).map_err(fail)?;
    }
    transaction
        .pragma_update(None, "user_version", target.version())
        .map_err(fail)
}

fn back_up(target: &SqliteTarget, version: u32) -> Result<(), StoreError> {
    // Under its own name the copy appears whole or not at all.
    let partial = target.place.beside(&format!(".backup-v{version}.partial"));
    let result = copy(target, &partial).and_then(|()| name_copy(target, &partial, version));
    let removed = fs::remove_file(&partial);
    result?;
    removed.map_err(|error| file_error(&partial, error))
}

fn copy(target: &SqliteTarget, partial: &Path) -> Result<(), StoreError> {
    match fs::remove_file(partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(file_error(partial, error));
        }
        _ => {}
    }
    create_new(partial).map_err(|error| file_error(partial, error))?;
    let source = target
        .connect_reading()
        .map_err(|error| sql_error(target.path(), error))?;
    let fail = |error| sql_error(partial, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut copied = Connection::open_with_flags(partial, flags).map_err(fail)?;
    let step = Backup::new(&source, &mut copied)
        .and_then(|backup| backup.step(-1))
        .map_err(fail)?;
    if step != StepResult::Done {
        return Err(StoreError::Busy("the backup copy is incomplete".into()));
    }
    copied.close().map_err(|(_, error)| fail(error))?;
    fs::File::open(partial)
        .and_then(|file| file.sync_all())
        .map_err(|error| file_error(partial, error))
}

fn name_copy(target: &SqliteTarget, partial: &Path, version: u32) -> Result<(), StoreError> {
    for attempt in 1..=MAX_BACKUPS {
        let name = target.place.backup(version, attempt);
        match fs::hard_link(partial, &name) {
            Ok(()) => return sync_parent(&name).map_err(|error| file_error(&name, error)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(file_error(&name, error)),
        }
    }
    Err(StoreError::Place {
        path: target.place.backup(version, MAX_BACKUPS),
        source: "there are too many backup copies already".into(),
    })
}
