//! Open questions of this process, so that one answer can settle identical ones of siblings.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ikigai_core::{AgentId, RowRef};

use crate::frontend::Question;

/// The calls that wait for an answer in this process.
#[derive(Default)]
pub(crate) struct OpenQuestions(Mutex<HashMap<RowRef, AskingAgent>>);

/// The agent that asks about a call.
struct AskingAgent {
    name: String,
    parent: AgentId,
    /// Hash of the exact call.
    hash: String,
}

/// An open question of a child; it is closed when this is dropped.
pub(crate) struct OpenQuestion {
    all: Arc<OpenQuestions>,
    pub(crate) call: RowRef,
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.all.calls().remove(&self.call);
    }
}

impl OpenQuestions {
    fn calls(&self) -> MutexGuard<'_, HashMap<RowRef, AskingAgent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the question of a child of `parent`.
    pub(crate) fn add(self: &Arc<Self>, question: &Question, parent: AgentId) -> OpenQuestion {
        let asker = AskingAgent {
            name: question.agent.clone(),
            parent,
            hash: question.hash.clone(),
        };
        self.calls().insert(question.call, asker);
        OpenQuestion {
            all: self.clone(),
            call: question.call,
        }
    }

    /// Removes the questions of siblings about the same call; returns calls and names of agents.
    pub(crate) fn take_identical(&self, call: RowRef) -> Vec<(RowRef, String)> {
        let mut calls = self.calls();
        let Some(own) = calls.remove(&call) else {
            return Vec::new();
        };
        let is_identical =
            |other: &AskingAgent| (&other.parent, &other.hash) == (&own.parent, &own.hash);
        let taken = calls.extract_if(|_, other| is_identical(other));
        let mut taken: Vec<_> = taken.map(|(call, asker)| (call, asker.name)).collect();
        taken.sort_by(|one, other| one.1.cmp(&other.1));
        taken
    }
}
