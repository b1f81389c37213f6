//! Forking: a child in a constant number of rows, however long its parent's path is.

use ikigai_core::data::{ForkContext, ForkData, Verdict};
use ikigai_core::fork::{ForkEvents, ForkOrder, fork_events};
use ikigai_core::names::{is_speaker, is_valid_name, name_from};
use ikigai_core::settings::{Approve, ModelChoice};
use ikigai_core::{AgentId, AgentState, Epoch, Event, Row, RowRef, Seq, Settings};
use ikigai_store::{
    Agent, AgentEffect, AgentRecord, Batch, CommitError, Effect, HeadClaim, LeaseClaim, NewAgent,
};
use ikigai_tools::tool_names::current_name;

use super::definition::take_definition;
use super::{Family, FamilyOutcome, FamilyResult, Started, done};
use crate::agent_names::find_free_name;
use crate::agent_tools::{ForkArguments, ForkKind, ForkMemory};
use crate::budget::count_child;
use crate::calls::OpenCall;
use crate::environment::{CrashPoint, draw_agent};
use crate::frontend::{AgentJob, FrontEnd};
use crate::grants::grant_to_child;
use crate::ledger::{CommitPlan, ExtraWrites, Ledger, Starter, share_process_mode};
use crate::message_size::check_message_for;
use crate::surroundings::{SeatFacts, SeatIdentity, SeatQuery, seat_facts};
use crate::worktrees::{self, WorktreePlan};
use crate::{Engine, EngineError, EngineReader};

/// System prompt of a fresh child that explores.
const EXPLORE_PROMPT: &str = include_str!("explore_prompt.md");

/// Number of a prompt's first words in a name.
const NAME_WORDS: usize = 3;

/// Options of a fork.
#[derive(Clone, Debug)]
pub struct ForkRequest {
    /// Name of the child; by default from the prompt, with a number if taken.
    pub name: Option<String>,
    /// First message.
    pub prompt: Option<String>,
    /// Inherited context.
    pub context: ForkContext,
    /// Last inherited row, if not the newest.
    pub at: Option<RowRef>,
    /// Another model.
    pub model: Option<ModelChoice>,
    /// Call of the fork.
    pub call: Option<RowRef>,
    /// Separate worktree.
    pub worktree: Option<WorktreePlan>,
    /// Tools and kind.
    pub seat: ChildSeat,
}

/// Tools and kind of a child, as far as they differ from its parent's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildSeat {
    /// Names of its tools; none for its parent's.
    pub tools: Option<Vec<String>>,
    /// It only reads, and a fresh one has a short prompt.
    pub explores: bool,
    /// System prompt of an agent definition.
    pub system: Option<String>,
}

/// A new child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forked {
    /// Its id.
    pub id: AgentId,
    /// Its name.
    pub name: String,
}

struct NewChild<'a> {
    parent: &'a AgentRecord,
    forked: &'a Forked,
    facts: Option<SeatFacts>,
    /// Effects that count it under budgets.
    counted: &'a [Effect],
}

impl<'a> NewChild<'a> {
    fn new(
        parent: &'a AgentRecord,
        forked: &'a Forked,
        facts: Option<SeatFacts>,
        counted: &'a [Effect],
    ) -> Self {
        Self {
            parent,
            forked,
            facts,
            counted,
        }
    }
}

impl Family<'_> {
    /// Creates a child, in one transaction with the rows that `added` makes.
    /// This process gets the child's lease. With a front end, waits for a store that is away.
    pub(crate) async fn fork(
        &mut self,
        request: &ForkRequest,
        added: impl Fn(&Forked) -> Vec<Event>,
        mut front: Option<&mut FrontEnd<'_>>,
    ) -> Result<(Forked, Vec<Row>), EngineError> {
        let parent = with_room(&self.ledger.engine, self.ledger.agent.state.agent()).await?;
        let child = draw_agent(self.ledger.engine.environment());
        let mut taken: Vec<String> = Vec::new();
        let mode = self.ledger.grant().mode;
        let born = (self.ledger.settings(), child);
        let facts = child_facts(&self.ledger.engine, born, mode, request).await;
        let counted = count_child(&self.ledger.engine, &self.ledger.agent).await?;
        loop {
            let forked = pick_name(&self.ledger.engine, (&parent, child), request, &taken).await?;
            let front = front.as_deref_mut();
            let born = NewChild::new(&parent, &forked, facts.clone(), &counted);
            match self.commit_fork(request, born, &added, front).await {
                Ok(rows) => return Ok((forked, rows)),
                Err(EngineError::Commit(CommitError::TooManyAgents { root, most, .. })) => {
                    return Err(over_budget(&self.ledger.engine, root, most).await?);
                }
                // Another agent took the name first.
                Err(EngineError::Commit(CommitError::NameTaken(name))) => taken.push(name),
                Err(error) => return Err(error),
            }
        }
    }

    async fn commit_fork(
        &mut self,
        request: &ForkRequest,
        born: NewChild<'_>,
        added: &impl Fn(&Forked) -> Vec<Event>,
        front: Option<&mut FrontEnd<'_>>,
    ) -> Result<Vec<Row>, EngineError> {
        let (parent, forked) = (born.parent, born.forked);
        // The fork point is the newest applied row. A row that another process appends meanwhile is
        // a kill or a fork, which does not concern the child.
        let state = &self.ledger.agent.state;
        let rows = fork_rows(
            &self.ledger.engine,
            state,
            &parent.name,
            request,
            (forked, born.facts),
        );
        let events = [rows.parent.clone()].into_iter().chain(added(forked));
        let events = events.collect();
        let child = newborn(&self.ledger.engine, parent, forked, rows).counted(born.counted);
        let extra = move |_: Seq| child.clone();
        self.ledger.crash_point(CrashPoint::BeforeForkStored);
        let plan = CommitPlan::events(events).extra(&extra).waiting_if(front);
        let rows = self.ledger.commit(plan).await?;
        self.ledger.crash_point(CrashPoint::AfterForkStored);
        Ok(rows)
    }

    /// Executes a call of `fork`: the child starts at once.
    pub(super) async fn run_fork(
        &mut self,
        arguments: ForkArguments,
        call: &OpenCall,
        front: &mut FrontEnd<'_>,
    ) -> FamilyResult {
        let mut remark = remark_on(&arguments).to_owned();
        let mut has_worktree = arguments.worktree;
        let definition = arguments.agent.clone();
        let mut request = match requested(self.ledger, arguments, call) {
            Ok(request) => request,
            Err(reason) => return Ok(Err(reason)),
        };
        if let Some(tools) = request.seat.tools.take() {
            match own_tools(self.ledger, &tools).await {
                Ok(tools) => request.seat.tools = Some(tools),
                Err(reason) => return Ok(Err(reason)),
            }
        }
        match take_definition(self.ledger, definition, &mut request).await {
            Ok((note, in_worktree)) => {
                (remark, has_worktree) = (note + &remark, has_worktree || in_worktree);
            }
            Err(reason) => return Ok(Err(reason)),
        }
        if has_worktree {
            match plan_worktree(self.ledger).await {
                Ok(plan) => {
                    remark = format!(" {}{remark}", plan.remark());
                    request.worktree = Some(plan);
                }
                Err(reason) => return Ok(Err(reason)),
            }
        }
        let added = |forked: &Forked| {
            let text = format!("forked {} ({}){remark}", forked.name, forked.id);
            vec![call.result(done(text), Verdict::Ran)]
        };
        match self.fork(&request, added, Some(front)).await {
            Ok((forked, rows)) => {
                front.emit_rows(rows);
                self.start_child(forked.id).await?;
                Ok(Ok(FamilyOutcome::Done))
            }
            Err(
                error @ (EngineError::TooDeep(_)
                | EngineError::TooManyChildren(_)
                | EngineError::TooManyAgents(_)
                | EngineError::AgentBudget { .. }),
            ) => Ok(Err(error.to_string())),
            Err(error) => Err(error),
        }
    }

    /// Starts a new child; it answers its prompt.
    pub(crate) async fn start_child(&mut self, child: AgentId) -> Result<(), EngineError> {
        let Ledger {
            engine, starter, ..
        } = &*self.ledger;
        let child = Ledger::begin(engine.clone(), child, Epoch(1), *starter).await?;
        self.start(child, AgentJob::Answer);
        Ok(())
    }

    /// Starts another agent of this process in parallel.
    pub(crate) fn start(&mut self, other: Ledger, job: AgentJob) {
        share_process_mode(self.ledger, &other);
        let own = self.ledger.id();
        let forked_by_us = |fork: &&ForkData| fork.parent_uuid == Some(own);
        let fork = other.agent.state.fork().filter(forked_by_us);
        self.children.push(Started {
            id: other.id(),
            reports: fork.is_some_and(|fork| fork.call.is_some()),
        });
        (other.starter)(other, Some(job));
    }
}

/// Creates a child of an agent of any process, or of an ended one, and opens it.
/// The parent's row is appended without its lease, so its holder continues undisturbed; this
/// process gets the child's lease.
pub(crate) async fn fork_held_ledger(
    engine: &Engine,
    parent: AgentId,
    request: &ForkRequest,
    starter: Starter,
) -> Result<Ledger, EngineError> {
    let parent = with_room(engine, parent).await?;
    let agent = Agent::restore(engine.reader(), parent.id).await?;
    let child = draw_agent(engine.environment());
    let mode = engine.in_force(&agent.state).mode;
    let born = (agent.state.settings(), child);
    let facts = child_facts(engine, born, mode, request).await;
    let counted = count_child(engine, &agent).await?;
    let mut taken = Vec::new();
    loop {
        let forked = pick_name(engine, (&parent, child), request, &taken).await?;
        let now = engine.environment().now();
        let born = (&forked, facts.clone());
        let rows = fork_rows(engine, &agent.state, &parent.name, request, born);
        let added = engine.row_of(rows.parent.clone(), parent.id, now);
        let born = newborn(engine, &parent, &forked, rows).counted(&counted);
        let free = HeadClaim {
            agent: parent.id,
            lease: None,
        };
        let batch = Batch {
            heads: [free].into_iter().chain(born.heads).collect(),
            rows: [added].into_iter().chain(born.rows).collect(),
            with: born.with,
        };
        match engine.commit_without_lease(batch).await {
            Ok(_) => break,
            Err(CommitError::NameTaken(name)) => taken.push(name),
            Err(CommitError::TooManyAgents { root, most, .. }) => {
                return Err(over_budget(engine, root, most).await?);
            }
            // No other process creates a child with this id.
            Err(CommitError::Unknown(_)) if engine.reader().agent(child).await?.is_some() => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ledger::begin(engine.clone(), child, Epoch(1), starter).await
}

/// Returns the fork that a call requests. The error is for the model.
fn requested(
    ledger: &Ledger,
    arguments: ForkArguments,
    call: &OpenCall,
) -> Result<ForkRequest, String> {
    if arguments.prompt.trim().is_empty() {
        return Err("the prompt is empty".to_owned());
    }
    let engine = &ledger.engine;
    let explores = arguments.kind == ForkKind::Explore;
    let cheap = engine.explore_model().filter(|_| explores);
    let model = match arguments.model.as_deref().or(cheap) {
        None => None,
        Some(name) => Some(
            engine
                .models()
                .choose(name)
                .map_err(|missing| missing.to_string())?,
        ),
    };
    let name = arguments.name.filter(|name| !name.is_empty());
    name.as_deref().map_or(Ok(()), check_name)?;
    let mut settings = ledger.settings().clone();
    settings.model = model.clone().or(settings.model);
    check_message_for(engine, &settings, &arguments.prompt).map_err(|error| error.to_string())?;
    Ok(ForkRequest {
        name,
        prompt: Some(arguments.prompt),
        context: match arguments.context {
            Some(ForkMemory::Inherit) => ForkContext::Inherit,
            Some(ForkMemory::Fresh) | None => ForkContext::Fresh,
        },
        at: None,
        model,
        call: Some(call.at),
        worktree: None,
        seat: ChildSeat {
            tools: arguments.tools,
            explores,
            system: None,
        },
    })
}

/// Returns the names of a child's tools, which its parent must have. The error is for the model.
async fn own_tools(ledger: &Ledger, wanted: &[String]) -> Result<Vec<String>, String> {
    let specs = ledger.engine.toolset(ledger.settings()).await.specs();
    let own: Vec<_> = specs.into_iter().map(|spec| spec.name).collect();
    let mut tools = Vec::new();
    for name in wanted {
        let name = current_name(name);
        if !own.iter().any(|known| known == name) {
            return Err(format!(
                "there is no tool `{name}` for a child. You have: {}",
                own.join(", ")
            ));
        }
        tools.push(name.to_owned());
    }
    if tools.is_empty() {
        return Err("`tools` is empty. Leave it out for all of yours".to_owned());
    }
    Ok(tools)
}

/// Plans the worktree of a child that a call requests. The error is for the model.
async fn plan_worktree(ledger: &Ledger) -> Result<WorktreePlan, String> {
    if ledger.grant().mode == Approve::Read {
        return Err("in `read` mode no worktree is created. Leave out `worktree`".to_owned());
    }
    let plan = worktrees::plan(ledger.engine.safety(), ledger.settings()).await;
    plan.map_err(|reason| {
        format!("no worktree: {reason}. Without `worktree` the child shares your directory")
    })
}

/// Returns the end of the result of a call that leaves its context out.
fn remark_on(arguments: &ForkArguments) -> &'static str {
    match arguments.context {
        Some(_) => "",
        None => "; it knows only its prompt, since `context` was not given",
    }
}

/// Builds the error of a fork beyond the number of agents that a budget allows.
async fn over_budget(
    engine: &EngineReader,
    root: AgentId,
    most: u64,
) -> Result<EngineError, EngineError> {
    let root = engine.reader().agent(root).await?;
    let name = root.map(|root| root.name).unwrap_or_default();
    Ok(EngineError::AgentBudget { name, most })
}

/// Builds the rows of a fork, with the parent's grants in force.
fn fork_rows(
    engine: &Engine,
    parent: &AgentState,
    parent_name: &str,
    request: &ForkRequest,
    (forked, facts): (&Forked, Option<SeatFacts>),
) -> ForkEvents {
    let is_by_model = request.call.is_some();
    let set = request.child_settings(parent.settings(), forked.id);
    let identity = SeatIdentity {
        name: &forked.name,
        parent: Some((parent_name, is_by_model)),
        worktree: worktrees::own_worktree(forked.id, &set),
    };
    let facts = facts.map(|facts| facts.with_identity(&identity));
    let order = request.order(forked, &set, facts.as_ref());
    let mut rows = fork_events(parent, parent_name, order);
    grant_to_child(engine, parent, forked.id, &mut rows);
    rows
}

/// Gathers the facts about the surroundings of a child, if its first message is given.
async fn child_facts(
    engine: &Engine,
    (parent, child): (&Settings, AgentId),
    mode: Approve,
    request: &ForkRequest,
) -> Option<SeatFacts> {
    request.prompt.as_ref()?;
    let mut settings = parent.clone();
    settings.merge(&request.child_settings(parent, child).as_set());
    let query = SeatQuery {
        settings: &settings,
        mode: if request.seat.explores {
            Approve::Read
        } else {
            mode
        },
        answers: engine.hub().observer().1,
        status: request.worktree.is_none(),
    };
    let facts = Box::pin(seat_facts(engine, query)).await?;
    Some(match worktrees::own_worktree(child, &settings) {
        // It is created after the rows are stored.
        Some(setting) => facts.in_worktree(setting),
        None => facts,
    })
}

/// Reads the parent; fails if it may have no more children.
async fn with_room(engine: &Engine, parent: AgentId) -> Result<AgentRecord, EngineError> {
    let most = engine.crowd();
    let missing = || EngineError::NoSuchAgent(parent.to_string());
    let ancestry = engine.reader().ancestry(parent, most.family).await?;
    let ancestry = ancestry.ok_or_else(missing)?;
    if ancestry.ancestors.len() >= most.depth {
        return Err(EngineError::TooDeep(most.depth));
    }
    if ancestry.children >= most.children {
        return Err(EngineError::TooManyChildren(most.children));
    }
    if ancestry.family >= most.family {
        return Err(EngineError::TooManyAgents(most.family));
    }
    engine.reader().agent(parent).await?.ok_or_else(missing)
}

async fn pick_name(
    engine: &Engine,
    (parent, child): (&AgentRecord, AgentId),
    request: &ForkRequest,
    taken: &[String],
) -> Result<Forked, EngineError> {
    let wanted = wished_name(request);
    Ok(Forked {
        id: child,
        name: find_free_name(engine, Some(parent.session), &wanted, taken).await?,
    })
}

impl ForkRequest {
    /// Returns the settings of the child that differ from its parent's.
    fn child_settings(&self, parent: &Settings, child: AgentId) -> Settings {
        let own = Settings {
            model: self.model.clone(),
            toolset: self.seat.tools.clone(),
            approve: self.seat.explores.then_some(Approve::Read),
            ..Settings::default()
        };
        let Some(plan) = &self.worktree else {
            return own;
        };
        let settings = plan.settings(child, &wished_name(self));
        // A child that inherits the conversation shares its prefix, with the pins in it.
        let pins = parent.pins.as_ref().zip(settings.worktree.as_ref());
        let pins = pins.filter(|_| self.context == ForkContext::Fresh);
        Settings {
            pins: pins.map(|(pins, setting)| plan.pins(pins, setting)),
            workdir: settings.workdir,
            worktree: settings.worktree,
            ..own
        }
    }

    fn order(&self, forked: &Forked, set: &Settings, facts: Option<&SeatFacts>) -> ForkOrder {
        let prompt = self.prompt.as_deref();
        ForkOrder {
            child: forked.id,
            name: forked.name.clone(),
            context: self.context,
            at: self.at,
            set: set.as_set(),
            call: self.call,
            prompt: prompt.map(|typed| match facts {
                Some(facts) => facts.prompt(typed),
                None => typed.into(),
            }),
            system: self
                .seat
                .system
                .clone()
                .or_else(|| (self.seat.explores).then(|| EXPLORE_PROMPT.trim_end().to_owned())),
        }
    }
}

/// Builds the child with its first rows, owned by this process.
fn newborn(
    engine: &Engine,
    parent: &AgentRecord,
    forked: &Forked,
    rows: ForkEvents,
) -> ExtraWrites {
    let now = engine.environment().now();
    // The author of the fork is the author of the child's first rows.
    let is_of_person = rows.parent.is_of_person();
    let author = engine.person().filter(|_| is_of_person);
    let agent = NewAgent {
        id: forked.id,
        name: forked.name.clone(),
        session: parent.session,
        parent: Some(parent.id),
        fork_point: rows.fork_point,
        created_at: now,
    };
    let lease = LeaseClaim {
        epoch: Epoch(1),
        expected: Seq(0),
    };
    let events = rows.child.into_iter();
    ExtraWrites {
        heads: vec![HeadClaim {
            agent: forked.id,
            lease: Some(lease),
        }],
        rows: events
            .map(|event| event.into_row(forked.id, now).by(author.clone()))
            .collect(),
        with: vec![Effect::Agent(AgentEffect::Create { agent, owned: true })],
    }
}

/// Returns an error for the model if no child can have a name.
fn check_name(name: &str) -> Result<(), String> {
    if !is_valid_name(name) {
        return Err(EngineError::BadName(name.to_owned()).to_string());
    }
    if is_speaker(name) {
        return Err(format!(
            "no agent can be called `{name}`: its messages would seem to come from another speaker; choose another name"
        ));
    }
    Ok(())
}

/// Returns the requested name of the child.
fn wished_name(request: &ForkRequest) -> String {
    if let Some(name) = &request.name {
        return name_from(name);
    }
    let words = request
        .prompt
        .as_deref()
        .unwrap_or("child")
        .split_whitespace();
    let first: Vec<_> = words.take(NAME_WORDS).collect();
    name_from(&first.join(" "))
}
