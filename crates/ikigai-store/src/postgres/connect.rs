//! Connections to the server, and their settings.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use secrecy::ExposeSecret;
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{MakeTlsConnect, NoTls};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Notification, Socket, Statement};

use super::errors::{ServerError, breaks_connection};
use super::pipeline::StatementUse;
use super::tls::Tls;
use crate::error::StoreError;
use crate::server_url::{Host, ServerAddress, TlsMode, Url, WantedServer};
use crate::sql_common::Migrations;

/// Oldest supported server version.
const OLDEST_SERVER: u32 = 15;

/// TCP keepalive: idle time and interval, and probes.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 2;

/// Timeout of unacknowledged data, after which the connection counts as cut.
const UNCONFIRMED: Duration = Duration::from_secs(15);

/// Plans are made once per connection, perhaps while tables are small. The server would then scan
/// whole tables, and continue after they have grown. Every query has an index.
const BY_INDEX: (&str, &str) = ("enable_seqscan", "off");

/// Purpose of a connection. A working process has at most one of each of the first four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionRole {
    /// Receives notifications and holds the process's lock.
    Listening,
    /// Writes.
    Writing,
    /// Runs short queries.
    Reading,
    /// Runs long queries.
    Slow,
    /// Runs one SQL query of the user.
    Asking,
}

impl ConnectionRole {
    fn name(self) -> &'static str {
        match self {
            Self::Listening => "ikigai listen",
            Self::Writing => "ikigai write",
            Self::Reading => "ikigai read",
            Self::Slow => "ikigai slow",
            Self::Asking => "ikigai sql",
        }
    }

    /// Returns the settings of the session, apart from the schema; times are in milliseconds.
    ///
    /// A process that is stopped inside a transaction must not block its successors, so the server
    /// ends such a transaction long before its owner counts as gone.
    fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            // Its writes matter only while the process lives.
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

/// The server and schema, and the schema version of this program.
#[derive(Clone, Debug)]
pub struct PostgresTarget {
    pub(super) url: Url,
    pub(super) migrations: Migrations,
    tls: Option<Tls>,
}

impl PostgresTarget {
    /// Prepares TLS for a URL; does not connect.
    pub fn new(url: Url, migrations: Migrations) -> Result<Self, StoreError> {
        let tls = Tls::new(&url).map_err(|error| StoreError::Server {
            server: url.to_string(),
            reason: error.to_string(),
            advice: "check `sslmode` and `sslrootcert` in the URL",
        })?;
        Ok(Self {
            url,
            migrations,
            tls,
        })
    }

    /// Returns the URL of the store.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the schema version of this program.
    pub fn version(&self) -> u32 {
        u32::try_from(self.migrations.len()).unwrap_or(u32::MAX)
    }

    /// Connects. Call it on the store's runtime.
    pub async fn connect(&self, role: ConnectionRole) -> Result<Link, ServerError> {
        self.connect_with_notifications(role, |_| ()).await
    }

    /// Connects, with a callback for notifications.
    pub async fn connect_with_notifications(
        &self,
        role: ConnectionRole,
        on_notification: impl FnMut(&Notification) + Send + 'static,
    ) -> Result<Link, ServerError> {
        let mut on_notification = Some(on_notification);
        let mut failure = None;
        for address in self.url.addresses() {
            match self.connect_to(&address, role, &mut on_notification).await {
                Ok(link) => return Ok(link),
                // Later servers are a replacement, so the first one says what is wrong.
                Err(cause) => failure = failure.or(Some(cause)),
            }
        }
        Err(failure.unwrap_or(ServerError::Silence))
    }

    /// Connects to one server; takes the callback if it succeeds.
    async fn connect_to(
        &self,
        address: &ServerAddress,
        role: ConnectionRole,
        on_notification: &mut Option<impl FnMut(&Notification) + Send + 'static>,
    ) -> Result<Link, ServerError> {
        let config = self.config(address, role);
        let wanted = self.url.wanted;
        let connecting = async {
            match self.tls.clone() {
                Some(tls) => Link::start(&config, tls, wanted, on_notification).await,
                None => Link::start(&config, NoTls, wanted, on_notification).await,
            }
        };
        // A stopped server accepts connections and stays silent.
        let link = timeout(self.url.connect_timeout, connecting).await;
        link.map_err(|_| ServerError::Silence)?
    }

    fn config(&self, address: &ServerAddress, role: ConnectionRole) -> Config {
        let url = &self.url;
        let mut config = Config::new();
        config
            .user(&url.user)
            .dbname(&url.database)
            .port(address.port)
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
        match &address.host {
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

    fn options(&self, role: ConnectionRole) -> String {
        // The name of a schema needs no quotes, and no value has a space.
        let schema = ("search_path", self.url.schema.as_str());
        // Queries are short; compiling them takes longer than running them.
        let settings = role
            .settings()
            .iter()
            .copied()
            .chain([schema, ("jit", "off")]);
        let options = settings.map(|(name, value)| format!("-c {name}={value}"));
        options.collect::<Vec<_>>().join(" ")
    }
}

/// One connection. Dropping it ends it.
#[derive(Debug)]
pub struct Link {
    /// Client of the connection.
    pub client: Client,
    statements: Mutex<HashMap<&'static str, StatementUse>>,
}

impl Link {
    async fn start<T>(
        config: &Config,
        tls: T,
        wanted: WantedServer,
        on_notification: &mut Option<impl FnMut(&Notification) + Send + 'static>,
    ) -> Result<Self, ServerError>
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
            return Err(ServerError::Unfit {
                reason: format!("PostgreSQL {version} is too old"),
                advice: "use PostgreSQL 15 or newer",
            });
        }
        let is_standby = connection.parameter("in_hot_standby") == Some("on");
        match wanted {
            WantedServer::Primary if is_standby => {
                return Err(ServerError::Unfit {
                    reason: "the server is a standby".to_owned(),
                    advice: "name the primary too, or remove `target_session_attrs` to only read",
                });
            }
            WantedServer::Standby if !is_standby => {
                return Err(ServerError::Unfit {
                    reason: "the server is not a standby".to_owned(),
                    advice: "check `target_session_attrs` in the URL",
                });
            }
            WantedServer::Any | WantedServer::Primary | WantedServer::Standby => {}
        }
        let on_notification = on_notification.take().ok_or(ServerError::Silence)?;
        tokio::spawn(drive(connection, on_notification));
        Ok(Self {
            client,
            statements: Mutex::default(),
        })
    }

    /// Returns a statement, prepared at its first use here.
    pub(super) async fn prepared(
        &self,
        sql: &'static str,
    ) -> Result<Statement, tokio_postgres::Error> {
        if let Some(StatementUse::Prepared(statement)) = self.statements().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.keep_prepared(sql, Some(statement.clone()));
        Ok(statement)
    }

    /// Notes one more use of a statement; returns the former ones.
    pub(super) fn note_use(&self, sql: &'static str) -> Option<StatementUse> {
        let mut statements = self.statements();
        let used = statements.get(sql).cloned();
        let next = match used {
            None => StatementUse::Once,
            Some(StatementUse::Once) => StatementUse::Preparing,
            Some(StatementUse::Preparing | StatementUse::Prepared(_)) => return used,
        };
        statements.insert(sql, next);
        used
    }

    /// Keeps a prepared statement; without one, the next use prepares it again.
    pub(super) fn keep_prepared(&self, sql: &'static str, statement: Option<Statement>) {
        let used = statement.map_or(StatementUse::Once, StatementUse::Prepared);
        self.statements().insert(sql, used);
    }

    /// Returns true if the connection is unusable after an error.
    pub fn is_broken_by(&self, error: &tokio_postgres::Error) -> bool {
        self.client.is_closed() || breaks_connection(error)
    }

    fn statements(&self) -> std::sync::MutexGuard<'_, HashMap<&'static str, StatementUse>> {
        self.statements
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drives the connection until it ends; pending requests then fail.
async fn drive<S, T>(
    mut connection: Connection<S, T>,
    mut on_notification: impl FnMut(&Notification),
) where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notification(notification) = message {
            on_notification(&notification);
        }
    }
}
