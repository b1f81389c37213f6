//! The shared engine: one PostgreSQL database, used by several people and machines.

mod acting;
mod ancestry;
mod append;
mod connect;
mod dump;
mod errors;
mod facts;
mod group_commit;
mod index;
mod listen;
mod migrations;
mod owner;
mod pipeline;
mod queries;
mod readback;
mod reader;
mod report;
mod restore;
mod search;
mod sql;
mod statements;
mod store;
mod tls;
mod url;
mod values;
mod words;
mod writer;

pub use store::{OpenOptions, PostgresStore};
pub use url::{BadUrl, Url};

pub(crate) use errors::sql_error;

#[doc(hidden)]
pub use crate::faults::{CommitFault, Faults};
#[doc(hidden)]
pub use connect::{Link, Role, Target};
#[doc(hidden)]
pub use errors::Cause;
#[doc(hidden)]
pub use listen::{Listener, Notifier};
#[doc(hidden)]
pub use migrations::{MIGRATIONS, Migrations};
#[doc(hidden)]
pub use owner::{Owner, is_alive};
