//! Preparation of a turn: its model, tools and limits. Stores nothing.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use ikigai_core::data;
use ikigai_core::project::{Scale, project};
use ikigai_core::settings::ModelChoice;
use ikigai_core::{Budget, Event, Kind, Settings, Target};
use ikigai_providers::Model;
use ikigai_store::Agent;
use tokio::time::Instant;

use crate::documents::documents;
use crate::engine::target_of;
use crate::frontend::FrontEnd;
use crate::ledger::{Ledger, is_message, read_held};
use crate::message_size::check_message_size;
use crate::tools::Toolset;
use crate::{EngineError, window, worktrees};

/// Model, tools and budget of a turn, and how much of them is used up.
pub(super) struct Turn {
    pub(super) model: Arc<dyn Model>,
    pub(super) target: Target,
    /// Budget of a request, in the tokens that the model counts.
    pub(super) budget: Budget,
    /// Likely ratio of the model's tokens to estimated ones, before it reported any.
    pub(super) scale: Scale,
    /// Budget of a request in estimated tokens.
    pub(super) window: Budget,
    pub(super) tools: Toolset,
    /// Settings at its preparation.
    pub(super) settings: Settings,
    /// Chosen model.
    pub(super) choice: ModelChoice,
    /// True if the newest request was refused as too long, and shortened.
    pub(super) overflowed: bool,
    /// Work on pinned files before its first request.
    pub(super) pins: PinStage,
    /// It may send no request, because it belongs to a long chain without a person.
    pub(super) chain_is_over: bool,
    /// Reason why it may send no request: its worktree cannot be created.
    pub(super) no_worktree: Option<String>,
    pub(super) requests: usize,
    pub(super) calls: usize,
    /// Number of refusals of each call, by tool and arguments.
    pub(super) refusals: HashMap<(String, String), usize>,
    pub(super) deadline: Instant,
}

/// Work on pinned files before the first request of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PinStage {
    /// They are read: the turn starts without a message.
    Read,
    /// They were read with the message that starts the turn.
    Take,
    /// None.
    Current,
}

impl Turn {
    /// Determines model, tools and limits of a turn.
    pub(super) async fn prepare(ledger: &Ledger) -> Result<Self, EngineError> {
        let Ledger { engine, agent, .. } = ledger;
        let settings = agent.state.settings();
        let choice = engine.choice(settings)?;
        let model = engine.models().resolve(&choice)?;
        let no_worktree = worktrees::ensure(engine.safety(), settings).await.err();
        let workdir = settings.workdir.as_deref().unwrap_or("/");
        engine
            .tool_source()
            .settle_servers(Path::new(workdir))
            .await;
        let tools = toolset(ledger).await;
        let budget = engine.budget(settings, &choice, model.window_tokens());
        Ok(Self {
            target: Target {
                documents: documents(engine.reader(), &agent.state).await?,
                ..target_of(&choice, &tools)
            },
            settings: settings.clone(),
            pins: PinStage::Read,
            budget,
            window: budget,
            scale: engine.models().token_scale(&choice),
            model,
            tools,
            choice,
            overflowed: false,
            chain_is_over: false,
            no_worktree,
            requests: 0,
            calls: 0,
            refusals: HashMap::new(),
            deadline: Instant::now() + engine.limits().time,
        })
    }

    /// Prepares the turn again, and keeps its consumption so far.
    pub(super) async fn renew(
        &mut self,
        ledger: &Ledger,
        front: &mut FrontEnd<'_>,
    ) -> Result<(), EngineError> {
        let fresh = read_held!(front, Self::prepare(ledger));
        *self = Self {
            pins: self.pins,
            overflowed: self.overflowed,
            chain_is_over: self.chain_is_over,
            requests: self.requests,
            calls: self.calls,
            refusals: std::mem::take(&mut self.refusals),
            deadline: self.deadline,
            ..fresh
        };
        Ok(())
    }

    /// Reads as much of the path as a request can hold.
    pub(super) async fn read_window(&mut self, ledger: &mut Ledger) -> Result<(), EngineError> {
        let Ledger { agent, engine, .. } = ledger;
        let (target, budget) = (&self.target, self.budget);
        self.window = window::read(engine.reader(), agent, target, budget, self.scale).await?;
        Ok(())
    }

    /// Fails if a message is too long for the turn.
    pub(super) fn check_message(&self, message: &Event, agent: &Agent) -> Result<(), EngineError> {
        let Event::User { text, .. } = message else {
            return Ok(());
        };
        let scale = Scale::of(&agent.state, &agent.view, &self.target, self.scale);
        check_message_size(text, scale, &self.budget)
    }
}

/// Returns the tools of an agent in its present mode.
pub(super) async fn toolset(ledger: &Ledger) -> Toolset {
    // `run --approve` can replace the mode for this process.
    let in_force = Settings {
        approve: Some(ledger.grant().mode),
        ..ledger.settings().clone()
    };
    ledger.engine.toolset(&in_force).await
}

/// Fails if there is no stopped turn to resume.
pub(crate) async fn check_resumable(ledger: &mut Ledger) -> Result<(), EngineError> {
    let mut turn = Turn::prepare(ledger).await?;
    turn.read_window(ledger).await?;
    let Agent { state, view, .. } = &ledger.agent;
    let can_ask = project(state, view, &turn.target, &turn.window).is_ok();
    let can_go_on = can_ask && !is_at_rest(&ledger.agent);
    if ledger.open_calls().await?.is_empty() && !can_go_on {
        return Err(EngineError::NothingToResume);
    }
    Ok(())
}

/// Returns true if no row after the last answer needs another one.
fn is_at_rest(agent: &Agent) -> bool {
    let entries = agent.view.entries().iter().rev();
    let newest = entries.filter_map(|entry| match entry.kind()? {
        Kind::User if !is_message(&data::read(entry.row.data.as_deref())) => None,
        Kind::Assistant => Some(true),
        Kind::User | Kind::ToolCall | Kind::ToolResult | Kind::Interrupted | Kind::Error => {
            Some(false)
        }
        Kind::System
        | Kind::Clear
        | Kind::Mark
        | Kind::Rewind
        | Kind::Fork
        | Kind::Command
        | Kind::AgentKilled
        | Kind::Usage
        | Kind::Summary
        | Kind::Process
        | Kind::Files => None,
    });
    newest.into_iter().next().unwrap_or(true)
}
