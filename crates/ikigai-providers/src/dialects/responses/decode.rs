//! Decoder of Responses events.
//!
//! Items are distinguished by `output_index` and `item_id`. Servers leave out either or both,
//! repeat ids, and interleave items; an ambiguous event goes to the item of its type that started
//! last.

use serde_json::{Map, Value, json};

use crate::answer::{AnswerBlock, Delta, FailureKind, ProviderError, Response, StopReason};
use crate::dialect::{BLOCK_BYTES, Decoder};
use crate::dialects::openai::{Counted, object_in, text_at, word_at};
use crate::dialects::refusal;
use crate::sse::Frame;

#[derive(Debug, Default)]
pub(super) struct ResponsesDecoder {
    /// Items in the order of their starts.
    slots: Vec<ItemSlot>,
    refused: bool,
    /// Stop reason and usage of the terminal event.
    end: Option<(StopReason, ikigai_core::data::Amounts)>,
    /// Bytes of deltas and payloads so far, and of each item.
    content_bytes: usize,
}

/// Type of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Reasoning,
    Message,
    Call,
}

/// An incomplete item.
#[derive(Debug)]
struct ItemSlot {
    sort: Sort,
    index: Option<u64>,
    id: Option<String>,
    /// True until its `output_item.done`.
    open: bool,
    /// True if no event announced it.
    implied: bool,
    /// Text, readable reasoning, or arguments.
    text: String,
    /// Newest part of the reasoning's summary.
    part: Option<u64>,
    name: String,
    call_id: Option<String>,
    phase: Option<String>,
    /// Reasoning item in the form in which it is sent back.
    payload: Option<String>,
}

impl Sort {
    fn of(item: &Value) -> Option<Self> {
        match item.get("type").and_then(Value::as_str)? {
            "reasoning" => Some(Self::Reasoning),
            "message" => Some(Self::Message),
            "function_call" => Some(Self::Call),
            _ => None,
        }
    }

    fn delta(self, text: String) -> Option<Delta> {
        match self {
            _ if text.is_empty() => None,
            Self::Reasoning => Some(Delta::Thinking(text)),
            Self::Message => Some(Delta::Text(text)),
            Self::Call => None,
        }
    }
}

impl Decoder for ResponsesDecoder {
    fn push(&mut self, frame: &Frame) -> Result<Vec<Delta>, ProviderError> {
        if self.end.is_some() {
            return Ok(Vec::new());
        }
        let Some(body) = object_in(frame)? else {
            return Ok(Vec::new());
        };
        // Some translators send no `event:` lines, some no `type`.
        let name = body.get("type").and_then(Value::as_str);
        let name = name.unwrap_or(&frame.event).to_owned();
        self.take_in(&name, &body)
    }

    fn finish(self: Box<Self>) -> Result<Response, ProviderError> {
        let Some((stop, usage)) = self.end else {
            return Err(refusal::cut_off());
        };
        Ok(Response {
            blocks: blocks_of(self.slots),
            stop,
            usage,
        })
    }

    fn is_done(&self) -> bool {
        self.end.is_some()
    }

    fn content_bytes(&self) -> usize {
        self.content_bytes
    }
}

impl ResponsesDecoder {
    fn take_in(&mut self, name: &str, body: &Value) -> Result<Vec<Delta>, ProviderError> {
        match name {
            "response.output_item.added" => self.item_begins(name, body),
            "response.output_item.done" => self.item_ends(name, body),
            "response.output_text.delta" => self.more(name, body, Sort::Message),
            "response.refusal.delta" => {
                self.refused = true;
                self.more(name, body, Sort::Message)
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.more(name, body, Sort::Reasoning)
            }
            "response.function_call_arguments.delta" => self.more(name, body, Sort::Call),
            "response.function_call_arguments.done" => {
                self.whole(name, body, "arguments", Sort::Call)
            }
            "response.output_text.done" => self.whole(name, body, "text", Sort::Message),
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => self.response_ends(name, body),
            "error" => Err(refusal::in_stream(body)),
            // An error object in place of an event.
            _ if body.get("error").is_some_and(|error| !error.is_null()) => {
                Err(refusal::in_stream(body))
            }
            _ => Ok(Vec::new()),
        }
    }

    fn item_begins(&mut self, name: &str, body: &Value) -> Result<Vec<Delta>, ProviderError> {
        let item = item_of(name, body)?;
        let Some(sort) = Sort::of(item) else {
            return Ok(Vec::new());
        };
        let key = ItemKey::of(body, word_at(item, "id"));
        self.content_bytes += ["id", "name", "call_id"]
            .iter()
            .filter_map(|field| item.get(field)?.as_str())
            .map(str::len)
            .sum::<usize>();
        let adopted = self.slots.iter().rposition(|slot| {
            slot.implied && slot.open && slot.sort == sort && key.likeness(slot).is_some()
        });
        let slot = match adopted {
            Some(at) => &mut self.slots[at],
            None => self.begin(sort, &key),
        };
        slot.implied = false;
        slot.index = key.index.or(slot.index);
        slot.id = key.id.or(slot.id.take());
        slot.phase = word_at(item, "phase").or(slot.phase.take());
        slot.call_id = word_at(item, "call_id").or(slot.call_id.take());
        Ok(slot.name_it(item).into_iter().collect())
    }

    fn item_ends(&mut self, name: &str, body: &Value) -> Result<Vec<Delta>, ProviderError> {
        let item = item_of(name, body)?;
        let Some(sort) = Sort::of(item) else {
            return Ok(Vec::new());
        };
        let key = ItemKey::of(body, word_at(item, "id"));
        // Of items with one id the first started is the first that ends.
        let found = self.open(sort, &key).rev().max_by_key(|(_, fit)| *fit);
        let slot = match found.map(|(at, _)| at) {
            Some(at) => &mut self.slots[at],
            None => self.begin(sort, &key),
        };
        slot.open = false;
        slot.implied = false;
        slot.id = key.id.or(slot.id.take());
        slot.phase = word_at(item, "phase").or(slot.phase.take());
        slot.call_id = word_at(item, "call_id").or(slot.call_id.take());
        let mut deltas: Vec<_> = slot.name_it(item).into_iter().collect();
        let whole = match sort {
            Sort::Reasoning => {
                slot.payload = Some(payload_of(item));
                let summary = texts_in(item, "summary", "\n\n");
                Some(summary)
                    .filter(|summary| !summary.is_empty())
                    .unwrap_or_else(|| texts_in(item, "content", "\n\n"))
            }
            Sort::Message => texts_in(item, "content", ""),
            Sort::Call => arguments_in(item, name)?,
        };
        let payload_bytes = slot.payload.as_ref().map_or(0, String::len);
        let more_bytes = whole.len().saturating_sub(slot.text.len()) + payload_bytes;
        deltas.extend(slot.settle(whole));
        self.content_bytes += more_bytes;
        let refuses = |part: &Value| part.get("type").is_some_and(|word| word == "refusal");
        self.refused |= parts_in(item, "content").any(refuses);
        Ok(deltas)
    }

    /// Appends to an item.
    fn more(&mut self, name: &str, body: &Value, sort: Sort) -> Result<Vec<Delta>, ProviderError> {
        let text = text_at(body, "delta", name)?.unwrap_or_default();
        if text.is_empty() {
            return Ok(Vec::new());
        }
        self.content_bytes += text.len();
        let slot = self.slot(sort, &ItemKey::of(body, word_at(body, "item_id")));
        let part = body.get("summary_index").and_then(Value::as_u64);
        let is_next = slot.part.is_some() && part.is_some() && slot.part != part;
        slot.part = part;
        let text = if is_next && !slot.text.is_empty() {
            format!("\n\n{text}")
        } else {
            text.to_owned()
        };
        slot.text.push_str(&text);
        Ok(sort.delta(text).into_iter().collect())
    }

    /// Sets the whole content of an item that may have come in pieces.
    fn whole(
        &mut self,
        name: &str,
        body: &Value,
        field: &str,
        sort: Sort,
    ) -> Result<Vec<Delta>, ProviderError> {
        let text = text_at(body, field, name)?.unwrap_or_default().to_owned();
        let key = ItemKey::of(body, word_at(body, "item_id"));
        let Some(at) = self.newest(sort, &key) else {
            return Ok(Vec::new());
        };
        let slot = &mut self.slots[at];
        // This is only one of the parts that a message may have.
        if slot.text.is_empty() || sort == Sort::Call {
            return Ok(slot.settle(text).into_iter().collect());
        }
        Ok(Vec::new())
    }

    fn response_ends(&mut self, name: &str, body: &Value) -> Result<Vec<Delta>, ProviderError> {
        let response = body.get("response").filter(|value| value.is_object());
        let response =
            response.ok_or_else(|| refusal::malformed_error(name, "`response` is missing"))?;
        let status = response.get("status").and_then(Value::as_str);
        if name == "response.failed" || status == Some("failed") {
            return Err(refusal::in_stream(response));
        }
        if name == "response.cancelled" || status == Some("cancelled") {
            let said = "the provider cancelled the answer";
            return Err(ProviderError::new(FailureKind::Unavailable, said));
        }
        let mut deltas = Vec::new();
        if self.slots.is_empty() {
            let output = response.get("output").and_then(Value::as_array);
            for item in output.into_iter().flatten() {
                deltas.extend(self.item_ends(name, &json!({"item": item}))?);
            }
        }
        let is_incomplete = name == "response.incomplete" || status == Some("incomplete");
        let stop = if is_incomplete {
            let details = response.get("incomplete_details");
            match details.and_then(|details| details.get("reason")?.as_str()) {
                None | Some("max_output_tokens") => StopReason::Length,
                Some("content_filter") => StopReason::Refused,
                Some(other) => StopReason::Other(other.to_owned()),
            }
        } else if self.slots.iter().any(|slot| slot.sort == Sort::Call) {
            StopReason::Calls
        } else if self.refused {
            StopReason::Refused
        } else {
            StopReason::End
        };
        let usage = response.get("usage").map(usage_of).unwrap_or_default();
        self.end = Some((stop, usage));
        Ok(deltas)
    }

    fn begin(&mut self, sort: Sort, key: &ItemKey) -> &mut ItemSlot {
        let at = self.slots.len();
        self.content_bytes += BLOCK_BYTES;
        self.slots.push(ItemSlot {
            sort,
            index: key.index,
            id: key.id.clone(),
            open: true,
            implied: true,
            text: String::new(),
            part: None,
            name: String::new(),
            call_id: None,
            phase: None,
            payload: None,
        });
        &mut self.slots[at]
    }

    /// Returns the item of an event; starts one if there is none.
    fn slot(&mut self, sort: Sort, key: &ItemKey) -> &mut ItemSlot {
        match self.newest(sort, key) {
            Some(at) => &mut self.slots[at],
            None => self.begin(sort, key),
        }
    }

    fn newest(&self, sort: Sort, key: &ItemKey) -> Option<usize> {
        let found = self.open(sort, key).max_by_key(|(_, fit)| *fit);
        found.map(|(at, _)| at)
    }

    /// Returns the open items that an event can mean, with their ranks.
    fn open(&self, sort: Sort, key: &ItemKey) -> impl DoubleEndedIterator<Item = (usize, u8)> {
        let slots = self.slots.iter().enumerate();
        let open = slots.filter(move |(_, slot)| slot.open && slot.sort == sort);
        open.filter_map(|(at, slot)| Some((at, key.likeness(slot)?)))
    }
}

/// Key of an item in an event.
struct ItemKey {
    index: Option<u64>,
    id: Option<String>,
}

impl ItemKey {
    fn of(body: &Value, id: Option<String>) -> Self {
        Self {
            index: body.get("output_index").and_then(Value::as_u64),
            id,
        }
    }

    /// Returns the rank of an item: by index and id, by id, by index, or by neither.
    ///
    /// None for another item.
    fn likeness(&self, slot: &ItemSlot) -> Option<u8> {
        let by_id = self.id.is_some() && self.id == slot.id;
        let by_index = self.index.is_some() && self.index == slot.index;
        let is_other = self.index.is_some() && slot.index.is_some() && !by_index && !by_id;
        (!is_other).then(|| u8::from(by_id) * 2 + u8::from(by_index))
    }
}

impl ItemSlot {
    /// Sets the name of a call; the first time it gives a delta.
    fn name_it(&mut self, item: &Value) -> Option<Delta> {
        let name = word_at(item, "name").filter(|_| self.sort == Sort::Call)?;
        let is_first = self.name.is_empty();
        self.name.clone_from(&name);
        is_first.then_some(Delta::Call(name))
    }

    /// Replaces the text by the whole one; returns the missing rest as a delta.
    fn settle(&mut self, whole: String) -> Option<Delta> {
        if whole.is_empty() {
            return None;
        }
        let rest = whole.strip_prefix(&self.text).map(str::to_owned);
        self.text = whole;
        self.sort.delta(rest.unwrap_or_default())
    }

    fn item_payload(&self, after: Option<&String>) -> Option<String> {
        let words = [
            ("id", self.id.as_ref()),
            ("phase", self.phase.as_ref()),
            ("after", after.filter(|_| self.id.is_some())),
        ];
        let words = words.into_iter();
        let words = words.filter_map(|(key, word)| Some((key.to_owned(), json!(word?))));
        let object: Map<String, Value> = words.collect();
        (!object.is_empty()).then(|| Value::Object(object).to_string())
    }
}

/// Returns the blocks in the order of the items.
fn blocks_of(mut slots: Vec<ItemSlot>) -> Vec<AnswerBlock> {
    if slots.iter().all(|slot| slot.index.is_some()) {
        slots.sort_by_key(|slot| slot.index);
    }
    let mut after: Option<String> = None;
    let mut blocks = Vec::new();
    for slot in slots {
        let item = slot.item_payload(after.as_ref());
        let block = match slot.sort {
            Sort::Reasoning => {
                after = slot.id.or(after);
                AnswerBlock::Thinking {
                    text: slot.text,
                    payload: slot.payload,
                }
            }
            // The message is empty, and the provider would refuse it.
            Sort::Message if slot.text.trim().is_empty() => continue,
            Sort::Message => AnswerBlock::Text {
                text: slot.text,
                item,
            },
            Sort::Call => AnswerBlock::Call {
                id: slot.call_id,
                name: slot.name,
                arguments: slot.text,
                item,
            },
        };
        blocks.push(block);
    }
    blocks
}

fn item_of<'a>(name: &str, body: &'a Value) -> Result<&'a Value, ProviderError> {
    let item = body.get("item").filter(|item| item.is_object());
    item.ok_or_else(|| refusal::malformed_error(name, "`item` is missing"))
}

/// Returns a reasoning item in the form in which it is sent back.
fn payload_of(item: &Value) -> String {
    let fields = item.as_object().into_iter().flatten();
    let fields = fields.filter(|(_, value)| !value.is_null());
    let fields: Map<String, Value> = fields
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    Value::Object(fields).to_string()
}

fn parts_in<'a>(item: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    item.get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn texts_in(item: &Value, key: &str, between: &str) -> String {
    let texts = parts_in(item, key).filter_map(|part| {
        let text = part.get("text").or_else(|| part.get("refusal"));
        text?.as_str()
    });
    texts.collect::<Vec<_>>().join(between)
}

fn arguments_in(item: &Value, name: &str) -> Result<String, ProviderError> {
    match item.get("arguments") {
        // Some servers send an object instead of a text.
        Some(object @ Value::Object(_)) => Ok(object.to_string()),
        _ => Ok(text_at(item, "arguments", name)?
            .unwrap_or_default()
            .to_owned()),
    }
}

fn usage_of(usage: &Value) -> ikigai_core::data::Amounts {
    let count = |place: &str| usage.pointer(place).and_then(Value::as_u64);
    let counted = Counted {
        input: count("/input_tokens"),
        cache_read: count("/input_tokens_details/cached_tokens"),
        cache_write: count("/input_tokens_details/cache_write_tokens"),
        output: count("/output_tokens"),
        reasoning: count("/output_tokens_details/reasoning_tokens"),
        total: count("/total_tokens"),
    };
    counted.amounts()
}
