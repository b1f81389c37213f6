//! Plain mode: appended lines, words instead of signs, questions answered by number.
//! For screen readers, simple terminals, and the terminal's own scrollback.

mod delivery;
mod questions;
mod talk;
mod words;

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ikigai_core::AgentId;
use ikigai_engine::{Engine, EngineError, LiveChange, Outcome, UserRequest, mark_all_read};
use rustix::io::ioctl_fionread;
use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{LocalModes, Termios};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::time::sleep_until;

use self::talk::{Talk, Want};
use self::words::in_words;
use crate::app::Pane;
use crate::control::{LEFT_LATE, at};
use crate::drafts::{DraftFiles, DraftWriter};
use crate::driver::FirstAgent;
use crate::driver::mailbox::{Mailbox, MailboxItem};
use crate::outbox::Outbox;
use crate::terminal::{
    HiddenInput, SignalEvent, Signals, begin_exit, is_exiting, treat_interrupt_as_key,
};

/// Minimum interval between progress lines.
const PROGRESS: Duration = Duration::from_secs(30);

/// Number of newest rows printed at the start.
const TOLD_ROWS: usize = 12;

/// Capacity of the queue of typed lines.
const LINES: usize = 64;

/// The longest line that is read; longer ones are cut into several.
const LONGEST_LINE: u64 = 1 << 20;

/// Why it ended.
#[derive(Debug, Error)]
pub enum PlainError {
    /// Agents cannot be looked after.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The terminal cannot be read or written.
    #[error("cannot use the terminal")]
    Terminal(#[from] io::Error),
}

/// Talks with agents until the user leaves; `prompt` is sent at once. Within a runtime.
pub async fn run(
    engine: Engine,
    whom: FirstAgent,
    prompt: Option<String>,
    program: &str,
    drafts: Option<DraftFiles>,
    out: impl Write,
) -> Result<(), PlainError> {
    let mailbox = Arc::<Mailbox>::default();
    engine.observe(mailbox.observer(), true);
    let agent = match whom {
        FirstAgent::Agent(agent) => agent,
        FirstAgent::New { session, workdir } => engine.activate_new(&session, &workdir).await?,
    };
    let mut plain = Plain {
        talk: Talk::new(agent),
        engine,
        mailbox,
        out,
        told_at: Instant::now(),
        hidden: None,
        outbox: Outbox::default(),
        drafts: None,
        printed: None,
    };
    plain.talk.add(&format!(
        "{program}, plain mode. /help for commands, Ctrl-D to quit"
    ));
    plain.begin(agent).await?;
    plain.start_drafts(drafts);
    let ended = Box::pin(plain.go(prompt)).await;
    begin_exit(LEFT_LATE);
    plain.engine.leave().await;
    plain.take_in();
    plain.mark_printed().await;
    plain.keep_all().await;
    plain.talk.add_farewell();
    plain.write()?;
    ended
}

struct Plain<W> {
    talk: Talk,
    engine: Engine,
    mailbox: Arc<Mailbox>,
    out: W,
    /// Time of the last output.
    told_at: Instant,
    /// While a key is typed.
    hidden: Option<HiddenInput>,
    /// Typed lines that are not in the log yet.
    outbox: Outbox,
    drafts: Option<DraftWriter>,
    /// Agent whose newest answer was printed, until that is stored.
    printed: Option<AgentId>,
}

impl<W: Write> Plain<W> {
    /// Switches to an agent: prints its last messages and activates it.
    async fn begin(&mut self, agent: AgentId) -> Result<(), PlainError> {
        self.read_names().await?;
        let pane = Pane::open(&self.engine, agent)
            .await
            .map_err(EngineError::from)?;
        let entries = pane.agent.view.entries();
        let first = entries.len().saturating_sub(TOLD_ROWS);
        self.talk.go_to(agent, pane.agent.state.settings());
        for entry in entries.iter().skip(first) {
            self.talk.add_row(&entry.row);
        }
        self.printed = Some(agent);
        let record = self
            .engine
            .reader()
            .agent(agent)
            .await
            .map_err(EngineError::from)?;
        if let Some(record) = record
            && let Err(error) = Box::pin(self.engine.activate(&record)).await
        {
            self.talk.add(&format!("warning: {error}"));
        }
        let stopped = Box::pin(self.engine.supervise()).await?;
        for (severity, line) in self.engine.stopped_lines(&stopped) {
            self.talk.add(&in_words(&severity.signed(&line)));
        }
        Ok(())
    }

    async fn go(&mut self, prompt: Option<String>) -> Result<(), PlainError> {
        let mut lines = typed_lines();
        treat_interrupt_as_key();
        let mut signals = Signals::new()?;
        if let Some(prompt) = prompt {
            self.talk.line(&prompt, Instant::now());
        }
        loop {
            if is_exiting() || !self.carry_out().await? {
                return Ok(());
            }
            self.keep_typed();
            self.write()?;
            self.mark_printed().await;
            let typed = self.outbox.due();
            let due = self.told_at + PROGRESS;
            let is_busy = self.talk.is_busy();
            tokio::select! {
                line = lines.recv() => match line {
                    Some((line, read_at)) => self.talk.line(&line, read_at),
                    None => return Ok(()),
                },
                notice = signals.next() => match notice {
                    SignalEvent::Interrupt => self.talk.interrupt(Instant::now()),
                    SignalEvent::Terminate | SignalEvent::HangUp => return Ok(()),
                    SignalEvent::Stop => kill_process(getpid(), Signal::STOP).map_err(io::Error::from)?,
                    SignalEvent::Resized | SignalEvent::Continued => {}
                },
                () = self.mailbox.came() => self.take_in(),
                () = at(typed), if typed.is_some() => {}
                () = sleep_until(due.into()), if is_busy => self.talk.add_progress(Instant::now()),
            }
        }
    }

    fn take_in(&mut self) {
        for letter in self.mailbox.take() {
            match letter {
                MailboxItem::Event(agent, update) => {
                    let change = self.talk.handle_event(agent, &update, Instant::now());
                    let is_answer = matches!(
                        change,
                        LiveChange::Ended {
                            outcome: Outcome::Completed,
                            ..
                        }
                    );
                    if let LiveChange::Line(line) = change {
                        self.line_changed(line);
                    }
                    if is_answer && agent == self.talk.current() {
                        self.printed = Some(agent);
                    }
                }
                MailboxItem::Found(found) => self.take_found(found),
            }
        }
    }

    /// Notes that the user has read what was printed. If that fails, the inbox lists it.
    async fn mark_printed(&mut self) {
        if let Some(agent) = self.printed.take() {
            let _ = mark_all_read(&self.engine, agent).await;
        }
    }

    /// Executes wanted actions; returns false to quit.
    async fn carry_out(&mut self) -> Result<bool, PlainError> {
        loop {
            let wants = self.talk.take_wants();
            if wants.is_empty() {
                return Ok(true);
            }
            for want in wants {
                match want {
                    Want::Say(agent, request) => self.say(agent, request).await,
                    Want::Show(agent) => {
                        self.engine.note_use(agent);
                        self.begin(agent).await?;
                    }
                    Want::ReadNames => self.read_names().await?,
                    // Input from a pipe is not echoed anyway.
                    Want::Hide => {
                        let newline = |modes: &mut Termios| {
                            modes.local_modes.insert(LocalModes::ECHONL);
                        };
                        self.hidden = HiddenInput::begin(io::stdin(), newline).ok();
                    }
                    Want::Unhide => self.hidden = None,
                    Want::TakeKey(provider, key) => {
                        self.engine.set_typed_key(&provider, key);
                        let command = UserRequest::parse(format!("/key {provider}"));
                        self.say(self.talk.current(), command).await;
                    }
                    Want::Quit => return Ok(false),
                }
            }
        }
    }

    async fn say(&mut self, agent: AgentId, request: UserRequest) {
        let request = match request {
            UserRequest::Line(input) => return self.submit(agent, input).await,
            request => request,
        };
        if let Err(error) = self.engine.say(agent, request).await {
            self.talk.not_said(&format!("warning: {error}"));
        }
    }

    async fn read_names(&mut self) -> Result<(), PlainError> {
        let agents = self.engine.agents().await?.into_iter();
        let names: HashMap<_, _> = agents.map(|agent| (agent.id, agent.name)).collect();
        self.talk.set_names(names);
        Ok(())
    }

    fn write(&mut self) -> Result<(), PlainError> {
        let text = self.talk.take_text();
        let (lines, prompt) = text.split_at(text.rfind('\n').map_or(0, |end| end + 1));
        if !text.is_empty() {
            self.told_at = Instant::now();
            self.out.write_all(lines.as_bytes())?;
            self.out.flush()?;
        }
        // A line that is typed at the prompt comes after this time, whenever it is read.
        let written = Instant::now();
        if !prompt.is_empty() {
            self.out.write_all(prompt.as_bytes())?;
            self.out.flush()?;
        }
        self.talk.set_written(written);
        Ok(())
    }
}

/// Reads standard input line by line, with the time of each line.
/// The thread blocks in a read that only the terminal ends.
fn typed_lines() -> mpsc::Receiver<(String, Instant)> {
    let (sender, receiver) = mpsc::channel(LINES);
    std::thread::spawn(move || {
        let mut stdin = BufReader::new(io::stdin());
        let mut next_at = None;
        loop {
            let mut bytes = Vec::new();
            let read = io::Read::take(&mut stdin, LONGEST_LINE).read_until(b'\n', &mut bytes);
            if !matches!(read, Ok(1..)) {
                return;
            }
            let text = String::from_utf8_lossy(&bytes);
            let line = text.trim_end_matches(['\n', '\r']).to_owned();
            let read_at = next_at.unwrap_or_else(Instant::now);
            // Waiting input was typed before this line can have an effect.
            let is_more = !stdin.buffer().is_empty()
                || ioctl_fionread(io::stdin()).is_ok_and(|bytes| bytes > 0);
            next_at = is_more.then_some(read_at);
            if sender.blocking_send((line, read_at)).is_err() {
                return;
            }
        }
    });
    receiver
}
