//! Rules of OpenAI Chat Completions and its strictest servers.

use std::collections::HashSet;

use serde_json::Value;

use super::images::check_data_url;
use super::tools::{check_name, check_schema, object_text, text};
use super::{blank, fields, list};

/// Fields that a request may have. Reasoning models refuse sampling.
const FIELDS: [&str; 10] = [
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "model",
    "prompt_cache_key",
    "reasoning_effort",
    "stream",
    "stream_options",
    "thinking",
    "tools",
];

/// Checks the body of a request; the error names the part and the rule that it violates.
pub fn check(body: &Value) -> Result<(), String> {
    fields(body, &FIELDS)?;
    let has = |field: &str| body.get(field).is_some();
    text(body, "model")?;
    if body["stream"] != true || body["stream_options"]["include_usage"] != true {
        return Err("it is to be streamed with its usage".to_owned());
    }
    if has("max_tokens") && has("max_completion_tokens") {
        return Err("there are two limits".to_owned());
    }
    if has("reasoning_effort") {
        text(body, "reasoning_effort")?;
    }
    if has("tools") {
        check_tools(list(body, "tools")?)?;
    }
    check_messages(list(body, "messages")?)
}

/// Checks the additional rules of templates with strict roles.
///
/// User and assistant alternate, and the assistant follows a result.
pub fn check_turns(body: &Value) -> Result<(), String> {
    let messages = list(body, "messages")?;
    for (index, pair) in messages.windows(2).enumerate() {
        let roles = [&pair[0]["role"], &pair[1]["role"]].map(|role| role.as_str().unwrap_or("?"));
        let called = !pair[0]["tool_calls"].is_null();
        match roles {
            ["system" | "assistant", "user"]
            | ["user" | "tool", "assistant"]
            | ["tool", "tool"] => {}
            ["assistant", "tool"] if called => {}
            [before, role] => {
                return Err(format!(
                    "messages[{}]: `{role}` after `{before}`",
                    index + 1
                ));
            }
        }
    }
    Ok(())
}

/// Checks that every id of a call is nine letters and digits.
pub fn check_short_ids(body: &Value) -> Result<(), String> {
    let messages = list(body, "messages")?.iter();
    let calls = messages.filter_map(|message| message["tool_calls"].as_array());
    for call in calls.flatten() {
        let id = text(call, "id")?;
        if id.len() != 9 || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(format!("`{id}` is no id of nine letters and digits"));
        }
    }
    Ok(())
}

fn check_tools(tools: &[Value]) -> Result<(), String> {
    for tool in tools {
        if tool["type"] != "function" {
            return Err("a tool is no function".to_owned());
        }
        check_name(text(&tool["function"], "name")?)?;
        check_schema(&tool["function"]["parameters"])?;
    }
    Ok(())
}

fn check_messages(messages: &[Value]) -> Result<(), String> {
    // Calls of the last assistant message that have no result.
    let mut open: Vec<&str> = Vec::new();
    let mut ids = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        let checked = match role {
            "tool" => check_result(message, &mut open),
            _ if !open.is_empty() => Err(format!(
                "`tool_calls` must be followed by tool messages; {open:?} are not"
            )),
            "system" if index == 0 => check_content(message),
            "user" => check_user(message),
            "assistant" => check_assistant(message, &mut open, &mut ids),
            other => Err(format!("`{other}` is no role here")),
        };
        checked.map_err(|rule| format!("messages[{index}]: {rule}"))?;
    }
    if !open.is_empty() {
        return Err(format!("calls {open:?} have no result"));
    }
    let last = messages.last().and_then(|last| last["role"].as_str());
    if matches!(last, Some("user" | "tool")) {
        Ok(())
    } else {
        Err("there is nothing to answer".to_owned())
    }
}

fn check_content(message: &Value) -> Result<(), String> {
    if blank(text(message, "content")?) {
        return Err("its content is blank".to_owned());
    }
    Ok(())
}

/// Checks a message of the user: a text, or a list of texts and images.
fn check_user(message: &Value) -> Result<(), String> {
    if !message["content"].is_array() {
        return check_content(message);
    }
    for part in list(message, "content")? {
        match text(part, "type")? {
            "text" if !blank(text(part, "text")?) => {}
            "image_url" => check_data_url(text(&part["image_url"], "url")?)?,
            other => return Err(format!("a part is a blank text or a `{other}`")),
        }
    }
    Ok(())
}

fn check_assistant<'a>(
    message: &'a Value,
    open: &mut Vec<&'a str>,
    ids: &mut HashSet<&'a str>,
) -> Result<(), String> {
    let calls = match &message["tool_calls"] {
        Value::Null => return check_content(message),
        Value::Array(calls) if !calls.is_empty() => calls,
        _ => return Err("`tool_calls` is empty".to_owned()),
    };
    if message.get("content").is_none() {
        return Err("it has no `content`".to_owned());
    }
    if !message["content"].is_null() {
        check_content(message)?;
    }
    for call in calls {
        if call["type"] != "function" {
            return Err("a call is no function".to_owned());
        }
        let id = text(call, "id")?;
        check_name(id)?;
        check_name(text(&call["function"], "name")?)?;
        object_text(&call["function"], "arguments")?;
        if !ids.insert(id) {
            return Err(format!("id `{id}` occurs again"));
        }
        open.push(id);
    }
    Ok(())
}

fn check_result(message: &Value, open: &mut Vec<&str>) -> Result<(), String> {
    check_content(message)?;
    let id = text(message, "tool_call_id")?;
    let at = open.iter().position(|call| *call == id);
    let at = at.ok_or_else(|| format!("no call before it has the id `{id}`"))?;
    open.remove(at);
    Ok(())
}
