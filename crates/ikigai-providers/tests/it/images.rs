//! Images in requests of all dialects.

use std::sync::Arc;

use ikigai_core::message::{Image, ImageBytes, Message, Role};
use ikigai_core::{Block, Request};
use ikigai_providers::dialect::{Order, Quirks};
use ikigai_testkit::wire::{chat, gemini, messages, responses};
use serde_json::Value;

use crate::support::dialect;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nand so on";
/// [`PNG`] in base64.
const BASE64: &str = "iVBORw0KGgphbmQgc28gb24=";
const NOTE: &str = "[An image was here that is not sent to you.]";

fn image(hash: &str) -> Image {
    Image {
        hash: hash.to_owned(),
        media_type: "image/png".to_owned(),
        width: 30,
        height: 20,
        bytes: PNG.len() as u64,
    }
}

/// Returns a conversation with an image of the user, and one call whose result has two.
///
/// Two images are the same. The request has the bytes of all images but `missing`.
fn conversation() -> Request {
    let mut shows = Message::text(Role::User, "What is this?");
    shows.blocks.push(Block::Image(image("a")));
    let mut calls = Message::tool_call("c1", "read", "{}");
    calls
        .blocks
        .extend(Message::tool_call("c2", "read", "{}").blocks);
    let mut results = Message::tool_result("c1", "[image b.png]", false);
    results
        .blocks
        .extend(Message::tool_result("c2", "words", true).blocks);
    if let Some(Block::ToolResult { images, .. }) = results.blocks.first_mut() {
        images.extend([image("a"), image("missing")]);
    }
    let mut bytes = ImageBytes::default();
    bytes.insert("a".to_owned(), Arc::from(PNG));
    Request {
        messages: vec![shows, calls, results, Message::text(Role::User, "And now?")],
        images: bytes,
        ..Request::default()
    }
}

fn encode(name: &str, model: &str, quirks: Quirks) -> Value {
    let request = conversation();
    let order = Order {
        request: &request,
        model,
        thinking: None,
        max_output: 100,
        cache_key: "",
        quirks,
    };
    dialect(name).encode(&order)
}

#[test]
fn all_dialects_send_images_and_notes_for_missing_ones() {
    let strict = Quirks {
        alternating_roles: true,
        ..Quirks::default()
    };
    let cases = [
        ("chat", "m", Quirks::default()),
        ("chat", "m", strict),
        ("responses", "m", Quirks::default()),
        ("messages", "m", Quirks::default()),
        ("gemini", "gemini-2.5-pro", Quirks::default()),
        ("gemini", "gemini-3-pro", Quirks::default()),
    ];
    for (name, model, quirks) in cases {
        let body = encode(name, model, quirks);
        let checked = match name {
            "chat" if quirks.alternating_roles => {
                chat::check(&body).and_then(|()| chat::check_turns(&body))
            }
            "chat" => chat::check(&body),
            "responses" => responses::check(&body),
            "messages" => messages::check(&body),
            _ => gemini::check(&body),
        };

        assert_eq!(checked, Ok(()), "{name} {model}: {body}");
        let text = body.to_string();
        assert_eq!(text.matches(BASE64).count(), 2, "{name}: {text}");
        assert_eq!(text.matches(NOTE).count(), 1, "{name}: {text}");
        for words in ["What is this?", "[image b.png]", "words", "And now?"] {
            assert!(text.contains(words), "{name}: {text}");
        }
    }
}

/// Third-generation models take the images of a result inside it, older ones beside it.
#[test]
fn gemini_has_images_in_or_beside_results() {
    let old = encode("gemini", "gemini-2.5-pro", Quirks::default());
    let new = encode("gemini", "gemini-3-pro", Quirks::default());

    let results = |body: &Value| body["contents"][2]["parts"].as_array().unwrap().clone();
    assert_eq!(results(&old).len(), 3);
    assert_eq!(results(&old)[1]["inlineData"]["data"], BASE64);
    assert_eq!(results(&new).len(), 2);
    let inside = &results(&new)[0]["functionResponse"]["parts"];
    assert_eq!(inside[0]["inlineData"]["mimeType"], "image/png");
}
