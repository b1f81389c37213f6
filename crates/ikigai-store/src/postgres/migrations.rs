//! Schema migrations: forward only, in one transaction, by one process at a time.

use sha2::{Digest, Sha256};

use super::connect::{ConnectionRole, Link, PostgresTarget};
use super::errors::{ServerError, sql_error};
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
];

const VERSION: &str = "SELECT version::bigint FROM schema_version";

#[derive(Debug, PartialEq, Eq)]
enum SchemaState {
    /// The schema is missing or empty.
    Empty,
    /// The schema is ours, with this version.
    Version(u32),
}

impl PostgresTarget {
    /// Opens the log for the first time in this process, and returns a connection.
    ///
    /// Creates a missing schema, migrates an older one, refuses a newer or foreign one. A schema of
    /// this version is only read.
    pub async fn prepare(&self, role: ConnectionRole) -> Result<Link, StoreError> {
        let link = self.linked(role).await?;
        // In most cases the schema exists, and one round trip suffices.
        let state = match link.fetch(VERSION, &[]).await {
            Ok(found) => self.state_of(&found)?,
            Err(_) => self.look(&link).await?,
        };
        if state != SchemaState::Version(self.version()) {
            let writing = self.linked(ConnectionRole::Slow).await?;
            self.migrate(&writing).await?;
        }
        Ok(link)
    }

    async fn linked(&self, role: ConnectionRole) -> Result<Link, StoreError> {
        let link = self.connect(role).await;
        link.map_err(|cause| cause.store_error(&self.url))
    }

    /// Reads whether the schema is ours, and its version; a newer one is refused.
    async fn look(&self, link: &Link) -> Result<SchemaState, StoreError> {
        let fail = |error| sql_error(&self.url, error);
        let tables = "SELECT coalesce(bool_or(c.relname = 'schema_version'), false),
                    coalesce(bool_or(c.relname <> 'schema_version'), false)
             FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v')";
        let found = link
            .fetch(tables, &[&self.url.schema])
            .await
            .map_err(fail)?;
        let is_set = |column| {
            let row = found.first();
            row.and_then(|row| row.try_get::<_, bool>(column).ok()) == Some(true)
        };
        if is_set(0) {
            let version = link.fetch(VERSION, &[]).await.map_err(fail)?;
            self.state_of(&version)
        } else if is_set(1) {
            Err(self.not_ours())
        } else {
            Ok(SchemaState::Empty)
        }
    }

    fn state_of(&self, found: &[tokio_postgres::Row]) -> Result<SchemaState, StoreError> {
        let version = match found {
            [row] => row.try_get::<_, i64>(0).ok(),
            _ => None,
        };
        let version = version.and_then(|version| u32::try_from(version).ok());
        match version {
            Some(version) if version > self.version() => Err(StoreError::Newer {
                store: version,
                program: self.version(),
            }),
            Some(version) => Ok(SchemaState::Version(version)),
            None => Err(self.not_ours()),
        }
    }

    fn not_ours(&self) -> StoreError {
        let cause = ServerError::Unfit {
            reason: format!("schema `{}` contains other tables", self.url.schema),
            advice: "choose another schema: add `?schema=NAME` to the URL",
        };
        cause.store_error(&self.url)
    }

    /// Brings the schema to this program's version, unless another process did meanwhile.
    async fn migrate(&self, link: &Link) -> Result<(), StoreError> {
        let fail = |error| sql_error(&self.url, error);
        let client = &link.client;
        // A failure leaves the transaction to the end of the connection, which rolls it back.
        client.batch_execute("BEGIN").await.map_err(fail)?;
        client
            .execute(
                "SELECT pg_advisory_xact_lock($1)",
                &[&self.migration_lock()],
            )
            .await
            .map_err(fail)?;
        let from = match self.look(link).await? {
            SchemaState::Empty => 0,
            SchemaState::Version(version) => version,
        };
        if from < self.version() {
            let first = self.before(link, from).await?;
            let done = usize::try_from(from).unwrap_or(usize::MAX);
            let migrations = self
                .migrations
                .iter()
                .skip(done)
                .copied()
                .collect::<String>();
            let version = self.version();
            let last = format!("UPDATE schema_version SET version = {version};");
            let statements = format!("{first}{migrations}{last}");
            client.batch_execute(&statements).await.map_err(fail)?;
        }
        client.batch_execute("COMMIT").await.map_err(fail)
    }

    /// Statements before the migrations: create the schema, or lock it.
    async fn before(&self, link: &Link, from: u32) -> Result<String, StoreError> {
        if from > 0 {
            // Every writing transaction reads this table first, so it waits here.
            return Ok("LOCK TABLE schema_version IN ACCESS EXCLUSIVE MODE;".to_owned());
        }
        let schema = &self.url.schema;
        let there = link
            .client
            .query_opt(
                "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1",
                &[schema],
            )
            .await
            .map_err(|error| sql_error(&self.url, error))?;
        // Only if it is missing: who may not make schemas may have been given one.
        let make = match there {
            Some(_) => String::new(),
            None => format!("CREATE SCHEMA \"{schema}\";"),
        };
        Ok(format!(
            "{make} CREATE TABLE schema_version (version bigint NOT NULL);
             INSERT INTO schema_version VALUES (0);"
        ))
    }

    /// Returns the lock for migrations of this schema: processes of one database share the numbers.
    fn migration_lock(&self) -> i64 {
        lock_number("migrations of", &self.url.schema)
    }
}

/// Returns the number of an advisory lock, derived from its purpose and name.
pub(super) fn lock_number(purpose: &str, name: &str) -> i64 {
    let digest = Sha256::digest(format!("ikigai: {purpose} {name}"));
    let mut bytes = [0; 8];
    for (byte, from) in bytes.iter_mut().zip(digest) {
        *byte = from;
    }
    i64::from_be_bytes(bytes)
}
