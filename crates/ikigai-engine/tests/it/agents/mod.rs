//! Agents as processes: forks, kills, mail and waits, as models and people use them.

mod effects;
mod forks;
mod kills;
mod limits;
mod mails;
mod merges;
mod orders;
mod others;
mod permissions;
mod siblings;
mod support;
mod trees;
mod waits;
