//! Texts, call ids and JSON of a history: plain, odd and rare ones.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// A text of a row. Its debug form is small, even for a large text.
#[derive(Clone, Debug)]
pub enum Text {
    /// One of the samples.
    Sample(&'static str),
    /// Any characters.
    Chars(String),
    /// More than 200 KB of one character.
    Huge(char),
}

/// Smallest size of a huge text in bytes.
const HUGE_BYTES: usize = 200 * 1024;

/// Samples that break programs: blank, U+0000, bidirectional, combining, joined, astral, escaped.
const SAMPLES: [&str; 22] = [
    "hello",
    "and then?",
    "read the file, please",
    "",
    " ",
    "\n\t\r\n",
    "\u{a0}\u{2003}",
    "\0",
    "a\0b",
    "\u{202e}abc\u{202c}",
    "\u{2066}\u{5d0}\u{5d1}\u{2069} x",
    "e\u{301}\u{323}\u{36f}",
    "\u{1f469}\u{200d}\u{1f469}\u{200d}\u{1f467}",
    "\u{feff}",
    "\u{200b}",
    "\u{10ffff}\u{e000}\u{fffd}",
    "\\ \" ' ` </tool> {\"a\": [",
    "\u{1b}[31mred\u{7}\u{8}\u{7f}",
    "line one\nline two\r\nline three\u{2028}four",
    "[The user interrupted this turn.]",
    "ﷺ ﬃ ǅ ß İ ı",
    "\u{1100}\u{1161}\u{11a8}",
];

impl Text {
    /// Returns the text itself.
    pub fn spell(&self) -> String {
        match self {
            Self::Sample(text) => (*text).to_owned(),
            Self::Chars(text) => text.clone(),
            Self::Huge(c) => c.to_string().repeat(HUGE_BYTES / c.len_utf8() + 1),
        }
    }
}

/// Generates texts of all sorts; a huge one now and then.
pub fn text() -> BoxedStrategy<Text> {
    prop_oneof![
        600 => select(&SAMPLES[..]).prop_map(Text::Sample),
        200 => vec(any::<char>(), 0..10).prop_map(|chars| Text::Chars(chars.into_iter().collect())),
        1 => select(&['x', '\u{e9}', '\u{1f980}'][..]).prop_map(Text::Huge),
    ]
    .boxed()
}

/// The id of a call.
#[derive(Clone, Debug)]
pub enum CallId {
    /// A new one.
    Fresh,
    /// An earlier one, counted back from the newest.
    Repeated(usize),
    /// One that no provider accepts, or just barely.
    Odd(&'static str),
    /// Any characters.
    Chars(String),
    /// This many letters.
    Long(usize),
}

const ODD_IDS: [&str; 8] = [
    "",
    " ",
    "two words",
    "\u{e9}",
    "call.1",
    "a/b",
    "\0",
    "\u{1f980}",
];

/// Generates call ids, one in six of them repeated and one in six illegal.
pub(super) fn call_id() -> BoxedStrategy<CallId> {
    prop_oneof![
        8 => Just(CallId::Fresh),
        3 => (0..6_usize).prop_map(CallId::Repeated),
        1 => select(&ODD_IDS[..]).prop_map(CallId::Odd),
        1 => vec(any::<char>(), 1..4).prop_map(|chars| CallId::Chars(chars.into_iter().collect())),
        1 => (63..67_usize).prop_map(CallId::Long),
    ]
    .boxed()
}

/// Generates names of tools, existing and not.
pub(super) fn tool_name() -> impl Strategy<Value = &'static str> {
    select(&["bash", "read", "fork", "wait", "", "no such tool", "\u{e9}"][..])
}

/// Generates arguments of models: objects, broken JSON, nothing.
pub(super) fn arguments() -> impl Strategy<Value = &'static str> {
    select(
        &[
            "{}",
            "{\"path\":\"a\"}",
            "",
            "{",
            "[]",
            "null",
            "{\"a\":1,\"a\":2}",
            "\u{0}",
        ][..],
    )
}

/// Provider and model of an opaque payload, known or unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// [`OWN`].
    Own,
    /// Another model of the same provider.
    OtherModel,
    /// Another provider.
    OtherProvider,
    /// Unknown.
    Untagged,
}

/// Provider and model of most payloads.
pub const OWN: (&str, &str) = ("demo", "one");

impl Owner {
    /// Returns provider and model.
    pub fn tag(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Own => Some(OWN),
            Self::OtherModel => Some((OWN.0, "two")),
            Self::OtherProvider => Some(("other", OWN.1)),
            Self::Untagged => None,
        }
    }
}

/// Opaque payloads of a row: owners of thinking blocks before it, and of its item.
#[derive(Clone, Debug, Default)]
pub struct Hanging {
    /// One thinking block each.
    pub thinking: Vec<Owner>,
    /// The item.
    pub item: Option<Owner>,
}

fn owner() -> impl Strategy<Value = Owner> {
    prop_oneof![
        4 => Just(Owner::Own),
        1 => Just(Owner::OtherModel),
        1 => Just(Owner::OtherProvider),
        1 => Just(Owner::Untagged),
    ]
}

/// Generates mostly nothing, else thinking, an item or both.
pub(super) fn hanging() -> BoxedStrategy<Hanging> {
    prop_oneof![
        3 => Just(Hanging::default()),
        1 => (vec(owner(), 0..3), proptest::option::of(owner()))
            .prop_map(|(thinking, item)| Hanging { thinking, item }),
    ]
    .boxed()
}
