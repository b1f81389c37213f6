//! Requirements of strict servers: alternating roles, and ids of nine characters.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

/// A message on the wire with the index of its neutral message.
pub(super) type Spelled = (Option<usize>, Value);

/// Length of an id.
const ID_CHARACTERS: usize = 9;

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Text of the model between a result and the next user message.
const UNANSWERED: &str = "(interrupted)";

/// Makes user and assistant alternate.
///
/// Adjacent messages of one role are merged, and an assistant message separates a result from a
/// user message. A merged message has no index.
pub(super) fn alternate(messages: Vec<Spelled>) -> Vec<Spelled> {
    let mut alternating: Vec<Spelled> = Vec::with_capacity(messages.len());
    for (index, message) in messages {
        match alternating.last_mut() {
            Some((of, last)) if is_one_message(last, &message) => {
                of.take_if(|of| Some(*of) != index);
                join(last, message);
            }
            Some((_, last)) if last["role"] == "tool" && message["role"] == "user" => {
                let filler = json!({"role": "assistant", "content": UNANSWERED});
                alternating.extend([(None, filler), (index, message)]);
            }
            _ => alternating.push((index, message)),
        }
    }
    alternating
}

/// Returns true if two messages can be merged.
///
/// Results must directly follow their calls, so nothing is added to a message with calls.
fn is_one_message(last: &Value, next: &Value) -> bool {
    let role = &next["role"];
    let is_spoken = role == "user" || role == "assistant";
    is_spoken && last["role"] == *role && last["tool_calls"].is_null()
}

fn join(last: &mut Value, next: Value) {
    let said = match (&last["content"], &next["content"]) {
        (Value::String(before), Value::String(after)) => json!(format!("{before}\n\n{after}")),
        (before, Value::Null) => before.clone(),
        (Value::Null, after) => after.clone(),
        (before, after) => parts_of(before).chain(parts_of(after)).collect(),
    };
    if let (Value::Object(last), Value::Object(next)) = (last, next) {
        last.extend(next);
        last.insert("content".to_owned(), said);
    }
}

/// Returns the parts of a content that is a text or a list.
fn parts_of(content: &Value) -> impl Iterator<Item = Value> {
    let text = content.as_str().map(text_part);
    let parts = content.as_array().into_iter().flatten().cloned();
    text.into_iter().chain(parts)
}

/// Makes a text part of a message whose content is a list.
pub(super) fn text_part(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Gives calls and their results ids of nine letters and digits.
///
/// The ids are stable: they depend on earlier messages only, never on later ones.
pub(super) fn shorten_ids(messages: &mut [Spelled]) {
    let mut names = HashMap::new();
    let mut taken = HashSet::new();
    for (_, message) in messages {
        let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten() {
            if let Some(Value::String(id)) = call.get_mut("id") {
                let short = short_id(id, &taken);
                taken.insert(short.clone());
                names.insert(std::mem::replace(id, short.clone()), short);
            }
        }
        if let Some(Value::String(id)) = message.get_mut("tool_call_id")
            && let Some(short) = names.get(id.as_str())
        {
            id.clone_from(short);
        }
    }
}

fn short_id(id: &str, taken: &HashSet<String>) -> String {
    let fits = id.len() == ID_CHARACTERS && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if fits && !taken.contains(id) {
        return id.to_owned();
    }
    let mut number = hash(id);
    loop {
        let short = digits(number);
        if !taken.contains(&short) {
            return short;
        }
        number = number.wrapping_add(1);
    }
}

/// Hashes with FNV-1a: stable everywhere, which the standard library's hash does not promise.
fn hash(id: &str) -> u64 {
    id.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn digits(mut number: u64) -> String {
    let mut written = String::with_capacity(ID_CHARACTERS);
    for _ in 0..ID_CHARACTERS {
        let digit = usize::try_from(number % 62).unwrap_or(0);
        written.push(char::from(DIGITS[digit]));
        number /= 62;
    }
    written
}
