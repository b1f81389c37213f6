//! Shared helpers of dialect tests: decoding streams and comparing requests with files.

use std::path::Path;

use ikigai_providers::dialect::Dialect;
use ikigai_providers::dialects::by_name;
use ikigai_providers::sse::{Frame, Sse};
use ikigai_providers::{AnswerBlock, Delta, FailureKind, ProviderError, Response};
use serde_json::Value;

/// Returns a dialect by its name.
pub(crate) fn dialect(name: &str) -> &'static dyn Dialect {
    by_name(name).unwrap()
}

/// Returns the frames of a recorded stream.
pub(crate) fn frames(stream: &str) -> Vec<Frame> {
    let mut sse = Sse::default();
    let mut frames = sse.push(stream.as_bytes()).unwrap();
    frames.extend(sse.end().unwrap());
    frames
}

/// Feeds frames to a decoder: all deltas, and the whole answer.
pub(crate) fn read(name: &str, frames: &[Frame]) -> Result<(Vec<Delta>, Response), ProviderError> {
    let mut decoder = dialect(name).decoder();
    let mut deltas = Vec::new();
    for frame in frames {
        deltas.extend(decoder.push(frame)?);
    }
    let response = decoder.finish()?;
    Ok((deltas, response))
}

/// Reads a recorded stream in four ways; returns the result of the first.
///
/// The ways: as it is, with unknown events between its events, byte by byte, and cut off after
/// each frame.
pub(crate) fn read_in_every_way(name: &str, stream: &str) -> (Vec<Delta>, Response) {
    let whole = frames(stream);
    let read_whole = read(name, &whole).unwrap();

    let unknown = [
        (
            "response.audio.delta",
            r#"{"type":"response.audio.delta","delta":"AAAA"}"#,
        ),
        ("", r#"{"type":"something.new","item":7}"#),
        ("ping", "{}"),
        ("", ""),
    ];
    let mixed: Vec<_> = whole
        .iter()
        .flat_map(|frame| {
            let unknown = unknown.iter().map(|(event, data)| Frame {
                event: (*event).to_owned(),
                data: (*data).to_owned(),
            });
            unknown.chain([frame.clone()])
        })
        .collect();
    assert_eq!(
        read(name, &mixed).unwrap(),
        read_whole,
        "with unknown events"
    );

    let mut sse = Sse::default();
    let mut bits = Vec::new();
    for byte in stream.as_bytes() {
        bits.extend(sse.push(&[*byte]).unwrap());
    }
    bits.extend(sse.end().unwrap());
    assert_eq!(bits, whole, "byte by byte");

    for length in 0..whole.len() {
        // A complete response has all blocks; a shortened stream is reported as cut off.
        match read(name, &whole[..length]) {
            Ok((_, response)) => assert_eq!(response.blocks, read_whole.1.blocks),
            Err(error) => assert_eq!(error.kind, FailureKind::CutOff, "after {length} frames"),
        }
    }
    read_whole
}

/// Returns text, thinking and call names of the deltas.
pub(crate) fn told(deltas: &[Delta]) -> (String, String, Vec<String>) {
    let (mut text, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
    for delta in deltas {
        match delta {
            Delta::Text(more) => text.push_str(more),
            Delta::Thinking(more) => thinking.push_str(more),
            Delta::Call(name) => calls.push(name.clone()),
            other => panic!("{other:?}"),
        }
    }
    (text, thinking, calls)
}

/// Returns a text block.
pub(crate) fn text(text: &str, item: Option<&str>) -> AnswerBlock {
    AnswerBlock::Text {
        text: text.to_owned(),
        item: item.map(str::to_owned),
    }
}

/// Returns a thinking block.
pub(crate) fn thinking(text: &str, payload: Option<&str>) -> AnswerBlock {
    AnswerBlock::Thinking {
        text: text.to_owned(),
        payload: payload.map(str::to_owned),
    }
}

/// Returns a call block.
pub(crate) fn call(
    id: Option<&str>,
    name: &str,
    arguments: &str,
    item: Option<&str>,
) -> AnswerBlock {
    AnswerBlock::Call {
        id: id.map(str::to_owned),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        item: item.map(str::to_owned),
    }
}

/// Compares a request with the file of that name; with `IKIGAI_GOLDEN=write` writes the file.
pub(crate) fn assert_golden(name: &str, body: &Value) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden");
    let spelled = format!("{}\n", serde_json::to_string_pretty(body).unwrap());
    ikigai_testkit::assert_golden(&folder.join(format!("{name}.json")), &spelled);
}
