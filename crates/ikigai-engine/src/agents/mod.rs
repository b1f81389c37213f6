//! Agents as processes: fork, kill, send, wait. Each commits its effect and its result in one
//! transaction, so that none has an unknown outcome.

mod fork;
mod hub;
mod kill;
mod live;
mod mail;
mod merge;
mod names;
mod open_questions;
mod prepare;
mod recall;
mod row_pages;
mod tree;
mod wait;

use ikigai_core::data::Verdict;
use ikigai_core::project::ToolSpec;
use ikigai_tools::arguments::{read, schema_of};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::calls::{Came, OpenCall};
use crate::front::{Desk, Stop};
use crate::{EngineError, Worker};

pub use fork::{ForkWish, Forked};
pub(crate) use hub::Hub;
pub use hub::{Observer, Opening, UseObserver};
pub use live::Errand;
pub(crate) use live::{Started, start};
pub(crate) use mail::{check_mail, shown_mail};
pub use merge::{MergeOf, MergePreview};
pub(crate) use names::Family;
pub(crate) use open_questions::OpenQuestion;
pub(crate) use tree::tree;
pub use tree::{Branch, since};
pub(crate) use wait::{Moment, Wait, consumed_by_next};

/// How long a wait takes if the model does not say, and at most.
const WAIT_SECONDS: u64 = 600;
const MOST_WAIT_SECONDS: u64 = 86_400;

/// The tools by which a model deals with agents, and with what they said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentTool {
    Fork,
    Kill,
    Send,
    Wait,
    Recall,
}

/// What a child remembers.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Context {
    Inherit,
    Fresh,
}

/// Arguments of `fork`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ForkArguments {
    /// What the child is called: lower-case letters, digits and `-`; made from the prompt if not given.
    #[serde(default)]
    name: Option<String>,
    /// What the child is to do.
    prompt: String,
    /// `inherit`: the child remembers this conversation; `fresh`: it knows only the prompt.
    context: Context,
    /// Another model for the child, as `provider:name/level`.
    #[serde(default)]
    model: Option<String>,
}

/// Arguments of `kill`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KillArguments {
    /// Name or id of the agent; its descendants die with it.
    agent: String,
}

/// Arguments of `send`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SendArguments {
    /// Name or id of the agent, or `parent`.
    to: String,
    /// What to tell it.
    message: String,
}

/// Arguments of `wait`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WaitArguments {
    /// Seconds to wait at most; 600 if not given.
    #[serde(default)]
    timeout: Option<u64>,
    /// Wait until each of these has sent a message, has ended its work, or is dead. Without it: for
    /// the next message from anybody.
    #[serde(default)]
    from_agents: Vec<String>,
}

/// Arguments of `recall`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecallArguments {
    /// Words that must all be there. `"in quotes"` as they stand, `begin*`, `after:7d`,
    /// `before:2026-11-30`.
    #[serde(default)]
    query: String,
    /// Opens one row instead of searching: `#12` of your own, `#name.12` of another agent.
    #[serde(default)]
    row: Option<String>,
    /// Page of that row, from 1 on.
    #[serde(default)]
    page: Option<usize>,
    /// Only what this agent has, dead or alive.
    #[serde(default)]
    agent: Option<String>,
    /// Only `user`, `assistant`, `tool_call`, `tool_result`, …
    #[serde(default)]
    kind: Option<String>,
    /// At most so many; 10 if not given.
    #[serde(default)]
    limit: Option<usize>,
}

impl AgentTool {
    const ALL: [Self; 5] = [Self::Fork, Self::Kill, Self::Send, Self::Wait, Self::Recall];

    /// The tool of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Fork => "fork",
            Self::Kill => "kill",
            Self::Send => "send",
            Self::Wait => "wait",
            Self::Recall => ikigai_core::find::RECALL_TOOL,
        }
    }

    /// What models are told of all of them.
    pub(crate) fn specs() -> impl Iterator<Item = ToolSpec> {
        Self::ALL.into_iter().map(Self::spec)
    }

    fn spec(self) -> ToolSpec {
        let (description, parameters) = match self {
            Self::Fork => (
                "Makes a child agent that works on a prompt beside you. You go on at once; what it \
                 says last comes to you as a message, which `wait` returns.",
                schema_of::<ForkArguments>(),
            ),
            Self::Kill => (
                "Ends an agent and all its descendants at once.",
                schema_of::<KillArguments>(),
            ),
            Self::Send => (
                "Sends a message to another agent, which gets it when it waits or begins its next turn.",
                schema_of::<SendArguments>(),
            ),
            Self::Wait => (
                "Waits for messages of other agents, and tells of each that you name whether it \
                 sent one (received), has nothing more to say (idle), is dead, or still works (running).",
                schema_of::<WaitArguments>(),
            ),
            Self::Recall => (
                "Finds words in everything that was ever said, done or printed, here and by other agents; \
                 with `row`, opens a whole row in pages, such as an output that was shortened.",
                schema_of::<RecallArguments>(),
            ),
        };
        ToolSpec {
            name: self.name().to_owned(),
            description: description.to_owned(),
            parameters,
        }
    }

    /// A call for people.
    pub(crate) fn shown(arguments: &str) -> String {
        ikigai_tools::arguments::shown(arguments)
    }
}

/// What became of a call of one of these tools.
pub(crate) enum Dealt {
    /// Its result is stored.
    Done,
    /// It waits.
    Waits(Wait),
    /// Its result is stored, and the agent that made it is dead.
    Died(Stop),
}

impl Worker {
    /// Carries out a call of one of these tools.
    pub(crate) async fn deal(
        &mut self,
        tool: AgentTool,
        call: &OpenCall,
        desk: &mut Desk<'_>,
    ) -> Result<Dealt, EngineError> {
        let dealt = match tool {
            AgentTool::Fork => match read(&call.arguments) {
                Ok(arguments) => self.deal_fork(arguments, call, desk).await?,
                Err(bad) => Err(bad.0),
            },
            AgentTool::Kill => match read(&call.arguments) {
                Ok(arguments) => self.deal_kill(arguments, call, desk).await?,
                Err(bad) => Err(bad.0),
            },
            AgentTool::Send => match read(&call.arguments) {
                Ok(arguments) => self.deal_send(arguments, call, desk).await?,
                Err(bad) => Err(bad.0),
            },
            AgentTool::Wait => match read(&call.arguments) {
                Ok(arguments) => self.deal_wait(arguments, call).await?,
                Err(bad) => Err(bad.0),
            },
            AgentTool::Recall => match read(&call.arguments) {
                Ok(arguments) => self.deal_recall(arguments, call, desk).await?,
                Err(bad) => Err(bad.0),
            },
        };
        match dealt {
            Ok(dealt) => Ok(dealt),
            Err(reason) => self.refuse_deal(call, reason, desk).await,
        }
    }

    async fn refuse_deal(
        &mut self,
        call: &OpenCall,
        reason: String,
        desk: &mut Desk<'_>,
    ) -> Result<Dealt, EngineError> {
        let result = call.result(Came::failed(reason), Verdict::Refused);
        let rows = self.commit_held(vec![result], Vec::new(), desk).await?;
        desk.told(rows);
        Ok(Dealt::Done)
    }
}

/// What came of a call, or why it was not done, in words for the model.
type Deal = Result<Result<Dealt, String>, EngineError>;

/// The result of a call that was done.
fn done(text: impl Into<String>) -> Came {
    let output = text.into();
    Came {
        shown: output.lines().next().map(str::to_owned),
        output,
        success: true,
        ..Came::default()
    }
}
