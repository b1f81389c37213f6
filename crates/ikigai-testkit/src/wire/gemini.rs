//! The rules of Gemini `generateContent`.

use std::collections::HashSet;

use serde_json::Value;

use super::images::check_image;
use super::{blank, fields, is_name, list, object, text};

/// Checks the body of a request by the rules of every model; the error names the violation.
pub fn check(body: &Value) -> Result<(), String> {
    let known = [
        "systemInstruction",
        "contents",
        "tools",
        "toolConfig",
        "generationConfig",
    ];
    fields(body, &known)?;
    if let Some(instruction) = body.get("systemInstruction") {
        fields(instruction, &["parts"])?;
        for part in list(instruction, "parts")? {
            fields(part, &["text"])?;
            if blank(text(part, "text")?) {
                return Err("the system slot is blank".to_owned());
            }
        }
    }
    check_tools(body)?;
    if body.get("generationConfig").is_some() {
        check_configuration(object(body, "generationConfig")?)?;
    }
    check_contents(list(body, "contents")?)
}

/// Checks the additional rule of models from the third generation on.
///
/// In the current turn, the first call of each step is signed.
pub fn check_signatures(body: &Value) -> Result<(), String> {
    let contents = list(body, "contents")?;
    let said = |content: &Value| {
        let parts = content["parts"].as_array();
        let has_text = parts.is_some_and(|parts| parts.iter().any(|part| part["text"].is_string()));
        content["role"] == "user" && has_text
    };
    let turn = contents.iter().rposition(said).unwrap_or(0);
    for (index, content) in contents.iter().enumerate().skip(turn) {
        let parts = list(content, "parts")?;
        let first = parts.iter().find(|part| part["functionCall"].is_object());
        if first.is_some_and(|call| !call["thoughtSignature"].is_string()) {
            return Err(format!("content {index}: its first call is not signed"));
        }
    }
    Ok(())
}

fn check_tools(body: &Value) -> Result<(), String> {
    if body.get("tools").is_none() {
        return Ok(());
    }
    let mut names = HashSet::new();
    for tool in list(body, "tools")? {
        fields(tool, &["functionDeclarations"])?;
        for declaration in list(tool, "functionDeclarations")? {
            // `parameters` and `parametersJsonSchema` exclude each other.
            let known = ["name", "description", "parametersJsonSchema"];
            fields(declaration, &known)?;
            let name = text(declaration, "name")?;
            if !is_name(name) || !names.insert(name) {
                return Err(format!("`{name}` is no name of a tool, or there twice"));
            }
            let schema = declaration.get("parametersJsonSchema");
            let schema = schema.ok_or("a tool has no schema")?;
            if text(schema, "type")? != "object" {
                return Err(format!("the schema of `{name}` is of no object"));
            }
        }
    }
    Ok(())
}

fn check_configuration(configuration: &Value) -> Result<(), String> {
    fields(configuration, &["maxOutputTokens", "thinkingConfig"])?;
    let most = configuration.get("maxOutputTokens");
    if most.is_some_and(|most| most.as_u64().is_none_or(|most| most == 0)) {
        return Err("`maxOutputTokens` is no positive number".to_owned());
    }
    let Some(thinking) = configuration.get("thinkingConfig") else {
        return Ok(());
    };
    fields(
        thinking,
        &["thinkingLevel", "thinkingBudget", "includeThoughts"],
    )?;
    match (
        thinking.get("thinkingLevel"),
        thinking.get("thinkingBudget"),
    ) {
        (Some(level), None) => {
            let levels = ["MINIMAL", "LOW", "MEDIUM", "HIGH"];
            let legal = levels.iter().any(|known| level == known);
            legal.then_some(()).ok_or(format!("{level} is no level"))
        }
        (None, Some(budget)) => {
            let legal = budget.as_u64().is_some_and(|budget| budget <= 32_768);
            legal.then_some(()).ok_or(format!("{budget} is no budget"))
        }
        _ => Err("not one of level and budget".to_owned()),
    }
}

/// A call that waits for its response.
type UnansweredCall<'a> = (&'a str, Option<&'a str>);

fn check_contents(contents: &[Value]) -> Result<(), String> {
    let mut ids = HashSet::new();
    let mut open: Vec<UnansweredCall<'_>> = Vec::new();
    let mut previous = "model";
    for (index, content) in contents.iter().enumerate() {
        let here = |rule: String| format!("content {index}: {rule}");
        fields(content, &["role", "parts"]).map_err(here)?;
        let role = text(content, "role").map_err(here)?;
        let parts = list(content, "parts").map_err(here)?;
        match role {
            "user" => {
                check_user(parts, &open).map_err(here)?;
                open.clear();
            }
            "model" if previous == "model" => {
                return Err(here("the model after itself, or first".to_owned()));
            }
            "model" => open = check_model(parts, &mut ids).map_err(here)?,
            other => return Err(here(format!("there is no role `{other}`"))),
        }
        previous = role;
    }
    match previous {
        "user" => Ok(()),
        _ => Err("the last content is the model's".to_owned()),
    }
}

/// Checks a content of the user: texts, or the responses to all open calls in order.
fn check_user(parts: &[Value], open: &[UnansweredCall<'_>]) -> Result<(), String> {
    let mut answered = Vec::new();
    for part in parts {
        if part.get("inlineData").is_some() {
            check_inline_data(part)?;
            continue;
        }
        if part.get("functionResponse").is_none() {
            fields(part, &["text"])?;
            if text(part, "text")?.is_empty() || !open.is_empty() {
                return Err("a text is empty, or stands before responses".to_owned());
            }
            continue;
        }
        fields(part, &["functionResponse"])?;
        let response = object(part, "functionResponse")?;
        fields(response, &["id", "name", "response", "parts"])?;
        if response.get("parts").is_some() {
            list(response, "parts")?
                .iter()
                .try_for_each(check_inline_data)?;
        }
        let said = object(response, "response")?;
        fields(said, &["output", "error"])?;
        let id = response.get("id").map(|_| text(response, "id"));
        answered.push((text(response, "name")?, id.transpose()?));
    }
    if answered != open {
        return Err(format!("responses {answered:?} to calls {open:?}"));
    }
    Ok(())
}

fn check_inline_data(part: &Value) -> Result<(), String> {
    fields(part, &["inlineData"])?;
    let data = object(part, "inlineData")?;
    fields(data, &["mimeType", "data"])?;
    check_image(text(data, "mimeType")?, text(data, "data")?)
}

fn check_model<'a>(
    parts: &'a [Value],
    ids: &mut HashSet<&'a str>,
) -> Result<Vec<UnansweredCall<'a>>, String> {
    let mut calls = Vec::new();
    for part in parts {
        // `thought` is not among them: thoughts are not sent back.
        fields(part, &["text", "functionCall", "thoughtSignature"])?;
        let signed = part.get("thoughtSignature").is_some();
        if signed && text(part, "thoughtSignature")?.is_empty() {
            return Err("a signature is empty".to_owned());
        }
        match (part.get("text"), part.get("functionCall")) {
            (Some(_), None) => {
                if text(part, "text")?.is_empty() && !signed {
                    return Err("a text is empty".to_owned());
                }
            }
            (None, Some(call)) => {
                fields(call, &["id", "name", "args"])?;
                object(call, "args")?;
                let id = call.get("id").map(|_| text(call, "id")).transpose()?;
                let name = text(call, "name")?;
                if !is_name(name) || id.is_some_and(|id| id.is_empty() || !ids.insert(id)) {
                    return Err(format!("{id:?} or `{name}` is illegal or there twice"));
                }
                calls.push((name, id));
            }
            _ => return Err("a part has not one thing to say".to_owned()),
        }
    }
    Ok(calls)
}
