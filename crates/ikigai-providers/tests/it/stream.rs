//! Helpers that feed recorded streams to decoders, in any pieces.

use ikigai_providers::dialect::Dialect;
use ikigai_providers::sse::Sse;
use ikigai_providers::{Delta, FailureKind, ProviderError, Response};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

/// Outcome of a stream: its deltas, then the response or the error.
pub(crate) type Outcome = (Vec<Delta>, Result<Response, ProviderError>);

/// Returns an event of a stream; without a name it is only data.
pub(crate) fn event(name: &str, data: &Value) -> String {
    match name {
        "" => format!("data: {data}\n\n"),
        name => format!("event: {name}\ndata: {data}\n\n"),
    }
}

/// Reads a stream that comes in these pieces.
pub(crate) fn read(dialect: &dyn Dialect, pieces: &[&[u8]]) -> Outcome {
    let mut sse = Sse::default();
    let mut decoder = dialect.decoder();
    let mut deltas = Vec::new();
    let mut frames = Vec::new();
    for piece in pieces {
        frames.extend(sse.push(piece).unwrap());
    }
    match sse.end() {
        Ok(last) => frames.extend(last),
        Err(error) => {
            let error = ProviderError::new(FailureKind::Malformed, error.to_string());
            return (Vec::new(), Err(error));
        }
    }
    for frame in frames {
        match decoder.push(&frame) {
            Ok(more) => deltas.extend(more),
            Err(error) => return (deltas, Err(error)),
        }
    }
    (deltas, decoder.finish())
}

/// Reads a stream whole, and asserts the same result for variations of it.
///
/// Byte by byte, cut anywhere in two, with other line ends, and with unknown events mixed in.
pub(crate) fn read_in_every_way(dialect: &dyn Dialect, stream: &str, unknown: &str) -> Outcome {
    let bytes = stream.as_bytes();
    let whole = read(dialect, &[bytes]);
    let single: Vec<_> = bytes.chunks(1).collect();
    assert_eq!(read(dialect, &single), whole, "byte by byte");
    for at in 0..=bytes.len() {
        let (head, tail) = bytes.split_at(at);
        assert_eq!(read(dialect, &[head, tail]), whole, "cut at {at}");
    }
    let other_ends = stream.replace('\n', "\r\n");
    assert_eq!(read(dialect, &[other_ends.as_bytes()]), whole, "CRLF");
    let mixed = format!(
        ": a comment\n\n{unknown}{}",
        stream.replace("\n\n", &format!("\n\n{unknown}"))
    );
    assert_eq!(read(dialect, &[mixed.as_bytes()]), whole, "unknown events");
    whole
}

/// Asserts that no beginning of a stream without its last event counts as complete.
pub(crate) fn assert_no_beginning_is_whole(dialect: &dyn Dialect, stream: &str, last: &str) {
    let end = stream.find(last).unwrap();
    for at in 0..=end {
        let (_, result) = read(dialect, &[&stream.as_bytes()[..at]]);
        assert!(result.is_err(), "whole at {at}: {result:?}");
    }
}

/// Reads a stream with changed or removed bytes; it must not panic.
pub(crate) fn read_changed(dialect: &dyn Dialect, stream: &str, changes: &[(usize, Option<u8>)]) {
    let mut bytes = stream.as_bytes().to_vec();
    for (place, byte) in changes {
        let place = place % bytes.len();
        match byte {
            Some(byte) => bytes[place] = *byte,
            None => drop(bytes.remove(place)),
        }
    }
    let mut sse = Sse::default();
    let mut decoder = dialect.decoder();
    for frame in sse.push(&bytes).into_iter().flatten() {
        if decoder.push(&frame).is_err() {
            return;
        }
    }
    let _ = decoder.finish();
}

/// Changes of a stream: any byte, or one that means something.
pub(crate) fn changes() -> impl Strategy<Value = Vec<(usize, Option<u8>)>> {
    let byte = prop_oneof![any::<u8>(), select(&b"\n:{}[],\"0"[..])];
    vec((any::<usize>(), option::of(byte)), 1..6)
}
