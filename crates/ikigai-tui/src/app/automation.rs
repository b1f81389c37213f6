//! Entry points of the control socket.

use ikigai_core::data::AnsweredBy;
use ikigai_core::{AgentId, RowRef};
use ikigai_engine::{Answer, Live, Question, UserRequest};

use super::{App, EngineRequest};

impl App {
    /// Reports whether effects are queued.
    pub fn has_effects(&self) -> bool {
        !self.ctx.effects.is_empty()
    }

    /// Submits a line to an agent as if it had been typed for it.
    pub fn submit_to(&mut self, agent: AgentId, text: String) {
        if agent == self.ctx.current {
            self.submit(text);
        } else {
            let command = EngineRequest::Send(agent, UserRequest::parse(text));
            self.ctx.effects.push(command);
        }
    }

    /// Interrupts an agent.
    pub fn interrupt_agent(&mut self, agent: AgentId) {
        self.ctx.interrupt_agent(agent);
    }

    /// Answers the question about a call.
    pub fn give_answer(&mut self, call: RowRef, answer: Answer, by: AnsweredBy) {
        self.ctx.give_answer(call, answer, by);
    }

    /// Returns the open questions of one agent or all, the current agent's first.
    pub fn questions(&self, agent: Option<AgentId>) -> Vec<&Question> {
        let roster = &self.ctx.roster;
        let of = |agent| roster.live(agent).into_iter();
        if let Some(agent) = agent {
            return of(agent).flat_map(|live| &live.questions).collect();
        }
        let others = roster.asking().filter(|(id, _)| *id != self.ctx.current);
        let others = others.flat_map(|(_, known)| &known.live.questions);
        let own = of(self.ctx.current).flat_map(|live| &live.questions);
        own.chain(others).collect()
    }

    /// Reports whether an agent, or one that it started, waits for a person.
    ///
    /// Other calls may run. A question on the screen takes the keys by then.
    pub fn waits_for_a_person(&self, agent: AgentId) -> bool {
        let roster = &self.ctx.roster;
        let asks = |live: &Live| !live.questions.is_empty();
        if roster.live(agent).is_some_and(asks) {
            return agent != self.ctx.current || self.question.is_open();
        }
        let mut children = roster.children(agent);
        children.any(|(child, _)| self.waits_for_a_person(child))
    }
}
