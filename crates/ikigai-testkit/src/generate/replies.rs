//! Player of responses, results and bad rows.

use ikigai_core::data::{
    AssistantData, Opaque, StoredThinking, Tagged, ToolCallData, ToolResultData, Via,
};
use ikigai_core::load::{Loaded, load};
use ikigai_core::{AgentId, Event, Kind, Role, RowRef, Seq};
use serde_json::json;

use super::action::{GeneratedReply, LateResult, ReplyBlock, Saying};
use super::bad_rows::{BadRow, BadTarget, OlderShape};
use super::events;
use super::history::{History, back};
use super::text::{CallId, Hanging, OWN, Owner, Text};

impl History {
    /// Writes a response and results of its calls, as far as there are any.
    pub(super) fn respond(&mut self, agent: AgentId, reply: &GeneratedReply) {
        let number = self.responses.entry(agent).or_default();
        *number += 1;
        let number = reply.numbered.then_some(*number);
        let known = self.calls.len();
        let mut fresh = known;
        let rows = reply.pieces.iter().map(|piece| {
            fresh += 1;
            self.event_of(piece, number, fresh)
        });
        let rows = rows.collect();
        self.append(agent, rows);
        let mut left = self.calls[known..].to_vec();
        let mut queued = reply.queued.as_ref();
        for answer in &reply.answers {
            if left.is_empty() {
                break;
            }
            let (call, id) = left.remove(answer % left.len());
            let event = Event::tool_result(call, id, "bash", "done", answer % 3 != 2);
            self.append(agent, vec![event]);
            if let Some(text) = queued.take() {
                let event = events::user(text.spell(), Saying::Typed, agent);
                self.append(agent, vec![event]);
            }
        }
    }

    fn event_of(&self, piece: &ReplyBlock, number: Option<u64>, fresh: usize) -> Event {
        match piece {
            ReplyBlock::Text { text, hanging } => Event::Assistant {
                text: text.spell(),
                data: AssistantData {
                    response: number,
                    provider: Some(OWN.0.to_owned()),
                    model: Some(OWN.1.to_owned()),
                    opaque: opaque(hanging),
                    ..AssistantData::default()
                },
            },
            ReplyBlock::Call {
                id,
                name,
                arguments,
                hanging,
            } => Event::ToolCall {
                shown: None,
                data: ToolCallData {
                    tool_call_id: Some(self.call_id(id, fresh)),
                    name: Some((*name).to_owned()),
                    arguments: Some((*arguments).to_owned()),
                    response: number,
                    opaque: opaque(hanging),
                },
            },
        }
    }

    fn call_id(&self, id: &CallId, fresh: usize) -> String {
        match id {
            CallId::Fresh => format!("call_{fresh}"),
            CallId::Repeated(index) => {
                back(&self.calls, *index).map_or_else(|| "call_0".to_owned(), |(_, id)| id)
            }
            CallId::Odd(id) => (*id).to_owned(),
            CallId::Chars(id) => id.clone(),
            CallId::Long(length) => "x".repeat(*length),
        }
    }

    /// Writes one more block of the newest response, if no message or bend followed it.
    pub(super) fn go_on(&mut self, agent: AgentId, piece: &ReplyBlock) {
        let Some(head) = self.oracle.head(agent) else {
            return;
        };
        let found = self.oracle.own(head).rev().find_map(|row| {
            let part = load(row);
            match (row.kind.read_as(), part) {
                (Some(Kind::User | Kind::Rewind | Kind::Clear), _) => Some(None),
                (_, Ok(Loaded::Message(part))) if part.message.role == Role::Assistant => {
                    Some(Some(part.response))
                }
                _ => None,
            }
        });
        if let Some(number) = found.flatten() {
            let event = self.event_of(piece, number, self.calls.len() + 1);
            self.append(agent, vec![event]);
        }
    }

    /// Writes a result for any existing call, or for none.
    pub(super) fn answer(&mut self, agent: AgentId, answer: &LateResult) {
        let call = answer.call.and_then(|call| back(&self.calls, call));
        let id = call.as_ref().map_or("orphan", |(_, id)| id.as_str());
        let data = ToolResultData {
            tool_call_id: Some(id.to_owned()),
            name: Some("bash".to_owned()),
            output: Some(answer.output.spell()),
            success: answer.success,
            call: call
                .as_ref()
                .map(|(call, _)| *call)
                .filter(|_| answer.by_row),
            images: answer.by_row.then(events::images),
            ..ToolResultData::default()
        };
        self.append(agent, vec![Event::ToolResult { shown: None, data }]);
    }

    /// Writes a rewind without a valid target.
    pub(super) fn rewind_badly(&mut self, agent: AgentId, target: &BadTarget, via: Via) {
        let Some(newest) = self.oracle.head(agent) else {
            return;
        };
        let target = match target {
            BadTarget::NotHeld(index) => {
                let held = self.oracle.held(newest);
                let mut others = self.rows();
                others.retain(|row| !held.contains(row));
                back(&others, *index)
            }
            BadTarget::Newer(by) => Some(RowRef::new(agent, Seq(newest.seq.0 + 1 + by))),
            BadTarget::Malformed(data) => {
                let data = data.spell(agent);
                self.inject(agent, "rewind", None, data.as_deref());
                None
            }
        };
        if let Some(target) = target {
            self.append(agent, vec![Event::rewind(target, newest, via)]);
        }
    }

    /// Writes a row that no program of this version writes.
    pub(super) fn leave_bad_row(&mut self, agent: AgentId, row: &BadRow) {
        match row {
            BadRow::UnknownKind {
                kind,
                content,
                data,
            }
            | BadRow::Odd {
                kind,
                content,
                data,
            } => {
                // A fork as first row would make a child of an agent without a parent.
                if *kind == "fork" && self.oracle.head(agent).is_none() {
                    return;
                }
                let content = content.as_ref().map(Text::spell);
                let data = data.spell(agent);
                self.inject(agent, kind, content.as_deref(), data.as_deref());
            }
            BadRow::LegacyResult { call, output } => {
                let id = back(&self.calls, *call).map_or_else(String::new, |(_, id)| id);
                let data = json!({"tool_call_id": id, "output": output.spell(), "success": true});
                self.inject(agent, "tool", None, Some(&data.to_string()));
            }
            BadRow::OlderCall {
                id,
                shape,
                numbered,
            } => {
                let id = self.call_id(id, self.calls.len() + 1);
                let mut data = older_call(&id, *shape);
                if *numbered {
                    let number = self.responses.entry(agent).or_default();
                    *number += 1;
                    data["response"] = json!(*number);
                }
                self.inject(agent, "tool_call", Some("shown"), Some(&data.to_string()));
            }
        }
    }
}

fn older_call(id: &str, shape: OlderShape) -> serde_json::Value {
    match shape {
        OlderShape::Function => json!({
            "id": id, "type": "function", "function": {"name": "bash", "arguments": "{}"},
        }),
        OlderShape::ToolArgs => json!({
            "tool_call_id": id, "tool_name": "bash", "tool_args": "{}",
        }),
        OlderShape::ToolArgsThinking => json!({
            "tool_call_id": id, "tool_name": "bash", "tool_args": "{}",
            "thinking": {"thinking": "hm", "signature": "s"}, "redacted_thinking": "abc",
        }),
    }
}

fn opaque(hanging: &Hanging) -> Option<Opaque> {
    if hanging.thinking.is_empty() && hanging.item.is_none() {
        return None;
    }
    let thinking = hanging.thinking.iter().enumerate();
    let thinking = thinking.map(|(index, owner)| {
        let Tagged {
            provider,
            model,
            payload,
        } = tagged(*owner);
        StoredThinking {
            text: Some(format!("thought {index}")),
            provider,
            model,
            payload,
        }
    });
    Some(Opaque {
        thinking: Some(thinking.collect()),
        item: hanging.item.map(tagged),
    })
}

fn tagged(owner: Owner) -> Tagged {
    let tag = owner.tag();
    Tagged {
        provider: tag.map(|(provider, _)| provider.to_owned()),
        model: tag.map(|(_, model)| model.to_owned()),
        payload: Some("{\"signature\":\"\u{0}s\"}".to_owned()),
    }
}
