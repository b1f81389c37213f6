//! Facts about an agent's surroundings, put before the messages of a turn.

use std::collections::BTreeMap;

use ikigai_core::Event;
use ikigai_store::JobRecord;

use super::pins::PinChanges;
use crate::ledger::Ledger;
use crate::surroundings::{SeatFacts, SeatQuery, seat_facts};
use crate::{EngineError, mentions};

/// Longest command line of a process among the facts, in characters.
const COMMAND_CHARS: usize = 60;

/// Gathers the facts about an agent's surroundings, with the status of its repository if wanted.
pub(super) async fn facts(
    ledger: &Ledger,
    answers: bool,
    status: bool,
    changes: &PinChanges,
) -> Option<SeatFacts> {
    let query = SeatQuery {
        settings: ledger.settings(),
        mode: ledger.grant().mode,
        answers,
        status,
    };
    let facts = Box::pin(seat_facts(&ledger.engine, query)).await?;
    let running = ledger.engine.processes().running(ledger.id());
    let running: Vec<String> = running.iter().map(described).collect();
    let facts = facts.with_agent(&ledger.agent.state);
    let facts = facts.with_tools(changes.tools.as_deref());
    Some(facts.with_processes(&running))
}

/// Describes a running process. Example: `1 (make serve)`.
fn described(job: &JobRecord) -> String {
    let line = job.command.lines().next().unwrap_or_default();
    let line: String = line.chars().take(COMMAND_CHARS).collect();
    format!("{} ({line})", job.number)
}

/// Puts facts that the model does not know yet, and a note on pinned files, before these messages.
pub(super) async fn add(
    ledger: &mut Ledger,
    messages: &mut [Event],
    answers: bool,
    changes: &PinChanges,
) -> Result<(), EngineError> {
    let note = &changes.note;
    let known = mentions::known_environment(ledger).await?;
    // Running git takes longer than a commit, so later messages do not wait for it.
    let facts = facts(ledger, answers, known.is_none(), changes).await;
    if facts.is_none() && note.is_empty() {
        return Ok(());
    }
    match facts {
        Some(facts) => {
            let facts = facts.corrected(known.as_ref());
            facts.add_to(messages, known.as_ref(), note);
        }
        // Without facts about the machine only the note is new.
        None => SeatFacts::default().add_to(messages, Some(&BTreeMap::new()), note),
    }
    Ok(())
}
