//! Waiting for other agents: their mail, the end of their work, or their death.

use std::fmt::Write as _;
use std::time::Duration;

use ikigai_core::data::Verdict;
use ikigai_core::{AgentId, Event, Micros, RowRef, Seq};
use ikigai_store::{Agent, AgentRecord, Effect, MailEffect, MailRecord, MailTopic, Status};

use super::mail::framed_mail;
use super::{Family, FamilyOutcome, FamilyResult, WAIT_SECONDS};
use crate::agent_tools::{MOST_WAIT_SECONDS, WaitArguments, WaitUntil};
use crate::calls::{Came, OpenCall};
use crate::ledger::Tally;
use crate::{EngineError, EngineReader};

/// Rows read per query to check if another process's agent works.
const PAGE_ROWS: usize = 64;

/// A call that waits.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    deadline: Micros,
    /// Time from its start to the deadline.
    patience: Duration,
    /// Awaited agents; if empty, the next mail of any agent.
    of: Vec<AgentId>,
    until: WaitUntil,
}

/// Occasion of checking a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// During its turn.
    Turn,
    /// At the settlement of its turn.
    Settlement,
    /// At its deadline.
    Deadline,
}

/// States of agents that a user watches.
pub(crate) struct Watched {
    /// True if one of them still works.
    pub(crate) some_work: bool,
    /// A line for each.
    pub(crate) report: String,
}

/// State of an awaited agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Received,
    Idle,
    Dead,
    Running,
}

impl Wait {
    /// Waits for these agents from now on.
    pub(crate) fn starting(now: Micros, patience: Duration, of: Vec<AgentId>) -> Self {
        Self {
            deadline: now.after(patience),
            patience,
            of,
            until: WaitUntil::All,
        }
    }

    /// Returns the time left until the deadline.
    pub(crate) fn left(&self, now: Micros) -> Duration {
        let micros = self.deadline.0.saturating_sub(now.0);
        Duration::from_micros(u64::try_from(micros).unwrap_or(0)).min(self.patience)
    }
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Idle => "idle",
            Self::Dead => "dead",
            Self::Running => "running",
        }
    }
}

impl Family<'_> {
    /// Parses a call of `wait`. The deadline counts from the call's row, so that a restart does not
    /// extend it.
    pub(super) async fn run_wait(
        &mut self,
        arguments: WaitArguments,
        call: &OpenCall,
    ) -> FamilyResult {
        Ok(self
            .wait_of(arguments, call.created_at)
            .await?
            .map(FamilyOutcome::Waits))
    }

    pub(crate) async fn wait_of_call(
        &self,
        call: &OpenCall,
    ) -> Result<Result<Wait, String>, EngineError> {
        match ikigai_tools::arguments::read::<WaitArguments>(&call.arguments) {
            Ok(read) => self.wait_of(read.values, call.created_at).await,
            Err(bad) => Ok(Err(bad.0)),
        }
    }

    async fn wait_of(
        &self,
        arguments: WaitArguments,
        begun: Micros,
    ) -> Result<Result<Wait, String>, EngineError> {
        let seconds = arguments.timeout.unwrap_or(WAIT_SECONDS);
        let patience = Duration::from_secs(seconds.min(MOST_WAIT_SECONDS));
        let mut of = Vec::new();
        for name in &arguments.agents {
            match self.named(name).await? {
                Ok(agent) if agent.id == self.ledger.agent.state.agent() => {
                    return Ok(Err("you cannot wait for yourself".to_owned()));
                }
                Ok(agent) if !of.contains(&agent.id) => of.push(agent.id),
                Ok(_) => {}
                Err(reason) => return Ok(Err(reason)),
            }
        }
        Ok(Ok(Wait {
            deadline: begun.after(patience),
            patience,
            of,
            until: arguments.until,
        }))
    }

    /// Builds the row that answers a wait, with its mail; none if it continues.
    pub(crate) async fn answer_wait(
        &self,
        call: &OpenCall,
        wait: &Wait,
        moment: Moment,
    ) -> Result<Option<(Event, Vec<MailRecord>)>, EngineError> {
        let own = self.ledger.agent.state.agent();
        let mut mail = self.ledger.engine.reader().queued_mail(own).await?;
        mail.retain(|mail| match mail.from {
            Some(from) => wait.of.is_empty() || wait.of.contains(&from),
            None => false,
        });
        let came = if wait.of.is_empty() {
            // The next mail is one mail.
            mail.truncate(1);
            match mail.first() {
                None if moment != Moment::Deadline => return Ok(None),
                None => failed_wait(wait),
                Some(mail) => self.one_mail(mail).await?,
            }
        } else {
            let states = self.states_of(wait, &mail).await?;
            let asks = mail.iter().any(|mail| mail.about == MailTopic::Question);
            let is_one = wait.until == WaitUntil::Any && !mail.is_empty();
            let goes_on = |state: State| match moment {
                Moment::Deadline => false,
                Moment::Turn => state == State::Running,
                // An idle agent may have been stopped together with the wait, and may be resumed
                // with it.
                Moment::Settlement => matches!(state, State::Running | State::Idle),
            };
            if !asks && !is_one && states.iter().any(|(_, state)| goes_on(*state)) {
                return Ok(None);
            }
            let costs = costs_of(&self.ledger.engine, &states).await?;
            let over = (moment == Moment::Deadline).then_some(wait.patience);
            fan_in(&states, &costs, &mail, over)
        };
        Ok(Some((call.result(came, Verdict::Ran), mail)))
    }

    /// Reads the states of watched agents, without delivering their mail.
    /// `is_over` says that its deadline has passed.
    pub(crate) async fn watch_wait(
        &self,
        wait: &Wait,
        is_over: bool,
    ) -> Result<Watched, EngineError> {
        let own = self.ledger.id();
        let mut mail = self.ledger.engine.reader().queued_mail(own).await?;
        mail.retain(|mail| mail.from.is_some_and(|from| wait.of.contains(&from)));
        let states = self.states_of(wait, &mail).await?;
        let costs = costs_of(&self.ledger.engine, &states).await?;
        Ok(Watched {
            some_work: states.iter().any(|(_, state)| *state == State::Running),
            report: fan_in(&states, &costs, &mail, is_over.then_some(wait.patience)).output,
        })
    }

    async fn one_mail(&self, mail: &MailRecord) -> Result<Came, EngineError> {
        let sender = match mail.from {
            Some(from) => self.ledger.engine.reader().agent(from).await?,
            None => None,
        };
        let name = sender.map_or_else(|| "unknown".to_owned(), |sender| sender.name);
        Ok(Came {
            output: framed_mail(&name, mail),
            shown: Some(format!("✉ {name}")),
            success: true,
            ..Came::default()
        })
    }

    async fn states_of(
        &self,
        wait: &Wait,
        mail: &[MailRecord],
    ) -> Result<Vec<(AgentRecord, State)>, EngineError> {
        let mut states = Vec::new();
        for id in &wait.of {
            let Some(agent) = self.ledger.engine.reader().agent(*id).await? else {
                continue;
            };
            let state = if mail.iter().any(|mail| mail.from == Some(*id)) {
                State::Received
            } else if agent.status != Status::Running {
                State::Dead
            } else if self.ledger.engine.works(*id).await? {
                State::Running
            } else {
                State::Idle
            };
            states.push((agent, state));
        }
        Ok(states)
    }
}

impl crate::EngineReader {
    /// Returns true if an agent is in a turn.
    /// Asks the hub for agents of this process, the log for others.
    pub async fn works(&self, agent: AgentId) -> Result<bool, EngineError> {
        if let Some(working) = self.hub().is_working(agent) {
            return Ok(working);
        }
        self.hub().look_outside();
        // A turn in the log runs only if its owner lives.
        let record = self.reader().agent(agent).await?;
        match record.and_then(|record| record.owner) {
            Some(owner) if self.reader().is_process_alive(&owner).await? => {
                is_in_a_turn(self, agent).await
            }
            _ => Ok(false),
        }
    }
}

/// Returns true if an agent's log ends in the middle of a turn.
pub(super) async fn is_in_a_turn(
    engine: &EngineReader,
    agent: AgentId,
) -> Result<bool, EngineError> {
    let mut agent = Agent::restore(engine.reader(), agent).await?;
    loop {
        let empty = agent.view.entries().is_empty();
        let busy = agent.view.is_busy(agent.state.path()).filter(|_| !empty);
        if let Some(busy) = busy {
            return Ok(busy);
        }
        if !agent.lengthen(engine.reader(), PAGE_ROWS).await? {
            return Ok(false);
        }
    }
}

/// Describes what each agent that sent something has used so far.
async fn costs_of(
    engine: &EngineReader,
    states: &[(AgentRecord, State)],
) -> Result<Vec<String>, EngineError> {
    let mut costs = Vec::new();
    for (agent, _) in states {
        let newest = RowRef::new(agent.id, agent.head);
        let spent = Tally::read(engine.reader(), newest).await?.spent;
        let tokens = spent.tokens();
        let ended = agent.touched_at.unwrap_or(agent.created_at);
        let seconds = ended.0.saturating_sub(agent.created_at.0) / 1_000_000;
        costs.push(format!("{tokens} tokens, {seconds} s"));
    }
    Ok(costs)
}

fn failed_wait(wait: &Wait) -> Came {
    let seconds = wait.patience.as_secs();
    Came {
        output: format!("no message within {seconds} s"),
        shown: Some(format!("no message within {seconds} s")),
        success: true,
        ..Came::default()
    }
}

/// Returns the result of a wait: each agent with its state, and its framed mail. `over` is the time
/// of a wait that ended at its deadline.
fn fan_in(
    states: &[(AgentRecord, State)],
    costs: &[String],
    mail: &[MailRecord],
    over: Option<Duration>,
) -> Came {
    let mut output = String::new();
    let mut words = Vec::new();
    for ((agent, state), cost) in states.iter().zip(costs) {
        let sent: Vec<_> = mail
            .iter()
            .filter(|mail| mail.from == Some(agent.id))
            .collect();
        let word = sent.last().map_or(state.word(), |mail| mail.about.word());
        words.push(format!("{} {word}", agent.name));
        let _ = write!(output, "{}: {word}", agent.name);
        if !sent.is_empty() {
            let _ = write!(output, " ({cost})");
        } else if let Some(over) = over.filter(|_| *state == State::Running) {
            let seconds = over.as_secs();
            let _ = write!(output, " (not done within {seconds} s)");
        }
        output.push('\n');
        for mail in sent {
            output.push_str(&framed_mail(&agent.name, mail));
            output.push('\n');
        }
    }
    Came {
        output: output.trim_end().to_owned(),
        shown: Some(words.join(" · ")),
        success: true,
        ..Came::default()
    }
}

/// Builds the effects that deliver mail by the row after `head`.
pub(crate) fn consumed_by_next(mail: &[MailRecord], agent: AgentId, head: Seq) -> Vec<Effect> {
    let by = RowRef::new(agent, head.next());
    mail.iter()
        .map(|mail| Effect::Mail(MailEffect::Consume { mail: mail.id, by }))
        .collect()
}
