//! Conversations whose requests are compared, in no provider's form.

use ikigai_core::data::{Opaque, StoredThinking, Tagged, ToolCallData};
use ikigai_core::message::{BlockItem, Payload};
use ikigai_core::project::{ToolFacts, ToolSpec};
use ikigai_core::{Block, Event, Message, Request, Role};
use ikigai_testkit::TestLog;
use serde_json::json;

/// Payloads that a provider attaches to blocks, in its format.
pub(crate) struct Hung {
    /// On a thinking block.
    pub(crate) thinking: &'static str,
    /// On a thinking block that cannot be read.
    pub(crate) hidden: &'static str,
    /// On the first call of a step.
    pub(crate) call: &'static str,
    /// On a later call.
    pub(crate) later_call: &'static str,
}

fn payload(payload: &str) -> Payload {
    Payload {
        provider: "p".to_owned(),
        model: "m".to_owned(),
        payload: payload.to_owned(),
    }
}

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

fn says(text: &str) -> (Block, Option<Payload>) {
    let text = text.to_owned();
    (Block::Text { text }, None)
}

fn thinks(text: &str, hung: &str) -> (Block, Option<Payload>) {
    let block = Block::Thinking {
        text: text.to_owned(),
        payload: Some(payload(hung)),
    };
    (block, None)
}

fn calls(id: &str, name: &str, arguments: &str, hung: Option<&str>) -> (Block, Option<Payload>) {
    let block = Block::ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    };
    (block, hung.map(payload))
}

fn assistant(pieces: Vec<(Block, Option<Payload>)>) -> Message {
    let mut message = Message {
        role: Role::Assistant,
        blocks: Vec::new(),
        metadata: Vec::new(),
    };
    for (index, (block, item)) in pieces.into_iter().enumerate() {
        let item = item.map(|item| BlockItem { block: index, item });
        message.metadata.extend(item);
        message.blocks.push(block);
    }
    message
}

fn results(results: &[(&str, &str, bool)]) -> Message {
    let blocks = results.iter().map(|(id, content, is_error)| {
        let message = Message::tool_result(*id, *content, *is_error);
        message.blocks.into_iter().next().unwrap()
    });
    Message {
        role: Role::Tool,
        blocks: blocks.collect(),
        metadata: Vec::new(),
    }
}

/// Returns two tools.
pub(crate) fn tools() -> Vec<ToolSpec> {
    let read = ToolSpec {
        name: "read".to_owned(),
        description: "Reads a file".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
            "additionalProperties": false,
        }),
        facts: ToolFacts::default(),
    };
    let list = ToolSpec {
        name: "list".to_owned(),
        description: "Shows the list".to_owned(),
        parameters: json!({"type": "object"}),
        facts: ToolFacts::default(),
    };
    vec![read, list]
}

fn request(system: Option<&str>, messages: Vec<Message>, tools: Vec<ToolSpec>) -> Request {
    Request {
        system: system.map(str::to_owned),
        messages,
        tools,
        ..Request::default()
    }
}

/// Words only.
pub(crate) fn text() -> Request {
    let messages = vec![
        user("What is \"é\"?\nIn one line."),
        assistant(vec![says("A letter.")]),
        user("Thanks."),
    ];
    request(Some("Be brief."), messages, Vec::new())
}

/// Returns all conversations, by name.
pub(crate) fn all(hung: &Hung) -> Vec<(&'static str, Request)> {
    vec![
        ("text", text()),
        ("thinking", thinking(hung)),
        ("one-call", one_call(hung)),
        ("several-calls", several_calls(hung)),
        ("errors", errors(hung)),
        ("interrupted", interrupted()),
        ("empty-arguments", empty_arguments()),
    ]
}

fn thinking(hung: &Hung) -> Request {
    let messages = vec![
        user("Think."),
        assistant(vec![
            thinks("Let me see.", hung.thinking),
            thinks("", hung.hidden),
            says("I thought."),
        ]),
        user("And again."),
        // Nothing followed this thought before the answer was cut.
        assistant(vec![
            says("Hm."),
            thinks("On the other hand", hung.thinking),
        ]),
        user("Go on."),
    ];
    request(None, messages, Vec::new())
}

fn one_call(hung: &Hung) -> Request {
    let messages = vec![
        user("What is in a?"),
        assistant(vec![
            thinks("I need it.", hung.thinking),
            says("Reading."),
            calls(
                "c1",
                "read",
                "{\"path\": \"a\", \"n\": 1.50}",
                Some(hung.call),
            ),
        ]),
        results(&[("c1", "hello", false)]),
    ];
    request(Some("Be brief."), messages, tools())
}

/// Calls of this provider, then of another one in the current turn.
fn several_calls(hung: &Hung) -> Request {
    let messages = vec![
        user("What is in a and b?"),
        assistant(vec![
            thinks("Both.", hung.thinking),
            calls("c1", "read", "{\"path\":\"a\"}", Some(hung.call)),
            thinks("", hung.hidden),
            calls("c2", "read", "{\"path\":\"b\"}", Some(hung.later_call)),
        ]),
        results(&[("c1", "hello", false), ("c2", "world", false)]),
        assistant(vec![says("Both are short.")]),
        user("And c, d?"),
        assistant(vec![
            calls("x1", "read", "{\"path\":\"c\"}", None),
            calls("x2", "list", "{}", None),
        ]),
        results(&[("x1", "one", false), ("x2", "two", false)]),
        user("Quick, please."),
    ];
    request(Some("Be brief."), messages, tools())
}

fn errors(hung: &Hung) -> Request {
    let messages = vec![
        user("Read it."),
        assistant(vec![
            calls("c1", "read", "{\"path\":\"a\"}", Some(hung.call)),
            calls("c2", "read", "{\"path\":\"b\"}", None),
            calls("c3", "list", "{}", None),
        ]),
        results(&[
            ("c1", "no such file", true),
            ("c2", "", true),
            ("c3", " \n", false),
        ]),
    ];
    request(None, messages, tools())
}

fn interrupted() -> Request {
    let messages = vec![
        user("Tell me a story."),
        assistant(vec![says("Once upon")]),
        user("[The user interrupted this turn.]"),
        user("A shorter one."),
    ];
    request(Some("Be brief."), messages, Vec::new())
}

/// Arguments of all bad kinds, and tools that are gone.
fn empty_arguments() -> Request {
    let messages = vec![
        user("Call."),
        assistant(vec![
            calls("c1", "list", "", None),
            calls("c2", "read", "{\"path\":", None),
            calls("c3", "list", "[1]", None),
        ]),
        results(&[("c1", "1", false), ("c2", "2", true), ("c3", "3", false)]),
    ];
    request(None, messages, Vec::new())
}

/// Returns a request to `target` of an agent that used provider `a`, then `b`.
///
/// Both attached the same payloads, with their name in place of `@`.
pub(crate) fn switched(hung: &Hung, target: &str) -> Request {
    let mut log = TestLog::default();
    let agent = log.root();
    for (number, provider) in [(1, "a"), (2, "b")] {
        let tagged = |hung: &str| Tagged {
            provider: Some(provider.to_owned()),
            model: Some("m".to_owned()),
            payload: Some(hung.replace('@', provider)),
        };
        let thought = tagged(hung.thinking);
        let thinking = StoredThinking {
            text: Some(format!("I am {provider}.")),
            provider: thought.provider,
            model: thought.model,
            payload: thought.payload,
        };
        let id = format!("c{number}");
        log.append(agent, Event::user("Who are you?"));
        let call = Event::ToolCall {
            shown: None,
            data: ToolCallData {
                tool_call_id: Some(id.clone()),
                name: Some("read".to_owned()),
                arguments: Some("{\"path\":\"a\"}".to_owned()),
                response: Some(number),
                opaque: Some(Opaque {
                    thinking: Some(vec![thinking]),
                    item: Some(tagged(hung.call)),
                }),
            },
        };
        let call = log.append(agent, call);
        log.append(agent, Event::tool_result(call, id, "read", "hello", true));
    }
    let mut target = ikigai_testkit::target(target, "m");
    target.tools = tools();
    log.request(agent, &target).unwrap()
}
