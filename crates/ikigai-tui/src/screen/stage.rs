//! The screen and whoever asks something of it over the control socket, without a terminal: what
//! programs with and without one have in common.

use std::time::Instant;

use tokio::time::sleep_until;

use super::Driver;
use crate::app::Wish;
use crate::control::Orders;

/// See the module.
pub struct Stage {
    /// The screen.
    pub driver: Driver,
    orders: Orders,
}

impl Stage {
    /// A screen, and what is asked of it.
    pub fn new(driver: Driver, orders: Orders) -> Self {
        Self { driver, orders }
    }

    /// Carries out what the screen wants and what is asked of it, and hands on what only a terminal
    /// can do.
    pub async fn carry_out(&mut self) -> Vec<Wish> {
        let mut left = Vec::new();
        loop {
            left.extend(self.driver.carry_out().await);
            if !self.orders.settle(&mut self.driver).await {
                return left;
            }
        }
    }

    /// Waits until there is something to take in or to carry out. Safe to drop.
    pub async fn came(&mut self) {
        let Self { driver, orders } = self;
        let engine = driver.engine.clone();
        // Nobody sees how time passes but those who wait.
        let tick = driver.app.next_tick().filter(|_| orders.has_held());
        let due = orders.due().into_iter().chain(tick).min();
        tokio::select! {
            () = orders.came(&engine) => {}
            () = at(due) => {}
            () = driver.came() => {}
        }
    }

    /// Whether a request waits for something.
    pub fn is_asked(&self) -> bool {
        self.orders.has_held()
    }

    /// The program ends: stops the agents and gives their leases back.
    pub async fn leave(&mut self) {
        self.orders.end();
        self.driver.engine.leave().await;
        self.driver.take_in().await;
    }
}

pub(super) async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}
