//! Size limit of one message: half of the budget of the agent that gets it.

use ikigai_core::project::{Scale, estimate_tokens};
use ikigai_core::{AgentId, Budget, Settings};
use ikigai_store::Agent;

use crate::{EngineError, EngineReader};

/// Share of the budget that one message may have, in percent.
const MESSAGE_PERCENT: u64 = 50;

/// Fails if a message has more than its share of the budget. The text includes attached files.
pub(crate) fn check_message_size(
    text: &str,
    scale: Scale,
    budget: &Budget,
) -> Result<(), EngineError> {
    let tokens = scale.counted(estimate_tokens(text));
    let most = budget.cap.saturating_mul(MESSAGE_PERCENT) / 100;
    if tokens > most {
        return Err(EngineError::LongMessage { tokens, most });
    }
    Ok(())
}

/// Fails if a message is too long for an agent with these settings.
///
/// Without a model there is no budget; the agent's next turn reports the missing model.
pub(crate) fn check_message_for(
    engine: &EngineReader,
    settings: &Settings,
    text: &str,
) -> Result<(), EngineError> {
    let Ok(choice) = engine.choice(settings) else {
        return Ok(());
    };
    let models = engine.models();
    let budget = engine.budget(settings, &choice, models.window_tokens(&choice));
    check_message_size(text, models.token_scale(&choice), &budget)
}

/// Fails if a message is too long for another agent, whose settings are read.
pub(crate) async fn check_message_to(
    engine: &EngineReader,
    agent: AgentId,
    text: &str,
) -> Result<(), EngineError> {
    let agent = Agent::restore(engine.reader(), agent).await?;
    check_message_for(engine, agent.state.settings(), text)
}
