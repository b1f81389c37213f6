//! Proxy through which a sandboxed command reaches the hosts that the user's configuration lists.
//!
//! It listens on loopback for one command. The sandbox lets that command connect to the proxy and
//! to nothing else outside, so the proxy judges every host. It looks names up itself and connects to
//! the address that it checked.

mod allowed_host;
mod idle;
mod request_head;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::data::RefusalKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::refusals::RefusalLog;
use crate::web::address::{Lookup, NetworkReach, system};
pub use allowed_host::AllowedHost;
use allowed_host::{RequestHost, RequestTarget};
use idle::IdleLimit;
use request_head::{BadHead, MOST_HEAD_BYTES, ProxyRequest};

/// Most connections at a time.
const MOST_CONNECTIONS: usize = 64;

/// Time limit of a head, a lookup and a connection attempt.
const START: Duration = Duration::from_secs(10);

/// Longest silence in both directions.
const SILENCE: Duration = Duration::from_mins(5);

/// Variables that name the proxy; curl reads `http_proxy` in lower case only.
const VARIABLES: [&str; 6] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
];

/// Variables that name hosts without a proxy.
const EXCEPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// Running proxy of one command; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct HostProxy {
    address: SocketAddr,
    task: JoinHandle<()>,
}

/// Hosts of a proxy, and its record of refusals.
#[derive(Clone)]
struct ProxyRules {
    hosts: Arc<[AllowedHost]>,
    lookup: Lookup,
    refusals: RefusalLog,
}

impl HostProxy {
    /// Starts a proxy to these hosts. Needs a runtime.
    pub(crate) fn start(hosts: Arc<[AllowedHost]>, refusals: RefusalLog) -> io::Result<Self> {
        Self::with_lookup(hosts, refusals, system())
    }

    fn with_lookup(
        hosts: Arc<[AllowedHost]>,
        refusals: RefusalLog,
        lookup: Lookup,
    ) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        let entered = runtime.enter();
        let listener = TcpListener::from_std(listener)?;
        drop(entered);
        let rules = ProxyRules {
            hosts,
            lookup,
            refusals,
        };
        let task = runtime.spawn(accept_all(listener, rules));
        Ok(Self { address, task })
    }

    /// Returns the address on which it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the variables that lead programs to it. Own servers are reached directly.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, String)> + use<> {
        let url = format!("http://{}", self.address);
        let own = "localhost,127.0.0.1,::1".to_owned();
        let exceptions = EXCEPTIONS.map(|name| (name, own.clone()));
        let proxies = VARIABLES.map(|name| (name, url.clone()));
        proxies.into_iter().chain(exceptions)
    }
}

impl Drop for HostProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept_all(listener: TcpListener, rules: ProxyRules) {
    let slots = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    // Dropping the set ends its connections with the proxy.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else {
            return;
        };
        while connections.try_join_next().is_some() {}
        // An accept fails if the client is gone, or without free descriptors.
        let Ok((client, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let rules = rules.clone();
        connections.spawn(async move {
            // A failed connection ends; the client sees that.
            let _ = serve(client, &rules).await;
            drop(slot);
        });
    }
}

/// Answer to a client instead of a connection.
struct ProxyError {
    status: &'static str,
    reason: String,
}

impl ProxyError {
    fn new(status: &'static str, reason: impl Into<String>) -> Self {
        Self {
            status,
            reason: reason.into(),
        }
    }
}

async fn serve(mut client: TcpStream, rules: &ProxyRules) -> io::Result<()> {
    let request = match timeout(START, read_head(&mut client)).await {
        Ok(request) => request?,
        Err(_) => Err(BadHead("the head took too long")),
    };
    let connected = match request {
        Ok((request, rest)) => match rules.connect(request.target()).await {
            Ok(server) => Ok((request, rest, server)),
            Err(error) => Err(error),
        },
        Err(BadHead(reason)) => Err(ProxyError::new("400 Bad Request", reason)),
    };
    match connected {
        Ok((request, rest, server)) => relay(client, server, request, &rest).await,
        Err(ProxyError { status, reason }) => {
            let body = format!("ikigai: {reason}\n");
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
                 Connection: close\r\n\r\n{body}"
            );
            client.write_all(answer.as_bytes()).await?;
            client.shutdown().await
        }
    }
}

/// Reads a head; returns it with the bytes behind it.
async fn read_head(client: &mut TcpStream) -> io::Result<Result<(ProxyRequest, Vec<u8>), BadHead>> {
    let mut read = Vec::new();
    loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = read.split_off(end + 4);
            read.truncate(end);
            return Ok(request_head::parse(&read).map(|request| (request, rest)));
        }
        if read.len() >= MOST_HEAD_BYTES {
            return Ok(Err(BadHead("the head is too long")));
        }
        if client.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

async fn relay(
    mut client: TcpStream,
    server: TcpStream,
    request: ProxyRequest,
    rest: &[u8],
) -> io::Result<()> {
    let mut server = IdleLimit::new(server, SILENCE);
    match request {
        ProxyRequest::Connect(_) => {
            let answer = b"HTTP/1.1 200 Connection established\r\n\r\n";
            client.write_all(answer).await?;
            server.write_all(rest).await?;
            copy_bidirectional(&mut client, &mut server).await?;
        }
        ProxyRequest::Forward {
            head, body_bytes, ..
        } => {
            server.write_all(&head).await?;
            let early = usize::try_from(body_bytes).unwrap_or(usize::MAX);
            let early = &rest[..rest.len().min(early)];
            server.write_all(early).await?;
            // Nothing behind this body reaches the server: it was not judged.
            let missing = body_bytes - early.len() as u64;
            let (from_client, mut to_client) = client.split();
            let mut body = from_client.take(missing);
            let (mut from_server, mut to_server) = tokio::io::split(server);
            let upload = async {
                tokio::io::copy(&mut body, &mut to_server).await?;
                // The server may answer before it has the whole body.
                std::future::pending::<io::Result<()>>().await
            };
            tokio::select! {
                failed = upload => failed?,
                done = tokio::io::copy(&mut from_server, &mut to_client) => { done?; }
            }
            to_client.shutdown().await?;
        }
    }
    Ok(())
}

impl ProxyRequest {
    fn target(&self) -> &RequestTarget {
        match self {
            Self::Connect(target) | Self::Forward { target, .. } => target,
        }
    }
}

impl ProxyRules {
    /// Connects to a listed host, at an address that is public or listed itself.
    async fn connect(&self, target: &RequestTarget) -> Result<TcpStream, ProxyError> {
        if !self.hosts.iter().any(|host| host.includes(target)) {
            let reason = format!("{target} is not in `[sandbox] network`");
            return Err(self.refuse(target, reason));
        }
        let looked_up = async {
            match &target.host {
                RequestHost::Address(address) => Ok(vec![SocketAddr::new(*address, target.port)]),
                RequestHost::Name(name) => (self.lookup)(name.clone()).await,
            }
        };
        let failed = |error: String| {
            let reason = format!("cannot connect to {target}: {error}");
            ProxyError::new("502 Bad Gateway", reason)
        };
        let addresses = match timeout(START, looked_up).await {
            Ok(Ok(addresses)) => addresses,
            Ok(Err(error)) => return Err(failed(error.to_string())),
            Err(_) => return Err(failed("the lookup took too long".to_owned())),
        };
        let is_allowed = |address: IpAddr| {
            let is_listed = |host: &AllowedHost| host.is_address(address, target.port);
            NetworkReach::Public.includes(address) || self.hosts.iter().any(is_listed)
        };
        let allowed = addresses.iter().map(SocketAddr::ip);
        let allowed: Vec<_> = allowed.filter(|address| is_allowed(*address)).collect();
        if allowed.is_empty() && !addresses.is_empty() {
            let reason = format!("{target} leads to a private address, which is not listed itself");
            return Err(self.refuse(target, reason));
        }
        let mut last = "the name has no address".to_owned();
        for address in allowed {
            match timeout(START, TcpStream::connect((address, target.port))).await {
                Ok(Ok(server)) => return Ok(server),
                Ok(Err(error)) => last = error.to_string(),
                Err(_) => "it took too long".clone_into(&mut last),
            }
        }
        Err(failed(last))
    }

    fn refuse(&self, target: &RequestTarget, reason: String) -> ProxyError {
        self.refusals.add(RefusalKind::Host, &target.to_string());
        ProxyError::new("403 Forbidden", reason)
    }
}
