//! Broken streams: a decoder returns a response or an error for any input.

use ikigai_providers::sse::Sse;
use ikigai_testkit::cases;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::support::dialect;

const STREAMS: [(&str, &str); 6] = [
    (
        "responses",
        include_str!("streams/responses_interleaved.sse"),
    ),
    ("responses", include_str!("streams/responses_llamacpp.sse")),
    ("responses", include_str!("streams/responses_litellm.sse")),
    ("chat", include_str!("streams/chat_calls.sse")),
    ("chat", include_str!("streams/chat_openrouter.sse")),
    ("chat", include_str!("streams/chat_deepseek.sse")),
];

/// Change of a list: an item is removed, repeated or swapped.
#[derive(Clone, Debug)]
enum Change {
    Drop(Index),
    Repeat(Index),
    Swap(Index, Index),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        any::<Index>().prop_map(Change::Drop),
        any::<Index>().prop_map(Change::Repeat),
        any::<(Index, Index)>().prop_map(|(one, other)| Change::Swap(one, other)),
    ]
}

impl Change {
    fn make<T: Clone>(&self, list: &mut Vec<T>) {
        if list.is_empty() {
            return;
        }
        let length = list.len();
        match self {
            Self::Drop(at) => drop(list.remove(at.index(length))),
            Self::Repeat(at) => list.push(list[at.index(length)].clone()),
            Self::Swap(one, other) => list.swap(one.index(length), other.index(length)),
        }
    }
}

/// Feeds bytes to a decoder until it fails, then asks for the end.
fn feed(name: &str, bytes: &[u8]) {
    let mut sse = Sse::default();
    let mut decoder = dialect(name).decoder();
    let frames = sse.push(bytes).unwrap_or_default();
    for frame in frames.into_iter().chain(sse.end().unwrap_or_default()) {
        if decoder.push(&frame).is_err() {
            return;
        }
    }
    let is_done = decoder.is_done();
    let is_whole = decoder.finish().is_ok();
    // Chat also ends without its last event, as long as a reason was given.
    assert!(is_done || !is_whole || name == "chat");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(500, 20_000),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn prop_no_broken_stream_breaks_a_decoder_of_openai(
        (name, stream) in select(&STREAMS[..]),
        bytes in vec((any::<Index>(), any::<u8>()), 0..6),
        changes in vec(change(), 0..6),
    ) {
        let mut frames: Vec<_> = stream.split("\n\n").collect();
        for change in &changes {
            change.make(&mut frames);
        }
        let mut broken = frames.join("\n\n").into_bytes();
        for (at, byte) in bytes {
            if !broken.is_empty() {
                let at = at.index(broken.len());
                broken[at] = byte;
            }
        }
        feed(name, &broken);
    }

    #[test]
    fn prop_values_of_any_type_break_no_decoder_of_openai(
        (name, stream) in select(&STREAMS[..]),
        at in any::<Index>(),
        other in select(&["null", "7", "-1", "1.5", "true", "[]", "{}", "\"\"", "[7]", "{\"type\":7}"][..]),
    ) {
        // A value begins after a colon within a line of data.
        let places: Vec<_> = stream.match_indices("\":").map(|(place, _)| place + 2).collect();
        let from = places[at.index(places.len())];
        let mut values = serde_json::Deserializer::from_str(&stream[from..])
            .into_iter::<serde_json::Value>();
        let value = values.next();
        let to = from + if matches!(value, Some(Ok(_))) { values.byte_offset() } else { 0 };
        feed(name, format!("{}{other}{}", &stream[..from], &stream[to..]).as_bytes());
    }
}
