//! What a model is told that writes a summary.

use super::{SUMMARY_PROMPT, chunk_request, summary_chunks};
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
    let chunks = summary_chunks(&conversation(), 10_000);
    let [chunk] = chunks.as_slice() else {
        panic!("{chunks:?}")
    };

    let request = chunk_request(chunk, None, Some("keep the names"));

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

/// Every message is in some chunk, and every request fits with a summary of the chunks before it.
#[test]
fn chunks_hold_all_messages_and_fit() {
    let mut messages = Vec::new();
    for n in 0..200 {
        messages.push(Message::text(Role::User, format!("question {n} é")));
        messages.push(Message::text(Role::Assistant, "word ".repeat(4_000)));
    }
    let earlier = "fact ".repeat(3_000);
    for room in [6_000, 20_000, 1_000_000] {
        let chunks = summary_chunks(&messages, room);

        let all = chunks.concat();
        assert!((0..200).all(|n| all.contains(&format!("question {n} é"))));
        for chunk in &chunks {
            let request = chunk_request(chunk, Some(&earlier), None);
            assert!(estimate_request(&request) <= room, "{room}");
        }
    }
}
