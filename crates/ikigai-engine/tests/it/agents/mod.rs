//! Agents as processes: forks, kills, mail and waits, by models and users.

mod effects;
mod forks;
mod kills;
mod limits;
mod mails;
mod merges;
mod orders;
mod others;
mod permissions;
mod reports;
mod siblings;
pub(crate) mod support;
mod trees;
mod waits;
mod worktrees;
