//! What other programs ask of the screen, beside keys.

use ikigai_core::data::{AnsweredBy, Cause};
use ikigai_core::{AgentId, RowRef};
use ikigai_engine::{Answer, Intent, Question, Stop};

use super::{App, Live, Wish};

impl App {
    /// Whether something is to be done that was not taken.
    pub fn has_wishes(&self) -> bool {
        !self.wishes.is_empty()
    }

    /// Says something to an agent, or has a command carried out, as if it had been typed for it.
    pub fn submit_to(&mut self, agent: AgentId, text: String) {
        if agent == self.current {
            self.submit(text);
        } else {
            self.wishes.push(Wish::Say(agent, Intent::Command(text)));
        }
    }

    /// Has an agent stop.
    pub fn interrupt_agent(&mut self, agent: AgentId) {
        let stop = Intent::Stop(Stop::Interrupt(Cause::User));
        self.wishes.push(Wish::Say(agent, stop));
    }

    /// Answers the question about a call.
    pub fn give_answer(&mut self, call: RowRef, answer: Answer, by: AnsweredBy) {
        let answer = Intent::Answer { call, answer, by };
        self.roster
            .live_mut(call.agent)
            .questions
            .retain(|question| question.call != call);
        self.wishes.push(Wish::Say(call.agent, answer));
    }

    /// Open questions of one agent, or of all: the shown agent's first, then the oldest.
    pub fn questions(&self, agent: Option<AgentId>) -> Vec<&Question> {
        let of = |agent| self.roster.live(agent).into_iter();
        if let Some(agent) = agent {
            return of(agent).flat_map(|live| &live.questions).collect();
        }
        let others = self.roster.asking().filter(|(id, _)| *id != self.current);
        let others = others.flat_map(|(_, known)| &known.live.questions);
        let own = of(self.current).flat_map(|live| &live.questions);
        own.chain(others).collect()
    }

    /// True if an agent, or one that it started, waits for a person. Other calls may run.
    ///
    /// Keys go to the question by then if it is on the screen.
    pub fn waits_for_a_person(&self, agent: AgentId) -> bool {
        let asks = |live: &Live| !live.questions.is_empty();
        if self.roster.live(agent).is_some_and(asks) {
            return agent != self.current || self.asked.is_open();
        }
        let mut children = self.roster.children(agent);
        children.any(|(child, _)| self.waits_for_a_person(child))
    }
}
