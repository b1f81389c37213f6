//! Rules of OpenAI Responses.

use std::collections::HashSet;

use serde_json::Value;

use super::images::check_data_url;
use super::tools::{check_name, check_schema, object_text, text};
use super::{blank, fields, list};

/// Fields that a request may have. Reasoning models refuse sampling.
const FIELDS: [&str; 10] = [
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "model",
    "prompt_cache_key",
    "reasoning",
    "store",
    "stream",
    "tools",
];

const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// Checks the body of a request; the error names the part and the rule that it violates.
pub fn check(body: &Value) -> Result<(), String> {
    fields(body, &FIELDS)?;
    let has = |field: &str| body.get(field).is_some();
    text(body, "model")?;
    if body["stream"] != true || body["store"] != false {
        return Err("it is to be streamed and not stored".to_owned());
    }
    if has("instructions") {
        text(body, "instructions")?;
    }
    if body["max_output_tokens"]
        .as_u64()
        .is_some_and(|most| most < 16)
    {
        return Err("`max_output_tokens` is less than 16".to_owned());
    }
    if has("prompt_cache_key") && text(body, "prompt_cache_key")?.len() > 64 {
        return Err("`prompt_cache_key` is longer than 64".to_owned());
    }
    check_reasoning(body)?;
    if has("tools") {
        check_tools(list(body, "tools")?)?;
    }
    check_input(list(body, "input")?)
}

fn check_reasoning(body: &Value) -> Result<(), String> {
    let reasoning = &body["reasoning"];
    if reasoning.is_null() {
        return Ok(());
    }
    let effort = text(reasoning, "effort")?;
    if EFFORTS.contains(&effort) {
        Ok(())
    } else {
        Err(format!("`{effort}` is no effort"))
    }
}

fn check_tools(tools: &[Value]) -> Result<(), String> {
    for tool in tools {
        if tool["type"] != "function" || !tool["function"].is_null() {
            return Err("a tool is no flat function".to_owned());
        }
        check_name(text(tool, "name")?)?;
        check_schema(&tool["parameters"])?;
        let strict = tool["strict"].as_bool().ok_or("`strict` is not said")?;
        if strict && tool["parameters"]["additionalProperties"] != false {
            return Err("a strict tool is open".to_owned());
        }
    }
    Ok(())
}

/// State of the check of the input.
#[derive(Default)]
struct InputState<'a> {
    /// Calls without an output.
    open: HashSet<&'a str>,
    calls: HashSet<&'a str>,
    ids: HashSet<&'a str>,
    /// True if the previous item is reasoning.
    reasons: bool,
}

fn check_input(items: &[Value]) -> Result<(), String> {
    let mut seen = InputState::default();
    for (index, item) in items.iter().enumerate() {
        seen.check(item)
            .map_err(|rule| format!("input[{index}]: {rule}"))?;
    }
    if seen.reasons {
        return Err("reasoning was provided without its required following item".to_owned());
    }
    if let Some(call) = seen.open.iter().next() {
        return Err(format!("no tool output found for function call {call}"));
    }
    Ok(())
}

impl<'a> InputState<'a> {
    fn check(&mut self, item: &'a Value) -> Result<(), String> {
        if !item["id"].is_null() {
            let id = text(item, "id")?;
            if id.len() > 64 {
                return Err(format!("id `{id}` is longer than 64"));
            }
            if !self.ids.insert(id) {
                return Err(format!("duplicate item found with id {id}"));
            }
        }
        let sort = item["type"].as_str().unwrap_or("message");
        let follows = matches!(sort, "reasoning" | "function_call")
            || (sort == "message" && item["role"] == "assistant");
        if std::mem::replace(&mut self.reasons, sort == "reasoning") && !follows {
            return Err("reasoning was provided without its required following item".to_owned());
        }
        match sort {
            "message" => self.check_message(item),
            "reasoning" => check_thought(item),
            "function_call" => self.check_call(item),
            "function_call_output" => {
                let call = text(item, "call_id")?;
                if item["output"].is_array() {
                    for part in list(item, "output")? {
                        check_part(part, "input_text")?;
                    }
                } else {
                    text(item, "output")?;
                }
                if self.open.remove(call) {
                    Ok(())
                } else {
                    Err(format!("no tool call found for output with call_id {call}"))
                }
            }
            other => Err(format!("`{other}` is no item")),
        }
    }

    fn check_message(&self, item: &Value) -> Result<(), String> {
        let sort = match item["role"].as_str() {
            Some("user") => "input_text",
            Some("assistant") => "output_text",
            _ => return Err("its role is neither user nor assistant".to_owned()),
        };
        if sort == "input_text" && !self.open.is_empty() {
            return Err("a call has no output when the user speaks".to_owned());
        }
        for part in list(item, "content")? {
            check_part(part, sort)?;
        }
        let phase = &item["phase"];
        if !phase.is_null() && (sort == "input_text" || phase.as_str().is_none()) {
            return Err("its phase is out of place".to_owned());
        }
        Ok(())
    }

    fn check_call(&mut self, item: &'a Value) -> Result<(), String> {
        let call = text(item, "call_id")?;
        check_name(call)?;
        check_name(text(item, "name")?)?;
        object_text(item, "arguments")?;
        self.open.insert(call);
        if self.calls.insert(call) {
            Ok(())
        } else {
            Err(format!("call_id {call} occurs again"))
        }
    }
}

/// Checks a part of a content: a text of this type, or an image of the user or a tool.
fn check_part(part: &Value, text_type: &str) -> Result<(), String> {
    if part["type"] == "input_image" && text_type == "input_text" {
        return check_data_url(text(part, "image_url")?);
    }
    if part["type"] != text_type {
        return Err(format!("its content is not `{text_type}`"));
    }
    if blank(text(part, "text")?) {
        return Err("its text is blank".to_owned());
    }
    Ok(())
}

fn check_thought(item: &Value) -> Result<(), String> {
    if !item["summary"].is_array() {
        return Err("reasoning has no summary".to_owned());
    }
    let fields = item.as_object().into_iter().flatten();
    if let Some((field, _)) = fields.clone().find(|(_, value)| value.is_null()) {
        return Err(format!("`{field}` of reasoning is null"));
    }
    let encrypted = item["encrypted_content"].as_str();
    let open = item["content"].as_array();
    let is_there = encrypted.is_some_and(|content| !content.is_empty())
        || open.is_some_and(|content| !content.is_empty());
    if is_there {
        Ok(())
    } else {
        Err("the reasoning is not persisted, and not here".to_owned())
    }
}
