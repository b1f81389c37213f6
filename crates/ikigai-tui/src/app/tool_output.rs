//! Live output of running tools: the last lines below the call, or all of it.

use std::time::{Duration, Instant};

use ikigai_core::counts::counted;
use ikigai_engine::{ListedProcess, Live, RunningCall};

use super::UiContext;
use super::board_rows::process_line;
use super::lines::first_line;
use crate::line::{TextLine, TextSpan};
use crate::look::Tone;
use crate::text::{clean, cut};

/// Time between two looks at the output of background processes.
const PROCESS_STEP: Duration = Duration::from_secs(1);

/// Visible lines of a call that runs alone.
const PEEK: usize = 5;

/// Visible lines of each of several calls.
const PEEK_OF_SEVERAL: usize = 2;

impl UiContext {
    /// Shows all output of running tools, or only the last lines.
    pub(super) fn toggle_tool_output(&mut self) {
        self.shows_all_output = !self.shows_all_output;
        let is_running = self
            .roster
            .live(self.current)
            .is_some_and(|live| live.running.iter().any(|one| !one.output.is_empty()));
        let has_process = own_processes(self).next().is_some();
        match (is_running || has_process, self.shows_all_output) {
            (true, _) => {}
            (false, true) => self.toast("Running tools show all output"),
            (false, false) => self.toast("Running tools show their last lines"),
        }
    }

    /// Returns the time at which shown output of background processes may have changed.
    pub(super) fn output_due(&self) -> Option<Instant> {
        let is_shown = self.shows_all_output && own_processes(self).next().is_some();
        is_shown.then(|| self.now + PROCESS_STEP)
    }

    /// Renders the agent's background processes with their last lines, if all output is shown.
    pub(super) fn process_lines(&self) -> Vec<TextLine> {
        let shown = own_processes(self).filter(|_| self.shows_all_output);
        shown
            .map(|process| process_line(process, 0, self.columns))
            .collect()
    }

    /// Renders the output of running calls.
    pub(super) fn tool_output_lines(&self, live: &Live) -> Vec<TextLine> {
        let printing: Vec<&RunningCall> = live
            .running
            .iter()
            .filter(|one| !one.output.is_empty())
            .collect();
        let most = match (self.shows_all_output, printing.len()) {
            (true, _) => usize::MAX,
            (false, 0 | 1) => PEEK,
            (false, _) => PEEK_OF_SEVERAL,
        };
        let mut lines = Vec::new();
        for running in &printing {
            if live.running.len() > 1 {
                let call = TextLine::of(clean(first_line(&running.shown)), Tone::Tool);
                lines.push(cut(&call, self.columns, "…"));
            }
            let (newest, before) = running.newest(most);
            if before > 0 {
                let count = format!("  … {} before", counted(before, "line"));
                let mut note = TextLine::of(count, Tone::Faint);
                if !self.shows_all_output {
                    note.spans
                        .push(TextSpan::new(" · Ctrl-O show all", Tone::Faint));
                }
                lines.push(cut(&note, self.columns, "…"));
            }
            for printed in newest {
                let row = TextLine::of(format!("  {}", clean(printed)), Tone::Faint);
                lines.push(cut(&row, self.columns, "…"));
            }
        }
        lines
    }
}

/// Returns the background processes of the agent on the screen.
fn own_processes(ctx: &UiContext) -> impl Iterator<Item = &ListedProcess> {
    let all = ctx.processes.iter();
    all.filter(|process| process.agent == ctx.current)
}
