//! Head of a request to the proxy.

use super::allowed_host::RequestTarget;

pub(super) const MOST_HEAD_BYTES: usize = 16 * 1024;

/// Headers about one connection, which a proxy does not pass on.
const OF_CONNECTION: [&str; 6] = [
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "host",
];

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProxyRequest {
    /// A tunnel to a host.
    Connect(RequestTarget),
    /// One request in plain HTTP.
    Forward {
        target: RequestTarget,
        /// Head for the server, which ends the connection after its answer.
        head: Vec<u8>,
        body_bytes: u64,
    },
}

/// Reason for which a head is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadHead(pub(super) &'static str);

/// Parses the bytes before the empty line.
pub(super) fn parse(head: &[u8]) -> Result<ProxyRequest, BadHead> {
    let text = std::str::from_utf8(head).map_err(|_| BadHead("the head is not text"))?;
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let lines: Vec<&str> = lines.collect();
    let has_control = |line: &&str| line.chars().any(|char| char.is_control() && char != '\t');
    if has_control(&first) || lines.iter().any(has_control) {
        return Err(BadHead("the head has control characters"));
    }
    let mut words = first.split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(BadHead("the first line is not a request"));
    };
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    if !is_method {
        return Err(BadHead("the first line is not a request"));
    }
    if method == "CONNECT" {
        let target = RequestTarget::parse(target, None);
        return target
            .map(ProxyRequest::Connect)
            .ok_or(BadHead("CONNECT needs host:port"));
    }
    let rest = target
        .get(..7)
        .filter(|scheme| scheme.eq_ignore_ascii_case("http://"))
        .and_then(|_| target.get(7..))
        .ok_or(BadHead("this is a proxy: name the whole URL"))?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let target =
        RequestTarget::parse(authority, Some(80)).ok_or(BadHead("the URL does not name a host"))?;
    forward(method, target, authority, path, &lines)
}

/// Builds the head for a server. The `Host` header names the host that was judged.
fn forward(
    method: &str,
    target: RequestTarget,
    authority: &str,
    path: &str,
    lines: &[&str],
) -> Result<ProxyRequest, BadHead> {
    let slash = if path.starts_with('/') { "" } else { "/" };
    let path = path.split('#').next().unwrap_or_default();
    let mut head = format!("{method} {slash}{path} HTTP/1.1\r\nHost: {authority}\r\n");
    let mut body_bytes = None;
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(BadHead("a header has no `:`"))?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_name) {
            return Err(BadHead("a header has no name"));
        }
        let name = name.to_ascii_lowercase();
        if name == "transfer-encoding" {
            return Err(BadHead("send bodies with Content-Length"));
        }
        if name == "content-length" {
            let value = value.trim();
            let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
            let bytes: Option<u64> = value.parse().ok().filter(|_| is_number);
            if bytes.is_none() || body_bytes.is_some() {
                return Err(BadHead("Content-Length is not one number"));
            }
            body_bytes = bytes;
        }
        if name.starts_with("proxy-") || OF_CONNECTION.contains(&name.as_str()) {
            continue;
        }
        head.push_str(line);
        head.push_str("\r\n");
    }
    head.push_str("Connection: close\r\n\r\n");
    Ok(ProxyRequest::Forward {
        target,
        head: head.into_bytes(),
        body_bytes: body_bytes.unwrap_or(0),
    })
}
