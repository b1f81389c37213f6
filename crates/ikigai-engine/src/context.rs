//! Contents of an agent's context window, as data: for `/context`, status line and programs.

use ikigai_core::data::{self, UserData};
use ikigai_core::load::Loaded;
use ikigai_core::project::{Filling, FillingParts, Fixed, Scale, TurnSize, expected_tokens};
use ikigai_core::settings::ModelChoice;
use ikigai_core::view::Entry;
use ikigai_core::{AgentId, Budget, Kind, RowRef, Target};
use ikigai_providers::WindowSource;
use ikigai_store::{Agent, StoreError};

use crate::documents::documents;
use crate::engine::target_of;
use crate::figures::shorten;
use crate::{EngineError, EngineReader, window};

/// An agent whose view fills a request, with the parts of that request.
pub(crate) struct Ready {
    pub(crate) agent: Agent,
    pub(crate) target: Target,
    /// Budget of requests in estimated tokens.
    pub(crate) budget: Budget,
    /// The same in the tokens that the model counts.
    pub(crate) counted: Budget,
    /// Ratio between these two.
    pub(crate) scale: Scale,
}

/// Contents of an agent's window, in tokens as its model is likely to count them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The system prompt.
    pub system: u64,
    /// Pinned documents, by path.
    pub pins: Vec<(String, u64)>,
    /// Tools, by name.
    pub tools: Vec<(String, u64)>,
    /// Turns that are sent, oldest first, and summaries, which replace others.
    pub turns: Vec<ContextTurn>,
    /// The same messages by kinds of content.
    pub parts: FillingParts,
    /// Number of user messages before the first turn that is sent verbatim.
    pub start_index: u64,
    /// Budget; a turn that begins beyond it first cuts the context.
    pub budget: u64,
    /// Context window of the model.
    pub window: u64,
    /// Tokens reserved for its answer in addition, if known.
    pub reserve: Option<u64>,
    /// Origin of the window size.
    pub source: WindowSource,
}

/// One turn in the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextTurn {
    /// Its first row.
    pub from: RowRef,
    /// Its size.
    pub tokens: u64,
    /// It is the text of a summary.
    pub is_summary: bool,
    /// First words.
    pub title: String,
}

impl Context {
    /// Returns the size of the parts sent with every request: system prompt, pins and tools.
    pub fn fixed_tokens(&self) -> u64 {
        let parts = self.pins.iter().chain(&self.tools);
        self.system + parts.map(|(_, tokens)| tokens).sum::<u64>()
    }

    /// Returns the size of all turns.
    pub fn total_tokens(&self) -> u64 {
        self.turns.iter().map(|turn| turn.tokens).sum()
    }

    /// Returns the used part of the budget, in percent.
    pub fn percent(&self) -> u64 {
        let used = self.fixed_tokens() + self.total_tokens();
        used.saturating_mul(100) / self.budget.max(1)
    }
}

/// Rows read to find the newest count of a provider. One answer with its calls has fewer.
const MOST_ESTIMATE_ROWS: usize = 2048;

/// Token estimate of an agent's next request, for a status line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextEstimate {
    /// Tokens that the next request is likely to have.
    pub used: u64,
    /// Tokens that it may have.
    pub budget: u64,
    /// Origin of the window size.
    pub source: WindowSource,
}

impl EngineReader {
    /// Computes the contents of an agent's window, without its lease.
    pub async fn context(&self, agent: AgentId) -> Result<Context, EngineError> {
        self.context_of(Agent::restore(self.reader(), agent).await?)
            .await
    }

    /// Estimates how full an agent's window is, from the newest count of its provider.
    ///
    /// Reads some of the newest rows, regardless of the window. A path that is complete by then,
    /// and one that was summarised since the count, are counted exactly.
    pub async fn estimate_context(&self, agent: AgentId) -> Result<ContextEstimate, EngineError> {
        let mut agent = Agent::restore(self.reader(), agent).await?;
        let mut rows = window::FIRST_PAGE_ROWS;
        while window::lengthen(self.reader(), &mut agent, rows).await?
            && !agent.view.is_complete(agent.state.path())
        {
            if let Some(used) = expected_tokens(&agent.view) {
                let settings = agent.state.settings();
                let choice = self.choice(settings)?;
                let window = self.models().window_tokens(&choice);
                let budget = self.budget(settings, &choice, window).cap;
                return Ok(ContextEstimate {
                    used,
                    budget,
                    source: self.window_source(&choice),
                });
            }
            rows *= 2;
            if rows > MOST_ESTIMATE_ROWS {
                break;
            }
        }
        let context = self.context_of(agent).await?;
        Ok(ContextEstimate {
            used: context.fixed_tokens() + context.total_tokens(),
            budget: context.budget,
            source: context.source,
        })
    }

    /// Reads enough of an agent to fill a request.
    pub(crate) async fn ready(
        &self,
        mut agent: Agent,
        choice: &ModelChoice,
    ) -> Result<Ready, EngineError> {
        let settings = agent.state.settings().clone();
        let tools = self.toolset(&settings).await;
        let target = Target {
            documents: documents(self.reader(), &agent.state).await?,
            ..target_of(choice, &tools)
        };
        let counted = self.budget(&settings, choice, self.models().window_tokens(choice));
        let first = self.models().token_scale(choice);
        let budget = window::read(self.reader(), &mut agent, &target, counted, first).await?;
        Ok(Ready {
            scale: Scale::of(&agent.state, &agent.view, &target, first),
            agent,
            target,
            budget,
            counted,
        })
    }

    pub(crate) async fn context_of(&self, agent: Agent) -> Result<Context, EngineError> {
        let choice = self.choice(agent.state.settings())?;
        let Ready {
            mut agent,
            target,
            budget,
            counted,
            scale,
        } = Box::pin(self.ready(agent, &choice)).await?;
        let filling = Filling::of(&agent.state, &agent.view, &target, &budget);
        let mut context = Context {
            system: 0,
            pins: Vec::new(),
            tools: Vec::new(),
            turns: Vec::new(),
            parts: filling.parts.map(|tokens| scale.counted(tokens)),
            start_index: 0,
            budget: counted.cap,
            window: counted.window,
            reserve: self.reserve(&choice, counted.window),
            source: self.window_source(&choice),
        };
        for (part, tokens) in filling.fixed {
            let tokens = scale.counted(tokens);
            match part {
                Fixed::System => context.system = tokens,
                Fixed::Pin(path) => context.pins.push((path, tokens)),
                Fixed::Tool(name) => context.tools.push((name, tokens)),
            }
        }
        let turn = |size: TurnSize| ContextTurn {
            tokens: scale.counted(size.tokens),
            title: title(&agent, &size),
            from: size.from,
            is_summary: size.is_summary,
        };
        context.turns = filling.turns.into_iter().map(turn).collect();
        let whole = context.turns.iter().find(|turn| !turn.is_summary);
        // If only summaries are sent, all messages came before.
        let newest = RowRef::new(agent.state.agent(), agent.state.head());
        let all = (!context.turns.is_empty()).then_some(newest);
        if let Some(first) = whole.map(|turn| turn.from).or(all) {
            context.start_index = self.messages_before(&mut agent, first).await?;
        }
        Ok(context)
    }

    /// Returns the origin of a model's window size.
    fn window_source(&self, choice: &ModelChoice) -> WindowSource {
        if self.is_corrected(choice) {
            WindowSource::Refusal
        } else {
            self.models().describe(choice).window_source
        }
    }

    /// Returns the tokens that a model reserves for its answer.
    fn reserve(&self, choice: &ModelChoice, window: u64) -> Option<u64> {
        if self.is_corrected(choice) {
            return None;
        }
        let context = self.models().describe(choice).context_tokens?;
        context.checked_sub(window)
    }

    /// Counts the user messages before a row of the agent's path.
    /// Uses an index, and caches the count of the row that a window begins with.
    async fn messages_before(&self, agent: &mut Agent, row: RowRef) -> Result<u64, StoreError> {
        let id = agent.state.agent();
        if let Some(known) = self.counted().before(id, row) {
            return Ok(known);
        }
        agent.know_all(self.reader()).await?;
        let before = agent.state.path().spans_before(Some(row), usize::MAX);
        let messages = self.reader().count_messages(before).await?;
        self.counted().remember(id, row, messages);
        Ok(messages)
    }
}

/// Returns the first words of a turn.
fn title(agent: &Agent, size: &TurnSize) -> String {
    if size.is_summary {
        return "summary".to_owned();
    }
    let entries = agent.view.entries().iter();
    let mut since = entries.skip_while(|entry| entry.at() != size.from);
    let speaks = |entry: &&Entry| matches!(&entry.loaded, Ok(Loaded::Message(_)));
    match since.find(speaks) {
        Some(entry) if entry.kind() == Some(Kind::User) => words_of(entry),
        // The rest of a turn whose beginning a summary replaces.
        _ => "rest of a turn".to_owned(),
    }
}

/// Maximum length of a title in characters.
const TITLE_CHARACTERS: usize = 40;

fn words_of(entry: &Entry) -> String {
    let typed = data::read::<UserData>(entry.row.data.as_deref()).typed;
    let text = typed.or_else(|| entry.row.content.clone());
    shorten(&text.unwrap_or_default(), TITLE_CHARACTERS)
}
