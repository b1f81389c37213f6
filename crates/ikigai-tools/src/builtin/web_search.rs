//! `web_search`: searches the web with the Brave Search API or a `SearXNG` server.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::EffectClass;
use ikigai_core::counts::counted;
use ikigai_core::project::{ToolAction, ToolFacts, ToolSpec};
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use reqwest::{StatusCode, Url};
use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use crate::arguments::{self, Aliases, BadArguments, ToolArguments};
use crate::web::address::{self, NetworkReach};
use crate::web::client::{self, FetchError, WebClient};
use crate::web::markdown;
use crate::{CallContext, Output, Place, Prepared, Run, Tool, Touches};

/// Name of the tool.
pub(super) const NAME: &str = "web_search";

/// Facts about its calls.
pub(super) const FACTS: ToolFacts = ToolFacts {
    action: ToolAction::Fetch,
    ..ToolFacts::ACTING
};

/// Endpoint of the Brave Search API.
pub const BRAVE_URL: &str = "https://api.search.brave.com/res/v1/web/search";

/// Default number of results.
const DEFAULT_COUNT: usize = 10;

/// Most results that Brave returns.
const MOST_COUNT: usize = 20;

/// Longest query that Brave accepts.
const MOST_QUERY_CHARACTERS: usize = 400;

/// Limit of a response; twenty results are some tens of kilobytes.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// Longest time for a response.
const DEADLINE: Duration = Duration::from_secs(30);

/// Error of a `SearXNG` server whose settings lack JSON, as they do by default.
const NO_JSON: &str = "the server does not answer in JSON: the user must add `json` to \
                       `search.formats` in its settings (status 403)";

/// Searches the web.
pub struct WebSearch {
    service: Arc<Service>,
}

struct Service {
    base_url: String,
    interface: SearchInterface,
    client: WebClient,
}

/// Interface of a search service.
enum SearchInterface {
    /// The Brave Search API, with its key.
    Brave(SecretString),
    /// `SearXNG`, which needs no key.
    SearXng,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WebSearchArguments {
    /// Words to search for, at most 400 characters.
    query: String,
    /// Number of results, from 1 to 20. Default 10.
    count: Option<usize>,
    /// Only results of these domains and their subdomains, such as `docs.rs`.
    #[serde(default)]
    allowed_domains: Vec<String>,
    /// No results of these domains and their subdomains.
    #[serde(default)]
    blocked_domains: Vec<String>,
}

impl ToolArguments for WebSearchArguments {
    const ALIASES: Aliases = &[
        ("q", "query"),
        ("search_query", "query"),
        ("num_results", "count"),
        ("limit", "count"),
    ];
}

impl WebSearch {
    /// Creates a tool that uses this key, at [`BRAVE_URL`] or a compatible server. It opens no
    /// connection yet.
    pub fn new(key: SecretString, base_url: impl Into<String>) -> Self {
        Self::of(base_url.into(), SearchInterface::Brave(key))
    }

    /// Creates a tool that uses the `SearXNG` server at this address. It opens no connection yet.
    pub fn searxng(base_url: &str) -> Self {
        let url = format!("{}/search", base_url.trim_end_matches('/'));
        Self::of(url, SearchInterface::SearXng)
    }

    fn of(base_url: String, interface: SearchInterface) -> Self {
        // The user chooses the service, not the model, so any address is allowed.
        let client = WebClient::new(NetworkReach::Everything, address::system());
        Self {
            service: Arc::new(Service {
                base_url,
                interface,
                client,
            }),
        }
    }
}

impl Tool for WebSearch {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Searches the web and gives titles, addresses and descriptions of what \
                          is found. Use `web_fetch` to read a page."
                .to_owned(),
            parameters: arguments::schema_of::<WebSearchArguments>(),
            facts: FACTS,
        }
    }

    fn prepare(&self, text: &str, _: &Place) -> Result<Prepared, BadArguments> {
        let call = arguments::read::<WebSearchArguments>(text)?;
        let arguments = call.values;
        let query = arguments.query.trim().to_owned();
        if query.is_empty() {
            return Err(BadArguments("`query` is empty".to_owned()));
        }
        if query.chars().count() > MOST_QUERY_CHARACTERS {
            return Err(BadArguments(format!(
                "`query` is longer than {MOST_QUERY_CHARACTERS} characters"
            )));
        }
        let count = arguments.count.unwrap_or(DEFAULT_COUNT);
        if !(1..=MOST_COUNT).contains(&count) {
            return Err(BadArguments(format!(
                "`count` is {count}; it must be from 1 to {MOST_COUNT}"
            )));
        }
        let service = Arc::clone(&self.service);
        let arguments = SearchArguments {
            query: query.clone(),
            count,
            allowed: domains(&arguments.allowed_domains),
            blocked: domains(&arguments.blocked_domains),
        };
        Ok(Prepared {
            class: EffectClass::Network,
            touches: Touches::default(),
            shown: query.clone(),
            // Every query goes to the one service that the user chose, so one rule covers all.
            pattern: "*".to_owned(),
            subject: query,
            preview: None,
            deadline: DEADLINE,
            needs: Vec::new(),
            unconfined: None,
            run: Run::Async(Box::new(move |context| {
                Box::pin(async move { carry_out(&service, &arguments, &context).await })
            })),
        }
        .with_remark(call.remark))
    }
}

/// Query of a call, with its filters.
struct SearchArguments {
    query: String,
    count: usize,
    allowed: Vec<String>,
    blocked: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
struct SearchResponse {
    /// Results of Brave.
    #[serde(default)]
    web: Option<WebResults>,
    /// Results of `SearXNG`.
    #[serde(default)]
    results: Vec<SearchHit>,
}

#[derive(Debug, Default, Deserialize)]
struct WebResults {
    #[serde(default)]
    results: Vec<SearchHit>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SearchHit {
    title: Option<String>,
    url: Option<String>,
    /// `SearXNG` calls it `content`.
    #[serde(alias = "content")]
    description: Option<String>,
}

async fn carry_out(
    service: &Service,
    arguments: &SearchArguments,
    context: &CallContext,
) -> Output {
    let answered = tokio::time::timeout(DEADLINE, service.ask(arguments));
    tokio::select! {
        biased;
        () = context.stop.cancelled() => Output::stopped(),
        answered = answered => match answered {
            Ok(Ok(found)) => result(arguments, &found),
            Ok(Err(reason)) => Output::failed(format!("the search failed: {reason}")),
            Err(_) => Output::failed(format!("the search failed: {}", FetchError::Silent)),
        },
    }
}

impl Service {
    async fn ask(&self, arguments: &SearchArguments) -> Result<Vec<SearchHit>, String> {
        let mut url = Url::parse(&self.base_url)
            .map_err(|error| format!("its address in the configuration is wrong: {error}"))?;
        // The filter may drop results, so ask for the maximum.
        let is_filtered = !arguments.allowed.is_empty() || !arguments.blocked.is_empty();
        let count = if is_filtered {
            MOST_COUNT
        } else {
            arguments.count
        };
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        url.query_pairs_mut()
            .append_pair("q", &arguments.filtered_query());
        match &self.interface {
            SearchInterface::Brave(key) => {
                url.query_pairs_mut()
                    .append_pair("count", &count.to_string());
                let mut key = HeaderValue::from_str(key.expose_secret().trim())
                    .map_err(|_| "the key holds characters that cannot be sent".to_owned())?;
                key.set_sensitive(true);
                headers.insert("x-subscription-token", key);
            }
            SearchInterface::SearXng => {
                url.query_pairs_mut().append_pair("format", "json");
            }
        }
        let answer = self.client.get(url, &headers).await;
        let mut response = answer.map_err(|error| error.to_string())?.response;
        let status = response.status();
        let read = client::read(&mut response, MOST_BYTES).await;
        let (body, _) = read.map_err(|error| error.to_string())?;
        if !status.is_success() {
            return Err(match (&self.interface, status) {
                (SearchInterface::SearXng, StatusCode::FORBIDDEN) => NO_JSON.to_owned(),
                _ => remedy(status),
            });
        }
        let answer: SearchResponse = serde_json::from_slice(&body)
            .map_err(|_| "the service did not send a list of results".to_owned())?;
        let mut found = answer.results;
        found.extend(answer.web.unwrap_or_default().results);
        Ok(found)
    }
}

/// Explains a status. The body is left out, because it may repeat the key.
fn remedy(status: StatusCode) -> String {
    let advice = match status.as_u16() {
        401 | 403 => "the key is not accepted; the user must set another one",
        422 | 400 => "the service does not understand the question; use plain words",
        429 => {
            "too many questions in a short time, or the month's share is used up; wait, or work without"
        }
        500.. => "the service has trouble; try again later",
        _ => "the service does not answer as it should",
    };
    format!("{advice} (status {})", status.as_u16())
}

impl SearchArguments {
    /// Adds the domains to the query in Brave's syntax, so that fewer results are dropped.
    fn filtered_query(&self) -> String {
        let mut query = self.query.clone();
        for (at, domain) in self.allowed.iter().enumerate() {
            let joint = if at == 0 { "" } else { "OR " };
            let _ = write!(query, " {joint}site:{domain}");
        }
        for domain in &self.blocked {
            let _ = write!(query, " -site:{domain}");
        }
        if query.chars().count() > MOST_QUERY_CHARACTERS {
            return self.query.clone();
        }
        query
    }

    fn wants(&self, found: &SearchHit) -> bool {
        let url = found.url.as_deref().and_then(|url| Url::parse(url).ok());
        let Some(host) = url.as_ref().and_then(Url::host_str) else {
            return false;
        };
        let is_in = |domain: &String| {
            host.strip_suffix(domain.as_str())
                .is_some_and(|before| before.is_empty() || before.ends_with('.'))
        };
        (self.allowed.is_empty() || self.allowed.iter().any(is_in))
            && !self.blocked.iter().any(is_in)
    }
}

/// Normalizes domains: lower case, without scheme, path and leading `*.`.
fn domains(written: &[String]) -> Vec<String> {
    let plain = |text: &String| {
        let text = text.trim().to_ascii_lowercase();
        let text = text.rsplit("://").next().unwrap_or_default();
        let text = text.split('/').next().unwrap_or_default();
        text.trim_start_matches("*.").trim_matches('.').to_owned()
    };
    let plain = written.iter().map(plain);
    plain.filter(|domain| !domain.is_empty()).collect()
}

fn result(arguments: &SearchArguments, found: &[SearchHit]) -> Output {
    let wanted = found
        .iter()
        .filter(|one| arguments.wants(one))
        .take(arguments.count);
    let mut text = String::new();
    let mut count = 0;
    for one in wanted {
        count += 1;
        let title = plain(one.title.as_deref());
        let url = one.url.as_deref().unwrap_or_default();
        let _ = writeln!(text, "{count}. {title}\n   {url}");
        let description = plain(one.description.as_deref());
        if !description.is_empty() {
            let _ = writeln!(text, "   {description}");
        }
    }
    if count == 0 {
        return Output::done(
            format!("nothing was found for `{}`", arguments.query),
            "nothing",
        );
    }
    let shown = counted(count, "result");
    Output::done(text, shown)
}

/// Returns a text of the service on one line, without markup.
fn plain(text: Option<&str>) -> String {
    markdown::plain(text.unwrap_or_default())
}

#[cfg(test)]
mod tests;
