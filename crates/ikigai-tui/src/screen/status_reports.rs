//! Reports of the program's status to the terminal (OSC 7501).

use crate::app::ProgramStatus;
use crate::terminal::{STATUS_CLEAR, STATUS_QUERY, program_status};

/// Condition of reports to the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatusReports {
    /// If the terminal answers that it shows them.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// Status of the program as the terminal knows it.
#[derive(Debug, Default)]
pub(super) struct StatusReporter {
    reports: StatusReports,
    /// The terminal answered.
    is_supported: bool,
    sent: Option<ProgramStatus>,
}

impl StatusReporter {
    pub(super) fn new(reports: StatusReports) -> Self {
        Self {
            reports,
            ..Self::default()
        }
    }

    /// Returns the question to the terminal, if its answer matters.
    pub(super) fn query(&self) -> &'static [u8] {
        match self.reports {
            StatusReports::Auto => STATUS_QUERY,
            StatusReports::On | StatusReports::Off => b"",
        }
    }

    /// Notes that the terminal shows reports.
    pub(super) fn set_supported(&mut self) {
        self.is_supported = true;
    }

    fn is_on(&self) -> bool {
        match self.reports {
            StatusReports::Auto => self.is_supported,
            StatusReports::On => true,
            StatusReports::Off => false,
        }
    }

    /// Adds the report of a status that changed.
    pub(super) fn report(&mut self, status: ProgramStatus, bytes: &mut Vec<u8>) {
        if self.is_on() && self.sent.as_ref() != Some(&status) {
            bytes.extend(program_status(status.state, status.kind, &status.text));
            self.sent = Some(status);
        }
    }

    /// Returns the end of the reports, because the program ends or stops.
    pub(super) fn clear(&mut self) -> &'static [u8] {
        match self.sent.take() {
            Some(_) => STATUS_CLEAR,
            None => b"",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ProgramStatus, StatusReporter, StatusReports};

    fn reports(reporter: &mut StatusReporter, state: &'static str) -> String {
        let status = ProgramStatus {
            state,
            kind: (state == "blocked").then_some("permission"),
            text: "1 question".to_owned(),
        };
        let mut bytes = Vec::new();
        reporter.report(status, &mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_terminal_that_does_not_answer_gets_no_report() {
        let mut reporter = StatusReporter::new(StatusReports::Auto);
        assert_eq!(reporter.query(), b"\x1b]7501;?\x1b\\");
        assert_eq!(reports(&mut reporter, "blocked"), "");
        assert_eq!(reporter.clear(), b"");

        reporter.set_supported();

        let blocked =
            "\x1b]7501;state=blocked:kind=permission:app=ikigai:msg=MSBxdWVzdGlvbg==\x1b\\";
        assert_eq!(reports(&mut reporter, "blocked"), blocked);
        assert_eq!(reports(&mut reporter, "blocked"), "", "nothing changed");
        let working = "\x1b]7501;state=working:app=ikigai:msg=MSBxdWVzdGlvbg==\x1b\\";
        assert_eq!(reports(&mut reporter, "working"), working);
        assert_eq!(reporter.clear(), b"\x1b]7501;state=clear:app=ikigai\x1b\\");
    }

    #[test]
    fn the_setting_forces_or_forbids_reports() {
        let mut forced = StatusReporter::new(StatusReports::On);
        assert_eq!(forced.query(), b"");
        assert!(reports(&mut forced, "idle").contains("state=idle"));
        let mut off = StatusReporter::new(StatusReports::Off);
        off.set_supported();
        assert_eq!(off.query(), b"");
        assert_eq!(reports(&mut off, "idle"), "");
    }
}
