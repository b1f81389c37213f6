//! Examination of the server for `ikigai doctor`.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc;
use tokio::time::timeout;

use super::connect::{ConnectionRole, Link, PostgresTarget};
use super::errors::ServerError;
use super::values::{QueryFailure, Result, get};
use crate::server_report::ServerReport;

/// Timeout of the test notification.
const NOTIFIED: Duration = Duration::from_secs(5);

/// Privileges that this program needs on each table.
const RIGHTS: [(&str, &[&str]); 15] = [
    ("schema_version", &["SELECT"]),
    ("sessions", &["SELECT", "INSERT"]),
    ("agents", &["SELECT", "INSERT", "UPDATE"]),
    ("heads", &["SELECT", "INSERT", "UPDATE"]),
    ("messages", &["SELECT", "INSERT"]),
    ("processes", &["SELECT", "INSERT", "UPDATE", "DELETE"]),
    ("mail", &["SELECT", "INSERT", "UPDATE"]),
    ("drafts", &["SELECT", "INSERT", "DELETE"]),
    ("tool_runs", &["SELECT", "INSERT", "UPDATE"]),
    ("jobs", &["SELECT", "INSERT", "UPDATE"]),
    ("blobs", &["SELECT", "INSERT"]),
    ("paths", &["SELECT", "INSERT", "UPDATE"]),
    ("witnesses", &["SELECT", "INSERT", "UPDATE", "DELETE"]),
    ("search", &["SELECT", "INSERT", "DELETE"]),
    ("search_upto", &["SELECT", "INSERT", "UPDATE", "DELETE"]),
];

/// Examines the server over a separate connection.
pub(super) async fn report(target: &PostgresTarget) -> Result<ServerReport, ServerError> {
    let (sender, mut notifications) = mpsc::channel(1);
    let link = target.connect_with_notifications(ConnectionRole::Slow, move |_| {
        // One is enough.
        let _ = sender.try_send(());
    });
    let link = link.await?;
    let looked = look(&link, target, &mut notifications).await;
    looked.map_err(|failure| match failure {
        QueryFailure::Sql(error) => error.into(),
        QueryFailure::Value(reason) => ServerError::Unfit {
            reason,
            advice: "run `ikigai doctor` again",
        },
    })
}

async fn look(
    link: &Link,
    target: &PostgresTarget,
    notifications: &mut mpsc::Receiver<()>,
) -> Result<ServerReport> {
    let mut report = link
        .only(SETTINGS, &[], |row| {
            Ok(ServerReport {
                version: get(row, 0)?,
                missing_rights: Vec::new(),
                is_read_only: get(row, 1)?,
                unsafe_settings: get(row, 2)?,
                connections: (count(get(row, 3)?), count(get(row, 4)?)),
                round_trip: Duration::ZERO,
                clock_ahead: 0,
                notified: None,
                is_private: target.url().is_local() || get(row, 5)?,
            })
        })
        .await?;
    report.missing_rights = missing_rights(link).await?;
    (report.round_trip, report.clock_ahead) = clock(link).await?;
    report.notified = measure_notification(link, target, notifications).await?;
    Ok(report)
}

/// Reads version and settings of the server.
const SETTINGS: &str = "SELECT current_setting('server_version'),
         pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean,
         ARRAY(SELECT name FROM pg_catalog.pg_settings WHERE setting = 'off'
               AND name IN ('fsync', 'full_page_writes', 'synchronous_commit') ORDER BY name)::text[],
         (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend'),
         current_setting('max_connections')::bigint,
         coalesce((SELECT ssl FROM pg_catalog.pg_stat_ssl WHERE pid = pg_backend_pid()), false)";

const MISSING: &str = "SELECT r.what || ' on ' || r.name
     FROM unnest($1::text[], $2::text[]) AS r (name, what)
     WHERE NOT has_table_privilege(r.name, r.what)
     UNION ALL
     SELECT s.what || ' on ' || s.name
     FROM (VALUES ('messages_id_seq', 'SELECT'), ('mail_id_seq', 'SELECT'),
                  ('sessions_id_seq', 'USAGE'), ('agents_id_seq', 'USAGE')) AS s (name, what)
     WHERE NOT has_sequence_privilege(s.name, s.what)";

const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

async fn missing_rights(link: &Link) -> Result<Vec<String>> {
    let each = RIGHTS
        .iter()
        .flat_map(|(table, rights)| rights.iter().map(move |right| (*table, *right)));
    let (tables, rights): (Vec<&str>, Vec<&str>) = each.unzip();
    link.all(MISSING, &[&tables, &rights], |row| get(row, 0))
        .await
}

/// Measures round-trip time and clock offset; the fastest of several counts.
async fn clock(link: &Link) -> Result<(Duration, i64)> {
    let mut best = (Duration::MAX, 0);
    // The first one includes preparing the statement.
    for _ in 0..4 {
        let begun = Instant::now();
        let theirs: i64 = link.only(NOW, &[], |row| get(row, 0)).await?;
        let took = begun.elapsed();
        let ours = SystemTime::now().duration_since(UNIX_EPOCH);
        let ours = ours.unwrap_or_default().saturating_sub(took / 2);
        let ours = i64::try_from(ours.as_micros()).unwrap_or(i64::MAX);
        if took < best.0 {
            best = (took, theirs.saturating_sub(ours));
        }
    }
    Ok(best)
}

/// Measures the delay of a notification to this connection.
async fn measure_notification(
    link: &Link,
    target: &PostgresTarget,
    notifications: &mut mpsc::Receiver<()>,
) -> Result<Option<Duration>> {
    let channel = format!("{}_doctor", target.url().schema());
    link.command(&format!("LISTEN {channel}")).await?;
    let sent = Instant::now();
    link.command(&format!("NOTIFY {channel}")).await?;
    let came = timeout(NOTIFIED, notifications.recv()).await;
    Ok(came.is_ok().then(|| sent.elapsed()))
}
