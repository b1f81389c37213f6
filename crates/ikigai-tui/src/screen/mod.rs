//! The screen on a terminal: reads keys and signals, executes terminal actions, paints frames.

mod external_programs;
mod foreground;
mod status_reports;

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use ikigai_core::AgentId;
use ikigai_core::data::Cause;
use ikigai_engine::{AgentJob, Stop, SummaryDraft, TerminalRun, UserRequest};

pub use external_programs::Notify;
pub use status_reports::StatusReports;

use self::status_reports::StatusReporter;
use crate::app::{Farewell, Fate, TerminalAction};
use crate::control::{ControlledScreen, at};
use crate::key::{KeyPress, TerminalEvent};
use crate::paint::{Grid, Painter, Theme};
use crate::terminal::{
    Input, SignalEvent, Signals, Terminal, TerminalError, is_exiting, title, treat_interrupt_as_key,
};

/// Minimum interval between two frames that show keys.
const KEY_FRAME: Duration = Duration::from_millis(16);

/// Minimum interval between two frames of a stream.
const STREAM_FRAME: Duration = Duration::from_millis(33);

/// Shows agents on a terminal until the user leaves.
pub struct Screen {
    stage: ControlledScreen,
    terminal: Terminal,
    input: Input,
    signals: Signals,
    theme: Theme,
    grid: Grid,
    painter: Painter,
    bytes: Vec<u8>,
    title: String,
    /// Changes are not drawn yet.
    is_dirty: bool,
    /// A key is not drawn yet.
    is_typed: bool,
    drawn: Option<Instant>,
    keys_drawn: Option<Instant>,
    /// Time of the last urgent frame, for the end of a turn or a command.
    urgent_drawn: Option<Instant>,
    happened: Vec<TerminalEvent>,
    on_hangup: OnHangUp,
    notify: Notify,
    status: StatusReporter,
}

/// Reason why the screen ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExitReason {
    /// The user left, or the system said so.
    Left,
    /// The user left, and working agents continue.
    Background,
    /// The terminal was closed.
    HungUp,
}

/// Fate of working agents when the terminal is closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnHangUp {
    /// They go on in the background.
    #[default]
    Background,
    /// They pause.
    Pause,
}

/// Result of a screen that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScreenExit {
    /// Text for the normal screen.
    pub farewell: Farewell,
    /// Agents that continue in the background.
    pub handed: Vec<AgentId>,
}

impl Screen {
    /// Creates a screen that was not drawn yet. Within a runtime.
    pub fn new(
        stage: ControlledScreen,
        terminal: Terminal,
        theme: Theme,
        on_hangup: OnHangUp,
    ) -> Result<Self, TerminalError> {
        stage.driver.engine.set_editor();
        Ok(Self {
            input: terminal.input()?,
            signals: {
                treat_interrupt_as_key();
                Signals::new().map_err(TerminalError::SetUp)?
            },
            stage,
            terminal,
            theme,
            grid: Grid::default(),
            painter: Painter::new(),
            bytes: Vec::new(),
            title: String::new(),
            is_dirty: true,
            is_typed: false,
            drawn: None,
            keys_drawn: None,
            urgent_drawn: None,
            happened: Vec::new(),
            on_hangup,
            notify: Notify::default(),
            status: StatusReporter::default(),
        })
    }

    /// Sets the kind of notifications.
    #[must_use]
    pub fn with_notify(mut self, notify: Notify) -> Self {
        self.notify = notify;
        self
    }

    /// Sets when the terminal gets the status of the program.
    #[must_use]
    pub fn with_status_reports(mut self, reports: StatusReports) -> Self {
        self.status = StatusReporter::new(reports);
        self
    }

    /// Shows agents until the user leaves; `prompt` is sent at once. Whatever works then is stopped,
    /// and all is stored.
    pub async fn run(mut self, prompt: Option<String>) -> Result<ScreenExit, TerminalError> {
        self.draw()?;
        self.terminal.send(self.status.query())?;
        self.stage.driver.take_back().await;
        self.stage.driver.start();
        if let Some(prompt) = prompt {
            self.stage.driver.app.submit(prompt);
        }
        self.is_dirty = true;
        let ended = match self.go().await {
            // A write may notice it before the signal comes.
            Err(TerminalError::Gone) => Ok(ExitReason::HungUp),
            ended => ended,
        };
        // A terminal that is gone needs no end of the reports.
        let _ = self.terminal.send(self.status.clear());
        let working = self.stage.driver.engine.working();
        self.stage.leave().await;
        let goes_on = match ended? {
            ExitReason::Left => false,
            ExitReason::Background => true,
            ExitReason::HungUp => self.on_hangup == OnHangUp::Background,
        };
        let fate = if goes_on { Fate::GoOn } else { Fate::Pause };
        Ok(ScreenExit {
            farewell: self.stage.driver.app.farewell(working.len(), fate),
            handed: if goes_on { working } else { Vec::new() },
        })
    }

    async fn go(&mut self) -> Result<ExitReason, TerminalError> {
        // A signal may have come before the listener existed.
        if is_exiting() {
            let signal_event = tokio::select! {
                biased;
                signal_event = self.signals.next() => Some(signal_event),
                () = std::future::ready(()) => None,
            };
            return Ok(self
                .handle_signal(signal_event)?
                .unwrap_or(ExitReason::Left));
        }
        loop {
            if let Some(end) = self.execute().await? {
                return Ok(end);
            }
            if self.is_due() {
                if self.stage.driver.is_urgent() {
                    self.urgent_drawn = Some(Instant::now());
                }
                self.stage.driver.drain().await;
                // A command may have chosen another agent: the frame shows that one.
                if let Some(end) = self.execute().await? {
                    return Ok(end);
                }
                self.draw()?;
                continue;
            }
            let due = self.due();
            let tick = self.stage.driver.app.next_tick();
            let mut signal_event = None;
            let mut came = false;
            let is_clear = self.terminal.is_clear();
            let mailbox = self.stage.driver.mailbox();
            let may_hurry = due.is_some() && !self.stage.driver.is_urgent();
            tokio::select! {
                biased;
                read = self.input.read(&mut self.happened) => read?,
                signal = self.signals.next() => signal_event = Some(signal),
                sent = self.terminal.clear(), if !is_clear => sent?,
                () = at(due), if due.is_some() => {}
                () = mailbox.urgent(), if may_hurry => {}
                // Events that come while a frame is due are drawn with it.
                () = self.stage.came(), if due.is_none() => came = true,
                () = at(tick), if tick.is_some() && due.is_none() => {
                    self.stage.driver.app.tick(Instant::now());
                    self.is_dirty = true;
                }
            }
            if came {
                self.is_dirty = true;
                // While the screen cannot be drawn, no frame handles it, so it would repeat
                // forever.
                if self.due().is_none() {
                    self.stage.driver.drain().await;
                }
            }
            if let Some(end) = self.handle_signal(signal_event)? {
                return Ok(end);
            }
            for happening in std::mem::take(&mut self.happened) {
                self.is_dirty = true;
                self.is_typed = true;
                if happening == TerminalEvent::StatusSupported {
                    self.status.set_supported();
                }
                self.stage
                    .driver
                    .app
                    .handle_input(happening, Instant::now());
            }
        }
    }

    /// Returns the time of the next frame, if one is due.
    fn due(&self) -> Option<Instant> {
        let can = self.is_dirty && self.terminal.is_clear() && self.terminal.is_shown();
        let after = |drawn: Option<Instant>, pause: Duration| {
            drawn.map_or_else(Instant::now, |drawn| drawn + pause)
        };
        let stream = after(self.drawn, STREAM_FRAME);
        let key = self.is_typed.then(|| after(self.keys_drawn, KEY_FRAME));
        let urgent = self.stage.driver.is_urgent();
        let urgent = urgent.then(|| after(self.urgent_drawn, KEY_FRAME));
        can.then(|| {
            [key, urgent]
                .into_iter()
                .flatten()
                .fold(stream, Instant::min)
        })
    }

    fn is_due(&self) -> bool {
        self.due().is_some_and(|due| Instant::now() >= due)
    }

    fn draw(&mut self) -> Result<(), TerminalError> {
        self.is_dirty = false;
        let now = Instant::now();
        if std::mem::take(&mut self.is_typed) {
            self.keys_drawn = Some(now);
        }
        self.drawn = Some(now);
        self.stage.driver.app.draw(&mut self.grid);
        self.bytes.clear();
        self.painter.paint(&self.grid, self.theme, &mut self.bytes);
        let new_title = self.stage.driver.app.title();
        if new_title != self.title {
            self.bytes.extend(title(&new_title));
            self.title = new_title;
        }
        let status = self.stage.driver.app.program_status();
        self.status.report(status, &mut self.bytes);
        if self.bytes.is_empty() {
            return Ok(());
        }
        self.terminal.send(&self.bytes)
    }

    fn handle_signal(
        &mut self,
        signal_event: Option<SignalEvent>,
    ) -> Result<Option<ExitReason>, TerminalError> {
        match signal_event {
            None => {}
            Some(SignalEvent::Resized) => {
                let (columns, rows) = self.terminal.size();
                self.happened.push(TerminalEvent::Resize { columns, rows });
            }
            Some(SignalEvent::Continued) => self.resume()?,
            Some(SignalEvent::Stop) => self.suspend()?,
            Some(SignalEvent::Interrupt) => {
                self.happened.push(TerminalEvent::Key(KeyPress::ctrl('c')));
            }
            Some(SignalEvent::Terminate) => return Ok(Some(ExitReason::Left)),
            Some(SignalEvent::HangUp) => return Ok(Some(ExitReason::HungUp)),
        }
        Ok(None)
    }

    fn suspend(&mut self) -> Result<(), TerminalError> {
        self.terminal.send(self.status.clear())?;
        if !self.terminal.suspend()? {
            self.stage.driver.app.toast("No shell to return to");
        }
        Ok(())
    }

    /// Shows the screen again, with unknown contents.
    fn resume(&mut self) -> Result<(), TerminalError> {
        if self.terminal.resume()? {
            let (columns, rows) = self.terminal.size();
            self.happened.push(TerminalEvent::Resize { columns, rows });
            self.painter.forget();
            self.is_dirty = true;
        }
        Ok(())
    }

    async fn execute(&mut self) -> Result<Option<ExitReason>, TerminalError> {
        for action in self.stage.execute().await {
            match action {
                TerminalAction::Quit => return Ok(Some(ExitReason::Left)),
                TerminalAction::StopProcessesAndQuit => {
                    self.stage.driver.engine.stop_processes().await;
                    return Ok(Some(ExitReason::Left));
                }
                TerminalAction::QuitToBackground => return Ok(Some(ExitReason::Background)),
                TerminalAction::Suspend => {
                    self.stop_agents();
                    self.suspend()?;
                }
                TerminalAction::Redraw => {
                    self.painter.forget();
                    self.is_dirty = true;
                }
                TerminalAction::SetTheme(name) => {
                    self.theme = Theme::from_name(&name).unwrap_or(self.theme);
                    self.painter.forget();
                }
                TerminalAction::SetMouse(on) => self.terminal.set_mouse(on)?,
                TerminalAction::Copy(text) => self.copy(&text).await?,
                TerminalAction::Edit(text) => self.edit(&text).await?,
                TerminalAction::EditSummary(agent, draft) => {
                    self.edit_summary(agent, draft).await?;
                }
                TerminalAction::Page(text) => self.page(&text).await?,
                TerminalAction::Run { command, sent } => {
                    self.run_on_terminal(command, sent).await?;
                }
                TerminalAction::Notify(text) => {
                    let secrets = self.stage.driver.app.secrets();
                    external_programs::notify(&mut self.terminal, &self.notify, &text, secrets)?;
                }
            }
            self.is_dirty = true;
        }
        Ok(None)
    }

    /// Pauses work before the process itself stops.
    fn stop_agents(&self) {
        for agent in self.stage.driver.engine.working() {
            let stop = UserRequest::Stop(Stop::Interrupt(Cause::User));
            self.stage.driver.engine.send_request(agent, stop);
        }
    }

    async fn copy(&mut self, text: &str) -> Result<(), TerminalError> {
        if !external_programs::copy(&mut self.terminal, text).await? {
            self.stage.driver.app.warn("too large for the clipboard");
        }
        Ok(())
    }

    /// Runs a program of the user on the terminal, and stores its outcome.
    async fn run_on_terminal(&mut self, command: String, sent: bool) -> Result<(), TerminalError> {
        self.terminal.hide();
        let app = &self.stage.driver.app;
        let (agent, workdir) = (app.current(), app.workdir());
        let ran = foreground::run_line(&command, Path::new(&workdir), app.secrets()).await;
        self.take_terminal()?;
        match ran {
            Ok(status) => {
                let exit = status.code().or_else(|| Some(128 + status.signal()?));
                let run = TerminalRun {
                    command,
                    exit,
                    sent,
                };
                let store = UserRequest::Do(AgentJob::TerminalRan(run));
                self.stage.driver.send(agent, store).await;
            }
            Err(error) => {
                let app = &mut self.stage.driver.app;
                app.warn(&format!("cannot run `{command}`: {error}"));
            }
        }
        Ok(())
    }

    /// Takes the terminal back from another program.
    fn take_terminal(&mut self) -> Result<(), TerminalError> {
        self.signals.forget_stops().map_err(TerminalError::SetUp)?;
        self.resume()
    }

    async fn page(&mut self, text: &str) -> Result<(), TerminalError> {
        self.terminal.hide();
        let paged = external_programs::page(text, self.stage.driver.app.secrets()).await;
        self.take_terminal()?;
        if let Err(error) = paged {
            self.stage.driver.app.warn(&error);
        }
        Ok(())
    }

    /// Lets the user edit a summary, and has its agent store it.
    async fn edit_summary(
        &mut self,
        agent: AgentId,
        draft: Box<SummaryDraft>,
    ) -> Result<(), TerminalError> {
        self.terminal.hide();
        let secrets = self.stage.driver.app.secrets();
        let edited = external_programs::edit(&draft.text, secrets).await;
        self.take_terminal()?;
        let edited = edited.map_err(|error| error.to_string());
        let store = UserRequest::Do(AgentJob::StoreSummary(draft, edited));
        self.stage.driver.send(agent, store).await;
        Ok(())
    }

    async fn edit(&mut self, text: &str) -> Result<(), TerminalError> {
        self.terminal.hide();
        let edited: io::Result<String> =
            external_programs::edit(text, self.stage.driver.app.secrets()).await;
        self.take_terminal()?;
        match edited {
            Ok(text) => self.stage.driver.app.set_input(&text),
            Err(error) => {
                let app = &mut self.stage.driver.app;
                app.warn(&format!("{error}. Text unchanged"));
            }
        }
        Ok(())
    }
}
