//! Tools by which a model forks, kills, messages, awaits and remembers agents.

use ikigai_core::project::{ToolFacts, ToolSpec};
use ikigai_tools::arguments::{
    Aliases, MILLISECONDS, ToolArguments, convert_timeout, display_text, read, schema_of,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Tools by which a model controls agents and searches their logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentTool {
    Fork,
    Kill,
    Send,
    Wait,
    Recall,
}

/// Conversation with which a child starts.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ForkMemory {
    Inherit,
    Fresh,
}

/// Kind of a child.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ForkKind {
    #[default]
    Work,
    Explore,
}

/// Arguments of `fork`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForkArguments {
    /// Name of the child: lower-case letters, digits and `-`. Default: made from the prompt.
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// Task of the child.
    pub(crate) prompt: String,
    /// `fresh` (default): the child knows only the prompt; `inherit`: it remembers this conversation.
    #[serde(default)]
    pub(crate) context: Option<ForkMemory>,
    /// Model of the child, as `provider:name/level`. Default: yours.
    #[serde(default)]
    pub(crate) model: Option<String>,
    /// `explore` for a child that only searches and reads: a short prompt, and a cheaper model if the
    /// user set one. Default: `work`.
    #[serde(default)]
    pub(crate) kind: ForkKind,
    /// Names of its tools. Default: all of yours.
    #[serde(default)]
    pub(crate) tools: Option<Vec<String>>,
    /// Name of an agent definition, as far as the environment lists any.
    #[serde(default)]
    pub(crate) agent: Option<String>,
    /// True for a separate git worktree instead of your directory. The user merges its changes.
    #[serde(default)]
    pub(crate) worktree: bool,
}

/// Arguments of `kill`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KillArguments {
    /// Name or id of the agent; its descendants die with it.
    pub(crate) agent: String,
}

/// Arguments of `send`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SendArguments {
    /// Name or id of the agent, or `parent`.
    pub(crate) to: String,
    /// Text of the message.
    pub(crate) message: String,
    /// True if you need an answer: then `wait` for it.
    #[serde(default)]
    pub(crate) question: bool,
}

/// Arguments of `wait`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WaitArguments {
    /// Longest wait in seconds. Default: 600.
    #[serde(default)]
    pub(crate) timeout: Option<u64>,
    /// Names of agents. Without them: the next message from any agent.
    #[serde(default)]
    pub(crate) agents: Vec<String>,
    /// `all` (default): until each has sent a message, is idle or dead. `any`: until one has sent one.
    #[serde(default)]
    pub(crate) until: WaitUntil,
}

/// End of a wait for several agents.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WaitUntil {
    Any,
    #[default]
    All,
}

/// Arguments of `recall`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecallArguments {
    /// Words that must all occur; also `"exact phrase"`, `prefix*`, `after:7d`, `before:2026-11-30`.
    #[serde(default)]
    pub(crate) query: String,
    /// Opens one row instead of searching: `#12` is one of yours, `#name.12` one of another agent.
    #[serde(default)]
    pub(crate) row: Option<String>,
    /// Page of that row, from 1 on.
    #[serde(default)]
    pub(crate) page: Option<usize>,
    /// Only rows of this agent, dead or alive.
    #[serde(default)]
    pub(crate) agent: Option<String>,
    /// Only `user`, `assistant`, `tool_call`, `tool_result`, …
    #[serde(default)]
    pub(crate) kind: Option<String>,
    /// Most results. Default: 10.
    #[serde(default)]
    pub(crate) limit: Option<usize>,
}

/// Names of other programs for a child without a special kind.
const ANY_CHILD: [&str; 7] = [
    "",
    "work",
    "worker",
    "default",
    "general",
    "general-purpose",
    "task",
];

/// Longest wait in seconds.
pub(crate) const MOST_WAIT_SECONDS: u64 = 86_400;

impl ToolArguments for ForkArguments {
    const ALIASES: Aliases = &[
        ("task", "prompt"),
        ("message", "prompt"),
        ("instructions", "prompt"),
        ("subagent_type", "agent"),
        ("agent_type", "agent"),
    ];

    /// Names of kinds in place of each other: `agent: explore`, `kind: reviewer`.
    ///
    /// Names that mean any child in other programs, such as `general-purpose`, are dropped.
    fn convert(fields: &mut Map<String, Value>) -> Result<(), String> {
        let text = |fields: &Map<String, Value>, name: &str| {
            fields.get(name).and_then(Value::as_str).map(str::to_owned)
        };
        let is_explore = |name: &str| name.eq_ignore_ascii_case("explore");
        if let Some(kind) = text(fields, "kind").filter(|kind| !is_explore(kind)) {
            fields.remove("kind");
            fields.entry("agent").or_insert(Value::String(kind));
        }
        if let Some(agent) = text(fields, "agent") {
            if is_explore(&agent) {
                fields.remove("agent");
                fields.insert("kind".to_owned(), Value::String("explore".to_owned()));
            } else if ANY_CHILD
                .iter()
                .any(|name| agent.eq_ignore_ascii_case(name))
            {
                fields.remove("agent");
            }
        }
        Ok(())
    }
}

impl ToolArguments for KillArguments {
    const ALIASES: Aliases = &[("name", "agent"), ("id", "agent"), ("target", "agent")];
}

impl ToolArguments for SendArguments {
    const ALIASES: Aliases = &[
        ("agent", "to"),
        ("id", "to"),
        ("target", "to"),
        ("recipient", "to"),
        ("content", "message"),
        ("text", "message"),
    ];
}

impl ToolArguments for WaitArguments {
    const ALIASES: Aliases = &[
        ("from_agents", "agents"),
        ("agent", "agents"),
        ("ids", "agents"),
        ("targets", "agents"),
        ("timeout_seconds", "timeout"),
        ("timeout_ms", MILLISECONDS),
    ];

    fn convert(fields: &mut Map<String, Value>) -> Result<(), String> {
        convert_timeout(fields, MOST_WAIT_SECONDS)
    }
}

impl ToolArguments for RecallArguments {
    const ALIASES: Aliases = &[
        ("pattern", "query"),
        ("q", "query"),
        ("text", "query"),
        ("count", "limit"),
    ];
}

impl AgentTool {
    const ALL: [Self; 5] = [Self::Fork, Self::Kill, Self::Send, Self::Wait, Self::Recall];

    /// Returns the facts about its calls.
    pub(crate) const fn facts(self) -> ToolFacts {
        match self {
            Self::Fork | Self::Kill | Self::Send => ToolFacts::ACTING,
            Self::Wait | Self::Recall => ToolFacts::READING,
        }
    }

    /// Returns the tool of this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
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

    /// Returns the specs of all these tools, for models.
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
                "Sends a message to another agent; a parent or child that idles works on it at once. A \
                 question ends the wait of a parent at once.",
                schema_of::<SendArguments>(),
            ),
            Self::Wait => (
                "Waits for messages of other agents. For each that you name it returns a report, a \
                 question or a failure with its text, or its state: idle, dead, running. A question \
                 ends the wait at once: answer it with `send`.",
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
            facts: self.facts(),
        }
    }

    /// Formats a call for people, with its resolved arguments.
    pub(crate) fn display_text(self, arguments: &str) -> String {
        let resolved = self.resolve(arguments).map(|(shown, _)| shown);
        resolved.unwrap_or_else(|| display_text(arguments))
    }

    /// Returns the remark for the model about arguments without effect.
    pub(crate) fn remark(self, arguments: &str) -> Option<String> {
        self.resolve(arguments).and_then(|(_, remark)| remark)
    }

    /// Returns the text for people and the remark of valid arguments.
    fn resolve(self, arguments: &str) -> Option<(String, Option<String>)> {
        fn parts<T: ToolArguments>(arguments: &str) -> Option<(String, Option<String>)> {
            let call = read::<T>(arguments).ok()?;
            Some((call.shown, call.remark))
        }
        match self {
            Self::Fork => parts::<ForkArguments>(arguments),
            Self::Kill => parts::<KillArguments>(arguments),
            Self::Send => parts::<SendArguments>(arguments),
            Self::Wait => parts::<WaitArguments>(arguments),
            Self::Recall => parts::<RecallArguments>(arguments),
        }
    }
}

#[cfg(test)]
mod tests;
