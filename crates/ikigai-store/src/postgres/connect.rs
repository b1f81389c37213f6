//! Connections: how they are made, and what is set on each.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use secrecy::ExposeSecret;
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{MakeTlsConnect, NoTls};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Notification, Socket, Statement};

use super::errors::{Cause, breaks_connection};
use super::migrations::Migrations;
use super::tls::Tls;
use super::url::{Host, TlsMode, Url};
use crate::error::StoreError;

/// The oldest server that is spoken to.
const OLDEST_SERVER: u32 = 15;

/// After this time without a sign of life a connection is looked at, so often, in such steps.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 2;

/// What is sent must be confirmed within this time, or the connection counts as cut.
const UNCONFIRMED: Duration = Duration::from_secs(15);

/// A plan is made once for each connection, perhaps when there is hardly anything. Then the server
/// would read whole tables, and go on doing so when they have grown; and a short one is not cheap
/// to read either, if its rows are written again and again. Everything has its index.
const BY_INDEX: (&str, &str) = ("enable_seqscan", "off");

/// What a connection is for. A process that works has at most one of each of the first four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Hears of commits, and holds the process's lock.
    Listening,
    /// Writes.
    Writing,
    /// Answers what is answered at once.
    Reading,
    /// Answers what takes its time.
    Slow,
    /// Answers what a person asks in words of their own; it stands no longer than that takes.
    Asking,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Listening => "ikigai listen",
            Self::Writing => "ikigai write",
            Self::Reading => "ikigai read",
            Self::Slow => "ikigai slow",
            Self::Asking => "ikigai sql",
        }
    }

    /// What the server is told at the start, beside the schema. Times are in milliseconds.
    ///
    /// A process that is stopped in the middle of a transaction must not keep others from what it
    /// owned, so the server ends such a transaction long before its owner counts as gone.
    fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            // What it writes is true only for as long as it lives.
            Self::Listening => &[
                ("statement_timeout", "10000"),
                ("synchronous_commit", "off"),
                ("tcp_keepalives_idle", "5"),
                ("tcp_keepalives_interval", "5"),
                ("tcp_keepalives_count", "2"),
                ("tcp_user_timeout", "15000"),
            ],
            Self::Writing => &[
                BY_INDEX,
                ("statement_timeout", "30000"),
                ("lock_timeout", "12000"),
                ("idle_in_transaction_session_timeout", "8000"),
                ("tcp_keepalives_idle", "5"),
                ("tcp_keepalives_interval", "5"),
                ("tcp_keepalives_count", "2"),
                ("tcp_user_timeout", "15000"),
            ],
            Self::Reading => &[
                BY_INDEX,
                ("statement_timeout", "30000"),
                ("default_transaction_read_only", "on"),
            ],
            Self::Slow => &[("idle_in_transaction_session_timeout", "600000")],
            Self::Asking => &[("default_transaction_read_only", "on")],
        }
    }
}

/// What is opened, and as which version.
#[derive(Clone, Debug)]
pub struct Target {
    pub(super) url: Url,
    pub(super) migrations: Migrations,
    tls: Option<Tls>,
}

impl Target {
    /// Reads what the address names; nothing is connected yet.
    pub fn new(url: Url, migrations: Migrations) -> Result<Self, StoreError> {
        let tls = Tls::new(&url).map_err(|error| StoreError::Server {
            server: url.to_string(),
            reason: error.to_string(),
            advice: "check `sslmode` and `sslrootcert` of the address",
        })?;
        Ok(Self {
            url,
            migrations,
            tls,
        })
    }

    /// The address.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The version that this program reads and writes.
    pub fn version(&self) -> u32 {
        u32::try_from(self.migrations.len()).unwrap_or(u32::MAX)
    }

    /// Makes a connection. To be called on the store's runtime.
    pub async fn connect(&self, role: Role) -> Result<Link, Cause> {
        self.connect_hearing(role, |_| ()).await
    }

    /// Makes a connection that is told what others notify it of.
    pub async fn connect_hearing(
        &self,
        role: Role,
        heard: impl FnMut(&Notification) + Send + 'static,
    ) -> Result<Link, Cause> {
        let config = self.config(role);
        let connecting = async {
            match self.tls.clone() {
                Some(tls) => Link::start(&config, tls, heard).await,
                None => Link::start(&config, NoTls, heard).await,
            }
        };
        // A server that is stopped takes connections and says nothing.
        let link = timeout(self.url.connect_timeout, connecting).await;
        link.map_err(|_| Cause::Silence)?
    }

    fn config(&self, role: Role) -> Config {
        let url = &self.url;
        let mut config = Config::new();
        config
            .user(&url.user)
            .dbname(&url.database)
            .port(url.port)
            .application_name(role.name())
            .connect_timeout(url.connect_timeout)
            .keepalives_idle(KEEPALIVE_IDLE)
            .keepalives_interval(KEEPALIVE_IDLE)
            .keepalives_retries(KEEPALIVE_RETRIES)
            .tcp_user_timeout(UNCONFIRMED)
            .options(self.options(role));
        if let Some(password) = &url.password {
            config.password(password.expose_secret());
        }
        match &url.host {
            Host::Name(host) => config.host(host),
            Host::Socket(directory) => config.host_path(directory),
        };
        config.ssl_mode(match (&self.tls, url.tls) {
            (None, _) => SslMode::Disable,
            (Some(_), TlsMode::Prefer) => SslMode::Prefer,
            (Some(_), _) => SslMode::Require,
        });
        config
    }

    fn options(&self, role: Role) -> String {
        // The name of a schema needs no quotes, and no value has a space.
        let schema = ("search_path", self.url.schema.as_str());
        // What is asked is short; compiling it takes far longer than answering.
        let settings = role
            .settings()
            .iter()
            .copied()
            .chain([schema, ("jit", "off")]);
        let options = settings.map(|(name, value)| format!("-c {name}={value}"));
        options.collect::<Vec<_>>().join(" ")
    }
}

/// One connection. It ends when this is dropped.
#[derive(Debug)]
pub struct Link {
    /// The way to ask.
    pub client: Client,
    statements: Mutex<HashMap<&'static str, Statement>>,
}

impl Link {
    async fn start<T>(
        config: &Config,
        tls: T,
        heard: impl FnMut(&Notification) + Send + 'static,
    ) -> Result<Self, Cause>
    where
        T: MakeTlsConnect<Socket>,
        T::Stream: Send + 'static,
    {
        let (client, connection) = config.connect(tls).await?;
        let version = connection.parameter("server_version").unwrap_or_default();
        let major: String = version.chars().take_while(char::is_ascii_digit).collect();
        if major
            .parse::<u32>()
            .map_or(true, |major| major < OLDEST_SERVER)
        {
            return Err(Cause::Unfit {
                reason: format!("it is PostgreSQL {version}"),
                advice: "PostgreSQL 15 or newer is needed",
            });
        }
        tokio::spawn(drive(connection, heard));
        Ok(Self {
            client,
            statements: Mutex::default(),
        })
    }

    /// A statement, prepared when it is first asked for.
    pub async fn prepared(&self, sql: &'static str) -> Result<Statement, tokio_postgres::Error> {
        let known = self.statements().get(sql).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        self.statements().insert(sql, statement.clone());
        Ok(statement)
    }

    /// Says whether the connection is of no more use after an error.
    pub fn is_broken_by(&self, error: &tokio_postgres::Error) -> bool {
        self.client.is_closed() || breaks_connection(error)
    }

    fn statements(&self) -> std::sync::MutexGuard<'_, HashMap<&'static str, Statement>> {
        self.statements
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Moves what is sent and received until the connection ends; whoever waits for an answer is then
/// told so.
async fn drive<S, T>(mut connection: Connection<S, T>, mut heard: impl FnMut(&Notification))
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notification(notification) = message {
            heard(&notification);
        }
    }
}
