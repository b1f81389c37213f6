//! Calls of agent tools as the permission decision sees them.

use std::time::Duration;

use ikigai_core::{AgentId, EffectClass};
use ikigai_store::{AgentRecord, Status};
use ikigai_tools::arguments::read;
use ikigai_tools::permission::literal_pattern;
use ikigai_tools::{BadArguments, Output, Prepared, Run, Touches};

use super::mail::send_refusal;
use super::{Family, check_mail};
use crate::EngineError;
use crate::agent_tools::{
    AgentTool, ForkArguments, KillArguments, RecallArguments, SendArguments, WaitArguments,
};
use crate::calls::OpenCall;
use crate::tools::Toolset;

/// Facts about a call of an agent tool.
struct AgentCall {
    class: EffectClass,
    /// Text that rules match: an agent's name, a prompt, a query.
    subject: String,
    /// The call as the user sees it in a question.
    shown: String,
    touches: Touches,
}

impl Family<'_> {
    /// Prepares a call of any tool. The inner error is for the model.
    pub(crate) async fn prepare_call(
        &self,
        tools: &Toolset,
        call: &OpenCall,
    ) -> Result<Result<Prepared, String>, EngineError> {
        let Some(tool) = tools.agent_tool(&call.name) else {
            return Ok(tools.prepare(&call.name, &call.arguments));
        };
        let facts = self.agent_call(tool, &call.arguments).await?;
        Ok(facts.map(|facts| Prepared {
            class: facts.class,
            touches: facts.touches,
            pattern: literal_pattern(&facts.subject),
            subject: facts.subject,
            shown: facts.shown,
            preview: None,
            deadline: Duration::ZERO,
            needs: Vec::new(),
            unconfined: None,
            // The worker executes it, in one transaction with its result.
            run: Run::Blocking(Box::new(|_| Output::done("", ""))),
        }))
    }

    async fn agent_call(
        &self,
        tool: AgentTool,
        arguments: &str,
    ) -> Result<Result<AgentCall, String>, EngineError> {
        let understood = match tool {
            AgentTool::Fork => read::<ForkArguments>(arguments).map(|it| AgentCall {
                class: EffectClass::Agent,
                shown: it.values.prompt.clone(),
                subject: it.values.prompt,
                touches: Touches::default(),
            }),
            AgentTool::Wait => read::<WaitArguments>(arguments).map(|it| {
                let names = it.values.agents.join(" ");
                AgentCall::reading(names)
            }),
            AgentTool::Recall => {
                read::<RecallArguments>(arguments).map(|it| AgentCall::reading(it.values.query))
            }
            AgentTool::Kill => match read::<KillArguments>(arguments) {
                Ok(it) => return self.kill_call(&it.values.agent).await,
                Err(bad) => Err(bad),
            },
            AgentTool::Send => match read::<SendArguments>(arguments) {
                Ok(it) => return self.send_call(&it.values).await,
                Err(bad) => Err(bad),
            },
        };
        Ok(understood.map_err(|BadArguments(reason)| reason))
    }

    async fn kill_call(&self, name: &str) -> Result<Result<AgentCall, String>, EngineError> {
        let target = match self.named(name).await? {
            Ok(target) => target,
            Err(reason) => return Ok(Err(reason)),
        };
        // Do not ask about a call that is known to fail.
        if target.parent.is_none() {
            return Ok(Err(EngineError::KillsRoot(target.name).to_string()));
        }
        if target.status != Status::Running {
            return Ok(Err(EngineError::Dead(target.name).to_string()));
        }
        let shown = format!("{} and its descendants", target.name);
        Ok(Ok(self.call_to(&target, shown).await?))
    }

    async fn send_call(
        &self,
        arguments: &SendArguments,
    ) -> Result<Result<AgentCall, String>, EngineError> {
        let to = match self.named(&arguments.to).await? {
            Ok(to) => to,
            Err(reason) => return Ok(Err(reason)),
        };
        if let Err(error) = check_mail(&to, &arguments.message) {
            return Ok(Err(send_refusal(&error)));
        }
        let shown = format!("{}: {}", to.name, arguments.message);
        Ok(Ok(self.call_to(&to, shown).await?))
    }

    /// Describes a call that acts on another agent.
    async fn call_to(&self, target: &AgentRecord, shown: String) -> Result<AgentCall, EngineError> {
        let own = self.root_of(self.ledger.agent.state.agent()).await?;
        let touches = if own == self.root_of(target.id).await? {
            Touches::default()
        } else {
            Touches::everything()
        };
        Ok(AgentCall {
            class: EffectClass::Agent,
            subject: target.name.clone(),
            shown,
            touches,
        })
    }

    /// Returns the oldest ancestor of an agent, which names its family.
    async fn root_of(&self, agent: AgentId) -> Result<AgentId, EngineError> {
        let ancestry = self.ledger.engine.reader().ancestry(agent, 1).await?;
        let oldest = ancestry.and_then(|ancestry| ancestry.ancestors.last().copied());
        Ok(oldest.unwrap_or(agent))
    }
}

impl AgentCall {
    /// Creates a call without effects.
    fn reading(subject: String) -> Self {
        Self {
            class: EffectClass::Read,
            shown: subject.clone(),
            subject,
            touches: Touches::default(),
        }
    }
}
