//! Rules of every neutral request, for any history.

use std::collections::HashSet;

use ikigai_core::message::Payload;
use ikigai_core::{Block, Message, Request, Role, Target};

/// Checks a request; the error names the message and the rule that it violates.
pub fn check_request(request: &Request, target: &Target) -> Result<(), String> {
    let mut ids = HashSet::new();
    let first = request.messages.first().ok_or("there is no message")?;
    if first.role != Role::User {
        return Err("the first message is not the user's".to_owned());
    }
    if request
        .messages
        .last()
        .is_some_and(|last| last.role == Role::Assistant)
    {
        return Err("the last message is the assistant's".to_owned());
    }
    if request
        .system
        .as_ref()
        .is_some_and(|system| system.trim().is_empty())
    {
        return Err("the system slot is blank".to_owned());
    }
    let mut previous: Option<&Message> = None;
    for (index, message) in request.messages.iter().enumerate() {
        check_message(message, previous, target, &mut ids)
            .map_err(|rule| format!("message {index}: {rule}"))?;
        previous = Some(message);
    }
    Ok(())
}

fn check_message(
    message: &Message,
    previous: Option<&Message>,
    target: &Target,
    ids: &mut HashSet<String>,
) -> Result<(), String> {
    if message.blocks.is_empty() {
        return Err("it has no block".to_owned());
    }
    let open = previous.map_or_else(Vec::new, call_ids);
    if !open.is_empty() && message.role != Role::Tool {
        return Err("calls are not followed by their results".to_owned());
    }
    for item in &message.metadata {
        if item.block >= message.blocks.len() {
            return Err("an item hangs on no block".to_owned());
        }
        check_tag(&item.item, target)?;
    }
    match message.role {
        Role::User => check_user(message),
        Role::Assistant => {
            if previous.is_some_and(|previous| previous.role == Role::Assistant) {
                return Err("two messages of the assistant follow each other".to_owned());
            }
            check_assistant(message, target, ids)
        }
        Role::Tool => check_results(message, &open),
    }
}

fn call_ids(message: &Message) -> Vec<String> {
    let calls = message.blocks.iter().filter_map(|block| match block {
        Block::ToolCall { id, .. } => Some(id.clone()),
        _ => None,
    });
    calls.collect()
}

fn check_tag(tag: &Payload, target: &Target) -> Result<(), String> {
    if tag.provider == target.provider && tag.model == target.model {
        Ok(())
    } else {
        Err(format!(
            "a payload of {} {} is sent to another",
            tag.provider, tag.model
        ))
    }
}

fn check_text(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        Err("a text is blank".to_owned())
    } else {
        Ok(())
    }
}

fn check_user(message: &Message) -> Result<(), String> {
    message.blocks.iter().try_for_each(|block| match block {
        Block::Text { text } => check_text(text),
        Block::Image(_) => Ok(()),
        _ => Err("the user says something that is no text".to_owned()),
    })
}

fn check_assistant(
    message: &Message,
    target: &Target,
    ids: &mut HashSet<String>,
) -> Result<(), String> {
    let speaks = |block: &Block| matches!(block, Block::Text { .. } | Block::ToolCall { .. });
    if !message.blocks.iter().any(speaks) {
        return Err("the assistant neither speaks nor calls".to_owned());
    }
    message.blocks.iter().try_for_each(|block| match block {
        Block::Text { text } => check_text(text),
        Block::ToolCall { id, name, .. } => {
            check_name(id)?;
            check_name(name)?;
            if ids.insert(id.clone()) {
                Ok(())
            } else {
                Err(format!("id `{id}` occurs again"))
            }
        }
        Block::Thinking {
            payload: Some(payload),
            ..
        } => check_tag(payload, target),
        Block::Thinking { payload: None, .. } => Err("thinking has no payload".to_owned()),
        Block::ToolResult { .. } => Err("the assistant answers a call".to_owned()),
        Block::Image(_) => Err("the assistant sends an image".to_owned()),
    })
}

fn check_name(name: &str) -> Result<(), String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if (1..=64).contains(&name.len()) && name.chars().all(legal) {
        Ok(())
    } else {
        Err(format!("`{name}` is no legal id or name"))
    }
}

fn check_results(message: &Message, open: &[String]) -> Result<(), String> {
    let answered: Option<Vec<_>> = message
        .blocks
        .iter()
        .map(|block| match block {
            Block::ToolResult { tool_call_id, .. } => Some(tool_call_id.clone()),
            _ => None,
        })
        .collect();
    match answered {
        None => Err("a tool says something that is no result".to_owned()),
        Some(answered) if answered == open => Ok(()),
        Some(answered) => Err(format!("results {answered:?} answer calls {open:?}")),
    }
}
