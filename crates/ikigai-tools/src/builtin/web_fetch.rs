//! `web_fetch`: fetches a web page as text.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::EffectClass;
use ikigai_core::project::{ToolAction, ToolFacts, ToolSpec};
use reqwest::Url;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments::{self, Aliases, BadArguments, ToolArguments};
use crate::permission::literal_pattern;
use crate::web::address::{self, NetworkReach};
use crate::web::client::{self, FetchError, Hop, WebClient, WebResponse};
use crate::web::decode::{Content, content, text_of};
use crate::web::markdown;
use crate::{CallContext, Output, Place, Prepared, Run, Tool, Touches};

/// Name of the tool.
pub(super) const NAME: &str = "web_fetch";

/// Facts about its calls.
pub(super) const FACTS: ToolFacts = ToolFacts {
    action: ToolAction::Fetch,
    ..ToolFacts::ACTING
};

/// Default number of characters, about the limit of a result.
const DEFAULT_LIMIT: usize = 20_000;

/// Most characters shown of an error page.
const MOST_OF_ERROR: usize = 2_000;

/// Limits of `web_fetch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebLimits {
    /// True if private addresses are allowed: this machine and the local network. Only then is a
    /// proxy from the environment used.
    pub allow_private: bool,
    /// Most bytes read of a page.
    pub most_bytes: usize,
    /// Longest time for a page.
    pub deadline: Duration,
}

impl Default for WebLimits {
    fn default() -> Self {
        Self {
            allow_private: false,
            most_bytes: 8 * 1024 * 1024,
            deadline: Duration::from_mins(1),
        }
    }
}

/// Fetches pages.
pub struct WebFetch {
    limits: WebLimits,
    client: Arc<WebClient>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WebFetchArguments {
    /// The whole address, with `https://`.
    url: String,
    /// Number of characters to skip at the start of the text. Default 0.
    offset: Option<usize>,
    /// Most characters of the text to return. Default 20000.
    limit: Option<usize>,
}

impl ToolArguments for WebFetchArguments {
    const ALIASES: Aliases = &[("uri", "url"), ("address", "url")];
}

impl WebFetch {
    /// Creates the tool with these limits. It opens no connection yet.
    pub fn new(limits: WebLimits) -> Self {
        let reach = if limits.allow_private {
            NetworkReach::Everything
        } else {
            NetworkReach::Public
        };
        Self {
            limits,
            client: Arc::new(WebClient::new(reach, address::system())),
        }
    }
}

impl Tool for WebFetch {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description:
                "Gets a page of the web as text; HTML becomes Markdown. A long page comes \
                          in parts: `offset` and `limit` count characters of the text. A \
                          redirection to another host is not followed; the result names its address."
                    .to_owned(),
            parameters: arguments::schema_of::<WebFetchArguments>(),
            facts: FACTS,
        }
    }

    fn prepare(&self, text: &str, _: &Place) -> Result<Prepared, BadArguments> {
        let call = arguments::read::<WebFetchArguments>(text)?;
        let arguments = call.values;
        let url = address_of(&arguments.url)?;
        let part = TextRange {
            offset: arguments.offset.unwrap_or(0),
            limit: arguments.limit.unwrap_or(DEFAULT_LIMIT),
        };
        if part.limit == 0 {
            return Err(BadArguments(
                "`limit` is 0; it must be at least 1".to_owned(),
            ));
        }
        let (client, limits) = (Arc::clone(&self.client), self.limits);
        Ok(Prepared {
            class: EffectClass::Network,
            touches: Touches::default(),
            shown: url.to_string(),
            subject: url.to_string(),
            pattern: pattern(&url),
            preview: None,
            deadline: limits.deadline,
            needs: Vec::new(),
            unconfined: None,
            run: Run::Async(Box::new(move |context| {
                Box::pin(async move { carry_out(&client, url, part, limits, &context).await })
            })),
        }
        .with_remark(call.remark))
    }
}

/// Range of a text, in characters.
#[derive(Clone, Copy)]
struct TextRange {
    offset: usize,
    limit: usize,
}

fn address_of(text: &str) -> Result<Url, BadArguments> {
    let bad = |why: &str| BadArguments(format!("`url` is `{}`: {why}", text.trim()));
    let mut url = Url::parse(text.trim())
        .map_err(|error| bad(&format!("{error}; a whole address begins with `https://`")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad("only `https://` and `http://` can be fetched"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(BadArguments(
            "`url` must not hold a user's name or password".to_owned(),
        ));
    }
    url.set_fragment(None);
    Ok(url)
}

/// Returns the rule pattern for all pages of the same host.
fn pattern(url: &Url) -> String {
    let host = literal_pattern(url.host_str().unwrap_or_default());
    let port = url.port().map(|port| format!(":{port}"));
    format!("{}://{host}{}/*", url.scheme(), port.unwrap_or_default())
}

async fn carry_out(
    client: &WebClient,
    url: Url,
    part: TextRange,
    limits: WebLimits,
    context: &CallContext,
) -> Output {
    // The branch that ends first drops the request, which closes the connection.
    tokio::select! {
        biased;
        () = context.stop.cancelled() => Output::stopped(),
        fetched = tokio::time::timeout(limits.deadline, fetch(client, url.clone(), part, limits, context)) => {
            match fetched {
                Ok(Ok(output)) => output,
                Ok(Err(error)) => Output::failed(format!("{url}: {error}")),
                Err(_) => Output::failed(format!("{url}: {}", FetchError::Silent)),
            }
        }
    }
}

async fn fetch(
    client: &WebClient,
    url: Url,
    part: TextRange,
    limits: WebLimits,
    context: &CallContext,
) -> Result<Output, FetchError> {
    let mut headers = HeaderMap::new();
    let wanted = "text/markdown, text/html, application/json, text/*;q=0.9, */*;q=0.5";
    headers.insert(ACCEPT, HeaderValue::from_static(wanted));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let WebResponse { url, mut response } = client.get(url, &headers).await?;
    if let Hop::OtherHost(next) = client::hop(&url, &response) {
        return Ok(Output::failed(format!(
            "{url} leads to {next}, which is another host and was not asked. If that is what you want, call `web_fetch` with it."
        )));
    }
    (context.progress)(&format!("reading {url}"));
    let status = response.status();
    let kind = header(response.headers(), CONTENT_TYPE.as_str());
    let packing = header(response.headers(), CONTENT_ENCODING.as_str());
    let (body, is_cut) = client::read(&mut response, limits.most_bytes).await?;
    if !packing.is_empty() && packing != "identity" {
        return Err(FetchError::Failed(format!(
            "the server sent it packed as `{packing}`, which cannot be read"
        )));
    }
    let text = match content(&kind, &body) {
        Content::Html => {
            let page = markdown::page(&text_of(&kind, &body), &url);
            if page.title.is_empty() {
                page.text
            } else {
                format!("Title: {}\n\n{}", page.title, page.text)
            }
        }
        Content::Text => text_of(&kind, &body),
        Content::Other(kind) => {
            let size = size_in_words(body.len(), is_cut);
            let said = format!("{url} is {kind}, {size}: no text that could be shown");
            return Ok(Output::done(said.clone(), said));
        }
    };
    let size = size_in_words(body.len(), is_cut);
    if !status.is_success() {
        let reason = status.canonical_reason().unwrap_or("no success");
        let begin: String = text.chars().take(MOST_OF_ERROR).collect();
        return Ok(Output::failed(format!(
            "{url} answers {}: {reason}\n\n{begin}",
            status.as_u16()
        )));
    }
    let shown = format!("{url}: {size}");
    Ok(Output::done(
        format!("{url}\n\n{}", excerpt(&text, part, is_cut)),
        shown,
    ))
}

fn header(headers: &HeaderMap, name: &str) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().trim().to_ascii_lowercase()
}

fn size_in_words(bytes: usize, is_cut: bool) -> String {
    if is_cut {
        format!("more than {bytes} bytes")
    } else {
        format!("{bytes} bytes")
    }
}

/// Returns the requested part of a text, with a note about the rest.
fn excerpt(text: &str, part: TextRange, is_cut: bool) -> String {
    let total = text.chars().count();
    if total == 0 {
        return "[the page has no text]".to_owned();
    }
    if part.offset >= total {
        return format!("[there are only {total} characters]");
    }
    let end = part.offset.saturating_add(part.limit).min(total);
    let mut found: String = text.chars().skip(part.offset).take(part.limit).collect();
    if part.offset > 0 || end < total {
        let _ = write!(found, "\n\n[characters {} to {end} of {total}", part.offset);
        if end < total {
            let _ = write!(found, "; go on with `offset` {end}");
        }
        found.push(']');
    }
    if is_cut {
        found.push_str("\n\n[the page is longer than what is read of one]");
    }
    found
}

#[cfg(test)]
mod tests;
