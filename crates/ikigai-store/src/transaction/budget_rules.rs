//! Rules of spending caps: reservations before requests, totals of finished ones.
//!
//! A request is admitted while the amount spent and the reservations of running requests stay
//! below the cap. A reservation is an upper limit of its request, so a family passes a cap by at
//! most the last request that it admitted, in however many processes.

use ikigai_core::data::{self, UsageData};
use ikigai_core::{AgentId, Kind};

use super::rules::Decider;
use super::writes::{BudgetWrite, Write};
use crate::batch::{Batch, BudgetEffect, SpendingLimit};
use crate::error::CommitError;
use crate::records::{ReservationId, Spending};

impl Decider<'_, '_> {
    pub(super) fn add_budget_effect(&mut self, effect: &BudgetEffect) -> Result<(), CommitError> {
        match *effect {
            BudgetEffect::Reserve {
                reservation,
                agent,
                epoch,
                cap,
                estimate,
            } => {
                self.fence(agent, epoch)?;
                self.reserve(reservation, agent, cap, estimate)
            }
            BudgetEffect::Release { reservation } => {
                self.push(BudgetWrite::Release { reservation });
                Ok(())
            }
            BudgetEffect::CountAgent { root, most } => self.count_agent(root, most),
        }
    }

    fn reserve(
        &mut self,
        reservation: ReservationId,
        agent: AgentId,
        cap: SpendingLimit,
        estimate: Spending,
    ) -> Result<(), CommitError> {
        let root = cap.root;
        let changed = self.changes.budgets.get(&root);
        let facts = changed.or_else(|| self.facts.budgets.get(&root));
        let mut facts = facts.cloned().ok_or(CommitError::NoAgent(root))?;
        if facts.reserved.contains_key(&reservation) {
            return Ok(());
        }
        let reserved: Spending = facts.reserved.values().copied().sum();
        let spent = facts.spent;
        if cap.is_reached(spent.plus(reserved)) {
            return Err(CommitError::BudgetReached {
                root,
                spent,
                reserved,
            });
        }
        // A release in the same transaction is not subtracted: it counts as the later one.
        facts.reserved.insert(reservation, estimate);
        self.changes.budgets.insert(root, facts);
        self.push(BudgetWrite::Reserve {
            reservation,
            root,
            agent,
            estimate,
        });
        Ok(())
    }

    fn count_agent(&mut self, root: AgentId, most: u64) -> Result<(), CommitError> {
        let changed = self.changes.running.get(&root);
        let running = changed.or_else(|| self.facts.running.get(&root)).copied();
        let running = running.ok_or(CommitError::NoAgent(root))?;
        if running >= most {
            return Err(CommitError::TooManyAgents {
                root,
                most,
                running,
            });
        }
        self.changes.running.insert(root, running + 1);
        Ok(())
    }

    /// Adds the `usage` rows of a batch to the totals.
    pub(super) fn add_spending(&mut self, batch: &Batch) {
        for row in batch.rows.iter().filter(|row| row.kind == Kind::Usage) {
            let usage: UsageData = data::read(row.data.as_deref());
            let amount = Spending::from(&usage.amounts);
            if amount != Spending::default() {
                let agent = row.agent;
                self.push(BudgetWrite::Spend { agent, amount });
            }
        }
    }

    /// Drops the reservations of an agent whose lease changes hands.
    pub(super) fn release_all(&mut self, agent: AgentId) {
        self.push(BudgetWrite::ReleaseAll { agent });
    }

    fn push(&mut self, write: BudgetWrite) {
        self.list.push(Write::Budget(write));
    }
}
