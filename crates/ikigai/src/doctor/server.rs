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
        "server: PostgreSQL {}, {millis:.1} ms away, {used} of {most} connections used",
        report.version
    ))];
    if most.saturating_sub(used) < FREE_CONNECTIONS {
        findings.push(Finding::Warning(
            format!(
                "server: only {} connections are left",
                most.saturating_sub(used)
            ),
            "raise max_connections on the server; each process of ikigai uses up to 4".to_owned(),
        ));
    }
    findings.push(if report.is_read_only {
        Finding::Bad(
            "server: it takes no writes".to_owned(),
            "name the server that leads, or set default_transaction_read_only to off".to_owned(),
        )
    } else {
        Finding::Good("server: it takes writes".to_owned())
    });
    findings.push(if report.missing_rights.is_empty() {
        Finding::Good("server: you may do all that is needed".to_owned())
    } else {
        Finding::Bad(
            format!("server: you may not {}", report.missing_rights.join(", ")),
            "let the owner of the schema grant it to you, as docs/sharing.md says".to_owned(),
        )
    });
    if !report.unsafe_settings.is_empty() {
        findings.push(Finding::Warning(
            format!(
                "server: with {} off it may lose what it has confirmed",
                report.unsafe_settings.join(" and ")
            ),
            "set it to on in postgresql.conf".to_owned(),
        ));
    }
    if !report.is_private {
        findings.push(Finding::Warning(
            "server: the connection is not encrypted".to_owned(),
            "add sslmode=verify-full to the address".to_owned(),
        ));
    }
    findings.push(clock(report.clock_ahead));
    findings.push(match report.notified {
        Some(took) => Finding::Good(format!(
            "server: a notification takes {:.1} ms",
            took.as_secs_f64() * 1000.0
        )),
        None => Finding::Bad(
            "server: no notification comes through".to_owned(),
            "connect to the server itself: a pooler between must keep sessions apart".to_owned(),
        ),
    });
    findings
}

fn clock(ahead: i64) -> Finding {
    let seconds = ahead.unsigned_abs() / 1_000_000;
    let way = if ahead > 0 { "ahead of" } else { "behind" };
    if ahead.abs() > SKEW_MICROS {
        Finding::Warning(
            format!("server: its clock is {seconds} s {way} this machine's"),
            "set both by a time server; rows keep their order, but their times will puzzle you"
                .to_owned(),
        )
    } else {
        Finding::Good("server: its clock agrees with this machine's".to_owned())
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
                "w server: only 3 connections are left",
                "b server: it takes no writes",
                "b server: you may not INSERT on messages, SELECT on mail",
                "w server: with fsync off it may lose what it has confirmed",
                "w server: the connection is not encrypted",
                "w server: its clock is 65 s ahead of this machine's",
                "b server: no notification comes through",
            ]
        );
    }
}
