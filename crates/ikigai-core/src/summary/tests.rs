//! What a model is told that writes a summary.

use super::{SUMMARY_PROMPT, summary_request};
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
    let request = summary_request(&conversation(), Some("keep the names"), 10_000);

    let expected = "<conversation>\n\
        user: list the files\n\
        agent calls bash: {\"command\":\"ls\"}\n\
        tool fails: no such file\n\
        agent: there are none\n\
        </conversation>\n\
        \n\
        The user says about the summary: keep the names\n\
        \n\
        Write the summary.";
    assert_eq!(text_of(&request), expected);
    assert_eq!(request.system.as_deref(), Some(SUMMARY_PROMPT));
    assert_eq!(request.tools, []);
}

/// Long pieces are cut first, then the oldest messages go; whatever is said, it fits.
#[test]
fn a_request_for_a_summary_fits() {
    let mut messages = Vec::new();
    for n in 0..200 {
        messages.push(Message::text(Role::User, format!("question {n} é")));
        messages.push(Message::text(Role::Assistant, "word ".repeat(4_000)));
    }
    for room in [400, 1_000, 20_000, 1_000_000] {
        let request = summary_request(&messages, None, room);

        assert!(estimate_request(&request) <= room + 8, "{room}");
        let text = text_of(&request);
        assert!(text.contains("question 199"), "the newest are kept");
        assert_eq!(text.contains("question 0 "), room >= 20_000, "{room}");
    }
}
