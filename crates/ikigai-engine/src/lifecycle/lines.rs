//! Typed lines: a message starts a turn, a command runs.

use crate::commands::{ChainOutcome, Done, dispatch, follow, store_merge};
use crate::frontend::{AgentJob, FrontEnd, MergePreview, Outcome, Stop};
use crate::input::UserInput;
use crate::{EngineError, Worker};

impl Worker {
    /// Executes a typed line: a message begins a turn, a command runs.
    pub async fn line(
        &mut self,
        input: UserInput,
        front: &mut FrontEnd<'_>,
    ) -> Result<Done, EngineError> {
        let input = self.resolved(input).await;
        if let UserInput::Message(text) = input {
            return self.work(AgentJob::Say(text), front).await.map(Done::turn);
        }
        self.tell_settled(front).await?;
        let waiting = input.into();
        let carried = dispatch(self, &waiting, front).await?;
        let mut warned = carried.warned;
        let mut stopped = carried.stopped.clone();
        let followed = follow(self, &waiting.input, carried, front).await?;
        warned |= matches!(followed, ChainOutcome::Warned | ChainOutcome::Stopped(_));
        if let ChainOutcome::Stopped(stop) = &followed {
            stopped = Some(stop.clone());
        }
        let outcome = match followed.job() {
            Some(job) => Some(self.work(job, front).await?),
            None => stopped.map(|stop| match stop {
                Stop::Interrupt(cause) => Outcome::Interrupted(cause),
                Stop::Deadline(after) => {
                    Outcome::Failed(format!("not done within {} s", after.as_secs()))
                }
            }),
        };
        Ok(Done { warned, outcome })
    }

    /// Stores the merge of a preview, with text that the user may have edited.
    pub async fn merge(
        &mut self,
        preview: &MergePreview,
        text: &str,
        front: &mut FrontEnd<'_>,
    ) -> Result<(), EngineError> {
        store_merge(self, preview, text, front).await
    }
}
