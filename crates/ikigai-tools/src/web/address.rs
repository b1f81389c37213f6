//! Addresses that a tool may connect to: public ones, unless the user allows more.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::ToolFuture;

/// Range of allowed addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NetworkReach {
    /// Addresses of the public internet.
    Public,
    /// All addresses.
    Everything,
}

/// Reason of a refused address. It is searched for in errors of the HTTP client.
pub(crate) const PRIVATE: &str = "is a private address";

impl NetworkReach {
    /// Returns true if connections to an address are allowed.
    pub(crate) fn includes(self, address: IpAddr) -> bool {
        self == Self::Everything || is_public(address)
    }

    /// Checks the host of a URL, as far as possible without a lookup.
    pub(crate) fn check(self, url: &Url) -> Result<(), String> {
        // The client connects to a numeric address without a lookup.
        let host = url.host_str().unwrap_or_default();
        let number = host.trim_start_matches('[').trim_end_matches(']');
        match number.parse() {
            Ok(address) if !self.includes(address) => Err(refusal(host)),
            _ => Ok(()),
        }
    }
}

/// Looks up the addresses of a name.
pub(crate) type Lookup =
    Arc<dyn Fn(String) -> ToolFuture<std::io::Result<Vec<SocketAddr>>> + Send + Sync>;

pub(crate) fn system() -> Lookup {
    Arc::new(|name| {
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) })
    })
}

/// Resolver that returns only allowed addresses.
///
/// The client connects to the checked address, so a name that changes its address meanwhile gains
/// nothing.
pub(crate) struct Guard {
    pub(crate) reach: NetworkReach,
    pub(crate) lookup: Lookup,
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        let found = (self.lookup)(name.clone());
        let reach = self.reach;
        Box::pin(async move {
            let mut addresses = found.await?;
            let count = addresses.len();
            addresses.retain(|address| reach.includes(address.ip()));
            if addresses.is_empty() && count > 0 {
                return Err(refusal(&name).into());
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

fn refusal(host: &str) -> String {
    format!(
        "`{host}` {PRIVATE}: only the public internet may be reached unless the user's configuration allows more"
    )
}

/// Returns true if an address belongs to the public internet. Reserved ones do not.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_reserved = matches!(
        (a, b, c),
        // This network, private, loopback, multicast and above.
        (0 | 10 | 127 | 224..=255, _, _)
            // More private ranges; carrier-grade NAT.
            | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _)
            // Link-local, with the metadata services of cloud machines; one of these has a public
            // number.
            | (169, 254, _) | (168, 63, 129)
            // Protocols, documentation, benchmarks, the former 6to4 relay.
            | (192, 0, 0 | 2) | (198, 51, 100) | (203, 0, 113) | (198, 18..=19, _) | (192, 88, 99)
    );
    !is_reserved
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    // Several IPv6 ranges contain an IPv4 address, which counts then.
    if let Some(inside) = version_4_inside(address) {
        return is_public_v4(inside);
    }
    let [a, b, ..] = address.segments();
    // Only 2000::/3 is allocated; documentation and special ranges are parts of it.
    let is_given_out = a & 0xe000 == 0x2000;
    let is_special = a == 0x2001 && (b < 0x0200 || b == 0x0db8) || a == 0x3fff && b < 0x1000;
    is_given_out && !is_special
}

fn version_4_inside(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let joined = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match segments {
        // Mapped, compatible and translated addresses.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => {
            Some(joined(high, low))
        }
        // NAT64, and 6to4.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => Some(joined(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
