//! Settings of an agent: the fold of its own `fork` and `command` rows.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::json::{data_type, words};

data_type! {
    /// Which model answers.
    ModelChoice {
        /// Its provider.
        provider: String,
        /// Its name there.
        model: String,
        /// How much it thinks.
        level: String,
    }
}
data_type! {
    /// A pinned document.
    Pin {
        /// Where it is read.
        path: String,
        /// Hash of the bytes last read; none if it could not be read.
        hash: String,
    }
}
data_type! {
    /// A permission given for good.
    Rule {
        /// For which tool.
        tool: String,
        /// For which calls of it.
        pattern: String,
    }
}
data_type! {
    /// A spending cap.
    Spend {
        /// In dollars.
        usd: serde_json::Number,
        /// In tokens.
        tokens: u64,
    }
}
words! {
    /// What tools may do without asking.
    Approve {
        /// Reading only.
        Read,
        /// Everything else is asked.
        Ask,
        /// Writes inside the working directory are free.
        Edits,
        /// Everything is free.
        All,
    }
}
impl Approve {
    /// The word by which it is typed and stored.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Ask => "ask",
            Self::Edits => "edits",
            Self::All => "all",
        }
    }

    /// Rank of a mode: a wider one allows more.
    pub const fn width(self) -> u8 {
        match self {
            Self::Read => 0,
            Self::Ask => 1,
            Self::Edits => 2,
            Self::All => 3,
        }
    }

    /// The mode that allows less.
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
    /// What a user can set for an agent. Absent means the program's default.
    Settings {
        /// Which model answers.
        model: ModelChoice,
        /// What the agent is called.
        name: String,
        /// Where its tools run.
        workdir: String,
        /// Which tools it has; absent means all.
        toolset: Vec<String>,
        /// Documents after the system prompt.
        pins: Vec<Pin>,
        /// What tools may do without asking.
        approve: Approve,
        /// Permissions given for good.
        rules: Vec<Rule>,
        /// Size of the window in tokens.
        budget_tokens: u64,
        /// Spending cap of the agent and its descendants.
        spend: Spend,
    }
}

impl Settings {
    /// Takes over what `set` names. Null takes a setting back; a value of a wrong type is ignored.
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
    }

    /// These settings as the `set` of a `command` row.
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
