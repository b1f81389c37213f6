//! Reservations: estimates of running requests under the caps above an agent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ikigai_core::data::Amounts;
use ikigai_providers::Model;
use ikigai_store::{BudgetEffect, CommitError, Effect, ReservationId, Spending};

use super::{CommitPlan, Ledger};
use crate::EngineError;
use crate::budget::{Cap, UsedCap, refusal};
use crate::environment::draw_reservation;
use crate::frontend::FrontEnd;

/// Tokens of an answer whose limit is unknown.
const UNKNOWN_OUTPUT: u64 = 16_384;

/// Attempts of a reservation whose outcome the store does not know.
const TRIES: usize = 3;

/// The most that a request can cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    tokens: u64,
    /// None if the price is unknown.
    nano_usd: Option<u64>,
}

impl Estimate {
    /// Estimates `requests` requests of `input` tokens together, at the full price.
    pub(crate) fn new(model: &dyn Model, input: u64, requests: u64) -> Self {
        let output = model.most_output().unwrap_or(UNKNOWN_OUTPUT);
        let output = output.saturating_mul(requests);
        let amounts = Amounts {
            input: Some(input),
            output: Some(output),
            ..Amounts::default()
        };
        Self {
            tokens: amounts.tokens(),
            nano_usd: model.cost_nano_usd(&amounts),
        }
    }

    fn spending(self) -> Spending {
        Spending {
            nano_usd: self.nano_usd.unwrap_or(0),
            tokens: self.tokens,
        }
    }
}

/// Reservations of one agent in this process.
#[derive(Debug, Default)]
pub(super) struct ReservationList {
    running: HashMap<ReservationId, Spending>,
    /// Ended ones, which the next commit deletes.
    pub(super) ended: Vec<ReservationId>,
}

pub(super) type SharedReservations = Arc<Mutex<ReservationList>>;

/// Reservation for one request; ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    id: ReservationId,
    list: SharedReservations,
}

impl Reservation {
    /// Ends the reservation; the agent's next commit deletes it.
    pub(crate) fn end(&self) {
        let mut list = lock(&self.list);
        if list.running.remove(&self.id).is_some() {
            list.ended.push(self.id);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.end();
    }
}

/// Refusal of a request by a cap.
#[derive(Debug)]
pub(crate) struct OverBudget {
    /// Reason for the user.
    pub(crate) reason: String,
    /// True if the request fits once running requests cost less than their estimates.
    pub(crate) may_fit_later: bool,
}

impl Ledger {
    /// Reserves the estimate for a request under the caps above the agent; none if there are no
    /// caps.
    pub(crate) async fn reserve(
        &mut self,
        caps: &[Cap],
        estimate: Estimate,
        mut front: Option<&mut FrontEnd<'_>>,
    ) -> Result<Result<Option<Reservation>, OverBudget>, EngineError> {
        if caps.is_empty() {
            return Ok(Ok(None));
        }
        if let Some(refused) = self.refuse_here(caps, estimate) {
            return Ok(Err(refused));
        }
        let reservation = self.begin_reservation(estimate.spending());
        let limits = caps.iter().filter(|cap| !cap.is_own);
        let limits = limits.filter_map(Cap::spending_limit);
        let effects: Vec<Effect> = limits
            .map(|cap| {
                Effect::Budget(BudgetEffect::Reserve {
                    reservation: reservation.id,
                    agent: self.id(),
                    epoch: self.epoch,
                    cap,
                    estimate: estimate.spending(),
                })
            })
            .collect();
        if effects.is_empty() {
            return Ok(Ok(Some(reservation)));
        }
        let mut tries = 0;
        loop {
            tries += 1;
            let plan = CommitPlan::effects(effects.clone()).waiting_if(front.as_deref_mut());
            match self.commit(plan).await {
                Ok(_) => return Ok(Ok(Some(reservation))),
                Err(EngineError::Commit(CommitError::BudgetReached {
                    root,
                    spent,
                    reserved: _,
                })) => {
                    let cap = caps.iter().find(|cap| cap.agent == root);
                    return Ok(Err(self.refused_by(cap, spent)));
                }
                // A repeated reservation counts once.
                Err(EngineError::Commit(CommitError::Unknown(_))) if tries < TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Checks what needs no transaction: time, prices, and caps of this agent alone.
    fn refuse_here(&self, caps: &[Cap], estimate: Estimate) -> Option<OverBudget> {
        let now = self.engine.environment().now();
        let spent = Spending::from(&self.tally.spent);
        let running = lock(&self.reservations).running.values().copied().sum();
        for cap in caps {
            if cap.nano_usd.is_some() && estimate.nano_usd.is_none() {
                let whose = cap.whose(self.id());
                return Some(OverBudget {
                    reason: format!(
                        "the budget of {whose} is in dollars, and the price of this model is \
                         unknown · set a budget in tokens: /budget 200k"
                    ),
                    may_fit_later: false,
                });
            }
            if cap.is_over(now) {
                return Some(self.refused_by(Some(cap), spent));
            }
            let limit = cap.spending_limit().filter(|_| cap.is_own);
            if limit.is_some_and(|limit| limit.is_reached(spent.plus(running))) {
                return Some(self.refused_by(Some(cap), spent));
            }
        }
        None
    }

    fn refused_by(&self, cap: Option<&Cap>, spent: Spending) -> OverBudget {
        let Some(cap) = cap else {
            return OverBudget {
                reason: "the budget is used up".to_owned(),
                may_fit_later: false,
            };
        };
        let now = self.engine.environment().now();
        let is_spent = cap.spending_limit().is_some_and(|it| it.is_reached(spent));
        let used = UsedCap {
            // The number of agents refuses no request.
            cap: Cap {
                agents: None,
                ..cap.clone()
            },
            spent: Amounts {
                input: Some(spent.tokens),
                cost_nano_usd: Some(spent.nano_usd),
                ..Amounts::default()
            },
            running: 0,
            elapsed: cap.elapsed(now),
        };
        OverBudget {
            reason: refusal(cap, self.id(), &used.used()),
            may_fit_later: !is_spent && !cap.is_over(now),
        }
    }

    fn begin_reservation(&self, amount: Spending) -> Reservation {
        let id = draw_reservation(self.engine.environment());
        lock(&self.reservations).running.insert(id, amount);
        Reservation {
            id,
            list: Arc::clone(&self.reservations),
        }
    }

    /// Returns the ended reservations, for the next commit.
    pub(super) fn ended_reservations(&self) -> Vec<ReservationId> {
        lock(&self.reservations).ended.clone()
    }

    /// Forgets reservations that a commit deleted.
    pub(super) fn forget_reservations(&self, deleted: &[ReservationId]) {
        lock(&self.reservations)
            .ended
            .retain(|id| !deleted.contains(id));
    }
}

fn lock(list: &SharedReservations) -> MutexGuard<'_, ReservationList> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}
