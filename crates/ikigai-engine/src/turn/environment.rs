//! Facts about an agent's surroundings, put before the messages of a turn.

use ikigai_core::Event;

use crate::ledger::Ledger;
use crate::surroundings::{SeatFacts, SeatQuery, seat_facts};
use crate::{EngineError, mentions};

/// Gathers the facts about an agent's surroundings.
pub(super) async fn facts(ledger: &Ledger, answers: bool) -> Option<SeatFacts> {
    let query = SeatQuery {
        settings: ledger.settings(),
        mode: ledger.grant().mode,
        answers,
    };
    let facts = Box::pin(seat_facts(&ledger.engine, query)).await?;
    let name = ledger.settings().name.as_deref().unwrap_or_default();
    Some(facts.with_agent(name, ledger.agent.state.fork()))
}

/// Puts facts that the model does not know yet before these messages.
pub(super) async fn add(
    ledger: &mut Ledger,
    messages: &mut [Event],
    answers: bool,
) -> Result<(), EngineError> {
    if let Some(facts) = facts(ledger, answers).await {
        let known = mentions::known_environment(ledger).await?;
        facts.add_to(messages, known.as_ref());
    }
    Ok(())
}
