//! HTTP client of a tool, built on first use.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::header::{HeaderMap, LOCATION};
use reqwest::redirect;
use reqwest::{Response, Url};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;

use super::address::{Guard, Lookup, NetworkReach, PRIVATE};

/// Most redirects that are followed.
const MOST_HOPS: usize = 5;

/// Timeout of a connection attempt.
const CONNECT: Duration = Duration::from_secs(10);

/// Longest silence of a server.
const SILENCE: Duration = Duration::from_secs(20);

/// HTTP client. Cheap to create: it opens nothing before the first request.
pub(crate) struct WebClient {
    reach: NetworkReach,
    lookup: Lookup,
    /// Result of building the client. An error is final.
    built: OnceLock<Result<reqwest::Client, String>>,
}

/// Reason why there is no response, in words for the model.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum FetchError {
    #[error("{0}")]
    Refused(String),
    #[error("the server did not answer in time")]
    Silent,
    #[error("there were more than {MOST_HOPS} redirections; the last one led to {0}")]
    Circle(Url),
    #[error("{0}")]
    Failed(String),
}

/// Response that is not a redirect to follow.
pub(crate) struct WebResponse {
    /// Final address.
    pub(crate) url: Url,
    pub(crate) response: Response,
}

/// Target of a response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    /// No redirect.
    Stay,
    /// Another page of the same host.
    Follow(Url),
    /// Another host, for which there is no permission.
    OtherHost(Url),
}

impl WebClient {
    pub(crate) fn new(reach: NetworkReach, lookup: Lookup) -> Self {
        Self {
            reach,
            lookup,
            built: OnceLock::new(),
        }
    }

    /// Gets a page; follows redirects within its host.
    pub(crate) async fn get(
        &self,
        url: Url,
        headers: &HeaderMap,
    ) -> Result<WebResponse, FetchError> {
        let client = self.client().map_err(FetchError::Failed)?;
        let mut url = url;
        for _ in 0..=MOST_HOPS {
            self.reach.check(&url).map_err(FetchError::Refused)?;
            let request = client.get(url.clone()).headers(headers.clone());
            let response = request
                .send()
                .await
                .map_err(|error| FetchError::of(&error))?;
            match hop(&url, &response) {
                Hop::Follow(next) => url = next,
                Hop::Stay | Hop::OtherHost(_) => return Ok(WebResponse { url, response }),
            }
        }
        Err(FetchError::Circle(url))
    }

    fn client(&self) -> Result<&reqwest::Client, String> {
        let built = self.built.get_or_init(|| self.build());
        built.as_ref().map_err(Clone::clone)
    }

    fn build(&self) -> Result<reqwest::Client, String> {
        let roots: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
        let mut tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .redirect(redirect::Policy::none())
            .referer(false)
            .user_agent(concat!("ikigai/", env!("CARGO_PKG_VERSION")));
        let builder = match self.reach {
            // A proxy would look up names itself, without this check.
            NetworkReach::Public => builder.no_proxy().dns_resolver(Arc::new(Guard {
                reach: self.reach,
                lookup: Arc::clone(&self.lookup),
            })),
            NetworkReach::Everything => builder,
        };
        builder.build().map_err(|error| error.to_string())
    }
}

/// Returns the redirect target of a response to a request for `url`.
pub(crate) fn hop(url: &Url, response: &Response) -> Hop {
    let status = response.status();
    let location = response.headers().get(LOCATION);
    let location = location.and_then(|value| value.to_str().ok());
    match location {
        Some(location) if status.is_redirection() => hop_to(url, location),
        _ => Hop::Stay,
    }
}

/// Returns the target of a redirect.
///
/// The host must stay the same, because permission was given for it; a leading `www.` and a change
/// to HTTPS make no difference.
pub(crate) fn hop_to(url: &Url, location: &str) -> Hop {
    let Ok(mut next) = url.join(location) else {
        return Hop::Stay;
    };
    next.set_fragment(None);
    if !matches!(next.scheme(), "http" | "https") {
        return Hop::Stay;
    }
    let host = |url: &Url| {
        let host = url.host_str().unwrap_or_default().to_owned();
        host.strip_prefix("www.").map(str::to_owned).unwrap_or(host)
    };
    let has_user = !next.username().is_empty() || next.password().is_some();
    let is_same_port = url.port() == next.port();
    let is_weaker = url.scheme() == "https" && next.scheme() == "http";
    if host(url) == host(&next) && is_same_port && !has_user && !is_weaker {
        Hop::Follow(next)
    } else {
        Hop::OtherHost(next)
    }
}

impl FetchError {
    /// Converts an error, without the address: the caller knows it, and it may contain a key.
    pub(crate) fn of(error: &reqwest::Error) -> Self {
        if error.is_timeout() {
            return Self::Silent;
        }
        let mut causes: Vec<String> = Vec::new();
        let mut cause = std::error::Error::source(error);
        while let Some(one) = cause {
            causes.push(one.to_string());
            cause = one.source();
        }
        if let Some(refusal) = causes.iter().find(|cause| cause.contains(PRIVATE)) {
            return Self::Refused(refusal.clone());
        }
        // The last cause is the most specific.
        let cause = causes
            .pop()
            .unwrap_or_else(|| "the request failed".to_owned());
        Self::Failed(format!("cannot be reached: {cause}"))
    }
}

/// Reads the start of a body; returns it, with true if there was more.
pub(crate) async fn read(
    response: &mut Response,
    most_bytes: usize,
) -> Result<(Vec<u8>, bool), FetchError> {
    let mut body = Vec::new();
    while let Some(part) = response
        .chunk()
        .await
        .map_err(|error| FetchError::of(&error))?
    {
        let room = most_bytes - body.len();
        if part.len() > room {
            body.extend_from_slice(&part[..room]);
            return Ok((body, true));
        }
        body.extend_from_slice(&part);
    }
    Ok((body, false))
}

#[cfg(test)]
mod tests;
