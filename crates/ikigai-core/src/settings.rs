//! Settings of an agent: the fold of the agent's `fork` and `command` rows.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::AgentId;
use crate::json::{data_type, words};

data_type! {
    /// Model of an agent.
    ModelChoice {
        /// Its provider.
        provider: String,
        /// Its name there.
        model: String,
        /// Thinking level.
        level: String,
    }
}
data_type! {
    /// A pinned document.
    Pin {
        /// Path of the file.
        path: String,
        /// Hash of the bytes last read; none if it could not be read.
        hash: String,
        /// True if the user unpinned a file that is pinned by default.
        off: bool,
    }
}
data_type! {
    /// A permission that the user granted permanently.
    Rule {
        /// Name of the tool.
        tool: String,
        /// Pattern of the permitted calls.
        pattern: String,
    }
}
data_type! {
    /// A spending cap.
    Spend {
        /// Cap in dollars.
        usd: serde_json::Number,
        /// Cap in tokens.
        tokens: u64,
        /// Most running agents, this one included.
        agents: u64,
        /// Time from `since` on, in seconds.
        seconds: u64,
        /// Time at which it was set, in microseconds; written with `seconds`.
        since: i64,
        /// True if it covers this agent without its descendants.
        own: bool,
    }
}
data_type! {
    /// Git worktree in which an agent works.
    WorktreeSetting {
        /// The agent for which it was made; its descendants share it.
        agent: AgentId,
        /// Its directory.
        path: String,
        /// Git directory of its repository.
        repository: String,
        /// Top directory of the checkout that gets its changes.
        checkout: String,
        /// Commit from which it was made.
        base: String,
    }
}
words! {
    /// Approval mode: effects that tools may have without asking.
    Approve {
        /// Reading only; other calls are refused.
        Read,
        /// Every other effect needs approval.
        Ask,
        /// Writes inside the working directory need no approval.
        Edits,
        /// No effect needs approval.
        All,
    }
}
impl Approve {
    /// Returns the word for input and storage.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Ask => "ask",
            Self::Edits => "edits",
            Self::All => "all",
        }
    }

    /// Returns the rank of a mode: a wider one allows more.
    pub const fn width(self) -> u8 {
        match self {
            Self::Read => 0,
            Self::Ask => 1,
            Self::Edits => 2,
            Self::All => 3,
        }
    }

    /// Returns the mode that allows less.
    #[must_use]
    pub const fn narrower(self, other: Self) -> Self {
        if self.width() < other.width() {
            self
        } else {
            other
        }
    }
}

data_type! {
    /// Tools of servers that an agent is offered: a blob with their descriptions.
    StoredTools {
        /// Hash of the blob.
        hash: String,
        /// Its size.
        bytes: u64,
    }
}
data_type! {
    /// Settings of an agent. Absent means the program's default.
    Settings {
        /// Model of the agent.
        model: ModelChoice,
        /// Name of the agent.
        name: String,
        /// Working directory of its tools.
        workdir: String,
        /// Names of its tools; absent means all.
        toolset: Vec<String>,
        /// Documents after the system prompt.
        pins: Vec<Pin>,
        /// Approval mode.
        approve: Approve,
        /// Permanent permissions.
        rules: Vec<Rule>,
        /// Size of the window in tokens.
        budget_tokens: u64,
        /// Spending cap of the agent, with its descendants unless it says otherwise.
        spend: Spend,
        /// Git worktree in which it works.
        worktree: WorktreeSetting,
        /// Tools of servers that requests offer, as long as their prefix stays.
        tools: StoredTools,
    }
}

impl Settings {
    /// Merges the settings in `set`. Null resets a setting; a value of a wrong type is ignored.
    pub fn merge(&mut self, set: &Map<String, Value>) {
        merge_one(set, "model", &mut self.model);
        merge_one(set, "name", &mut self.name);
        merge_one(set, "workdir", &mut self.workdir);
        merge_one(set, "toolset", &mut self.toolset);
        merge_one(set, "pins", &mut self.pins);
        merge_one(set, "approve", &mut self.approve);
        merge_one(set, "rules", &mut self.rules);
        merge_one(set, "budget_tokens", &mut self.budget_tokens);
        merge_one(set, "spend", &mut self.spend);
        merge_one(set, "worktree", &mut self.worktree);
        merge_one(set, "tools", &mut self.tools);
    }

    /// Returns these settings as the `set` of a `command` row.
    pub fn as_set(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(map)) => map,
            _ => Map::new(),
        }
    }
}

fn merge_one<T: DeserializeOwned>(set: &Map<String, Value>, key: &str, slot: &mut Option<T>) {
    match set.get(key) {
        None => {}
        Some(Value::Null) => *slot = None,
        Some(value) => {
            if let Ok(value) = T::deserialize(value.clone()) {
                *slot = Some(value);
            }
        }
    }
}
