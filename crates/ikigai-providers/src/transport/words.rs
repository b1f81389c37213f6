//! Foreign text in the program's messages: short, printable and without secrets.

use std::time::Duration;

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};

use super::PreparedRequest;

/// Largest message: a screenful. Providers that quote the request can be endless.
const MOST_MESSAGE_CHARACTERS: usize = 2000;

/// Largest quoted part of an unexpected body: a line or two.
const MOST_EXCERPT_CHARACTERS: usize = 160;

/// Smallest secret: shorter values are words, whose redaction would damage every message.
const LEAST_SECRET_BYTES: usize = 6;

/// Headers whose values are public.
const HARMLESS: [&str; 5] = [
    "accept",
    "anthropic-beta",
    "anthropic-version",
    "content-type",
    "user-agent",
];

/// Values that must not be in any message: those of a request's headers.
pub(super) struct Secrets(Vec<SecretString>);

impl Secrets {
    pub(super) fn of(call: &PreparedRequest) -> Self {
        let mut secrets = Vec::new();
        let headers = call.headers.iter();
        for (_, value) in headers.filter(|(name, _)| !is_harmless(name)) {
            let value = value.expose_secret();
            // A provider quotes the key without the scheme before it.
            let key = value.rsplit(' ').next().unwrap_or_default();
            secrets.extend([value, key].map(SecretString::from));
        }
        secrets.extend(in_address(&call.url).map(SecretString::from));
        // A body may contain it in JSON escapes.
        let spelled: Vec<_> = secrets
            .iter()
            .filter_map(|secret: &SecretString| as_json(secret.expose_secret()))
            .collect();
        secrets.extend(spelled.into_iter().map(SecretString::from));
        secrets.retain(|secret| secret.expose_secret().len() >= LEAST_SECRET_BYTES);
        Self(secrets)
    }

    /// Returns the length of the longest in bytes.
    pub(super) fn longest(&self) -> usize {
        let lengths = self.0.iter().map(|secret| secret.expose_secret().len());
        lengths.max().unwrap_or(0)
    }

    pub(super) fn hide_in(&self, body: &[u8]) -> String {
        self.hide(&String::from_utf8_lossy(body))
    }

    pub(super) fn hide(&self, message: &str) -> String {
        self.0.iter().fold(message.to_owned(), |message, secret| {
            message.replace(secret.expose_secret(), "[secret]")
        })
    }
}

/// Returns true if the value of a header is public.
pub(super) fn is_harmless(name: &str) -> bool {
    HARMLESS
        .iter()
        .any(|known| known.eq_ignore_ascii_case(name))
}

/// Returns the password in a URL, and the values of its query.
fn in_address(url: &str) -> impl Iterator<Item = String> {
    let url = Url::parse(url).ok();
    let password = url.as_ref().and_then(Url::password).map(str::to_owned);
    let query: Vec<_> = url.iter().flat_map(Url::query_pairs).collect();
    let query: Vec<_> = query
        .into_iter()
        .map(|(_, value)| value.into_owned())
        .collect();
    password.into_iter().chain(query)
}

/// Returns a text in JSON escapes, if that differs.
fn as_json(text: &str) -> Option<String> {
    let quoted = serde_json::to_string(text).ok()?;
    let spelled = quoted.strip_prefix('"')?.strip_suffix('"')?;
    (spelled != text).then(|| spelled.to_owned())
}

/// Returns a URL without user, password, query and fragment.
pub(super) fn address(url: &Url) -> String {
    format!("{}://{}{}", url.scheme(), server(url.as_str()), url.path())
}

/// Returns host and port of the URL, without credentials, path or query.
pub(super) fn server(url: &str) -> String {
    let Ok(url) = Url::parse(url) else {
        return "the server".to_owned();
    };
    match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => "the server".to_owned(),
    }
}

/// Formats a duration for users, rounded up.
pub(super) fn time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 1.0 {
        format!("{} ms", (seconds * 1000.0).ceil())
    } else if seconds <= 120.0 {
        format!("{} s", seconds.ceil())
    } else if seconds <= 7200.0 {
        format!("{} min", (seconds / 60.0).ceil())
    } else {
        format!("{} h", (seconds / 3600.0).ceil())
    }
}

/// Removes control characters, which a terminal would obey, and shortens the text.
pub(super) fn clean(text: &str) -> String {
    let printable = |c: char| if c.is_control() && c != '\n' { ' ' } else { c };
    shorten(text.trim().chars().map(printable), MOST_MESSAGE_CHARACTERS)
}

/// Returns true if text is a web page.
pub(super) fn is_page(essence: &str, text: &str) -> bool {
    let start: String = text.chars().take(16).collect();
    let start = start.to_ascii_lowercase();
    essence.contains("html") || start.starts_with("<!doctype html") || start.starts_with("<html")
}

/// Returns the title of a page, or the first words of any text, in backticks.
pub(super) fn excerpt(text: &str) -> String {
    let words = if text.starts_with('<') {
        title(text).unwrap_or_else(|| without_tags(text))
    } else {
        text.to_owned()
    };
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    format!(
        "`{}`",
        shorten(clean(&words).chars(), MOST_EXCERPT_CHARACTERS)
    )
}

fn title(page: &str) -> Option<String> {
    let lower = page.to_ascii_lowercase();
    let start = lower.find("<title")?;
    let start = start + lower.get(start..)?.find('>')? + 1;
    let end = start + lower.get(start..)?.find("</title")?;
    let title = page.get(start..end)?.trim();
    (!title.is_empty()).then(|| title.to_owned())
}

fn without_tags(page: &str) -> String {
    let mut inside = false;
    let visible = page.chars().map(|c| match c {
        '<' => {
            inside = true;
            ' '
        }
        '>' if inside => {
            inside = false;
            ' '
        }
        _ if inside => ' ',
        c => c,
    });
    visible.collect()
}

fn shorten(mut characters: impl Iterator<Item = char>, most: usize) -> String {
    let mut text: String = characters.by_ref().take(most).collect();
    if characters.next().is_some() {
        text.push('…');
    }
    text
}
