//! Queue of requests to the screen: executes and answers them.
//!
//! The screen's loop does all of it between two steps, so that no request sees half of another
//! one's effects.

use std::time::{Duration, Instant};

use ikigai_core::data::AnsweredBy;
use ikigai_core::{AgentId, Seq};
use ikigai_engine::{Answer as Permission, Engine, Question};
use tokio::sync::{mpsc, oneshot, watch};

use super::typed_keys::happenings;
use crate::driver::Driver;
use crate::outbox::SubmissionState;
use crate::paint::{Grid, Theme};
use crate::protocol::{
    AgentSeen, ApprovalWord, ControlAnswer, ControlOutput, ControlRequest, Framebuffer, Released,
    TokenCache, Version,
};

/// Most requests that wait for the screen.
const MOST_ARRIVED: usize = 64;

/// Time for an agent to receive a line before the request is answered.
const HEARING: Duration = Duration::from_secs(1);

/// Longest wait for an idle agent: the client may be gone.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// One request, and the channel for its answer.
pub struct PendingRequest {
    /// The request.
    pub request: ControlRequest,
    /// The process that asks, if it is known.
    pub peer: Option<i32>,
    /// Channel for the answer.
    pub reply: oneshot::Sender<RequestOutcome>,
}

/// Outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// It is answered.
    Answer(ControlAnswer),
    /// Send rows of this agent from the one after this.
    Events {
        /// The agent.
        agent: AgentId,
        /// Last known row.
        after: Seq,
        /// True to continue with new rows.
        follow: bool,
    },
}

/// Mode of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunMode {
    /// With a terminal.
    Screen,
    /// Without a terminal.
    Headless,
    /// Without a terminal, until no agent works.
    Background,
}

/// Request that waits for a condition before its answer.
struct WaitingRequest {
    what: Awaits,
    until: Instant,
    reply: oneshot::Sender<RequestOutcome>,
}

/// Condition of a waiting request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaits {
    /// All earlier requests are done.
    Screen,
    /// This agent has received its line.
    Heard(AgentId),
    /// An agent has a submitted line. The number identifies it if the screen did not take it.
    Submitted(AgentId, u64),
    /// The visible agent is idle.
    Idle,
}

/// Requests that wait for the screen or for a condition.
pub struct RequestQueue {
    coming: mpsc::Receiver<PendingRequest>,
    arrived: Vec<PendingRequest>,
    held: Vec<WaitingRequest>,
    activity: Option<watch::Receiver<u64>>,
    grid: Grid,
    theme: Theme,
    mode: RunMode,
}

impl RequestQueue {
    /// Creates a queue with its sender, for a program with this theme.
    pub fn new(theme: Theme, mode: RunMode) -> (mpsc::Sender<PendingRequest>, Self) {
        let (sender, coming) = mpsc::channel(MOST_ARRIVED);
        let orders = Self {
            coming,
            arrived: Vec::new(),
            held: Vec::new(),
            activity: None,
            grid: Grid::default(),
            theme,
            mode,
        };
        (sender, orders)
    }

    /// Waits for a request, or until an agent may have started or ended work.
    /// [`RequestQueue::settle`] handles it. Cancel safe.
    pub(crate) async fn came(&mut self, engine: &Engine) {
        let activity = self.activity.get_or_insert_with(|| engine.subscribe());
        tokio::select! {
            biased;
            Some(order) = self.coming.recv() => self.arrived.push(order),
            Ok(()) = activity.changed() => {}
            else => std::future::pending().await,
        }
    }

    /// Reports whether requests wait for a condition.
    pub fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Returns the earliest deadline of a waiting request.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.held.iter().map(|held| held.until).min()
    }

    /// Starts new requests and answers finished ones; returns true if effects are pending.
    pub(crate) async fn settle(&mut self, driver: &mut Driver) -> bool {
        let arrived = std::mem::take(&mut self.arrived);
        let has_arrived = !arrived.is_empty();
        for PendingRequest {
            request,
            peer,
            reply,
        } in arrived
        {
            self.begin(request, peer, reply, driver).await;
        }
        if has_arrived {
            return true;
        }
        self.held.retain(|held| !held.reply.is_closed());
        if self.held.is_empty() {
            return false;
        }
        if let Some(activity) = &mut self.activity {
            activity.mark_unchanged();
        }
        let current = driver.app.current();
        // Check before reading the events, so that none of a turn that just ended is missing.
        let works = driver.engine.works(current).await.unwrap_or(false);
        driver.drain().await;
        driver.app.tick(Instant::now());
        if driver.app.has_effects() {
            return true;
        }
        for held in std::mem::take(&mut self.held) {
            match self.outcome(&held, works, driver) {
                // The client may be gone.
                Some(answer) => drop(held.reply.send(RequestOutcome::Answer(answer))),
                None => self.held.push(held),
            }
        }
        false
    }

    /// Answers waiting requests, because the program ends.
    pub fn end(&mut self) {
        for held in self.held.drain(..) {
            let answer = match held.what {
                Awaits::Heard(_) => ControlAnswer::OK,
                Awaits::Submitted(..) => pending("ikigai is exiting; the line is kept as a draft"),
                Awaits::Screen | Awaits::Idle => ControlAnswer::error("ikigai is exiting"),
            };
            let _ = held.reply.send(RequestOutcome::Answer(answer));
        }
        self.coming.close();
    }

    fn outcome(
        &mut self,
        held: &WaitingRequest,
        works: bool,
        driver: &mut Driver,
    ) -> Option<ControlAnswer> {
        let current = driver.app.current();
        let is_over = Instant::now() >= held.until;
        match held.what {
            Awaits::Screen => {
                driver.app.draw(&mut self.grid);
                let seen = Framebuffer::of(&self.grid, self.theme);
                Some(ControlAnswer::Said(ControlOutput::Framebuffer(seen)))
            }
            Awaits::Heard(agent) => {
                (is_caught_up(agent, driver) || is_over).then_some(ControlAnswer::OK)
            }
            Awaits::Submitted(agent, number) => {
                let is_caught_up = is_caught_up(agent, driver);
                match driver.app.ctx.submission_state(number) {
                    // Carried out by the screen itself, or stored.
                    None | Some(SubmissionState::Received) => {
                        (is_caught_up || is_over).then_some(ControlAnswer::OK)
                    }
                    Some(SubmissionState::Pending(reason)) => Some(pending(&reason)),
                    Some(SubmissionState::Returned(reason)) => {
                        Some(ControlAnswer::error(format!("not stored: {reason}")))
                    }
                    Some(SubmissionState::Sent) => {
                        is_over.then(|| pending("the agent has not received it yet"))
                    }
                }
            }
            Awaits::Idle => {
                let live = driver.app.roster().live(current);
                let asks = live.is_some_and(|live| !live.questions.is_empty());
                let works = works || driver.engine.is_working(current) == Some(true);
                let waits = driver.app.waits_for_a_person(current);
                let is_settled = driver.engine.is_caught_up(current) && !driver.is_loading();
                if waits && is_settled {
                    return Some(ControlAnswer::Said(ControlOutput::Idle { asks: true }));
                }
                if !works && !asks && is_settled {
                    return Some(ControlAnswer::Said(ControlOutput::Idle { asks: false }));
                }
                is_over.then_some(ControlAnswer::Said(ControlOutput::Timeout))
            }
        }
    }

    async fn begin(
        &mut self,
        request: ControlRequest,
        peer: Option<i32>,
        reply: oneshot::Sender<RequestOutcome>,
        driver: &mut Driver,
    ) {
        let begun = match request {
            ControlRequest::ReadFramebuffer => Ok(Begun::Awaits(Awaits::Screen, Duration::ZERO)),
            ControlRequest::SendKeys { keys } => type_keys(&keys, driver),
            ControlRequest::WaitIdle { timeout_ms } => {
                let most = Duration::from_millis(timeout_ms).min(LONGEST_WAIT);
                Ok(Begun::Awaits(Awaits::Idle, most))
            }
            request => self.begin_named(request, peer, driver).await,
        };
        let answer = match begun {
            Ok(Begun::Awaits(what, most)) => {
                let until = Instant::now() + most;
                return self.held.push(WaitingRequest { what, until, reply });
            }
            Ok(Begun::InBackground(answer)) => {
                tokio::spawn(async move {
                    let answer = answer.await;
                    let _ = reply.send(RequestOutcome::Answer(answer));
                });
                return;
            }
            Ok(Begun::Replied(answer)) => answer,
            Err(reason) => RequestOutcome::Answer(ControlAnswer::error(reason)),
        };
        let _ = reply.send(answer);
    }

    /// Requests that may name an agent.
    async fn begin_named(
        &mut self,
        request: ControlRequest,
        peer: Option<i32>,
        driver: &mut Driver,
    ) -> Result<Begun, String> {
        match request {
            ControlRequest::Submit { text, agent } => {
                if text.trim().is_empty() {
                    return Err("the text is empty".to_owned());
                }
                let agent = named_agent(agent.as_deref(), driver).await?;
                let number = driver.app.ctx.outbox().added();
                driver.app.submit_to(agent, text);
                Ok(Begun::Awaits(Awaits::Submitted(agent, number), HEARING))
            }
            ControlRequest::Interrupt { agent } => {
                let agent = named_agent(agent.as_deref(), driver).await?;
                driver.app.interrupt_agent(agent);
                Ok(Begun::started(agent))
            }
            ControlRequest::Approve {
                answer,
                agent,
                call,
                pattern,
                reason,
            } => {
                let agent = match &agent {
                    Some(_) => Some(named_agent(agent.as_deref(), driver).await?),
                    None => None,
                };
                let questions = driver.app.questions(agent);
                let question = approved(&questions, answer, call.as_deref())?;
                let answer = match answer {
                    ApprovalWord::Once => Permission::Once,
                    ApprovalWord::Always => {
                        Permission::Always(pattern.unwrap_or_else(|| question.pattern.clone()))
                    }
                    ApprovalWord::No => Permission::No(reason),
                };
                let call = question.call;
                driver.app.give_answer(call, answer, AnsweredBy::Socket);
                Ok(Begun::started(call.agent))
            }
            ControlRequest::Events {
                agent,
                after,
                follow,
            } => Ok(Begun::Replied(RequestOutcome::Events {
                agent: named_agent(agent.as_deref(), driver).await?,
                after: Seq(after.unwrap_or(0)),
                follow,
            })),
            ControlRequest::Release { agent } => self.release(agent.as_deref(), peer, driver).await,
            ControlRequest::Agents => {
                let tree = driver.engine.tree().await;
                let tree = tree.map_err(|error| error.to_string())?;
                let (app, current) = (&driver.app, driver.app.current());
                let seen = tree.iter().map(|branch| {
                    let id = branch.agent.id;
                    let live = app.roster().live(id);
                    let questions = live.map_or(&[][..], |live| &live.questions);
                    AgentSeen::of(branch, id == current, questions)
                });
                let agents = seen.collect();
                Ok(Begun::said(ControlOutput::Agents { agents }))
            }
            ControlRequest::ReadTokenCache => {
                let (engine, agent) = (driver.engine.clone(), driver.app.current());
                Ok(Begun::InBackground(Box::pin(async move {
                    match engine.context(agent).await {
                        Ok(context) => ControlAnswer::TokenCache(TokenCache::from(&context)),
                        Err(error) => ControlAnswer::error(error.to_string()),
                    }
                })))
            }
            ControlRequest::Version => {
                Ok(Begun::said(ControlOutput::Version(self.version(driver))))
            }
            ControlRequest::ReadFramebuffer
            | ControlRequest::SendKeys { .. }
            | ControlRequest::WaitIdle { .. } => Err("this request needs an agent".to_owned()),
        }
    }

    /// Lets go of one agent, or of all.
    async fn release(
        &mut self,
        agent: Option<&str>,
        peer: Option<i32>,
        driver: &mut Driver,
    ) -> Result<Begun, String> {
        let agents = match agent {
            Some(_) => vec![named_agent(agent, driver).await?],
            None => driver.engine.active_agents(),
        };
        let to = peer.map_or_else(|| "another program".to_owned(), |pid| format!("pid {pid}"));
        for agent in &agents {
            driver.give_away(*agent, &to);
        }
        let engine = driver.engine.clone();
        Ok(Begun::InBackground(Box::pin(async move {
            let mut released = Vec::new();
            for agent in agents {
                if let Some(worked) = engine.release(agent).await {
                    let id = agent.to_string();
                    released.push(Released { id, worked });
                }
            }
            ControlAnswer::Said(ControlOutput::Released { agents: released })
        })))
    }

    fn version(&self, driver: &Driver) -> Version {
        let current = driver.app.current();
        let known = driver.app.roster().get(current);
        let mode = match self.mode {
            RunMode::Screen => "screen",
            RunMode::Headless => "headless",
            RunMode::Background => "background",
        };
        Version {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            mode: mode.to_owned(),
            agent: current.to_string(),
            name: known.map_or_else(String::new, |known| known.branch.agent.name.clone()),
            sandbox: Some(driver.engine.uses_sandbox()),
        }
    }
}

fn is_caught_up(agent: AgentId, driver: &Driver) -> bool {
    let live = driver.app.roster().live(agent);
    let is_busy = live.is_some_and(ikigai_engine::Live::is_busy);
    let works = driver.engine.is_working(agent) == Some(true);
    driver.engine.is_caught_up(agent) && (is_busy || !works)
}

fn pending(reason: &str) -> ControlAnswer {
    let reason = reason.to_owned();
    ControlAnswer::Said(ControlOutput::Pending { reason })
}

/// First outcome of a request.
enum Begun {
    /// It waits for a condition, at most this long.
    Awaits(Awaits, Duration),
    /// A task answers it without delaying the screen.
    InBackground(std::pin::Pin<Box<dyn Future<Output = ControlAnswer> + Send>>),
    Replied(RequestOutcome),
}

impl Begun {
    fn started(agent: AgentId) -> Self {
        Self::Awaits(Awaits::Heard(agent), HEARING)
    }

    fn said(said: ControlOutput) -> Self {
        Self::Replied(RequestOutcome::Answer(ControlAnswer::Said(said)))
    }
}

/// Returns the open question that is answered. An approval must name the hash of the exact call.
fn approved<'a>(
    questions: &[&'a Question],
    answer: ApprovalWord,
    call: Option<&str>,
) -> Result<&'a Question, String> {
    let first = *questions.first().ok_or("no open question")?;
    match (answer, call) {
        (ApprovalWord::No, None) => Ok(first),
        (_, None) => Err(
            "an approval names the exact call: read the question in `agents` and send its `call` \
             too, as in `ikigai ctl approve once --call HASH`"
                .to_owned(),
        ),
        (_, Some(call)) => {
            let named = questions.iter().find(|question| question.hash == call);
            named.copied().ok_or_else(|| {
                format!(
                    "no open question has the call `{call}`; read the questions in `agents` again"
                )
            })
        }
    }
}

fn type_keys(keys: &str, driver: &mut Driver) -> Result<Begun, String> {
    let happened = happenings(keys);
    let happened = happened.ok_or("too many keys for one request")?;
    let agent = driver.app.current();
    for happening in happened {
        driver.app.handle_input(happening, Instant::now());
    }
    Ok(Begun::started(agent))
}

/// Returns the agent of this name, or the visible one.
async fn named_agent(name: Option<&str>, driver: &Driver) -> Result<AgentId, String> {
    let Some(name) = name else {
        return Ok(driver.app.current());
    };
    let found = driver.engine.find(name).await;
    found
        .map(|agent| agent.id)
        .map_err(|error| error.to_string())
}
