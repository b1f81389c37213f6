//! What only the PostgreSQL engine promises, on real servers.

mod listening;
mod opening;
