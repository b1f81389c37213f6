//! Real PostgreSQL servers for tests: a shared one, and separate ones that tests can stop.
//!
//! On the shared server each test has its own database.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use tokio_postgres::{Config, NoTls, SimpleQueryMessage};

/// Environment variable with the address of the server of `scripts/test`.
const SHARED: &str = "IKIGAI_TEST_POSTGRES";

/// Counter of names in this process, which makes them unique.
static NAMED: AtomicU64 = AtomicU64::new(0);

fn unique() -> String {
    let number = NAMED.fetch_add(1, Ordering::Relaxed);
    format!("{}_{number}", std::process::id())
}

/// A server that belongs to a test.
///
/// It ends, and all its files are removed, on drop or with the test's process.
#[derive(Debug)]
pub struct PgServer {
    directory: PathBuf,
    guard: Mutex<ServerGuard>,
}

/// `scripts/postgres-server`, which ends when its input does.
#[derive(Debug)]
struct ServerGuard {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl ServerGuard {
    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl PgServer {
    /// Starts a server.
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// Starts a server with additional settings, each `name = value`.
    pub fn with(settings: &[&str]) -> Self {
        // Short, because the path of a socket is limited to about 100 bytes, and accessible for the
        // user that the server runs as.
        let directory = Path::new("/tmp").join(format!("ikigai-pg-{}", unique()));
        Self::run(&[], &directory, settings)
    }

    /// Starts a server with permanent data in that directory, perhaps of an earlier one.
    ///
    /// Waits for that one, if it runs.
    pub fn kept(directory: &Path, settings: &[&str]) -> Self {
        Self::run(&["--keep"], directory, settings)
    }

    fn run(options: &[&str], directory: &Path, settings: &[&str]) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut child = Command::new(root.join("scripts/postgres-server"))
            .args(options)
            .arg(directory)
            .args(settings)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("scripts/postgres-server starts");
        let mut guard = ServerGuard {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        };
        assert_eq!(
            guard.hear(),
            "ready",
            "tests need a real PostgreSQL server, and none could be started: run them by \
             `scripts/test`, which installs it"
        );
        Self {
            directory: directory.to_owned(),
            guard: Mutex::new(guard),
        }
    }

    /// Stops the server in an orderly way; all connections are cut.
    pub fn stop(&self) {
        self.order("stop");
    }

    /// Stops the server as a crash does.
    pub fn kill(&self) {
        self.order("kill");
    }

    /// Starts the server again.
    pub fn start_again(&self) {
        self.order("start");
    }

    /// Changes a setting (`name = value`) from the next start on.
    pub fn set(&self, setting: &str) {
        self.order(&format!("set {setting}"));
    }

    /// Makes a new database on it.
    pub fn database(&self) -> Database {
        Database::new(self.directory.clone())
    }

    /// Returns the URL of a database on it.
    pub fn url(&self, database: &str) -> String {
        url(&self.directory, database)
    }

    /// Runs statements without the engine, as [`Database::sql`] does.
    pub fn sql(&self, database: &str, statements: &str) -> QueryRows {
        told(&self.directory, database, statements)
    }

    /// Returns the directory of its data and its socket.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn order(&self, command: &str) {
        let mut guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        let input = guard.input.as_mut().unwrap();
        input.write_all(format!("{command}\n").as_bytes()).unwrap();
        assert_eq!(guard.hear(), "done", "the server did not {command}");
    }
}

impl Drop for PgServer {
    fn drop(&mut self) {
        let guard = self.guard.get_mut().unwrap_or_else(PoisonError::into_inner);
        drop(guard.input.take());
        let _ = guard.child.wait();
    }
}

/// A database of one test; dropped with it.
#[derive(Debug)]
pub struct Database {
    directory: PathBuf,
    name: String,
}

impl Database {
    /// Makes a new one on the shared server: that of `scripts/test`, or this process's own.
    pub fn fresh() -> Self {
        static OWN: OnceLock<PgServer> = OnceLock::new();
        match env::var_os(SHARED) {
            Some(directory) => Self::new(directory.into()),
            None => OWN.get_or_init(PgServer::start).database(),
        }
    }

    fn new(directory: PathBuf) -> Self {
        let database = Self {
            directory,
            name: format!("test_{}", unique()),
        };
        let create = format!("CREATE DATABASE {}", database.name);
        told(&database.directory, "postgres", &create);
        database
    }

    /// Returns its URL.
    pub fn url(&self) -> String {
        url(&self.directory, &self.name)
    }

    /// Returns the URL of another log in it, in a separate schema.
    pub fn schema_url(&self, schema: &str) -> String {
        format!("{}&schema={schema}", self.url())
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the directory of its server's socket.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Runs statements without the engine, and returns all their rows as texts.
    ///
    /// Tables of the default schema need no schema name.
    pub fn sql(&self, statements: &str) -> QueryRows {
        told(&self.directory, &self.name, statements)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let Self { directory, name } = self;
        // A database on a stopped server is removed with the server.
        let statement = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
        let _ = ask(directory, "postgres", &statement);
    }
}

/// A database with an empty log from a pool, returned on drop.
///
/// Creating one takes a hundred times as long as emptying one.
#[derive(Debug)]
pub struct LentDatabase(Option<Database>);

static FREE: Mutex<Vec<Database>> = Mutex::new(Vec::new());

impl LentDatabase {
    /// Takes a free one, or makes one.
    pub fn take() -> Self {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Self(Some(free.unwrap_or_else(Database::fresh)))
    }

    /// Returns its URL.
    pub fn url(&self) -> String {
        self.database().url()
    }

    /// Returns the database itself.
    pub fn database(&self) -> &Database {
        self.0.as_ref().unwrap()
    }
}

impl Drop for LentDatabase {
    fn drop(&mut self) {
        let Some(database) = self.0.take() else {
            return;
        };
        // A database that cannot be emptied is not reused. The replica role skips foreign keys.
        let Database { directory, name } = &database;
        let emptied = ask(
            directory,
            name,
            "SET session_replication_role = replica;
             DO $$ DECLARE named text; BEGIN
                 FOR named IN SELECT tablename FROM pg_catalog.pg_tables
                     WHERE schemaname = 'ikigai' AND tablename <> 'schema_version'
                 LOOP EXECUTE format('DELETE FROM %I', named); END LOOP;
             END $$",
        );
        if emptied.is_ok() {
            let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
            free.push(database);
        }
    }
}

/// Rows of statements, as texts.
pub type QueryRows = Vec<Vec<Option<String>>>;

fn url(directory: &Path, database: &str) -> String {
    format!(
        "postgres://postgres@/{database}?host={}",
        directory.display()
    )
}

fn told(directory: &Path, database: &str, statements: &str) -> QueryRows {
    let told = ask(directory, database, statements);
    told.unwrap_or_else(|error| panic!("`{statements}`: {error:?}"))
}

fn ask(
    directory: &Path,
    database: &str,
    statements: &str,
) -> Result<QueryRows, tokio_postgres::Error> {
    // On a separate thread, because the caller's may belong to a runtime.
    let asked = std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask_here(directory, database, statements));
        asking.join()
    });
    asked.unwrap()
}

fn ask_here(
    directory: &Path,
    database: &str,
    statements: &str,
) -> Result<QueryRows, tokio_postgres::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (client, connection) = Config::new()
            .host_path(directory)
            .user("postgres")
            .dbname(database)
            .options("-c search_path=ikigai,public")
            .connect(NoTls)
            .await?;
        let driver = tokio::spawn(connection);
        let told = client.simple_query(statements).await?;
        drop(client);
        let _ = driver.await;
        Ok(told.iter().filter_map(row).collect())
    })
}

fn row(message: &SimpleQueryMessage) -> Option<Vec<Option<String>>> {
    let SimpleQueryMessage::Row(row) = message else {
        return None;
    };
    let cells = 0..row.len();
    Some(cells.map(|cell| row.get(cell).map(str::to_owned)).collect())
}
