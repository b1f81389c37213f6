//! Execution of one call, with its deadline.

use std::time::Duration;

use ikigai_core::data::Cause;
use ikigai_tools::{CallContext, CallEnding, Output, Run};
use tokio::time::{sleep, timeout};

use crate::frontend::Stop;

/// Time after its own deadline at which a tool is stopped.
const SLACK: Duration = Duration::from_secs(5);

/// Time that a stopped tool has to end.
pub(super) const GRACE: Duration = Duration::from_millis(900);

/// Output of a tool that panicked, for the model.
pub(super) const BROKE_DOWN: &str = "internal error in ikigai (please report)";

/// Executes a call, and ensures that it ends.
pub(super) async fn carry_out(run: Run, context: CallContext, deadline: Duration) -> Output {
    let stop = context.stop.clone();
    let work = async move {
        match run {
            Run::Async(work) => work(context).await,
            Run::Blocking(work) => {
                let done = tokio::task::spawn_blocking(move || work(&context)).await;
                done.unwrap_or_else(|_| Output::failed(BROKE_DOWN))
            }
        }
    };
    tokio::pin!(work);
    tokio::select! {
        output = &mut work => return output,
        () = sleep(deadline.saturating_add(SLACK)) => stop.cancel(),
    }
    let late = format!("stopped after {} s", deadline.as_secs());
    timeout(GRACE, work).await.unwrap_or_else(|_| Output {
        ending: CallEnding::Stopped,
        ..Output::failed(late)
    })
}

/// Returns true if the stop is the end of the program.
pub(super) fn is_exit(stop: &Stop) -> bool {
    *stop == Stop::Interrupt(Cause::Exit)
}

/// Returns the reason for a call that did not run because of a stop.
pub(super) fn not_run(stop: &Stop) -> &'static str {
    match stop {
        Stop::Interrupt(Cause::User) => "not run: the user stopped the turn",
        Stop::Interrupt(Cause::Kill) => "not run: the agent was killed",
        Stop::Interrupt(_) => "not run: the program was stopped",
        Stop::Deadline(_) => "not run: the turn took too long",
    }
}
