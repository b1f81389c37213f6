//! Lines that the user types during a turn.

use ikigai_store::BoxFuture;

use crate::frontend::{FrontEnd, Listing, WaitingLine};
use crate::{EngineError, Worker};

/// Runs command and shell lines. The commands implement it.
pub(crate) trait Interpreter: Sync {
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
