//! The shared engine: one PostgreSQL database, used by several people and machines.

mod ancestry;
mod append;
mod budget;
mod connect;
mod dump;
mod errors;
mod facts;
mod group_commit;
mod index;
mod jobs;
mod listener;
mod migrations;
mod outlines;
mod owner;
mod pipeline;
mod queries;
mod read_marks;
mod readback;
mod reader;
mod report;
mod requests;
mod restore;
mod search;
mod sql;
mod statements;
mod store;
mod text_search;
mod tls;
mod values;
mod volatile_functions;
mod writer;

pub use crate::server_url::{BadUrl, Url};
pub use store::{PostgresOptions, PostgresStore};

pub(crate) use errors::sql_error;

#[doc(hidden)]
pub use crate::faults::{Faults, InjectedFault};
#[doc(hidden)]
pub use crate::sql_common::Migrations;
#[doc(hidden)]
pub use connect::{ConnectionRole, Link, PostgresTarget};
#[doc(hidden)]
pub use errors::ServerError;
#[doc(hidden)]
pub use listener::{CommitListener, ListenerHandle};
#[doc(hidden)]
pub use migrations::MIGRATIONS;
#[doc(hidden)]
pub use owner::{PostgresOwner, is_alive};
