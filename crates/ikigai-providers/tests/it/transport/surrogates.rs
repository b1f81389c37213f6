//! Half a surrogate pair in an event is repaired, not fatal.

use ikigai_providers::transport::{Client, content_limit, send};
use ikigai_providers::{AnswerBlock, Delta, Response};
use ikigai_testkit::server::{Script, Server};

use super::support::{HASTY, PATIENT, read, run, told};
use super::wires::{DIALECTS, Part, answer, call_in};

/// Returns the deltas shown together, and the whole answer.
fn read_pieces(dialect: &str, part: Part, pieces: &[&str]) -> (String, Response) {
    let events = answer(dialect, part, pieces).concat();
    let server = Server::start([Script::stream().send(events)]);
    let client = Client::new(PATIENT);
    let call = call_in(dialect, server.url("/v1"), content_limit(None));

    let deltas = run(async { read(&mut *send(&client, call, HASTY, 7)).await });

    let shown = deltas.iter().filter_map(|delta| match delta {
        Ok(Delta::Text(text) | Delta::Thinking(text)) => Some(text.as_str()),
        _ => None,
    });
    let Some(Ok(Delta::Finished(response))) = deltas.last() else {
        panic!("{dialect}, {part:?}, {pieces:?}: {:?}", told(&deltas));
    };
    (shown.collect(), response.clone())
}

fn said(response: &Response) -> String {
    let texts = response.blocks.iter().map(|block| match block {
        AnswerBlock::Text { text, .. } | AnswerBlock::Thinking { text, .. } => text.as_str(),
        AnswerBlock::Call { arguments, .. } => arguments.as_str(),
    });
    texts.collect()
}

#[test]
fn halves_in_two_deltas_are_joined_and_others_replaced() {
    let table: [(&[&str], &str); 7] = [
        (&[r"a\ud83d", r"\ude00b"], "a😀b"),
        (&[r"\uD83D", r"\uDE00", "!"], "😀!"),
        (&[r"\ud83d", "b"], "\u{fffd}b"),
        (&["a", r"\ude00b"], "a\u{fffd}b"),
        (&[r"a\ud83db", r"\ud83d\ude00"], "a\u{fffd}b😀"),
        (&[r"\ud83d", r"\ud83d\ude00", "c"], "\u{fffd}😀c"),
        (
            &["before ", r"\ud83d", r"\ude00\ud83d", r"\ude01."],
            "before 😀😁.",
        ),
    ];
    for dialect in DIALECTS {
        for part in [Part::Text, Part::Thinking] {
            for (pieces, expected) in table {
                let (shown, response) = read_pieces(dialect, part, pieces);

                assert_eq!(shown, expected, "{dialect}, {part:?}, {pieces:?}");
                assert_eq!(said(&response), expected, "{dialect}, {part:?}, {pieces:?}");
            }
        }
    }
}

#[test]
fn half_a_pair_at_the_very_end_is_replaced() {
    for dialect in DIALECTS {
        let (_, response) = read_pieces(dialect, Part::Text, &["end", r"\ud83d"]);

        assert_eq!(said(&response), "end\u{fffd}", "{dialect}");
    }
}

#[test]
fn arguments_with_half_a_pair_stay_valid_json() {
    // The first half of the table splits the text of the arguments, the second their own escapes.
    let table: [(&[&str], &str); 5] = [
        (&[r#"{\"a\":\"\ud83d"#, r#"\ude00\"}"#], "😀"),
        (&[r#"{\"a\":\"\ud83d"#, r#"x\"}"#], "\u{fffd}x"),
        (&[r#"{\"a\":\"\\ud83d"#, r#"\\ude00\"}"#], "😀"),
        (&[r#"{\"a\":\"\\ud83d"#, r#"x\"}"#], "\u{fffd}x"),
        (&[r#"{\"a\":\"\\ude00\"}"#], "\u{fffd}"),
    ];
    for dialect in ["chat", "responses", "messages"] {
        for (pieces, expected) in table {
            let (_, response) = read_pieces(dialect, Part::Arguments, pieces);

            let arguments: serde_json::Value = serde_json::from_str(&said(&response)).unwrap();
            assert_eq!(
                arguments,
                serde_json::json!({ "a": expected }),
                "{dialect}, {pieces:?}"
            );
        }
    }
    let (_, response) = read_pieces("gemini", Part::Arguments, &[r"x\ud83d", "y"]);
    let arguments = response.blocks.iter().map(|block| match block {
        AnswerBlock::Call { arguments, .. } => arguments.as_str(),
        _ => "",
    });
    assert_eq!(
        arguments.collect::<Vec<_>>(),
        ["{\"a\":\"x\u{fffd}\"}", r#"{"a":"y"}"#]
    );
}
