//! Findings about a PostgreSQL server.

use ikigai_store::ServerReport;

use super::Finding;

/// Difference of clocks that makes a log hard to read.
const SKEW_MICROS: i64 = 2_000_000;

/// Connections that should be free: enough for two more processes.
const FREE_CONNECTIONS: u64 = 8;

/// Converts a report of the server to findings.
pub(super) fn findings(report: &ServerReport) -> Vec<Finding> {
    let (used, most) = report.connections;
    let millis = report.round_trip.as_secs_f64() * 1000.0;
    let mut findings = vec![Finding::Good(format!(
        "server: PostgreSQL {}, latency {millis:.1} ms, {used} of {most} connections used",
        report.version
    ))];
    if most.saturating_sub(used) < FREE_CONNECTIONS {
        findings.push(Finding::Warning(
            format!(
                "server: only {} connections left",
                most.saturating_sub(used)
            ),
            "raise max_connections; each ikigai process uses up to 4".to_owned(),
        ));
    }
    findings.push(if report.is_read_only {
        Finding::Bad(
            "server: read-only".to_owned(),
            "connect to the primary server, or set default_transaction_read_only to off".to_owned(),
        )
    } else {
        Finding::Good("server: accepts writes".to_owned())
    });
    findings.push(if report.missing_rights.is_empty() {
        Finding::Good("server: all needed privileges are granted".to_owned())
    } else {
        Finding::Bad(
            format!(
                "server: missing privileges: {}",
                report.missing_rights.join(", ")
            ),
            "ask the owner of the schema to grant them (docs/sharing.md)".to_owned(),
        )
    });
    if !report.unsafe_settings.is_empty() {
        findings.push(Finding::Warning(
            format!(
                "server: {} is off, so a crash can lose stored events",
                report.unsafe_settings.join(" and ")
            ),
            "set it to on in postgresql.conf".to_owned(),
        ));
    }
    if !report.is_private {
        findings.push(Finding::Warning(
            "server: connection is not encrypted".to_owned(),
            "add sslmode=verify-full to the URL".to_owned(),
        ));
    }
    findings.push(clock(report.clock_ahead));
    findings.push(match report.notified {
        Some(took) => Finding::Good(format!(
            "server: notifications arrive after {:.1} ms",
            took.as_secs_f64() * 1000.0
        )),
        None => Finding::Bad(
            "server: notifications do not arrive".to_owned(),
            "connect directly, or use a pooler in session mode".to_owned(),
        ),
    });
    findings
}

fn clock(ahead: i64) -> Finding {
    let seconds = ahead.unsigned_abs() / 1_000_000;
    let way = if ahead > 0 { "ahead of" } else { "behind" };
    if ahead.abs() > SKEW_MICROS {
        Finding::Warning(
            format!("server: clock is {seconds} s {way} this machine"),
            "synchronise both clocks; the order of events is correct, but their times are off"
                .to_owned(),
        )
    } else {
        Finding::Good("server: clock agrees with this machine".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn sound() -> ServerReport {
        ServerReport {
            version: "15.1".to_owned(),
            missing_rights: Vec::new(),
            is_read_only: false,
            unsafe_settings: Vec::new(),
            connections: (4, 100),
            round_trip: Duration::from_millis(2),
            clock_ahead: -1000,
            notified: Some(Duration::from_millis(3)),
            is_private: true,
        }
    }

    /// Returns warnings (`w`) and failures (`b`) with their texts.
    fn faults(report: &ServerReport) -> Vec<String> {
        let findings = findings(report).into_iter();
        let fault = |finding| match finding {
            Finding::Good(_) => None,
            Finding::Warning(found, _) => Some(format!("w {found}")),
            Finding::Bad(found, _) => Some(format!("b {found}")),
        };
        findings.filter_map(fault).collect()
    }

    #[test]
    fn a_sound_server_has_no_faults() {
        assert_eq!(faults(&sound()), [""; 0]);
    }

    #[test]
    fn every_fault_is_told() {
        let report = ServerReport {
            missing_rights: vec!["INSERT on messages".to_owned(), "SELECT on mail".to_owned()],
            is_read_only: true,
            unsafe_settings: vec!["fsync".to_owned()],
            connections: (97, 100),
            clock_ahead: 65_000_000,
            notified: None,
            is_private: false,
            ..sound()
        };

        assert_eq!(
            faults(&report),
            [
                "w server: only 3 connections left",
                "b server: read-only",
                "b server: missing privileges: INSERT on messages, SELECT on mail",
                "w server: fsync is off, so a crash can lose stored events",
                "w server: connection is not encrypted",
                "w server: clock is 65 s ahead of this machine",
                "b server: notifications do not arrive",
            ]
        );
    }
}
