//! `ikigai run`: one turn of one agent, without a screen.

pub(crate) mod key_entry;
mod piped_input;
mod question;
mod show;

use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use ikigai_core::data::Cause;
use ikigai_core::settings::{Approve, ModelChoice};
use ikigai_engine::commands::Done;
use ikigai_engine::{
    AgentJob, Engine, EngineError, FrontEnd, Outcome, Stop, USER_REQUESTS, UiEvent, UserInput,
    UserRequest, Worker,
};
use ikigai_store::{AgentRecord, CommitError, ProcessRecord};
use ikigai_tui::driver::Neighbours as _;
use ikigai_tui::protocol::{ControlAnswer, ControlRequest};
use ikigai_tui::terminal::{begin_exit, enforce_exit_deadline, is_exiting};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::timeout;

use crate::arguments::{RunOrder, approve_mode, exit};
use crate::context::{ProgramContext, configuration_for};
use crate::control::Clients;
use crate::last_agent::LastAgent;
use crate::output::{NothingToContinue, print, print_stderr, visible};
use crate::run::question::Asker;
use crate::run::show::{RunView, children};
use crate::store_location::Here;
use crate::trust::{self, TrustPrompt};

/// Time for a stopped turn to store its end, within the exit deadline.
const STOP_WITHIN: Duration = Duration::from_millis(1300);

const NO_EXIT_THREAD: &str = "cannot start the exit thread";

/// Time to release the lease.
const RELEASE_WITHIN: Duration = Duration::from_millis(300);

/// Longest message; a larger one is a mistake.
const LONGEST_PROMPT_BYTES: u64 = 16 * 1024 * 1024;

pub(crate) fn run(db: Option<String>, order: &RunOrder) -> Result<ExitCode> {
    // The timeout includes reading the prompt. Without one, a signal ends the read at once.
    if let Some(seconds) = order.timeout {
        enforce_timeout(Duration::from_secs(seconds))?;
    }
    let job = errand_of(order)?;
    enforce_exit_deadline().context(NO_EXIT_THREAD)?;
    trust::settle(order.trust, TrustPrompt::Tell)?;
    let program = ProgramContext::open_with(db, &configuration_for(order.no_sandbox)?)?;
    if let AgentJob::Line(input) = &job {
        key_entry::ask_key(&program.engine, input)?;
    }
    let outcome = program.block_on(errand_in(&program, job, order));
    let Some(Done { warned, outcome }) = outcome? else {
        return Ok(exit::AGENT.into());
    };
    Ok(match outcome {
        None if warned => exit::FAILED.into(),
        None | Some(Outcome::Completed) => ExitCode::SUCCESS,
        Some(Outcome::Interrupted(_)) if warned => exit::INTERRUPTED.into(),
        Some(Outcome::Interrupted(_)) => {
            print_stderr(
                "Interrupted; the answer so far is saved. Continue with: ikigai run --resume",
            );
            exit::INTERRUPTED.into()
        }
        Some(Outcome::Failed(reason)) => {
            print_stderr(&format!("error: {}", visible(&reason)));
            print_stderr("hint: try again with `ikigai run --retry`");
            exit::FAILED.into()
        }
    })
}

/// Returns none if another process holds the agent and got the message.
async fn errand_in(
    program: &ProgramContext,
    job: AgentJob,
    order: &RunOrder,
) -> Result<Option<Done>> {
    // Signals are handled from the start, so that every stored turn gets an end.
    let (sender, mut requests) = mpsc::channel(USER_REQUESTS);
    let (late, mut overdue) = mpsc::channel(1);
    let stops = Stops::listen()?;
    // A signal may have come before the handlers were installed.
    if is_exiting() {
        return Ok(Some(given_up(&Stop::Interrupt(Cause::Exit))));
    }
    let stops = tokio::spawn(stop_at_signal(stops, sender.clone(), late.clone()));
    let deadline = order.timeout.map(Duration::from_secs);
    let deadline = tokio::spawn(stop_at(deadline, sender.clone(), late));
    let work = work_in(program, job, order, sender, &mut requests);
    let outcome = tokio::select! {
        biased;
        outcome = work => outcome,
        Some(stop) = overdue.recv() => Ok(Some(given_up(&stop))),
    };
    stops.abort();
    deadline.abort();
    program.engine.leave().await;
    outcome
}

async fn work_in(
    program: &ProgramContext,
    job: AgentJob,
    order: &RunOrder,
    sender: Sender<UserRequest>,
    requests: &mut Receiver<UserRequest>,
) -> Result<Option<Done>> {
    let choice = order
        .model
        .as_deref()
        .map(|name| program.registry.choose(name));
    let choice = choice.transpose().map_err(EngineError::from)?;
    let (mut worker, job, beside) = match Box::pin(open(program, order, job)).await? {
        Opened::Here(worker, job) => (worker, job, Vec::new()),
        Opened::Children(worker, beside) => (worker, AgentJob::Answer, beside),
        Opened::Elsewhere => return Ok(None),
        Opened::Forked => return Ok(Some(Done::command())),
    };
    let earlier = timeout(RELEASE_WITHIN, worker.newest_process()).await;
    let prepared = prepare(&mut worker, choice, approve_mode(order.approve.as_deref())).await;
    let outcome = match prepared {
        Ok(()) => {
            carry_out(
                &program.engine,
                (&mut worker, beside),
                job,
                order,
                sender,
                requests,
            )
            .await
        }
        Err(error) => Err(error.into()),
    };
    // Processes that ran before are none of this run.
    let earlier = earlier.ok().and_then(Result::ok).filter(|_| !order.keep);
    if let Some(earlier) = earlier
        && end_processes(&mut worker, earlier).await > 0
    {
        print_stderr("Background processes were stopped; --keep leaves them running");
    }
    let is_answered = |done: &Done| done.outcome == Some(Outcome::Completed);
    if outcome.as_ref().is_ok_and(is_answered) {
        // The answer was printed. If that cannot be stored, the inbox lists it.
        let _ = timeout(RELEASE_WITHIN, worker.mark_read()).await;
    }
    // The lease ends with the process anyway, so a failure does not matter.
    let _ = timeout(RELEASE_WITHIN, worker.release()).await;
    outcome.map(Some)
}

/// Ends the background processes that the agent started after `earlier`; returns their number.
///
/// A process that cannot be stopped now is found by the next one that opens the agent.
async fn end_processes(worker: &mut Worker, earlier: u64) -> usize {
    let ended = timeout(STOP_WITHIN, worker.end_processes(earlier)).await;
    ended.map_or(0, Result::unwrap_or_default)
}

/// Ends the program soon after the timeout, even if this thread is blocked then.
fn enforce_timeout(after: Duration) -> Result<()> {
    enforce_exit_deadline().context(NO_EXIT_THREAD)?;
    let wait = move || {
        std::thread::sleep(after);
        begin_exit(exit::FAILED);
    };
    let thread = std::thread::Builder::new().name("ikigai-timeout".to_owned());
    thread.spawn(wait).context("cannot start the timeout")?;
    Ok(())
}

/// Returns the result of a turn that did not end within [`STOP_WITHIN`] after its stop.
fn given_up(stop: &Stop) -> Done {
    let reason = "the end of the turn could not be stored; the next start repairs it";
    match stop {
        Stop::Interrupt(cause) => {
            print_stderr(&format!("Interrupted; {reason}"));
            Done {
                warned: true,
                outcome: Some(Outcome::Interrupted(*cause)),
            }
        }
        Stop::Deadline(after) => {
            let reason = format!("not finished within {} s; {reason}", after.as_secs());
            Done::turn(Outcome::Failed(reason))
        }
    }
}

/// Outcome of opening the agent.
enum Opened {
    /// This process holds it; the job is to be done.
    Here(Worker, AgentJob),
    /// Another process holds it, or it has ended; these new children have a message to answer.
    Children(Worker, Vec<Worker>),
    /// Another process holds it and got the message, or the command was refused; the user knows.
    Elsewhere,
    /// Another process holds it, or it has ended; a new child waits for its user.
    Forked,
}

async fn open(program: &ProgramContext, order: &RunOrder, job: AgentJob) -> Result<Opened> {
    let agent = match &order.agent {
        _ if order.new => None,
        Some(name) => Some(program.engine.find(name).await?),
        None => program.engine.latest(&Here::find()?.session).await?,
    };
    if order.continues && agent.is_none() {
        let directory = Here::find()?.session;
        return Err(NothingToContinue { directory }.into());
    }
    let worker = if let Some(agent) = agent {
        match program.engine.open(&agent).await {
            Err(EngineError::Commit(CommitError::Held { owner, .. })) => {
                return without_lease(program, job, &agent, owner).await;
            }
            Err(error @ EngineError::Dead(_)) => match job {
                AgentJob::Line(input) => {
                    let forked = fork_by_line(program, &agent, &input).await?;
                    return forked.ok_or_else(|| error.into());
                }
                _ => return Err(error.into()),
            },
            opened => opened?,
        }
    } else {
        let here = Here::find()?;
        let (session, workdir) = (&here.session, &here.workdir);
        program.engine.create_root(session, workdir).await?
    };
    if order.fresh {
        return Ok(Opened::Here(worker.into_fresh_child().await?, job));
    }
    if let Some(last) = LastAgent::of(&program.place, &Here::find()?.session) {
        last.write(worker.agent().state.agent());
    }
    Ok(Opened::Here(worker, job))
}

/// Handles an agent that another process holds.
///
/// A message is handed to that process, or left as mail, and `/fork` creates children that belong
/// to this process.
async fn without_lease(
    program: &ProgramContext,
    job: AgentJob,
    agent: &AgentRecord,
    owner: ProcessRecord,
) -> Result<Opened> {
    let place = format!(
        "{} is open in another ikigai (pid {} on {})",
        agent.name, owner.pid, owner.host
    );
    let refuse = || {
        print_stderr(&visible(&format!("error: {place}")));
        print_stderr("hint: type the command there, or use another agent: --agent NAME or --new");
        Ok(Opened::Elsewhere)
    };
    let AgentJob::Line(input) = job else {
        return refuse();
    };
    if let UserInput::Message(text) = &input {
        let became = if is_handed_over(program, agent, text, &owner).await {
            "sent"
        } else {
            program.engine.post(agent.id, text).await?;
            "queued"
        };
        print_stderr(&visible(&format!(
            "{place}. Your message was {became} there"
        )));
        return Ok(Opened::Elsewhere);
    }
    match fork_by_line(program, agent, &input).await? {
        Some(forked) => Ok(forked),
        None => refuse(),
    }
}

/// Executes a `/fork` of an agent that another process holds, or that has ended; none for other
/// lines.
async fn fork_by_line(
    program: &ProgramContext,
    agent: &AgentRecord,
    input: &UserInput,
) -> Result<Option<Opened>> {
    let Some(mut forked) = program.engine.fork_line(agent, input).await? else {
        return Ok(None);
    };
    print(&visible(&forked.output))?;
    let Some(last) = forked.children.pop() else {
        return Ok(Some(Opened::Forked));
    };
    if !forked.have_work {
        last.release().await?;
        return Ok(Some(Opened::Forked));
    }
    Ok(Some(Opened::Children(last, forked.children)))
}

/// Returns true if the process that holds an agent accepted a message for it.
async fn is_handed_over(
    program: &ProgramContext,
    agent: &AgentRecord,
    text: &str,
    owner: &ProcessRecord,
) -> bool {
    let submit = ControlRequest::Submit {
        text: text.to_owned(),
        agent: Some(agent.id.to_string()),
    };
    match Clients::here(program.engine.clone()) {
        Ok(clients) => clients.ask(owner, submit).await == Ok(ControlAnswer::OK),
        Err(_) => false,
    }
}

async fn prepare(
    worker: &mut Worker,
    choice: Option<ModelChoice>,
    approve: Option<Approve>,
) -> Result<(), EngineError> {
    if let Some(choice) = choice {
        worker.choose_model(choice).await?;
    }
    if let Some(mode) = approve {
        worker.approve_for_now(mode).await?;
    }
    Ok(())
}

async fn carry_out(
    engine: &Engine,
    (worker, beside): (&mut Worker, Vec<Worker>),
    job: AgentJob,
    order: &RunOrder,
    sender: Sender<UserRequest>,
    requests: &mut Receiver<UserRequest>,
) -> Result<Done> {
    let own = worker.agent().state.agent();
    let asker = Asker::find(engine.clone(), own, sender).map(Arc::new);
    let can_ask = asker.is_some();
    engine.observe(children(order.json, asker.clone()), can_ask);
    for other in beside {
        worker.answer_beside(other);
    }
    let mut view = RunView::new(order.json, asker);
    let mut show = |update: UiEvent| view.show(&update);
    let front = FrontEnd::new(requests, &mut show);
    let mut front = if can_ask {
        front
    } else {
        front.without_answers()
    };
    worker.offer_grants(&mut front);
    let outcome = match job {
        AgentJob::Line(input) => worker.line(input, &mut front).await,
        job => worker.work(job, &mut front).await.map(Done::turn),
    };
    // Agents that a command started are not cut off by leaving.
    let left = match &outcome {
        Ok(_) => worker.see_children_out(&mut front).await,
        Err(_) => Ok(None),
    };
    view.finish();
    let outcome = match left? {
        Some(Stop::Interrupt(cause)) => Done::turn(Outcome::Interrupted(cause)),
        Some(Stop::Deadline(after)) => {
            let reason = format!("child agents did not finish within {} s", after.as_secs());
            Done::turn(Outcome::Failed(reason))
        }
        None => outcome?,
    };
    if let Some(failure) = view.failure {
        return Err(failure).context("the turn is saved, but its answer cannot be printed");
    }
    Ok(outcome)
}

fn errand_of(order: &RunOrder) -> Result<AgentJob> {
    match &order.prompt {
        _ if order.retry => Ok(AgentJob::Retry),
        _ if order.resume => Ok(AgentJob::Resume),
        Some(prompt) => {
            let is_read = prompt == "-";
            let prompt = prompt_of(prompt)?;
            if prompt.trim().is_empty() {
                return Err(EngineError::EmptyMessage.into());
            }
            key_entry::hold_key_back(&prompt)?;
            Ok(AgentJob::Line(match UserInput::parse(prompt) {
                UserInput::Message(prompt) if !is_read => {
                    UserInput::Message(piped_input::append_to(prompt))
                }
                input => input,
            }))
        }
        None => bail!("no message\nhint: ikigai run \"hello\""),
    }
}

fn prompt_of(argument: &str) -> Result<String> {
    if argument != "-" {
        return Ok(argument.to_owned());
    }
    if io::stdin().is_terminal() {
        print_stderr("Type the message, then press Ctrl-D");
    }
    let mut bytes = Vec::new();
    let read = io::stdin()
        .lock()
        .take(LONGEST_PROMPT_BYTES + 1)
        .read_to_end(&mut bytes);
    read.context("cannot read the message from standard input")?;
    if bytes.len() as u64 > LONGEST_PROMPT_BYTES {
        bail!(
            "the message is longer than {} MB",
            LONGEST_PROMPT_BYTES >> 20
        );
    }
    String::from_utf8(bytes).context("the message is not UTF-8")
}

/// Signals that end a turn.
struct Stops {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Stops {
    fn listen() -> Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).context("cannot handle Ctrl-C")?,
            terminate: signal(SignalKind::terminate()).context("cannot handle SIGTERM")?,
            hangup: signal(SignalKind::hangup()).context("cannot handle SIGHUP")?,
        })
    }

    async fn next(&mut self) -> Cause {
        tokio::select! {
            _ = self.interrupt.recv() => Cause::User,
            _ = self.terminate.recv() => Cause::Exit,
            _ = self.hangup.recv() => Cause::Exit,
        }
    }
}

/// Stops the turn at the first signal. The second triggers the exit deadline.
async fn stop_at_signal(mut signals: Stops, sender: Sender<UserRequest>, late: Sender<Stop>) {
    let cause = signals.next().await;
    stop(Stop::Interrupt(cause), exit::INTERRUPTED, &sender, &late).await;
}

async fn stop_at(deadline: Option<Duration>, sender: Sender<UserRequest>, late: Sender<Stop>) {
    let Some(after) = deadline else { return };
    tokio::time::sleep(after).await;
    stop(Stop::Deadline(after), exit::FAILED, &sender, &late).await;
}

/// Asks the agent to stop, and reports later that it has not.
async fn stop(stop: Stop, code: u8, sender: &Sender<UserRequest>, late: &Sender<Stop>) {
    begin_exit(code);
    // An agent that does not read requests is abandoned.
    let _ = sender.try_send(UserRequest::Stop(stop.clone()));
    tokio::time::sleep(STOP_WITHIN).await;
    let _ = late.send(stop).await;
}
