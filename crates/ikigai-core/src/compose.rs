//! Constructors of the most common events.

use serde_json::{Map, Value};

use crate::data::{
    AssistantData, Cause, CommandData, InterruptedData, MarkData, RewindData, SummaryData,
    SystemData, SystemOrigin, ToolCallData, ToolResultData, UserData, UserOrigin, Via,
};
use crate::event::Event;
use crate::ids::RowRef;
use crate::settings::{Pin, Settings};

impl Event {
    /// Makes a system prompt.
    pub fn system(text: impl Into<String>, origin: SystemOrigin) -> Self {
        Self::System {
            text: text.into(),
            data: SystemData {
                origin: Some(origin),
            },
        }
    }

    /// Makes a message that the user typed.
    pub fn user(text: impl Into<String>) -> Self {
        let data = UserData {
            origin: Some(UserOrigin::Typed),
            ..UserData::default()
        };
        Self::User {
            text: text.into(),
            data,
        }
    }

    /// Makes text of the model, part of response number `response`.
    pub fn assistant(response: u64, text: impl Into<String>) -> Self {
        let data = AssistantData {
            response: Some(response),
            ..AssistantData::default()
        };
        Self::Assistant {
            text: text.into(),
            data,
        }
    }

    /// Makes a tool call, part of response number `response`.
    pub fn tool_call(
        response: u64,
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        let data = ToolCallData {
            tool_call_id: Some(id.into()),
            name: Some(name.into()),
            arguments: Some(arguments.into()),
            response: Some(response),
            opaque: None,
        };
        Self::ToolCall { shown: None, data }
    }

    /// Makes the result of the call in row `call`.
    pub fn tool_result(
        call: RowRef,
        id: impl Into<String>,
        name: impl Into<String>,
        output: impl Into<String>,
        success: bool,
    ) -> Self {
        let data = ToolResultData {
            tool_call_id: Some(id.into()),
            name: Some(name.into()),
            output: Some(output.into()),
            success: Some(success),
            call: Some(call),
            ..ToolResultData::default()
        };
        Self::ToolResult { shown: None, data }
    }

    /// Makes a mark.
    pub fn mark(label: Option<&str>) -> Self {
        Self::Mark(MarkData {
            label: label.map(str::to_owned),
        })
    }

    /// Makes a rewind to `target` from the head `from`.
    pub fn rewind(target: RowRef, from: RowRef, via: Via) -> Self {
        Self::Rewind(RewindData {
            target: Some(target),
            from: Some(from),
            via: Some(via),
            ..RewindData::default()
        })
    }

    /// Makes the stop of a turn.
    pub fn interrupted(cause: Cause) -> Self {
        Self::Interrupted(InterruptedData { cause: Some(cause) })
    }

    /// Makes a summary of the rows `from..=to` of the path; without a text it only leaves them out.
    pub fn summary(text: Option<&str>, from: RowRef, to: RowRef) -> Self {
        let data = SummaryData {
            from: Some(from),
            to: Some(to),
            ..SummaryData::default()
        };
        Self::Summary {
            text: text.map(str::to_owned),
            data,
        }
    }

    /// Makes the command that resumes a stopped turn.
    pub fn resume() -> Self {
        let data = CommandData {
            command: Some("resume".to_owned()),
            resume: Some(true),
            ..CommandData::default()
        };
        Self::Command { output: None, data }
    }

    /// Makes a setting that the program changes by itself; front ends do not draw it.
    pub fn set(command: &str, set: Map<String, Value>) -> Self {
        let data = CommandData {
            command: Some(command.to_owned()),
            set: Some(set),
            ..CommandData::default()
        };
        Self::Command { output: None, data }
    }

    /// Makes pins that the program changes by itself; with `later`, the prefix of requests takes
    /// them at the next context row.
    pub fn set_pins(pins: Vec<Pin>, later: bool) -> Self {
        let settings = Settings {
            pins: Some(pins),
            ..Settings::default()
        };
        let data = CommandData {
            command: Some("pin".to_owned()),
            set: Some(settings.as_set()),
            later: later.then_some(true),
            ..CommandData::default()
        };
        Self::Command { output: None, data }
    }
}
