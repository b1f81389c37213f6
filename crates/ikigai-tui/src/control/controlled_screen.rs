//! Screen with control requests, without a terminal: common to programs with and without one.

use std::time::{Duration, Instant};

use tokio::time::{sleep_until, timeout};

use super::RequestQueue;
use crate::app::TerminalAction;
use crate::driver::Driver;
use crate::terminal::begin_exit;

/// Exit code of a program that could not store everything in time.
pub(crate) const LEFT_LATE: u8 = 1;

/// Time to show the last rows of agents.
const LAST_ROWS: Duration = Duration::from_millis(200);

/// The driver of a screen and its queue of requests.
pub struct ControlledScreen {
    /// The screen.
    pub driver: Driver,
    orders: RequestQueue,
}

impl ControlledScreen {
    /// Creates a screen with its queue of requests.
    pub fn new(driver: Driver, orders: RequestQueue) -> Self {
        Self { driver, orders }
    }

    /// Executes effects of the screen and control requests; returns terminal actions.
    pub async fn execute(&mut self) -> Vec<TerminalAction> {
        let mut left = Vec::new();
        loop {
            left.extend(self.driver.execute().await);
            if !self.orders.settle(&mut self.driver).await {
                return left;
            }
        }
    }

    /// Waits for an event, a result or a request. Cancel safe.
    pub async fn came(&mut self) {
        let Self { driver, orders } = self;
        let engine = driver.engine.clone();
        // Without a terminal only waiting requests need the clock.
        let tick = driver.app.next_tick().filter(|_| orders.has_held());
        let typed = driver.app.ctx.typed_due();
        let due = orders.due().into_iter().chain(tick).chain(typed).min();
        tokio::select! {
            () = orders.came(&engine) => {}
            () = at(due) => {}
            () = driver.came() => {}
        }
    }

    /// Reports whether a request waits for a condition.
    pub fn is_asked(&self) -> bool {
        self.orders.has_held()
    }

    /// Stops the agents and gives their leases back, within the time that leaving has.
    pub async fn leave(&mut self) {
        begin_exit(LEFT_LATE);
        self.orders.end();
        // First save unsent input: the rest may run into the exit deadline.
        self.driver.keep_all().await;
        self.driver.engine.leave().await;
        // A store that does not answer must not delay the exit.
        let _ = timeout(LAST_ROWS, self.driver.drain()).await;
        self.driver.keep_all().await;
    }
}

pub(crate) async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}
