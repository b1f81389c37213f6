//! Conversion of an answer into rows, in the order of its blocks.

use ikigai_core::data::{
    AssistantData, Category, ErrorData, Opaque, StoredThinking, Tagged, ToolCallData, UsageData,
};
use ikigai_core::{Event, Target};
use ikigai_providers::{AnswerBlock, Response};

use crate::ledger::Tally;

/// Formats a call for people, given its tool's name and its arguments.
type CallPreview<'a> = &'a dyn Fn(&str, &str) -> Option<String>;

/// Converts a response into rows.
/// Text and calls keep their order, each with the thinking that preceded it; usage comes last.
pub(crate) fn rows_of(
    response: Response,
    tally: &Tally,
    target: &Target,
    level: Option<&str>,
    shown: CallPreview<'_>,
) -> Vec<Event> {
    let number = tally.response + 1;
    let mut rows = Rows {
        number,
        target,
        level,
        stop: response.stop.word(),
        shown,
        thinking: Vec::new(),
        events: Vec::new(),
    };
    for block in response.blocks {
        rows.add(block);
    }
    let mut events = rows.finish();
    events.push(Event::Usage(UsageData {
        response: Some(number),
        provider: Some(target.provider.clone()),
        model: Some(target.model.clone()),
        sum: Some(tally.spent.plus(&response.usage)),
        amounts: response.usage,
    }));
    events
}

/// Builds the row of an unfinished answer's text.
pub(crate) fn partial(text: String, stop: &str, tally: &Tally, target: Option<&Target>) -> Event {
    let data = AssistantData {
        response: Some(tally.response + 1),
        provider: target.map(|target| target.provider.clone()),
        model: target.map(|target| target.model.clone()),
        stop: Some(stop.to_owned()),
        ..AssistantData::default()
    };
    Event::Assistant { text, data }
}

/// Builds the row of a failure.
pub(crate) fn failure(category: Category, text: &str, status: Option<u16>, attempts: u32) -> Event {
    let data = ErrorData {
        category: Some(category),
        status,
        attempts: Some(attempts),
        omit: None,
    };
    Event::Error {
        text: text.to_owned(),
        data,
    }
}

struct Rows<'a> {
    number: u64,
    target: &'a Target,
    level: Option<&'a str>,
    stop: &'a str,
    shown: CallPreview<'a>,
    /// Thinking since the last block.
    thinking: Vec<StoredThinking>,
    events: Vec<Event>,
}

impl Rows<'_> {
    fn add(&mut self, block: AnswerBlock) {
        match block {
            AnswerBlock::Thinking { text, payload } => {
                let tagged = self.tagged(payload);
                self.thinking.push(StoredThinking {
                    text: Some(text),
                    provider: tagged.provider,
                    model: tagged.model,
                    payload: tagged.payload,
                });
            }
            AnswerBlock::Text { text, item } => self.say(text, item),
            AnswerBlock::Call {
                id,
                name,
                arguments,
                item,
            } => {
                let number = self.events.len() + 1;
                let made_up = || format!("call_{}_{number}", self.number);
                let id = id.filter(|id| !id.is_empty()).unwrap_or_else(made_up);
                let opaque = self.opaque(item);
                let shown = (self.shown)(&name, &arguments);
                let data = ToolCallData {
                    tool_call_id: Some(id),
                    name: Some(name),
                    arguments: Some(arguments),
                    response: Some(self.number),
                    opaque,
                };
                self.events.push(Event::ToolCall { shown, data });
            }
        }
    }

    fn say(&mut self, text: String, item: Option<String>) {
        let opaque = self.opaque(item);
        let data = AssistantData {
            response: Some(self.number),
            provider: Some(self.target.provider.clone()),
            model: Some(self.target.model.clone()),
            level: self.level.map(str::to_owned),
            stop: Some(self.stop.to_owned()),
            opaque,
        };
        self.events.push(Event::Assistant { text, data });
    }

    fn finish(mut self) -> Vec<Event> {
        // Thinking at the end, and an empty answer, become a row without text.
        if self.events.is_empty() || !self.thinking.is_empty() {
            self.say(String::new(), None);
        }
        self.events
    }

    fn opaque(&mut self, item: Option<String>) -> Option<Opaque> {
        let thinking = std::mem::take(&mut self.thinking);
        let opaque = Opaque {
            thinking: Some(thinking).filter(|thinking| !thinking.is_empty()),
            item: item.map(|item| self.tagged(Some(item))),
        };
        Some(opaque).filter(|opaque| opaque.thinking.is_some() || opaque.item.is_some())
    }

    fn tagged(&self, payload: Option<String>) -> Tagged {
        Tagged {
            provider: Some(self.target.provider.clone()),
            model: Some(self.target.model.clone()),
            payload,
        }
    }
}
