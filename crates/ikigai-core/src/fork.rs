//! Rows of a fork. Their number does not depend on the length of the parent's path.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::data::{
    ForkContext, ForkData, ForkRole, SystemData, SystemOrigin, UserData, UserOrigin,
};
use crate::event::Event;
use crate::ids::{AgentId, RowRef, Seq};
use crate::state::AgentState;

/// Arguments of a fork.
#[derive(Clone, Debug)]
pub struct ForkOrder {
    /// The child's id.
    pub child: AgentId,
    /// The child's name.
    pub name: String,
    /// Rows that the child inherits.
    pub context: ForkContext,
    /// The last inherited row, if not the parent's newest one. The parent must hold it.
    pub at: Option<RowRef>,
    /// Settings that differ from the parent's.
    pub set: Map<String, Value>,
    /// The tool call that makes the fork.
    pub call: Option<RowRef>,
    /// First message to the child.
    pub prompt: Option<ForkPrompt>,
    /// System prompt of a fresh child, if not its parent's.
    pub system: Option<String>,
}

/// First message to a child.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForkPrompt {
    /// Text for the child's model.
    pub text: String,
    /// Text for the screen, if it differs.
    pub typed: Option<String>,
    /// Facts about the child's surroundings that the text begins with.
    pub environment: Option<BTreeMap<String, String>>,
}

impl From<&str> for ForkPrompt {
    fn from(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ..Self::default()
        }
    }
}

/// The rows of a fork, which are stored together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkEvents {
    /// The last row that the child inherits.
    pub fork_point: Option<RowRef>,
    /// The parent's row.
    pub parent: Event,
    /// The child's rows.
    pub child: Vec<Event>,
}

/// Makes the rows of a fork.
///
/// The child starts with the parent's current settings and system prompt, wherever the fork point
/// is.
pub fn fork_events(parent: &AgentState, parent_name: &str, order: ForkOrder) -> ForkEvents {
    let newest = RowRef::new(parent.agent(), parent.head());
    let fork_point = match order.context {
        ForkContext::Fresh => None,
        ForkContext::Inherit => Some(order.at.unwrap_or(newest)).filter(|row| row.seq > Seq(0)),
    };
    let common = ForkData {
        fork_message_id: fork_point.map(|point| point.seq),
        fork_point,
        call: order.call,
        ..ForkData::default()
    };
    let parent_data = ForkData {
        role: Some(ForkRole::Parent),
        child_uuid: Some(order.child),
        child_name: Some(order.name.clone()),
        ..common.clone()
    };
    let mut settings = parent.settings().clone();
    // The cap of an agent includes its descendants; a copy would outlive a change of that cap.
    settings.spend = None;
    settings.merge(&order.set);
    settings.name = Some(order.name.clone());
    let fresh = order.context == ForkContext::Fresh;
    let first = ForkData {
        role: Some(ForkRole::Child),
        parent_uuid: Some(parent.agent()),
        context: Some(order.context),
        parent_name: Some(parent_name.to_owned()),
        settings: Some(settings),
        system: parent.system_row().filter(|_| !fresh),
        // A child that goes on from the newest row shares the parent's cached prefix.
        prefix_pins: parent
            .waiting_prefix_pins()
            .filter(|_| !fresh && fork_point == Some(newest))
            .map(<[_]>::to_vec),
        ..common
    };
    let first = Event::Fork {
        text: format!("Forked from {} ({parent_name})", parent.agent()),
        data: Box::new(first),
    };
    let system = order.system.as_deref().or_else(|| parent.system());
    let system = system.filter(|_| fresh).map(|text| Event::System {
        text: text.to_owned(),
        data: SystemData {
            origin: Some(SystemOrigin::Fork),
        },
    });
    let prompt = order.prompt.map(|prompt| Event::User {
        text: prompt.text,
        data: UserData {
            origin: Some(UserOrigin::Fork),
            typed: prompt.typed,
            environment: prompt.environment,
            ..UserData::default()
        },
    });
    ForkEvents {
        fork_point,
        parent: Event::Fork {
            text: format!("Forked child {} ({})", order.child, order.name),
            data: Box::new(parent_data),
        },
        child: std::iter::once(first).chain(system).chain(prompt).collect(),
    }
}
