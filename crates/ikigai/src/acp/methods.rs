//! Parameters of the client's methods.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;

/// Longest name of a resource shown in a message.
const LINK_CHARS: usize = 4096;

/// Parameters of `initialize`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct InitializeParams {
    pub(super) client_capabilities: ClientFeatures,
}

/// Abilities of the client that matter here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ClientFeatures {
    session: Option<SessionFeatures>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct SessionFeatures {
    notices: Option<Value>,
}

impl ClientFeatures {
    /// Returns true if the client shows notices.
    pub(super) fn has_notices(&self) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| session.notices.is_some())
    }
}

/// Parameters of `session/new`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewSessionParams {
    pub(super) cwd: String,
    #[serde(default)]
    pub(super) mcp_servers: Vec<ServerName>,
}

/// Name of an MCP server that the client hands in.
#[derive(Debug, Deserialize)]
pub(super) struct ServerName {
    #[serde(default)]
    pub(super) name: String,
}

/// Parameters of `session/load` and `session/resume`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoadParams {
    pub(super) session_id: String,
    pub(super) cwd: String,
    #[serde(default)]
    pub(super) mcp_servers: Vec<ServerName>,
}

/// Parameters of `session/list`.
#[derive(Debug, Deserialize)]
pub(super) struct ListParams {
    /// Only sessions of this directory.
    pub(super) cwd: Option<String>,
    /// Place where the page before ended.
    pub(super) cursor: Option<String>,
}

/// Parameters that name a session.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionParams {
    pub(super) session_id: String,
}

/// Parameters of `session/prompt`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptParams {
    pub(super) session_id: String,
    prompt: Vec<PromptPart>,
}

/// Block of a prompt.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum PromptPart {
    Text {
        text: String,
    },
    ResourceLink {
        uri: String,
    },
    Resource {
        resource: EmbeddedText,
    },
    #[serde(other)]
    Other,
}

/// File whose text is in the prompt.
#[derive(Debug, Deserialize)]
struct EmbeddedText {
    uri: String,
    text: Option<String>,
}

impl PromptParams {
    /// Returns the prompt as one message. Files become mentions, which the engine reads; texts of
    /// other resources follow the message.
    pub(super) fn message(&self) -> Result<String, &'static str> {
        let mut message = String::new();
        let mut attached = String::new();
        for block in &self.prompt {
            match block {
                PromptPart::Text { text } => message.push_str(text),
                PromptPart::ResourceLink { uri } => message.push_str(&mention(uri)),
                PromptPart::Resource { resource } => {
                    let Some(text) = &resource.text else {
                        return Err("resources that are not text are not supported");
                    };
                    let name = shown_uri(&resource.uri);
                    message.push_str(&name);
                    let _ = write!(attached, "\n\n{name}:\n\n{text}");
                }
                PromptPart::Other => return Err("only text and resources are supported"),
            }
        }
        message.push_str(&attached);
        if message.trim().is_empty() {
            return Err("the prompt is empty");
        }
        Ok(message)
    }
}

/// Returns the form of a link in a message: `@PATH` for a file.
fn mention(uri: &str) -> String {
    match path_of(uri) {
        // Mentions end at the first space.
        Some(path) if path.contains(char::is_whitespace) => format!("`{path}`"),
        Some(path) => format!("@{path}"),
        None => shown_uri(uri),
    }
}

fn shown_uri(uri: &str) -> String {
    let name = path_of(uri).unwrap_or_else(|| uri.to_owned());
    name.chars().take(LINK_CHARS).collect()
}

/// Returns the path of a `file:` link, decoded.
fn path_of(uri: &str) -> Option<String> {
    let path = uri.strip_prefix("file://")?;
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let digits = [bytes.next()?, bytes.next()?];
        let digits = str::from_utf8(&digits).ok()?;
        decoded.push(u8::from_str_radix(digits, 16).ok()?);
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(blocks: &Value) -> Result<String, &'static str> {
        let params = json!({"sessionId": "s", "prompt": blocks});
        serde_json::from_value::<PromptParams>(params)
            .unwrap()
            .message()
    }

    #[test]
    fn blocks_become_one_message() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let link = |uri: &str| json!({"type": "resource_link", "name": "n", "uri": uri});
        let file =
            json!({"type": "resource", "resource": {"uri": "file:///a/b.rs", "text": "fn b() {}"}});

        let linked = message(&json!([
            text("see "),
            link("file:///a/b%20c.rs"),
            text(" now")
        ]));
        let other = message(&json!([link("https://example.org/x")]));
        let embedded = message(&json!([text("explain "), file]));

        assert_eq!(linked.unwrap(), "see `/a/b c.rs` now");
        assert_eq!(other.unwrap(), "https://example.org/x");
        assert_eq!(
            embedded.unwrap(),
            "explain /a/b.rs\n\n/a/b.rs:\n\nfn b() {}"
        );
        assert!(message(&json!([])).is_err());
        assert!(message(&json!([{"type": "audio", "data": "", "mimeType": "audio/wav"}])).is_err());
    }
}
