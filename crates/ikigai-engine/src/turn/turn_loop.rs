//! The loop of one turn: ask the model, run its calls, until it makes none.

use super::preparation::PinStage;
use super::{Turn, TurnStep};
use crate::frontend::{FrontEnd, Outcome, UiEvent};
use crate::{EngineError, Worker};

/// One turn of an agent, as a state machine. Between two steps everything is stored.
pub(super) struct TurnLoop<'a> {
    pub(super) worker: &'a mut Worker,
    pub(super) turn: Turn,
}

impl TurnLoop<'_> {
    /// Runs the turn to its end. If that fails, the front end gets its pending requests back.
    pub(super) async fn run(
        mut self,
        first: TurnStep,
        front: &mut FrontEnd<'_>,
    ) -> Result<Outcome, EngineError> {
        self.worker.set_unsettled(true);
        front.emit(UiEvent::Began);
        let begun = self.begin_turn(front).await;
        let ended = match begun {
            Ok(()) => Box::pin(self.steps(first, front)).await,
            Err(error) => Err(error),
        };
        match &ended {
            Ok(outcome) => {
                self.worker.set_unsettled(false);
                front.emit(UiEvent::Ended(outcome.clone()));
                // Requests that came too late for this turn wait for the next one.
                self.worker.drain(front).await?;
            }
            Err(error) => {
                self.worker.set_gave_up(front.pending_stop());
                front.emit(UiEvent::Ended(Outcome::Failed(error.to_string())));
                front.give_back(error);
            }
        }
        ended
    }

    /// Reads pinned files again if a turn starts.
    pub(super) async fn begin_turn(&mut self, front: &mut FrontEnd<'_>) -> Result<(), EngineError> {
        match self.turn.pins {
            PinStage::Read => self.read_pins(front).await?,
            PinStage::Take => {}
            PinStage::Current => return Ok(()),
        }
        self.take_pins(front).await
    }

    async fn steps(
        &mut self,
        first: TurnStep,
        front: &mut FrontEnd<'_>,
    ) -> Result<Outcome, EngineError> {
        let mut step = first;
        loop {
            step = match step {
                TurnStep::Ask => {
                    while let Some(waiting) = front.at_break.pop_front() {
                        self.worker
                            .interpreter()
                            .run(self.worker, waiting, front)
                            .await;
                    }
                    self.keep_up(front).await?;
                    let reason = match Box::pin(
                        self.worker
                            .context_keeper()
                            .learn_window(&mut self.turn, front),
                    )
                    .await?
                    {
                        Some(reason) => Some(reason),
                        None => {
                            Box::pin(
                                self.worker
                                    .context_keeper()
                                    .fit_context(&mut self.turn, front),
                            )
                            .await?
                        }
                    };
                    match reason {
                        Some(reason) => self.worker.stop_here(&reason, front).await?,
                        None => self.ask(front).await?,
                    }
                }
                TurnStep::RunTools(calls) => {
                    self.worker
                        .tool_round()
                        .run_tools(&mut self.turn, calls, front)
                        .await?
                }
                TurnStep::Done(outcome) => return Ok(outcome),
            };
        }
    }

    /// Applies settings that changed during the turn from its next request on.
    async fn keep_up(&mut self, front: &mut FrontEnd<'_>) -> Result<(), EngineError> {
        if self.turn.settings == *self.worker.settings() {
            return Ok(());
        }
        self.turn.renew(self.worker.ledger(), front).await
    }
}
