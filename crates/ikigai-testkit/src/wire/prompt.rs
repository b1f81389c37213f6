//! Prompt in the body of a request, for all dialects: system, tools and conversation.

use serde_json::{Value, json};

use super::WireDialect;
use super::messages::unmarked;

/// One block of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptBlock {
    /// A text in the user's role.
    User(String),
    /// A text of the model.
    Assistant(String),
    /// A call: the tool, and its arguments as JSON.
    Call(String, String),
    /// The result of a call, with the prefix `error: ` if the dialect marks failures so.
    Result(String),
}

/// The prompt of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The system prompt.
    pub system: String,
    /// Tools and tool choice, as sent.
    pub tools: String,
    /// The conversation.
    pub blocks: Vec<PromptBlock>,
}

impl Prompt {
    /// Reads the body of a request.
    pub fn read(spoken: WireDialect, body: &Value) -> Self {
        let tools = tools_part(spoken, body);
        let mut prompt = Self {
            tools,
            ..Self::default()
        };
        match spoken {
            WireDialect::Chat => prompt.read_chat(body),
            WireDialect::Responses => prompt.read_responses(body),
            WireDialect::Messages => prompt.read_messages(body),
            WireDialect::Gemini => prompt.read_gemini(body),
        }
        prompt
    }

    /// Returns the results of calls, oldest first.
    pub fn results(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().filter_map(|block| match block {
            PromptBlock::Result(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Returns the texts in the user's role, oldest first.
    pub fn user_texts(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().filter_map(|block| match block {
            PromptBlock::User(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Returns all texts, results included, oldest first.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().filter_map(|block| match block {
            PromptBlock::User(text) | PromptBlock::Assistant(text) | PromptBlock::Result(text) => {
                Some(text.as_str())
            }
            PromptBlock::Call(..) => None,
        })
    }

    fn read_chat(&mut self, body: &Value) {
        for message in list(&body["messages"]) {
            let content = text(&message["content"]);
            match message["role"].as_str() {
                Some("system") => self.system = content,
                Some("tool") => self.blocks.push(PromptBlock::Result(content)),
                Some("assistant") => {
                    if !content.is_empty() {
                        self.blocks.push(PromptBlock::Assistant(content));
                    }
                    for call in list(&message["tool_calls"]) {
                        let call = &call["function"];
                        self.call(&call["name"], &call["arguments"]);
                    }
                }
                _ => self.blocks.push(PromptBlock::User(content)),
            }
        }
    }

    fn read_responses(&mut self, body: &Value) {
        self.system = text(&body["instructions"]);
        for item in list(&body["input"]) {
            match item["type"].as_str() {
                Some("function_call") => self.call(&item["name"], &item["arguments"]),
                Some("function_call_output") => {
                    self.blocks.push(PromptBlock::Result(text(&item["output"])));
                }
                Some("message") => {
                    let texts = list(&item["content"]).map(|part| text(&part["text"]));
                    let is_user = item["role"] == "user";
                    self.blocks.extend(texts.map(|text| {
                        if is_user {
                            PromptBlock::User(text)
                        } else {
                            PromptBlock::Assistant(text)
                        }
                    }));
                }
                _ => {}
            }
        }
    }

    fn read_messages(&mut self, body: &Value) {
        self.system = list(&body["system"])
            .map(|block| text(&block["text"]))
            .collect();
        for message in list(&body["messages"]) {
            for block in list(&message["content"]) {
                match block["type"].as_str() {
                    Some("tool_use") => self.call(&block["name"], &block["input"]),
                    Some("tool_result") => {
                        let content = text(&block["content"]);
                        self.blocks.push(PromptBlock::Result(content));
                    }
                    Some("text") if message["role"] == "user" => {
                        self.blocks.push(PromptBlock::User(text(&block["text"])));
                    }
                    Some("text") => {
                        let said = text(&block["text"]);
                        self.blocks.push(PromptBlock::Assistant(said));
                    }
                    _ => {}
                }
            }
        }
    }

    fn read_gemini(&mut self, body: &Value) {
        self.system = list(&body["systemInstruction"]["parts"])
            .map(|part| text(&part["text"]))
            .collect();
        for content in list(&body["contents"]) {
            for part in list(&content["parts"]) {
                let call = &part["functionCall"];
                let response = &part["functionResponse"]["response"];
                if !call.is_null() {
                    self.call(&call["name"], &call["args"]);
                } else if !response.is_null() {
                    let said = response.get("output").or_else(|| response.get("error"));
                    let said = said.map(text).unwrap_or_default();
                    self.blocks.push(PromptBlock::Result(said));
                } else if content["role"] == "user" {
                    self.blocks.push(PromptBlock::User(text(&part["text"])));
                } else {
                    let said = text(&part["text"]);
                    self.blocks.push(PromptBlock::Assistant(said));
                }
            }
        }
    }

    fn call(&mut self, name: &Value, arguments: &Value) {
        let arguments = match arguments {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        self.blocks.push(PromptBlock::Call(text(name), arguments));
    }
}

/// Returns the parts of a request in the model's reading order: tools, system, blocks.
///
/// Each is as sent, without the cache marks of Anthropic, which move.
pub fn prompt_parts(spoken: WireDialect, body: &Value) -> Vec<String> {
    let mut parts = vec![tools_part(spoken, body)];
    match spoken {
        WireDialect::Chat => parts.extend(list(&body["messages"]).map(Value::to_string)),
        WireDialect::Responses => {
            parts.push(body["instructions"].to_string());
            parts.extend(list(&body["input"]).map(Value::to_string));
        }
        WireDialect::Gemini => {
            parts.push(body["systemInstruction"].to_string());
            parts.extend(list(&body["contents"]).map(Value::to_string));
        }
        WireDialect::Messages => {
            parts.push(unmarked(&body["system"]).to_string());
            let blocks = blocks_of(body);
            parts.extend(blocks.map(|(role, block)| format!("{role}{}", unmarked(block))));
        }
    }
    parts
}

/// Returns for each of the [`prompt_parts`] if it has a cache mark.
pub(crate) fn is_marked(body: &Value) -> Vec<bool> {
    let is_marked = |value: &Value| value.get("cache_control").is_some();
    let mut marks = vec![
        list(&body["tools"]).last().is_some_and(is_marked),
        list(&body["system"]).last().is_some_and(is_marked),
    ];
    marks.extend(blocks_of(body).map(|(_, block)| is_marked(block)));
    marks
}

fn tools_part(spoken: WireDialect, body: &Value) -> String {
    let tools = match spoken {
        WireDialect::Messages => &unmarked(&body["tools"]),
        WireDialect::Chat | WireDialect::Responses | WireDialect::Gemini => &body["tools"],
    };
    json!([tools, body["tool_choice"], body["toolConfig"]]).to_string()
}

fn blocks_of(body: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    list(&body["messages"]).flat_map(|message| {
        let blocks = list(&message["content"]);
        blocks.map(|block| (&message["role"], block))
    })
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
