//! Lines that the user types during a turn.

use ikigai_store::BoxFuture;

use crate::frontend::{FrontEnd, Listing, WaitingLine};
use crate::{EngineError, Worker};

/// Moment at which a command runs that is typed while the agent works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum During {
    /// At once; its settings apply to the next request.
    AtOnce,
    /// Between two steps of the turn, because it takes time.
    AtBreak,
    /// After the turn, which is interrupted as by its user: the command changes the path.
    Interrupts,
}

/// Runs command and shell lines. The commands implement it.
pub(crate) trait Interpreter: Sync {
    /// Returns the moment at which a line runs; none if it is a message.
    fn during(&self, line: &str) -> Option<During>;

    /// Runs a line in the middle of a turn, which continues in any case.
    fn run<'a, 'd>(
        &self,
        worker: &'a mut Worker,
        line: WaitingLine,
        front: &'a mut FrontEnd<'d>,
    ) -> BoxFuture<'a, ()>
    where
        'd: 'a;

    /// Runs a read-only line: shows its output, and stores its row.
    fn list<'a, 'd>(
        &self,
        worker: &'a mut Worker,
        listing: Listing,
        front: &'a mut FrontEnd<'d>,
    ) -> BoxFuture<'a, Result<(), EngineError>>
    where
        'd: 'a;
}
