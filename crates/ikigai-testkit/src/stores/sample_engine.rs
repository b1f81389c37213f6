//! Engines of samples: files of SQLite, or databases of a server with data on disk.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use ikigai_store::{postgres, sqlite};

use super::{directory, remove_database};
use crate::postgres::{PgServer, QueryRows};

/// Engine of a generated store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleEngine {
    /// A file.
    Sqlite,
    /// A database of [`server`].
    Postgres,
}

impl SampleEngine {
    /// All engines.
    pub const ALL: [Self; 2] = [Self::Sqlite, Self::Postgres];

    /// Returns the SQL of the schema.
    pub(super) fn migrations(self) -> String {
        match self {
            Self::Sqlite => sqlite::MIGRATIONS.concat(),
            Self::Postgres => postgres::MIGRATIONS.concat(),
        }
    }

    /// Returns the directory of its samples and their stamps.
    pub(super) fn directory(self) -> PathBuf {
        match self {
            Self::Sqlite => directory(),
            Self::Postgres => server().directory().to_owned(),
        }
    }

    /// Returns path or URL of the sample of that name.
    pub(super) fn place(self, name: &str) -> String {
        match self {
            Self::Sqlite => file(name).to_str().unwrap().to_owned(),
            Self::Postgres => server().url(&database(name)),
        }
    }

    /// Creates an empty database on the server; SQLite creates files itself.
    pub(super) fn found(self, name: &str) {
        self.remove(name);
        if self == Self::Postgres {
            server().sql("postgres", &format!("CREATE DATABASE {}", database(name)));
        }
    }

    /// Runs the server's maintenance, so that it does not run during a measurement.
    pub(super) fn settle(self, name: &str) {
        if self == Self::Postgres {
            sql(name, "VACUUM (ANALYZE)");
            sql(name, "CHECKPOINT");
        }
    }

    /// Copies a closed store.
    pub(super) fn copy(self, from: &str, to: &str) {
        self.remove(to);
        match self {
            Self::Sqlite => {
                fs::copy(file(from), file(to)).unwrap();
                // The next measurement must not pay for writing the copy to disk.
                fs::File::open(file(to)).unwrap().sync_all().unwrap();
            }
            Self::Postgres => {
                let (from, to) = (database(from), database(to));
                let copy = format!("CREATE DATABASE {to} TEMPLATE {from} STRATEGY file_copy");
                server().sql("postgres", &copy);
                server().sql("postgres", "CHECKPOINT");
            }
        }
    }

    /// Removes a store.
    pub(super) fn remove(self, name: &str) {
        match self {
            Self::Sqlite => remove_database(&file(name)),
            Self::Postgres => {
                let name = database(name);
                let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
                server().sql("postgres", &drop);
            }
        }
    }
}

impl fmt::Display for SampleEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        })
    }
}

fn file(name: &str) -> PathBuf {
    directory().join(format!("{name}.db"))
}

fn database(name: &str) -> String {
    format!("kept_{}", name.replace('-', "_"))
}

/// Runs statements on the database of the store of that name.
pub(super) fn sql(name: &str, statements: &str) -> QueryRows {
    server().sql(&database(name), statements)
}

/// Returns the server for samples, with the default durability that tests switch off.
pub fn server() -> &'static PgServer {
    static SERVER: OnceLock<PgServer> = OnceLock::new();
    let settings = [
        "fsync = on",
        "full_page_writes = on",
        "wal_level = replica",
        "max_wal_senders = 10",
        "shared_buffers = 128MB",
    ];
    SERVER.get_or_init(|| PgServer::kept(&directory().join("postgres"), &settings))
}
