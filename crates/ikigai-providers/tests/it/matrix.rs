//! Conversations that every dialect must be able to encode.

use ikigai_core::Request;
use ikigai_core::message::{Block, BlockItem, Message, Payload, Role};
use ikigai_core::project::{ToolFacts, ToolSpec};
use serde_json::json;

/// Payloads that a dialect attaches to blocks.
#[derive(Clone, Copy)]
pub(crate) struct Hangings {
    /// On the first thinking.
    pub(crate) thinking: &'static str,
    /// On the second.
    pub(crate) more_thinking: &'static str,
    /// On words.
    pub(crate) text: Option<&'static str>,
    /// On a call.
    pub(crate) call: Option<&'static str>,
}

/// Returns the conversations by name.
pub(crate) fn conversations(hangings: Hangings) -> Vec<(&'static str, Request)> {
    let plain = plain().into_iter();
    let all = with_hangings(hangings).into_iter().chain(plain);
    all.map(|(name, messages)| (name, request(messages)))
        .collect()
}

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

fn said(text: &str) -> Block {
    Block::Text {
        text: text.to_owned(),
    }
}

fn thought(text: &str, payload: &str) -> Block {
    Block::Thinking {
        text: text.to_owned(),
        payload: Some(tagged(payload)),
    }
}

fn reading(id: &str, path: &str) -> Block {
    Block::ToolCall {
        id: id.to_owned(),
        name: "read".to_owned(),
        arguments: json!({"path": path}).to_string(),
    }
}

fn with_hangings(hangings: Hangings) -> Vec<(&'static str, Vec<Message>)> {
    vec![
        (
            "text",
            vec![
                user("Hello."),
                assistant(vec![said("Hi.")], &[]),
                user("How are you?"),
            ],
        ),
        (
            "thinking",
            vec![
                user("Think."),
                assistant(
                    vec![thought("Hm.", hangings.thinking), said("I have thought.")],
                    &[(1, hangings.text)],
                ),
                user("Again."),
            ],
        ),
        (
            "one_call",
            vec![
                user("What is in a.txt?"),
                assistant(
                    vec![
                        thought("Read it.", hangings.thinking),
                        reading("call_1", "a.txt"),
                    ],
                    &[(1, hangings.call)],
                ),
                results(&[("call_1", "hello", false)]),
            ],
        ),
        (
            "several_calls",
            vec![
                user("What is in a.txt and b.txt?"),
                assistant(
                    vec![
                        thought("Both.", hangings.thinking),
                        said("Reading."),
                        reading("call_1", "a.txt"),
                        thought("And b.", hangings.more_thinking),
                        reading("call_2", "b.txt"),
                    ],
                    &[(1, hangings.text), (2, None), (4, hangings.call)],
                ),
                results(&[("call_1", "hello", false), ("call_2", "world", false)]),
                assistant(vec![said("Hello and world.")], &[]),
                user("Thanks."),
            ],
        ),
    ]
}

fn plain() -> Vec<(&'static str, Vec<Message>)> {
    vec![
        (
            "errors",
            vec![
                user("Read c.txt."),
                assistant(
                    vec![
                        reading("call_1", "c.txt"),
                        reading("call_2", "d.txt"),
                        reading("call_3", "e.txt"),
                    ],
                    &[],
                ),
                results(&[
                    ("call_1", "no such file", true),
                    ("call_2", "Error: no such file", true),
                    ("call_3", "", false),
                ]),
            ],
        ),
        (
            "interrupted",
            vec![
                user("Tell me a story."),
                assistant(vec![said("Once upon a")], &[]),
                user("[The user interrupted this turn.]"),
                user("A shorter one."),
            ],
        ),
        (
            "empty_arguments",
            vec![
                user("What time is it?"),
                assistant(
                    ["", "{", "[]", "{\"z\": 1, \"a\":2}"]
                        .iter()
                        .zip(1..)
                        .map(|(arguments, number)| Block::ToolCall {
                            id: format!("call_{number}"),
                            name: "time".to_owned(),
                            arguments: (*arguments).to_owned(),
                        })
                        .collect(),
                    &[],
                ),
                results(&[
                    ("call_1", "noon", false),
                    ("call_2", "noon", false),
                    ("call_3", "noon", false),
                    ("call_4", "noon", false),
                ]),
            ],
        ),
        // History of another model after projection: thinking and items removed.
        (
            "foreign_payloads",
            vec![
                user("Go on."),
                assistant(vec![said("Reading."), reading("toolu_1", "a.txt")], &[]),
                results(&[("toolu_1", "hello", false)]),
            ],
        ),
    ]
}

/// Returns a request with a system prompt and two tools, one of which fits strict mode.
pub(crate) fn request(messages: Vec<Message>) -> Request {
    let path = json!({"path": {"type": "string"}});
    let read = ToolSpec {
        name: "read".to_owned(),
        description: "Reads a file".to_owned(),
        parameters: json!({
            "type": "object", "properties": path, "required": ["path"],
            "additionalProperties": false,
        }),
        facts: ToolFacts::default(),
    };
    let time = ToolSpec {
        name: "time".to_owned(),
        description: "Prints the time".to_owned(),
        parameters: json!({"type": "object"}),
        facts: ToolFacts::default(),
    };
    Request {
        system: Some("You are a coding agent.".to_owned()),
        messages,
        tools: vec![read, time],
        ..Request::default()
    }
}

/// Returns a payload with the tag of the request's model, as the projection leaves it.
pub(crate) fn tagged(payload: &str) -> Payload {
    Payload {
        provider: "own".to_owned(),
        model: "own".to_owned(),
        payload: payload.to_owned(),
    }
}

/// Returns an assistant message with the payloads of its blocks.
pub(crate) fn assistant(blocks: Vec<Block>, items: &[(usize, Option<&str>)]) -> Message {
    let metadata = items.iter().filter_map(|(block, item)| {
        Some(BlockItem {
            block: *block,
            item: tagged((*item)?),
        })
    });
    Message {
        role: Role::Assistant,
        metadata: metadata.collect(),
        blocks,
    }
}

/// Returns a message of results: id, content, failure.
pub(crate) fn results(results: &[(&str, &str, bool)]) -> Message {
    let blocks = results
        .iter()
        .map(|(id, content, is_error)| Block::ToolResult {
            tool_call_id: (*id).to_owned(),
            content: (*content).to_owned(),
            is_error: *is_error,
            images: Vec::new(),
        });
    Message {
        role: Role::Tool,
        blocks: blocks.collect(),
        metadata: Vec::new(),
    }
}
