//! Rows of older, newer or faulty programs: their kinds, contents and data.

use ikigai_core::{AgentId, Kind};
use proptest::collection::vec;
use proptest::option::of as maybe;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

use super::text::{CallId, Text, call_id, text};

/// A row that no program of this version writes.
#[derive(Clone, Debug)]
pub enum BadRow {
    /// An unknown kind.
    UnknownKind {
        kind: &'static str,
        content: Option<Text>,
        data: OddData,
    },
    /// Any kind with data of another kind, or without data.
    Odd {
        kind: &'static str,
        content: Option<Text>,
        data: OddData,
    },
    /// A result of the legacy kind `tool`, for a call counted back from the newest.
    LegacyResult { call: usize, output: Text },
    /// A call in one of the older shapes.
    OlderCall {
        id: CallId,
        shape: OlderShape,
        numbered: bool,
    },
}

/// A shape of tool calls that older programs wrote.
#[derive(Clone, Copy, Debug)]
pub enum OlderShape {
    /// `{"id","type","function":{…}}`.
    Function,
    /// `{"tool_call_id","tool_name","tool_args"}`.
    ToolArgs,
    /// The same with thinking.
    ToolArgsThinking,
}

/// Data that need not fit its kind.
#[derive(Clone, Debug)]
pub enum OddData {
    /// No data.
    Absent,
    /// A sample, in which `<own>` is replaced by the agent's id.
    Sample(&'static str),
    /// Any characters.
    Chars(String),
    /// This many nested brackets.
    Nested(usize),
}

/// An invalid target.
#[derive(Clone, Debug)]
pub enum BadTarget {
    /// A row of another agent that this one does not hold.
    NotHeld(usize),
    /// The rewind itself, or a row after it.
    Newer(u64),
    /// Data that names no row.
    Malformed(OddData),
}

const UNKNOWN_KINDS: [&str; 7] = [
    "bogus",
    "",
    "User",
    "user ",
    "tool_use",
    "\u{e9}\u{0}",
    "a kind with a name that is far longer than any name of any kind has ever been until now",
];

const SAMPLES: [&str; 48] = [
    "",
    "not json",
    "{",
    "nul",
    "null",
    "true",
    "7",
    "\"text\"",
    "[]",
    "[{}]",
    "[{\"agent\":\"<own>\",\"seq\":1}]",
    "{}",
    "{\"\":0}",
    "{\"\\ud800\":1}",
    "{\"target\":null}",
    "{\"target\":7}",
    "{\"target\":\"<own>\"}",
    "{\"target\":[\"<own>\",1]}",
    "{\"target\":{\"agent\":\"<own>\"}}",
    "{\"target\":{\"agent\":\"<own>\",\"seq\":\"1\"}}",
    "{\"target\":{\"agent\":\"<own>\",\"seq\":-1}}",
    "{\"target\":{\"agent\":\"<own>\",\"seq\":1.0}}",
    "{\"target\":{\"agent\":\"<own>\",\"seq\":0}}",
    "{\"target\":{\"agent\":\"<own>\",\"seq\":18446744073709551615}}",
    "{\"target\":{\"agent\":\"AAAAAAAAAAAAAAAAAAAAAA\",\"seq\":1}}",
    "{\"target\":{\"agent\":\"<own>\",\"seq\":1},\"via\":\"other\"}",
    "{\"target\":{\"agent\":\"<own>\",\"seq\":1},\"target\":null}",
    "{\"target\":{\"agent\":\"<own>\",\"seq\":2,\"more\":[]},\"via\":\"retry\"}",
    "{\"role\":\"child\",\"context\":\"inherit\",\"fork_point\":{\"agent\":\"<own>\",\"seq\":1}}",
    "{\"role\":\"child\",\"settings\":{\"name\":\"forged\"}}",
    "{\"role\":\"parent\",\"call\":{\"agent\":\"<own>\",\"seq\":1},\"parent_uuid\":\"<own>\"}",
    "{\"from\":{\"agent\":\"<own>\",\"seq\":1}}",
    "{\"from\":{\"agent\":\"<own>\",\"seq\":1},\"to\":{\"agent\":\"<own>\",\"seq\":99}}",
    "{\"undo\":7,\"from\":{\"agent\":\"<own>\",\"seq\":1},\"to\":{\"agent\":\"<own>\",\"seq\":3}}",
    "{\"omit\":[]}",
    "{\"omit\":[1]}",
    "{\"omit\":[{\"agent\":\"<own>\",\"seq\":2}]}",
    "{\"set\":5}",
    "{\"set\":{}}",
    "{\"set\":{\"name\":5},\"resume\":\"yes\"}",
    "{\"resume\":true}",
    "{\"shell\":{}}",
    "{\"shell\":7,\"merge\":null}",
    "{\"response\":\"1\",\"opaque\":7}",
    "{\"tool_call_id\":\"x\",\"output\":\"y\",\"success\":1,\"name\":null,\"summary\":{},\"call\":7}",
    "{\"tool_call_id\":\"x\",\"output\":7}",
    "{\"tool_call_id\":\"x\",\"name\":\"bash\"}",
    "{\"id\":\"x\",\"function\":{\"name\":\"bash\",\"arguments\":{}}}",
];

impl OddData {
    /// Returns the data of a row of `agent`.
    pub fn spell(&self, agent: AgentId) -> Option<String> {
        match self {
            Self::Absent => None,
            Self::Sample(sample) => Some(sample.replace("<own>", &agent.to_string())),
            Self::Chars(chars) => Some(chars.clone()),
            Self::Nested(depth) => Some("{\"a\":[".repeat(*depth)),
        }
    }
}

fn odd_data() -> BoxedStrategy<OddData> {
    prop_oneof![
        2 => Just(OddData::Absent),
        16 => select(&SAMPLES[..]).prop_map(OddData::Sample),
        1 => vec(any::<char>(), 0..8).prop_map(|chars| OddData::Chars(chars.into_iter().collect())),
        1 => (100..3000_usize).prop_map(OddData::Nested),
    ]
    .boxed()
}

/// Generates targets that no rewind should have.
pub(super) fn bad_target() -> BoxedStrategy<BadTarget> {
    prop_oneof![
        2 => (0..40_usize).prop_map(BadTarget::NotHeld),
        1 => prop_oneof![0..3_u64, Just(u64::MAX / 2)].prop_map(BadTarget::Newer),
        2 => odd_data().prop_map(BadTarget::Malformed),
    ]
    .boxed()
}

/// Generates rows of older, newer and faulty programs.
pub(super) fn bad_row() -> BoxedStrategy<BadRow> {
    let kinds: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    let conversation = vec!["user", "assistant", "tool_call", "tool_result", "tool"];
    let kind = prop_oneof![
        1 => select(kinds),
        1 => select(conversation),
    ];
    let shape = select(
        &[
            OlderShape::Function,
            OlderShape::ToolArgs,
            OlderShape::ToolArgsThinking,
        ][..],
    );
    prop_oneof![
        2 => (select(&UNKNOWN_KINDS[..]), maybe(text()), odd_data())
            .prop_map(|(kind, content, data)| BadRow::UnknownKind { kind, content, data }),
        6 => (kind, maybe(text()), odd_data())
            .prop_map(|(kind, content, data)| BadRow::Odd { kind, content, data }),
        1 => (0..6_usize, text())
            .prop_map(|(call, output)| BadRow::LegacyResult { call, output }),
        1 => (call_id(), shape, any::<bool>())
            .prop_map(|(id, shape, numbered)| BadRow::OlderCall { id, shape, numbered }),
    ]
    .boxed()
}

/// Returns true if a row belongs into the index of control rows, by their definition.
pub(super) fn is_control(kind: &str, data: Option<&str>) -> bool {
    let data: Value = data
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    match kind {
        "clear" | "rewind" | "mark" | "summary" | "system" => true,
        "fork" => data.get("role") == Some(&Value::from("child")),
        "command" => data.get("set").is_some_and(Value::is_object),
        "error" => data.get("omit").is_some_and(Value::is_array),
        _ => false,
    }
}
