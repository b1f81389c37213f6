//! The rules of Anthropic Messages.

use std::collections::HashSet;

use serde_json::Value;

use super::images::check_image;
use super::{blank, fields, is_name, list, object, text};

/// Largest number of cache marks in a request.
const MOST_MARKS: usize = 4;

/// Checks the body of a request; the error names the violation.
pub fn check(body: &Value) -> Result<(), String> {
    let known = [
        "model",
        "max_tokens",
        "stream",
        "system",
        "thinking",
        "output_config",
        "tools",
        "tool_choice",
        "messages",
    ];
    fields(body, &known)?;
    if blank(text(body, "model")?) {
        return Err("there is no model".to_owned());
    }
    if body.get("stream") != Some(&Value::Bool(true)) {
        return Err("the answer is not streamed".to_owned());
    }
    check_thinking(body)?;
    check_system(body)?;
    let tools = check_tools(body)?;
    let calls = check_messages(list(body, "messages")?)?;
    if calls && !tools {
        return Err("there are calls and no tools".to_owned());
    }
    let marks = count_marks(body);
    if marks > MOST_MARKS {
        return Err(format!("there are {marks} cache marks"));
    }
    Ok(())
}

fn check_thinking(body: &Value) -> Result<(), String> {
    let max_tokens = body.get("max_tokens").and_then(Value::as_u64);
    let max_tokens = max_tokens.filter(|most| *most > 0);
    let max_tokens = max_tokens.ok_or("`max_tokens` is no positive number")?;
    let effort = match body.get("output_config") {
        None => None,
        Some(config) => {
            fields(config, &["effort"])?;
            Some(text(config, "effort")?)
        }
    };
    if let Some(effort) = effort
        && !["low", "medium", "high", "xhigh", "max"].contains(&effort)
    {
        return Err(format!("`{effort}` is no effort"));
    }
    let Some(thinking) = body.get("thinking") else {
        return match effort {
            Some(_) => Err("effort without thinking".to_owned()),
            None => Ok(()),
        };
    };
    match text(thinking, "type")? {
        "adaptive" => {
            fields(thinking, &["type", "display"])?;
            effort.map(drop).ok_or("adaptive without effort".to_owned())
        }
        "enabled" => {
            fields(thinking, &["type", "budget_tokens"])?;
            let budget = thinking.get("budget_tokens").and_then(Value::as_u64);
            let fits = budget.is_some_and(|budget| (1024..max_tokens).contains(&budget));
            if goes_on_without_thinking(body) {
                return Err("a budget, but the turn did not begin with thinking".to_owned());
            }
            match effort {
                None if fits => Ok(()),
                Some(_) => Err("a budget and an effort".to_owned()),
                None => Err(format!("budget {budget:?} of {max_tokens} tokens")),
            }
        }
        "disabled" | "between_tools" => {
            fields(thinking, &["type"])?;
            effort.map_or(Ok(()), |_| Err("an effort not to think".to_owned()))
        }
        other => Err(format!("`{other}` is no type of thinking")),
    }
}

/// Returns true if the request continues a turn that began without thinking.
fn goes_on_without_thinking(body: &Value) -> bool {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let [.., asked, last] = messages else {
        return false;
    };
    let results = last["content"].as_array().into_iter().flatten();
    let goes_on = results
        .into_iter()
        .any(|block| block["type"] == "tool_result");
    let first = &asked["content"][0]["type"];
    goes_on && first != "thinking" && first != "redacted_thinking"
}

fn check_system(body: &Value) -> Result<(), String> {
    if body.get("system").is_none() {
        return Ok(());
    }
    for block in list(body, "system")? {
        fields(block, &["type", "text", "cache_control"])?;
        check_mark(block)?;
        if text(block, "type")? != "text" || blank(text(block, "text")?) {
            return Err("the system slot holds something but words".to_owned());
        }
    }
    Ok(())
}

/// Checks the tools; returns true if there are any.
fn check_tools(body: &Value) -> Result<bool, String> {
    if let Some(choice) = body.get("tool_choice") {
        fields(choice, &["type"])?;
        // The other two are refused by the newest models and with thinking.
        if !["auto", "none"].contains(&text(choice, "type")?) {
            return Err("a call is demanded".to_owned());
        }
    }
    if body.get("tools").is_none() {
        return match body.get("tool_choice") {
            Some(_) => Err("a choice among no tools".to_owned()),
            None => Ok(false),
        };
    }
    let mut names = HashSet::new();
    for tool in list(body, "tools")? {
        let known = ["name", "description", "input_schema", "cache_control"];
        fields(tool, &known)?;
        check_mark(tool)?;
        let name = text(tool, "name")?;
        if !is_name(name) || !names.insert(name) {
            return Err(format!("`{name}` is no name of a tool, or there twice"));
        }
        let schema = tool.get("input_schema").ok_or("a tool has no schema")?;
        if text(schema, "type")? != "object" {
            return Err(format!("the schema of `{name}` is of no object"));
        }
        for keyword in ["oneOf", "anyOf", "allOf"] {
            if schema.get(keyword).is_some() {
                return Err(format!("the schema of `{name}` has {keyword} at its top"));
            }
        }
    }
    Ok(true)
}

/// Checks the messages; returns true if there are calls.
fn check_messages(messages: &[Value]) -> Result<bool, String> {
    let mut ids = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    let mut previous = "assistant";
    for (index, message) in messages.iter().enumerate() {
        let here = |rule: String| format!("message {index}: {rule}");
        let role = text(message, "role").map_err(here)?;
        if role == previous {
            return Err(here(format!("another one of the {role}, or the first")));
        }
        previous = role;
        open = check_message(message, role, &open, &mut ids).map_err(here)?;
    }
    if previous != "user" {
        return Err("the last message is the assistant's".to_owned());
    }
    Ok(!ids.is_empty())
}

/// Checks a message after one with the calls `open`; returns its own calls.
fn check_message<'a>(
    message: &'a Value,
    role: &str,
    open: &[&str],
    ids: &mut HashSet<&'a str>,
) -> Result<Vec<&'a str>, String> {
    fields(message, &["role", "content"])?;
    let blocks = list(message, "content")?;
    if role == "assistant" {
        return check_spoken(blocks, ids);
    }
    let mut answered = Vec::new();
    let mut has_text = false;
    for block in blocks {
        check_mark(block)?;
        match text(block, "type")? {
            "text" => {
                check_text(block)?;
                has_text = true;
            }
            "image" => {
                check_image_block(block)?;
                has_text = true;
            }
            "tool_result" if has_text => return Err("a result after a text".to_owned()),
            "tool_result" => answered.push(check_result(block)?),
            other => return Err(format!("the user says `{other}`")),
        }
    }
    let one = answered.iter().collect::<HashSet<_>>();
    let other = open.iter().collect::<HashSet<_>>();
    if one != other || answered.len() != open.len() {
        return Err(format!("results {answered:?} answer calls {open:?}"));
    }
    Ok(Vec::new())
}

fn check_spoken<'a>(
    blocks: &'a [Value],
    ids: &mut HashSet<&'a str>,
) -> Result<Vec<&'a str>, String> {
    let mut calls = Vec::new();
    for block in blocks {
        match text(block, "type")? {
            "text" => check_text(block)?,
            "thinking" => {
                fields(block, &["type", "thinking", "signature"])?;
                text(block, "thinking")?;
                text(block, "signature")?;
            }
            "redacted_thinking" => {
                fields(block, &["type", "data"])?;
                text(block, "data")?;
            }
            "tool_use" => {
                fields(block, &["type", "id", "name", "input"])?;
                object(block, "input")?;
                let id = text(block, "id")?;
                let name = text(block, "name")?;
                if !is_name(id) || !is_name(name) || !ids.insert(id) {
                    return Err(format!("`{id}` or `{name}` is illegal or there twice"));
                }
                calls.push(id);
            }
            other => return Err(format!("the assistant says `{other}`")),
        }
    }
    let last = blocks.last().ok_or("there is no block")?;
    if text(last, "type")?.ends_with("thinking") {
        return Err("it ends in thinking".to_owned());
    }
    Ok(calls)
}

fn check_text(block: &Value) -> Result<(), String> {
    fields(block, &["type", "text", "cache_control"])?;
    if blank(text(block, "text")?) {
        return Err("a text is blank".to_owned());
    }
    Ok(())
}

fn check_image_block(block: &Value) -> Result<(), String> {
    fields(block, &["type", "source", "cache_control"])?;
    let source = object(block, "source")?;
    fields(source, &["type", "media_type", "data"])?;
    if text(source, "type")? != "base64" {
        return Err("the source of an image is not base64".to_owned());
    }
    check_image(text(source, "media_type")?, text(source, "data")?)
}

fn check_result(block: &Value) -> Result<&str, String> {
    let known = [
        "type",
        "tool_use_id",
        "content",
        "is_error",
        "cache_control",
    ];
    fields(block, &known)?;
    if block["content"].is_array() {
        for part in list(block, "content")? {
            match text(part, "type")? {
                "text" => check_text(part)?,
                "image" => check_image_block(part)?,
                other => return Err(format!("a result has a `{other}`")),
            }
        }
    } else if blank(text(block, "content")?) {
        return Err("a result is blank".to_owned());
    }
    if !block.get("is_error").is_none_or(Value::is_boolean) {
        return Err("`is_error` is neither true nor false".to_owned());
    }
    text(block, "tool_use_id")
}

fn check_mark(block: &Value) -> Result<(), String> {
    match block.get("cache_control") {
        None => Ok(()),
        Some(mark) => {
            fields(mark, &["type", "ttl"])?;
            let kind = text(mark, "type")?;
            let legal = kind == "ephemeral";
            legal.then_some(()).ok_or(format!("a mark is `{kind}`"))
        }
    }
}

fn count_marks(value: &Value) -> usize {
    match value {
        Value::Array(values) => values.iter().map(count_marks).sum(),
        Value::Object(object) => {
            let own = usize::from(object.contains_key("cache_control"));
            own + object.values().map(count_marks).sum::<usize>()
        }
        _ => 0,
    }
}

/// Returns a body without its cache marks.
pub fn unmarked(body: &Value) -> Value {
    match body {
        Value::Array(values) => values.iter().map(unmarked).collect(),
        Value::Object(object) => {
            let kept = object.iter().filter(|(key, _)| *key != "cache_control");
            let kept = kept.map(|(key, value)| (key.clone(), unmarked(value)));
            Value::Object(kept.collect())
        }
        other => other.clone(),
    }
}
