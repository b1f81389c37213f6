//! Rules about requests to the process that holds an agent.

use super::facts::LeaseHolder;
use super::rules::{Decider, bad};
use super::writes::{RequestWrite, Write};
use crate::batch::RequestEffect;
use crate::error::CommitError;
use crate::records::RequestState;

impl<'b> Decider<'_, 'b> {
    pub(super) fn add_request_effect(
        &mut self,
        effect: &'b RequestEffect,
    ) -> Result<(), CommitError> {
        let (id, from, to) = match effect {
            RequestEffect::Send(request) => {
                self.agent(request.agent)?;
                let id = request.id;
                let is_new = !self.facts.requests.contains_key(&id);
                let state = RequestState::Waiting;
                if !is_new || self.changes.requests.insert(id, state).is_some() {
                    return Err(bad("the request was sent before"));
                }
                self.list
                    .push(Write::Request(RequestWrite::Insert(request)));
                return Ok(());
            }
            RequestEffect::Take { request, agent } => {
                let facts = self.agent(*agent)?;
                if facts.holder != LeaseHolder::This {
                    let (agent, epoch) = (*agent, facts.epoch);
                    return Err(CommitError::Fenced { agent, epoch });
                }
                (*request, RequestState::Waiting, RequestState::Taken)
            }
            RequestEffect::Answer { request, .. } => {
                (*request, RequestState::Taken, RequestState::Answered)
            }
            RequestEffect::Expire { request } => {
                (*request, RequestState::Waiting, RequestState::Expired)
            }
        };
        let changed = self.changes.requests.get(&id);
        let state = changed.or_else(|| self.facts.requests.get(&id)).copied();
        if state != Some(from) {
            return Err(bad(format!("the request is not {}", from.word())));
        }
        self.changes.requests.insert(id, to);
        let answer = match effect {
            RequestEffect::Answer { answer, .. } => Some(answer.as_str()),
            RequestEffect::Send(_) | RequestEffect::Take { .. } | RequestEffect::Expire { .. } => {
                None
            }
        };
        let request = id;
        let state = to;
        self.list.push(Write::Request(RequestWrite::Settle {
            request,
            state,
            answer,
        }));
        Ok(())
    }
}
