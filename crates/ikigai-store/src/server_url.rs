//! The URL of a shared log: `postgres://user@host/database?schema=name`.
//!
//! No message of this module repeats the text it was given, because it may contain a password.

mod pgpass;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::SecretString;
use thiserror::Error;

/// Default port of PostgreSQL.
const PORT: u16 = 5432;

/// Default schema of the tables.
const SCHEMA: &str = "ikigai";

/// Limit of a schema's name: notification channels are named after it, and names of PostgreSQL have
/// at most 63 bytes.
const SCHEMA_BYTES: usize = 48;

/// Default timeout of connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Usual directories of the server's Unix socket.
const SOCKET_DIRECTORIES: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// Limit of a URL in bytes.
const MOST_BYTES: usize = 4096;

/// Reason why a URL is refused.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum BadUrl {
    /// The URL has another scheme.
    #[error("the URL does not begin with `postgres://`")]
    Scheme,
    /// The URL is too long.
    #[error("the URL is longer than {MOST_BYTES} bytes")]
    TooLong,
    /// `%` is not followed by two hexadecimal digits, or they are no text.
    #[error("invalid `%` in the {0} of the URL; write `%` itself as `%25`")]
    Percent(&'static str),
    /// The URL names several servers, but another number of ports.
    #[error("the URL names {hosts} servers and {ports} ports; name one port, or one for each")]
    Ports { hosts: usize, ports: usize },
    /// The port is invalid.
    #[error("the port in the URL must be a number from 1 to 65535")]
    Port,
    /// No user is named.
    #[error("no user: name one in the URL, or set PGUSER")]
    NoUser,
    /// A parameter is unknown.
    #[error("unknown URL parameter `{0}`; known: {KNOWN}")]
    Parameter(String),
    /// A parameter has an invalid value.
    #[error("URL parameter `{name}` must be {may_be}")]
    Value {
        name: &'static str,
        may_be: &'static str,
    },
    /// The file of passwords has one for this server, but others can read it.
    #[error("other users can read the password file `{0}`: run `chmod 600` on it")]
    Exposed(PathBuf),
    /// The file of passwords cannot be read.
    #[error("cannot read the password file `{path}`: {reason}")]
    Passwords { path: PathBuf, reason: String },
}

/// Supported parameters.
const KNOWN: &str = "host, port, user, password, dbname, schema, sslmode, sslrootcert, \
                     connect_timeout, target_session_attrs";

/// Host of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// Its name or IP address.
    Name(String),
    /// Directory of its socket.
    Socket(PathBuf),
}

/// Address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerAddress {
    pub(crate) host: Host,
    pub(crate) port: u16,
}

/// Server among several that a connection is for, named as in `libpq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WantedServer {
    /// The first that can be reached.
    Any,
    /// One that is no standby.
    Primary,
    /// A standby.
    Standby,
}

impl WantedServer {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "any" => Self::Any,
            "read-write" | "primary" => Self::Primary,
            "read-only" | "standby" => Self::Standby,
            _ => return None,
        })
    }
}

/// Required protection of a connection, named as in `libpq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TlsMode {
    /// Nothing.
    Disable,
    /// TLS, if the server has it, with any certificate.
    Prefer,
    /// TLS. With `sslrootcert` the certificate must be signed by it.
    Require,
    /// TLS with a certificate of a trusted authority.
    VerifyCa,
    /// TLS with a certificate of a trusted authority for this host.
    VerifyFull,
}

impl TlsMode {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "disable" => Self::Disable,
            "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => return None,
        })
    }
}

/// URL of a shared log, with all that opening it needs.
///
/// It is displayed without the password.
#[derive(Clone)]
pub struct Url {
    pub(crate) host: Host,
    pub(crate) port: u16,
    /// Further servers, which are tried in this order.
    pub(crate) others: Vec<ServerAddress>,
    pub(crate) wanted: WantedServer,
    pub(crate) user: String,
    pub(crate) password: Option<SecretString>,
    pub(crate) database: String,
    pub(crate) schema: String,
    pub(crate) tls: TlsMode,
    /// Trusted authorities; `None` is the set of web browsers.
    pub(crate) roots: Option<PathBuf>,
    pub(crate) connect_timeout: Duration,
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separators = std::iter::once("@").chain(std::iter::repeat(","));
        f.write_str(&self.user)?;
        for (address, separator) in self.addresses().iter().zip(separators) {
            let port = address.port;
            match &address.host {
                Host::Name(host) if host.contains(':') => {
                    write!(f, "{separator}[{host}]:{port}")?;
                }
                Host::Name(host) => write!(f, "{separator}{host}:{port}")?,
                Host::Socket(directory) => {
                    write!(f, "{separator}{}:{port}", directory.display())?;
                }
            }
        }
        write!(f, "/{}", self.database)?;
        if self.schema != SCHEMA {
            write!(f, "?schema={}", self.schema)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Url({self})")
    }
}

impl Url {
    /// Returns true if a text is a PostgreSQL URL.
    pub fn is_meant(text: &str) -> bool {
        without_scheme(text).is_some()
    }

    /// Returns the role as which programs connect.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Parses a URL with the environment variables of this process.
    pub fn parse(text: &str) -> Result<Self, BadUrl> {
        Self::read(text, |name| std::env::var(name).ok())
    }

    /// Parses a URL. `variable` reads environment variables: `PGPASSWORD`, `PGPASSFILE`, `PGUSER`,
    /// `USER` and `HOME`.
    pub fn read(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self, BadUrl> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let mut parts = UrlParts::split(text)?;
        parts.take_parameters()?;
        let mut addresses = addresses(parts.host.as_deref(), parts.port.as_deref())?;
        let others = addresses.split_off(1);
        let first = addresses.pop();
        let ServerAddress { host, port } = first.ok_or(BadUrl::Port)?;
        let user = parts.user.or_else(|| variable("PGUSER"));
        let user = user.or_else(|| variable("USER")).ok_or(BadUrl::NoUser)?;
        let database = parts.database.unwrap_or_else(|| user.clone());
        let password = parts.password.or_else(|| variable("PGPASSWORD"));
        let mut url = Self {
            host,
            port,
            others,
            wanted: parts.wanted.unwrap_or(WantedServer::Any),
            user,
            password: password.map(SecretString::from),
            database,
            schema: parts.schema.unwrap_or_else(|| SCHEMA.to_owned()),
            tls: parts.tls.unwrap_or(TlsMode::Prefer),
            roots: parts.roots,
            connect_timeout: parts.connect_timeout.unwrap_or(CONNECT_TIMEOUT),
        };
        if url.password.is_none() {
            let file = variable("PGPASSFILE").map(PathBuf::from);
            let file =
                file.or_else(|| variable("HOME").map(|home| Path::new(&home).join(".pgpass")));
            if let Some(file) = file {
                url.password = pgpass::password_of_all(&file, &url)?.map(SecretString::from);
            }
        }
        Ok(url)
    }

    /// Returns the password, so that callers can hide it.
    pub fn password(&self) -> Option<&SecretString> {
        self.password.as_ref()
    }

    /// Returns true if the URL names this machine.
    pub fn is_local(&self) -> bool {
        self.addresses().iter().all(|address| match &address.host {
            Host::Socket(_) => true,
            Host::Name(host) => {
                let number = host.parse::<std::net::IpAddr>();
                host == "localhost" || number.is_ok_and(|number| number.is_loopback())
            }
        })
    }

    /// Returns the addresses of the servers, in the order in which they are tried.
    pub(crate) fn addresses(&self) -> Vec<ServerAddress> {
        let first = ServerAddress {
            host: self.host.clone(),
            port: self.port,
        };
        std::iter::once(first).chain(self.others.clone()).collect()
    }

    /// Returns the schema that holds the tables: a name that needs no quotes.
    pub fn schema(&self) -> &str {
        &self.schema
    }
}

/// The pieces of an address, decoded.
#[derive(Default)]
struct UrlParts<'a> {
    user: Option<String>,
    password: Option<String>,
    host: Option<String>,
    port: Option<String>,
    database: Option<String>,
    schema: Option<String>,
    tls: Option<TlsMode>,
    roots: Option<PathBuf>,
    connect_timeout: Option<Duration>,
    wanted: Option<WantedServer>,
    parameters: &'a str,
}

impl<'a> UrlParts<'a> {
    fn split(text: &'a str) -> Result<Self, BadUrl> {
        let rest = without_scheme(text).ok_or(BadUrl::Scheme)?;
        if text.len() > MOST_BYTES {
            return Err(BadUrl::TooLong);
        }
        let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        // A password may contain an unescaped `@`; a host has none.
        let (account, place) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = account.split_once(':').unwrap_or((account, ""));
        let (host, port) = split_places(place);
        Ok(Self {
            user: decode("user", user)?,
            password: decode("password", password)?,
            host: decode("host", &host)?,
            port: decode("port", &port)?,
            database: decode("database", database)?,
            parameters,
            ..Self::default()
        })
    }

    fn take_parameters(&mut self) -> Result<(), BadUrl> {
        for parameter in self.parameters.split('&').filter(|it| !it.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = decode("parameters", value)?;
            match name {
                "host" => self.host = value,
                "port" => self.port = value,
                "user" => self.user = value,
                "password" => self.password = value,
                "dbname" => self.database = value,
                "schema" => self.schema = Some(schema(value)?),
                "sslmode" => {
                    let mode = value.and_then(|word| TlsMode::of(&word));
                    self.tls = Some(mode.ok_or(BadUrl::Value {
                        name: "sslmode",
                        may_be: "disable, prefer, require, verify-ca or verify-full",
                    })?);
                }
                "sslrootcert" => {
                    self.roots = value.filter(|value| value != "system").map(PathBuf::from);
                }
                "connect_timeout" => {
                    let seconds = value.and_then(|value| value.parse().ok());
                    let seconds = seconds.filter(|seconds| (1..=600).contains(seconds));
                    self.connect_timeout =
                        Some(seconds.map(Duration::from_secs).ok_or(BadUrl::Value {
                            name: "connect_timeout",
                            may_be: "a number of seconds from 1 to 600",
                        })?);
                }
                "target_session_attrs" => {
                    let wanted = value.and_then(|word| WantedServer::of(&word));
                    self.wanted = Some(wanted.ok_or(BadUrl::Value {
                        name: "target_session_attrs",
                        may_be: "any, read-write, primary, read-only or standby",
                    })?);
                }
                _ => return Err(BadUrl::Parameter(name.chars().take(40).collect())),
            }
        }
        Ok(())
    }
}

fn without_scheme(text: &str) -> Option<&str> {
    ["postgres://", "postgresql://"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme))
}

/// Decodes `%41` and the like; nothing is none.
fn decode(part: &'static str, text: &str) -> Result<Option<String>, BadUrl> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || rest.next().and_then(|it| char::from(it).to_digit(16));
            let pair = digit().zip(digit()).map(|(high, low)| high * 16 + low);
            let byte = pair.and_then(|it| u8::try_from(it).ok());
            bytes.push(byte.ok_or(BadUrl::Percent(part))?);
        } else {
            bytes.push(byte);
        }
    }
    let text = String::from_utf8(bytes).map_err(|_| BadUrl::Percent(part))?;
    // A zero byte ends a text in the protocol, and no part of an address has one.
    if text.contains('\0') {
        return Err(BadUrl::Percent(part));
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Checks that the name needs no quotes in `psql`.
fn schema(value: Option<String>) -> Result<String, BadUrl> {
    let is_good = |name: &String| {
        let letters = |it: u8| it.is_ascii_lowercase() || it == b'_';
        name.len() <= SCHEMA_BYTES
            && !name.starts_with("pg_")
            && name.bytes().next().is_some_and(letters)
            && name.bytes().all(|it| letters(it) || it.is_ascii_digit())
    };
    value.filter(is_good).ok_or(BadUrl::Value {
        name: "schema",
        may_be: "at most 48 of the characters a-z, 0-9 and _, and begin with a letter, not with pg_",
    })
}

/// Splits `a:1,[::1]:2` into its hosts and its ports, each joined by commas; no ports if none is named.
fn split_places(places: &str) -> (String, String) {
    let places = places.split(',').map(|place| {
        match place.strip_prefix('[').and_then(|it| it.split_once(']')) {
            Some((number, port)) => (number, port.strip_prefix(':').unwrap_or(port)),
            None => place.rsplit_once(':').unwrap_or((place, "")),
        }
    });
    let (hosts, ports): (Vec<_>, Vec<_>) = places.unzip();
    let has_ports = ports.iter().any(|port| !port.is_empty());
    (
        hosts.join(","),
        if has_ports {
            ports.join(",")
        } else {
            String::new()
        },
    )
}

/// Pairs hosts with ports; one port is for all hosts.
fn addresses(hosts: Option<&str>, ports: Option<&str>) -> Result<Vec<ServerAddress>, BadUrl> {
    let hosts: Vec<Option<&str>> = match hosts {
        Some(hosts) => hosts
            .split(',')
            .map(|host| Some(host).filter(|it| !it.is_empty()))
            .collect(),
        None => vec![None],
    };
    let ports: Vec<&str> = ports.map_or_else(Vec::new, |ports| ports.split(',').collect());
    if ports.len() > 1 && ports.len() != hosts.len() {
        return Err(BadUrl::Ports {
            hosts: hosts.len(),
            ports: ports.len(),
        });
    }
    let only = ports.first().filter(|_| ports.len() == 1);
    let pairs = hosts.into_iter().enumerate().map(|(place, host)| {
        let port = match only.or(ports.get(place)).filter(|port| !port.is_empty()) {
            Some(port) => port.parse().ok().filter(|port| *port > 0),
            None => Some(PORT),
        };
        let port = port.ok_or(BadUrl::Port)?;
        let host = host_at(host, port);
        Ok(ServerAddress { host, port })
    });
    pairs.collect()
}

fn host_at(named: Option<&str>, port: u16) -> Host {
    match named {
        Some(host) if host.starts_with('/') => Host::Socket(host.into()),
        Some(host) => Host::Name(host.to_owned()),
        None => {
            let here = SOCKET_DIRECTORIES.iter().map(Path::new);
            let mut here = here.filter(|it| it.join(format!(".s.PGSQL.{port}")).exists());
            match here.next() {
                Some(directory) => Host::Socket(directory.to_owned()),
                None => Host::Name("localhost".to_owned()),
            }
        }
    }
}
