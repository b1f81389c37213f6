//! Statements, round trips and times of processes that share a log on a PostgreSQL server.
//!
//! A proxy between each process and the server counts, and can make the way longer.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use ikigai_testkit::metered_proxy::{MeteredProxy, Traffic};
use ikigai_testkit::postgres::PgServer;
use ikigai_testkit::pty::Pty;
use ikigai_testkit::stores::rounds::judge;

use crate::home::{Home, wait_for_end};

/// Screens on one log, and agents in it.
const SCREENS: usize = 4;
const AGENTS: [usize; 2] = [51, 501];

/// Agents of the list that is printed.
const LISTED: usize = 10_000;

/// Duration of the longer way to the server and back.
const FAR: Duration = Duration::from_millis(50);

/// Time in which a screen ends its background reads.
const SETTLED: Duration = Duration::from_secs(4);

/// Time of idle screens: three heartbeats.
const IDLE: Duration = Duration::from_secs(15);

/// Runs that are timed.
const RUNS: usize = 5;

/// Most statements that are listed of one measurement.
const STATEMENTS: usize = 12;

/// Returns the server of this bench, which ends with its process.
fn server() -> &'static PgServer {
    static SERVER: OnceLock<PgServer> = OnceLock::new();
    SERVER.get_or_init(PgServer::start)
}

pub(crate) fn sharing(under: &Path) {
    for agents in AGENTS {
        turns(under, agents);
    }
    list(under);
    distance(under);
}

/// A database with agents, and a home for each process that uses it.
struct SharedLog {
    database: String,
    under: PathBuf,
}

impl SharedLog {
    /// Makes a database with the agents of one workspace, one of them made by the program.
    fn new(under: &Path, name: &str, agents: usize) -> Self {
        let database = format!("sharing_{name}");
        server().sql("postgres", &format!("DROP DATABASE IF EXISTS {database}"));
        server().sql("postgres", &format!("CREATE DATABASE {database}"));
        let log = Self {
            under: under.join(&database),
            database,
        };
        let home = log.home(&server().url(&log.database));
        assert!(
            home.command(&["run", "hello"])
                .output()
                .unwrap()
                .status
                .success()
        );
        if agents > 1 {
            let last = agents - 1;
            server().sql(
                &log.database,
                &format!(
                    "INSERT INTO agents (uuid, session, created_at, status, name)
                     SELECT 'A' || substr(translate(encode(uuid_send(gen_random_uuid()), 'base64'),
                                                    '+/=', '-_'), 2), f.session, f.created_at,
                            'running', 'many' || number
                     FROM agents f, generate_series(1, {last}) AS number;
                     INSERT INTO messages (agent, seq, created_at, control, kind, content, data)
                     SELECT a.id, m.seq, m.created_at, m.control, m.kind, m.content, m.data
                     FROM agents a, messages m WHERE a.name LIKE 'many%' ORDER BY a.id, m.seq;
                     INSERT INTO heads (agent, seq, epoch)
                     SELECT a.id, h.seq, 0 FROM agents a, heads h WHERE a.name LIKE 'many%';"
                ),
            );
            server().sql(&log.database, "VACUUM (ANALYZE)");
        }
        log
    }

    #[expect(clippy::unused_self, reason = "the proxy is that of the log's server")]
    fn proxy(&self, delay: Duration) -> MeteredProxy {
        MeteredProxy::to(server().directory(), delay)
    }

    /// Returns the home of all processes of this log, which use it at a URL.
    fn home(&self, url: &str) -> Home {
        let home = Home::new(&self.under, "home");
        Home {
            db: url.into(),
            ..home
        }
    }

    fn home_by(&self, proxy: &MeteredProxy) -> Home {
        self.home(&proxy.url(&self.database))
    }
}

/// Reports whether a statement is part of a heartbeat.
fn is_heartbeat(connection: &str, sql: &str) -> bool {
    connection == "ikigai listen" && (sql.contains("UPDATE processes"))
}

/// Reports whether a statement stores a part of a running response.
fn is_draft(sql: &str) -> bool {
    sql.contains("INTO drafts")
}

fn judge_statements(what: &str, traffic: &Traffic, shares: usize, most: f64) {
    let drafts = traffic.count(|_, sql| is_draft(sql));
    let counted = traffic.count(|name, sql| !is_heartbeat(name, sql) && !is_draft(sql));
    let each = number(counted) / number(shares);
    judge(
        &format!("{what}, apart from {drafts} drafts"),
        each,
        most,
        " statements",
    );
    if each > most {
        print_ranking(traffic);
    }
}

/// Prints the most frequent statements.
#[expect(clippy::print_stdout, reason = "it is what a bench is run for")]
fn print_ranking(traffic: &Traffic) {
    for (count, connection, sql) in traffic.ranking().into_iter().take(STATEMENTS) {
        let sql: String = sql.chars().take(90).collect();
        println!("      {count:>6} {connection:<13} {sql}");
    }
}

/// Measures a turn and an idle time of several screens, each with an agent.
fn turns(under: &Path, agents: usize) {
    let log = SharedLog::new(under, &format!("turns_{agents}"), agents);
    let proxies: Vec<MeteredProxy> = (0..SCREENS).map(|_| log.proxy(Duration::ZERO)).collect();
    let mut screens: Vec<Pty> = proxies
        .iter()
        .map(|proxy| {
            let mut pty = log.home_by(proxy).show(&["--new"]);
            pty.wait_for_text("❯");
            pty
        })
        .collect();
    let settle = |screens: &mut [Pty], time: Duration| {
        let end = Instant::now() + time;
        for pty in screens {
            pty.listen(end.saturating_duration_since(Instant::now()));
        }
    };
    // The first turn prepares statements and takes leases.
    for _ in 0..2 {
        settle(&mut screens, SETTLED);
        for proxy in &proxies {
            drop(proxy.take());
        }
        screens[0].send("hello\r");
        wait_for_end(&mut screens[0]);
    }
    settle(&mut screens, SETTLED);
    let mut traffic = proxies.iter().map(MeteredProxy::take);
    let writing = traffic.next().unwrap_or_default();
    let watching = sum(traffic);
    let title = format!("{SCREENS} screens, {agents} agents");
    judge_statements(&format!("{title}: a turn, its process"), &writing, 1, 12.0);
    judge_statements(
        &format!("{title}: a turn, each watching screen"),
        &watching,
        SCREENS - 1,
        2.0,
    );
    settle(&mut screens, IDLE);
    let idle = sum(proxies.iter().map(MeteredProxy::take));
    let beats = idle.count(is_heartbeat);
    let each = number(idle.statements.len()) / number(beats.max(1));
    judge(
        &format!("{title}: idle, each heartbeat"),
        each,
        1.0,
        " statements",
    );
    for pty in &mut screens {
        pty.send("\x15\x04");
        pty.wait_end();
    }
}

fn sum(all: impl Iterator<Item = Traffic>) -> Traffic {
    all.fold(Traffic::default(), |mut sum, one| {
        sum.statements.extend(one.statements);
        sum.connects.extend(one.connects);
        sum.round_trips += one.round_trips;
        sum.bytes += one.bytes;
        sum
    })
}

/// Measures `ikigai agents` in a log with many agents.
fn list(under: &Path) {
    let log = SharedLog::new(under, "list", LISTED);
    let proxy = log.proxy(Duration::ZERO);
    let home = log.home_by(&proxy);
    let mut times = Vec::new();
    let mut traffic = Traffic::default();
    for _ in 0..RUNS {
        drop(proxy.take());
        let begun = Instant::now();
        let output = home.command(&["agents"]).output().unwrap();
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        let lines = String::from_utf8_lossy(&output.stdout).lines().count();
        assert!(lines > LISTED, "{lines} lines");
        traffic = proxy.take();
    }
    let title = format!("`ikigai agents`, {LISTED} agents");
    judge(&title, number(traffic.round_trips), 3.0, " round trips");
    judge(&title, median(times), 150.0, " ms");
    judge(&title, number(traffic.bytes) / 1e6, 4.0, " MB");
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Measures a start, a one-shot run and a fork, with a longer way to the server.
fn distance(under: &Path) {
    let log = SharedLog::new(under, "distance", 51);
    let (near, far) = (log.proxy(Duration::ZERO), log.proxy(FAR));
    for (what, most, once) in [
        ("start", 0.3, start as fn(&Home) -> Duration),
        ("run", 0.6, run),
        ("fork", 0.25, fork),
    ] {
        let mut added = Vec::new();
        let (mut connects, mut trips) = (Vec::new(), 0);
        for _ in 0..RUNS {
            let base = once(&log.home_by(&near));
            drop((near.take(), far.take()));
            let took = once(&log.home_by(&far));
            let traffic = far.take();
            let connect = traffic.connects.first().copied().unwrap_or_default();
            // A fork begins with an open connection.
            let apart = if what == "fork" {
                Duration::ZERO
            } else {
                connect
            };
            added.push(took.as_secs_f64() - base.as_secs_f64() - apart.as_secs_f64());
            connects.push(connect.as_secs_f64());
            trips = traffic.round_trips;
        }
        let title = format!(
            "{what} at {} ms, added after {:.2} s to connect ({trips} round trips in all)",
            FAR.as_millis(),
            median(connects),
        );
        judge(&title, median(added), most, " s");
    }
}

/// Starts the screen until a typed letter is visible.
fn start(home: &Home) -> Duration {
    home.start(&["--new"])
}

fn run(home: &Home) -> Duration {
    let begun = Instant::now();
    assert!(
        home.command(&["run", "hello"])
            .output()
            .unwrap()
            .status
            .success()
    );
    begun.elapsed()
}

/// Forks on the screen until the child's prompt is visible.
fn fork(home: &Home) -> Duration {
    let mut pty = home.show(&["--new"]);
    pty.wait_for_text("❯");
    pty.send("hello\r");
    wait_for_end(&mut pty);
    pty.send("/fork");
    pty.wait_for_text("❯ /fork");
    pty.listen(SETTLED);
    let begun = Instant::now();
    pty.send("\r");
    pty.wait_for("the child's prompt", |screen| {
        let contents = screen.contents();
        contents.contains("─ ↑") && !contents.contains("❯ /fork")
    });
    let took = begun.elapsed();
    pty.send("\x04");
    pty.wait_end();
    took
}
