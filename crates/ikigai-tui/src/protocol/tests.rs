use serde_json::{Value, json};

use super::*;
use crate::look::{Look, Tone};
use crate::paint::{Grid, Theme};

#[test]
fn requests_are_read_as_clients_write_them() {
    let cases = [
        (
            json!({"type": "read_framebuffer"}),
            ControlRequest::ReadFramebuffer,
        ),
        (
            json!({"type": "send_keys", "keys": "a"}),
            ControlRequest::SendKeys {
                keys: "a".to_owned(),
            },
        ),
        (
            json!({"type": "wait_idle", "timeout_ms": 5, "more": 1}),
            ControlRequest::WaitIdle { timeout_ms: 5 },
        ),
        (
            json!({"type": "approve", "answer": "always"}),
            ControlRequest::Approve {
                answer: ApprovalWord::Always,
                agent: None,
                call: None,
                pattern: None,
                reason: None,
            },
        ),
    ];

    for (text, request) in cases {
        let read: ControlRequest = serde_json::from_value(text.clone()).unwrap();
        assert_eq!(read, request, "{text}");
    }
    for wrong in [
        json!({}),
        json!({"type": "x"}),
        json!([]),
        json!({"type": "send_keys"}),
    ] {
        assert!(serde_json::from_value::<ControlRequest>(wrong).is_err());
    }
}

#[test]
fn a_framebuffer_has_every_row_with_its_spans_and_no_blanks_at_their_ends() {
    let mut grid = Grid::new(10, 3);
    grid.put(0, 0, "ab", Tone::Text);
    grid.put(0, 2, "cd", Look::of(Tone::Heading));
    grid.put(2, 1, "x", Tone::Marked);
    grid.cursor = Some((2, 4));

    let seen = Framebuffer::of(&grid, Theme::Terminal);

    assert_eq!(seen.text(), "abcd\n\n x\n");
    let json: Value =
        serde_json::to_value(ControlAnswer::Said(ControlOutput::Framebuffer(seen))).unwrap();
    assert_eq!(
        json,
        json!({
            "type": "framebuffer", "rows": 3, "cols": 10,
            "cursor": {"row": 2, "col": 4, "visible": true},
            "lines": [
                {"row": 0, "spans": [
                    {"text": "ab", "style": {}},
                    {"text": "cd", "style": {"bold": true}},
                ]},
                {"row": 1, "spans": []},
                {"row": 2, "spans": [
                    {"text": " ", "style": {}},
                    {"text": "x", "style": {"reverse": true}},
                ]},
            ],
        })
    );
}

#[test]
fn answers_are_read_as_they_were_written() {
    let cache = TokenCache {
        total_tokens: 3,
        fixed_tokens: 2,
        budget: 10,
        turn_count: 1,
        context_start_index: 4,
        turns: vec![TurnSeen {
            index: 4,
            tokens: 3,
        }],
    };
    let answers = [
        (ControlAnswer::OK, r#"{"type":"ok"}"#),
        (
            ControlAnswer::Said(ControlOutput::Idle { asks: false }),
            r#"{"type":"idle"}"#,
        ),
        (
            ControlAnswer::Said(ControlOutput::Timeout),
            r#"{"type":"timeout"}"#,
        ),
        (ControlAnswer::error("no"), r#"{"error":"no"}"#),
        (
            ControlAnswer::TokenCache(cache),
            r#"{"total_tokens":3,"fixed_tokens":2,"budget":10,"turn_count":1,"context_start_index":4,"turns":[{"index":4,"tokens":3}]}"#,
        ),
    ];

    for (answer, text) in answers {
        assert_eq!(answer.to_line(), format!("{text}\n"));
        assert_eq!(serde_json::from_str::<ControlAnswer>(text).unwrap(), answer);
    }
}

/// `docs/control-socket.md` is generated from the types.
#[test]
fn control_page_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/control-socket.md");
    let wanted = page();
    if std::env::var_os("IKIGAI_WRITE_DOCS").is_some() {
        std::fs::write(path, &wanted).unwrap();
    }

    let found = std::fs::read_to_string(path).unwrap_or_default();

    assert!(
        found == wanted,
        "docs/control-socket.md is not current: IKIGAI_WRITE_DOCS=1 cargo test -p ikigai-tui control_page"
    );
}

/// The requests on the page can be sent.
#[test]
fn every_request_of_the_page_is_read_as_one() {
    let page = page();
    let requests = page.lines().filter(|line| line.starts_with("{\"type\":"));

    let count = requests
        .filter(|line| serde_json::from_str::<ControlRequest>(line).is_ok())
        .count();

    // Eleven, and two whose answers have the same tag.
    assert_eq!(count, 13);
}
