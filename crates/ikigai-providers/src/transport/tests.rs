use std::time::Duration;

use reqwest::Url;
use secrecy::SecretString;

use super::words::{self, Secrets};
use super::{Client, PreparedRequest, failure};
use crate::dialect::{Decoder, Dialect, Order};
use crate::{ProviderError, answer};

struct Mute;

impl Dialect for Mute {
    fn name(&self) -> &'static str {
        "mute"
    }

    fn default_base(&self) -> &'static str {
        ""
    }

    fn endpoint(&self, base: &str, _: &str) -> String {
        base.to_owned()
    }

    fn headers(&self, _: Option<&str>) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn encode(&self, _: &Order<'_>) -> serde_json::Value {
        serde_json::Value::Null
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        struct Deaf;
        impl Decoder for Deaf {
            fn push(&mut self, _: &crate::sse::Frame) -> Result<Vec<answer::Delta>, ProviderError> {
                Ok(Vec::new())
            }

            fn finish(self: Box<Self>) -> Result<answer::Response, ProviderError> {
                Ok(answer::Response::default())
            }

            fn is_done(&self) -> bool {
                false
            }

            fn content_bytes(&self) -> usize {
                0
            }
        }
        Box::new(Deaf)
    }

    fn explain(&self, _: &serde_json::Value, _: &mut ProviderError) {}
}

fn call(url: &str, headers: &[(&str, &str)]) -> PreparedRequest {
    PreparedRequest {
        url: url.to_owned(),
        headers: headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), SecretString::from(*value)))
            .collect(),
        body: b"words of the user".to_vec(),
        dialect: &Mute,
        content_limit: usize::MAX,
    }
}

#[test]
fn a_call_shows_neither_key_nor_password_nor_body() {
    let call = call(
        "https://user:password1@example.org:8443/v1?key=query-key",
        &[("authorization", "Bearer sk-very-secret")],
    );

    let shown = format!("{call:?}");

    assert_eq!(
        shown,
        r#"PreparedRequest { server: "example.org:8443", body_bytes: 17, dialect: "mute", .. }"#
    );
}

#[test]
fn secrets_are_hidden_in_every_form_and_harmless_values_are_not() {
    let call = call(
        "https://user:password1@example.org/v1",
        &[
            ("Authorization", "Bearer sk-very-secret"),
            ("x-own", "another-secret"),
            ("anthropic-version", "2023-06-01"),
            ("x-short", "one"),
        ],
    );
    let secrets = Secrets::of(&call);
    let table = [
        ("key sk-very-secret is wrong", "key [secret] is wrong"),
        ("`Bearer sk-very-secret`", "`[secret]`"),
        ("another-secret, password1", "[secret], [secret]"),
        ("version 2023-06-01 of one", "version 2023-06-01 of one"),
    ];

    for (text, hidden) in table {
        assert_eq!(secrets.hide(text), hidden);
    }
}

#[test]
fn only_plain_http_on_this_machine_is_built_without_roots() {
    let client = Client::default();
    let table = [
        ("http://127.0.0.1:1/v1", true),
        ("http://127.3.2.1/v1", true),
        ("http://[::1]:1/v1", true),
        ("http://localhost:11434/v1", true),
        ("http://192.168.0.2/v1", false),
        ("http://localhost.example.org/", false),
        ("https://127.0.0.1:1/v1", false),
        ("https://api.example.org/v1", false),
    ];

    for (url, local) in table {
        let url = Url::parse(url).unwrap();
        assert_eq!(super::client::is_local(&url), local, "{url}");
        assert!(client.to(&url).is_ok(), "{url}");
    }
}

#[test]
fn times_are_told_in_the_unit_that_fits() {
    let table = [
        (0.02, "20 ms"),
        (1.0, "1 s"),
        (1.2, "2 s"),
        (120.0, "120 s"),
        (121.0, "3 min"),
        (3600.0, "60 min"),
        (90_000.0, "25 h"),
    ];

    for (seconds, told) in table {
        assert_eq!(words::time(Duration::from_secs_f64(seconds)), told);
    }
}

#[test]
fn excerpts_are_short_and_printable() {
    let long = "word ".repeat(100);
    let table = [
        (
            "<html><head><title>\n 502 Bad\tGateway </title>",
            "`502 Bad Gateway`",
        ),
        (
            "<!DOCTYPE html><p>Please <b>log in</b></p>",
            "`Please log in`",
        ),
        ("<html><title></title>only this</html>", "`only this`"),
        ("plain\u{1b}[31m words\r\n", "`plain [31m words`"),
    ];

    for (text, told) in table {
        assert_eq!(words::excerpt(text), told);
    }
    assert_eq!(words::excerpt(&long).chars().count(), 163);
    assert_eq!(words::clean(&"x".repeat(5000)).chars().count(), 2001);
}

#[test]
fn streams_are_told_by_their_content_type() {
    let table = [
        (None, true),
        (Some("text/event-stream"), true),
        (Some("Text/Event-Stream; charset=utf-8"), true),
        (Some("text/plain"), true),
        (Some("application/octet-stream"), true),
        (Some("text/html; charset=utf-8"), false),
        (Some("application/json"), false),
        (Some("image/png"), false),
    ];

    for (content_type, stream) in table {
        assert_eq!(
            failure::may_be_stream(content_type),
            stream,
            "{content_type:?}"
        );
    }
}
