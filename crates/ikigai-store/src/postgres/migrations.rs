//! Versions of the tables: forward only, in one transaction, by one process at a time.

use sha2::{Digest, Sha256};

use super::connect::{Link, Role, Target};
use super::errors::{Cause, sql_error};
use crate::error::StoreError;

/// The statements that lead from each version to the next; the first makes version 1 of nothing.
pub type Migrations = &'static [&'static str];

/// The versions that this program knows.
pub const MIGRATIONS: Migrations = &[
    include_str!("schema/001.sql"),
    include_str!("schema/002.sql"),
    include_str!("schema/003.sql"),
];

/// What a schema was found to be.
#[derive(Debug, PartialEq, Eq)]
enum State {
    /// It is not there, or holds nothing.
    Empty,
    /// It is ours, of this version.
    Version(u32),
}

impl Target {
    /// Opens the log for the first time in this process: makes what is missing, migrates what is
    /// older, refuses what is newer or not ours. One of this version is only read.
    ///
    /// Returns a connection of that role.
    pub async fn prepare(&self, role: Role) -> Result<Link, StoreError> {
        let link = self.linked(role).await?;
        if self.look(&link).await? != State::Version(self.version()) {
            let writing = self.linked(Role::Slow).await?;
            self.migrate(&writing).await?;
        }
        Ok(link)
    }

    async fn linked(&self, role: Role) -> Result<Link, StoreError> {
        let link = self.connect(role).await;
        link.map_err(|cause| cause.store_error(&self.url))
    }

    /// Looks whether the schema is one of ours, and of which version; a newer one is refused.
    async fn look(&self, link: &Link) -> Result<State, StoreError> {
        let fail = |error| sql_error(&self.url, error);
        let (has_version, has_others): (bool, bool) = link
            .client
            .query_one(
                "SELECT coalesce(bool_or(c.relname = 'schema_version'), false),
                        coalesce(bool_or(c.relname <> 'schema_version'), false)
                 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                 WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v')",
                &[&self.url.schema],
            )
            .await
            .map(|row| (row.get(0), row.get(1)))
            .map_err(fail)?;
        if !has_version {
            return if has_others {
                Err(self.not_ours())
            } else {
                Ok(State::Empty)
            };
        }
        let found = link
            .client
            .query("SELECT version::bigint FROM schema_version", &[])
            .await
            .map_err(fail)?;
        let version = match found.as_slice() {
            [row] => row.try_get::<_, i64>(0).ok(),
            _ => None,
        };
        let version = version.and_then(|version| u32::try_from(version).ok());
        match version {
            Some(version) if version > self.version() => Err(StoreError::Newer {
                store: version,
                program: self.version(),
            }),
            Some(version) => Ok(State::Version(version)),
            None => Err(self.not_ours()),
        }
    }

    fn not_ours(&self) -> StoreError {
        let cause = Cause::Unfit {
            reason: format!("its schema `{}` holds something else", self.url.schema),
            advice: "name another schema: add `?schema=NAME` to the address",
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
            State::Empty => 0,
            State::Version(version) => version,
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

    /// What comes before the migrations: the place for them, or quiet.
    async fn before(&self, link: &Link, from: u32) -> Result<String, StoreError> {
        if from > 0 {
            // Every transaction that writes reads this table first, so that they wait here.
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

    /// The lock under which this schema is migrated: processes of one database share the numbers.
    fn migration_lock(&self) -> i64 {
        lock_number("migrations of", &self.url.schema)
    }
}

/// The number of an advisory lock, by what it is for.
pub(super) fn lock_number(purpose: &str, name: &str) -> i64 {
    let digest = Sha256::digest(format!("ikigai: {purpose} {name}"));
    let mut bytes = [0; 8];
    for (byte, from) in bytes.iter_mut().zip(digest) {
        *byte = from;
    }
    i64::from_be_bytes(bytes)
}
