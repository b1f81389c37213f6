//! Answers of the four dialects, event by event.

use ikigai_providers::dialect::Dialect;
use ikigai_providers::dialects;
use ikigai_providers::transport::PreparedRequest;

use super::support::call;

/// Names of all dialects.
pub(crate) const DIALECTS: [&str; 4] = ["chat", "responses", "messages", "gemini"];

/// Part of an answer that comes in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Text,
    Thinking,
    Arguments,
}

/// Returns a call to this address, answered in a dialect.
pub(crate) fn call_in(name: &str, url: String, content_limit: usize) -> PreparedRequest {
    let dialect: &'static dyn Dialect = dialects::by_name(name).unwrap();
    PreparedRequest {
        dialect,
        content_limit,
        ..call(url)
    }
}

/// Returns the events before the first piece.
pub(crate) fn begin(dialect: &str, part: Part) -> Vec<String> {
    let events: &[&str] = match (dialect, part) {
        ("chat", Part::Arguments) => &[
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"ls","arguments":""}}]}}]}"#,
        ],
        ("messages", Part::Text) => &[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        ],
        ("messages", Part::Thinking) => &[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
        ],
        ("messages", Part::Arguments) => &[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c1","name":"ls","input":{}}}"#,
        ],
        ("responses", Part::Arguments) => &[
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"i1","call_id":"c1","name":"ls","arguments":""}}"#,
        ],
        _ => &[],
    };
    events.iter().map(|event| data(event)).collect()
}

/// Returns one piece; `json` is JSON text without its quotes.
pub(crate) fn piece(dialect: &str, part: Part, json: &str) -> String {
    let event = match (dialect, part) {
        ("chat", Part::Text) => {
            format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{json}"}}}}]}}"#)
        }
        ("chat", Part::Thinking) => {
            format!(r#"{{"choices":[{{"index":0,"delta":{{"reasoning_content":"{json}"}}}}]}}"#)
        }
        ("chat", Part::Arguments) => format!(
            r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":0,"function":{{"arguments":"{json}"}}}}]}}}}]}}"#
        ),
        ("responses", part) => {
            let kind = match part {
                Part::Text => "output_text",
                Part::Thinking => "reasoning_summary_text",
                Part::Arguments => "function_call_arguments",
            };
            format!(r#"{{"type":"response.{kind}.delta","output_index":0,"delta":"{json}"}}"#)
        }
        ("messages", part) => {
            let (kind, field) = match part {
                Part::Text => ("text_delta", "text"),
                Part::Thinking => ("thinking_delta", "thinking"),
                Part::Arguments => ("input_json_delta", "partial_json"),
            };
            format!(
                r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"{kind}","{field}":"{json}"}}}}"#
            )
        }
        (_, Part::Text) => {
            format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{json}"}}]}}}}]}}"#)
        }
        (_, Part::Thinking) => format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{json}","thought":true}}]}}}}]}}"#
        ),
        // Arguments come whole.
        (_, Part::Arguments) => format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"name":"ls","args":{{"a":"{json}"}}}}}}]}}}}]}}"#
        ),
    };
    data(&event)
}

/// Returns the events that end an answer.
pub(crate) fn end(dialect: &str) -> Vec<String> {
    let events: &[&str] = match dialect {
        "chat" => &[
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#,
            "[DONE]",
        ],
        "responses" => &[r#"{"type":"response.completed","response":{"status":"completed"}}"#],
        "messages" => &[
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
            r#"{"type":"message_stop"}"#,
        ],
        _ => &[r#"{"candidates":[{"finishReason":"STOP"}]}"#],
    };
    events.iter().map(|event| data(event)).collect()
}

/// Returns a whole answer of these pieces.
pub(crate) fn answer(dialect: &str, part: Part, pieces: &[&str]) -> Vec<String> {
    let mut events = begin(dialect, part);
    events.extend(pieces.iter().map(|json| piece(dialect, part, json)));
    events.extend(end(dialect));
    events
}

fn data(event: &str) -> String {
    format!("data: {event}\n\n")
}
