//! The rules of a transaction, which every engine shares.
//!
//! An engine finds with [`FactKeys`] what a batch depends on, reads these [`Facts`] inside its
//! transaction, lets [`decide`] check the batch, and executes the [`Write`]s. Only this module
//! refuses a batch; a refused batch has written nothing.

mod budget_rules;
mod facts;
mod job_rules;
mod request_rules;
mod row_keys;
mod rules;
mod seen_rules;
mod session_rules;
mod writes;

pub use facts::{AgentFacts, BudgetFacts, FactChanges, FactKeys, Facts, LeaseHolder, MailFacts};
pub use rules::decide;
pub use writes::{
    AgentWrite, BudgetWrite, DraftWrite, HeadWrite, JobWrite, MailWrite, RequestWrite, RunWrite,
    Write, Writes,
};

pub(crate) use row_keys::RowKeys;
pub(crate) use rules::{check, dangling};

#[cfg(test)]
mod tests;
