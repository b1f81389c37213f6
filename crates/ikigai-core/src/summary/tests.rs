//! Tests of requests for a summary.

use std::collections::HashSet;

use super::{SUMMARY_PROMPT, SummaryChunks};
use crate::message::{Block, Message, Role};
use crate::project::{Request, estimate_request};

fn text_of(request: &Request) -> &str {
    match request.messages.as_slice() {
        [message] => match message.blocks.as_slice() {
            [Block::Text { text }] => text,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn conversation() -> Vec<Message> {
    let call = Message::tool_call("c1", "bash", r#"{"command":"ls"}"#);
    let result = Message::tool_result("c1", "no such file", true);
    vec![
        Message::text(Role::User, "list the files"),
        call,
        result,
        Message::text(Role::Assistant, "there are none"),
    ]
}

#[test]
fn a_conversation_is_told_as_text_without_tools() {
    let mut chunks = SummaryChunks::new(&conversation(), 10_000);

    let request = chunks.next_request(None, Some("keep the names")).unwrap();

    assert_eq!(chunks.next_request(None, None), None);

    let expected = "<conversation>\n\
        user: list the files\n\
        agent calls bash: {\"command\":\"ls\"}\n\
        tool fails: no such file\n\
        agent: there are none\n\
        </conversation>\n\
        \n\
        The user says about the summary: keep the names\n\
        Write the summary of all of it.";
    assert!(text_of(&request).starts_with(expected), "{request:?}");
    assert_eq!(request.system.as_deref(), Some(SUMMARY_PROMPT));
    assert_eq!(request.tools, []);
}

/// Every line of user and model is in some request, and every request fits.
///
/// This includes the summary of the chunks before it, whatever its length.
#[test]
fn chunks_hold_all_that_was_said_and_fit() {
    let mut messages = Vec::new();
    for n in 0..50 {
        messages.push(Message::text(Role::User, format!("question {n} é")));
        messages.push(Message::text(Role::Assistant, "word ".repeat(4_000)));
    }
    let lines = (0..2_000).map(|n| format!("line {n} of an earlier summary\n"));
    messages.push(Message::text(Role::User, lines.collect::<String>()));
    messages.push(Message::text(Role::User, "é".repeat(100_000)));
    for earlier in ["fact ".repeat(3_000), "fact ".repeat(4_500)] {
        for room in [9_000, 20_000, 1_000_000] {
            let mut chunks = SummaryChunks::new(&messages, room);
            let mut all = String::new();
            while let Some(request) = chunks.next_request(Some(&earlier), None) {
                assert!(estimate_request(&request) <= room, "{room}");
                let text = text_of(&request);
                let (_, chunk) = text.split_once("<conversation>\n").unwrap();
                all.push_str(chunk.split_once("</conversation>").unwrap().0);
            }

            let lines = all.lines();
            let lines = lines.map(|line| line.strip_prefix("user: ").unwrap_or(line));
            let lines: HashSet<&str> = lines.collect();
            assert!((0..50).all(|n| lines.contains(&*format!("question {n} é"))));
            let is_there = |n| lines.contains(&*format!("line {n} of an earlier summary"));
            assert!((0..2_000).all(is_there));
            assert_eq!(all.matches("word").count(), 50 * 4_000);
            assert_eq!(all.matches('é').count(), 50 + 100_000);
        }
    }
}
