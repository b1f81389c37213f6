//! Hosts that commands may reach, and hosts as requests name them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Ports of a listed host without a port.
const USUAL_PORTS: [u16; 2] = [80, 443];

/// Longest name of a host.
const LONGEST_NAME: usize = 253;

/// Host that commands may reach: a name, the names below one, or an address.
///
/// Without a port it means the ports 80 and 443.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AllowedHost {
    rule: HostRule,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostRule {
    Name(String),
    /// All names that end with a dot and this one.
    Below(String),
    Address(IpAddr),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RequestHost {
    /// Name in lower case, without a final dot.
    Name(String),
    /// Address; one of version 4 that is written in version 6 is one of version 4.
    Address(IpAddr),
}

/// Host and port of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestTarget {
    pub(super) host: RequestHost,
    pub(super) port: u16,
}

impl AllowedHost {
    /// Returns true if a request may go to this host.
    pub(super) fn includes(&self, target: &RequestTarget) -> bool {
        let is_host = match (&self.rule, &target.host) {
            (HostRule::Name(name), RequestHost::Name(wanted)) => name == wanted,
            (HostRule::Below(parent), RequestHost::Name(wanted)) => wanted
                .strip_suffix(parent.as_str())
                .is_some_and(|below| below.len() > 1 && below.ends_with('.')),
            (HostRule::Address(address), RequestHost::Address(wanted)) => address == wanted,
            _ => false,
        };
        is_host && self.has_port(target.port)
    }

    /// Returns true if the list names this address itself.
    pub(super) fn is_address(&self, address: IpAddr, port: u16) -> bool {
        self.rule == HostRule::Address(address.to_canonical()) && self.has_port(port)
    }

    /// Returns true if every request that `other` allows is allowed by this host too.
    pub fn covers(&self, other: &Self) -> bool {
        let has_host = match (&self.rule, &other.rule) {
            (HostRule::Below(parent), HostRule::Name(name) | HostRule::Below(name)) => {
                self.rule == other.rule || name.ends_with(&format!(".{parent}"))
            }
            (ours, theirs) => ours == theirs,
        };
        let has_ports = match other.port {
            Some(port) => self.has_port(port),
            None => self.port.is_none(),
        };
        has_host && has_ports
    }

    fn has_port(&self, port: u16) -> bool {
        match self.port {
            Some(own) => own == port,
            None => USUAL_PORTS.contains(&port),
        }
    }
}

impl FromStr for AllowedHost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unusable = || {
            format!(
                "`{text}` is not a host. Write `example.com`, `*.example.com` or `example.com:22`"
            )
        };
        let (host, port) = split_port(text).ok_or_else(unusable)?;
        let rule = if let Some(parent) = host.strip_prefix("*.") {
            HostRule::Below(name_of(parent).ok_or_else(unusable)?)
        } else {
            match host_of(host).ok_or_else(unusable)? {
                RequestHost::Name(name) => HostRule::Name(name),
                RequestHost::Address(address) => HostRule::Address(address),
            }
        };
        Ok(Self { rule, port })
    }
}

impl TryFrom<String> for AllowedHost {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<AllowedHost> for String {
    fn from(host: AllowedHost) -> Self {
        host.to_string()
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rule {
            HostRule::Name(name) => f.write_str(name)?,
            HostRule::Below(parent) => write!(f, "*.{parent}")?,
            HostRule::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
            HostRule::Address(IpAddr::V4(address)) => write!(f, "{address}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl RequestTarget {
    /// Parses `host:port`, where `port` may be left out if there is a usual one.
    pub(super) fn parse(authority: &str, usual_port: Option<u16>) -> Option<Self> {
        let (host, port) = split_port(authority)?;
        Some(Self {
            host: host_of(host)?,
            port: port.or(usual_port)?,
        })
    }
}

impl fmt::Display for RequestTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            RequestHost::Name(name) => write!(f, "{name}:{}", self.port),
            RequestHost::Address(IpAddr::V6(address)) => write!(f, "[{address}]:{}", self.port),
            RequestHost::Address(IpAddr::V4(address)) => write!(f, "{address}:{}", self.port),
        }
    }
}

/// Splits a port off; the port is not 0 and has no sign or blanks.
fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    let after_brackets = text.rfind(']').map_or(0, |end| end + 1);
    let Some(colon) = text[after_brackets..].find(':') else {
        return Some((text, None));
    };
    let (host, port) = text.split_at(after_brackets + colon);
    let port = &port[1..];
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse().ok().filter(|port| is_number && *port > 0)?;
    Some((host, Some(port)))
}

fn host_of(text: &str) -> Option<RequestHost> {
    if let Some(inside) = text.strip_prefix('[') {
        let address: std::net::Ipv6Addr = inside.strip_suffix(']')?.parse().ok()?;
        return Some(RequestHost::Address(IpAddr::V6(address).to_canonical()));
    }
    if let Ok(address) = text.parse::<std::net::Ipv4Addr>() {
        return Some(RequestHost::Address(IpAddr::V4(address)));
    }
    name_of(text).map(RequestHost::Name)
}

/// Returns a name in lower case without a final dot, if it is one.
///
/// A last part of digits, or `0x…`, is refused: resolvers read such names as addresses.
fn name_of(text: &str) -> Option<String> {
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let is_letter =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    let is_part = |part: &str| (1..=63).contains(&part.len()) && part.bytes().all(is_letter);
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = name.len() <= LONGEST_NAME && name.split('.').all(is_part) && !is_number;
    is_name.then_some(name)
}
