//! What other programs ask of the screen, beside keys.

use ikigai_core::AgentId;
use ikigai_core::data::{AnsweredBy, Cause};
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

    /// Answers the first question of an agent; `false` if it asks nothing.
    pub fn answer_for(&mut self, agent: AgentId, make: impl Fn(&Question) -> Answer) -> bool {
        let question = self
            .roster
            .live(agent)
            .and_then(|live| live.questions.first());
        let Some(question) = question else {
            return false;
        };
        let (call, answer) = (question.call, make(question));
        self.give_answer(call, answer, AnsweredBy::Socket);
        true
    }

    /// Who asks something: the agent that is shown, or else the one that asks for longest.
    pub fn who_asks(&self) -> Option<AgentId> {
        let asks = |agent| {
            self.roster
                .live(agent)
                .is_some_and(|live| !live.questions.is_empty())
        };
        if asks(self.current) {
            return Some(self.current);
        }
        self.roster.asking().next().map(|(agent, _)| agent)
    }

    /// Whether an agent that works does nothing but wait for a person: all its open calls are asked
    /// about, and keys go to the question if it is on the screen.
    pub fn waits_for_a_person(&self, agent: AgentId) -> bool {
        let Some(live) = self.roster.live(agent) else {
            return false;
        };
        let asks_all = |live: &Live| {
            let is_asked = |call| live.questions.iter().any(|question| question.call == call);
            !live.questions.is_empty() && live.running.iter().all(|one| is_asked(one.call))
        };
        if asks_all(live) {
            return agent != self.current || self.asked.is_open();
        }
        // Between two turns it waits for those that it has started.
        let children = self.roster.children(agent);
        let at_work: Vec<_> = children.filter(|(_, child)| child.live.is_busy()).collect();
        let all_ask = at_work.iter().all(|(_, child)| asks_all(&child.live));
        !live.is_busy() && !at_work.is_empty() && all_ask
    }
}
