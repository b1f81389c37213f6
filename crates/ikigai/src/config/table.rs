//! Table of all configuration keys, with defaults and descriptions.

use std::fmt::Write as _;

/// Right of a project's file to set a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Project {
    /// None: the key is an error there.
    Refused,
    /// None: the key is ignored, because it is a preference of the user.
    Ignored,
    /// It overrides the value.
    Replaces,
    /// It adds entries.
    Adds,
    /// It lowers the number.
    Lowers,
}

/// Configuration key.
pub(crate) struct Key {
    /// Path: sections and name, separated by dots; `*` is any name.
    pub(crate) path: &'static str,
    /// Default in TOML; `- ` and a description if there is no default value.
    pub(crate) default: &'static str,
    /// Description.
    pub(crate) about: &'static str,
    /// Environment variable that overrides the files.
    pub(crate) variable: Option<&'static str>,
    /// Right of a project's file.
    pub(crate) project: Project,
}

const fn key(path: &'static str, default: &'static str, about: &'static str) -> Key {
    Key {
        path,
        default,
        about,
        variable: None,
        project: Project::Refused,
    }
}

impl Key {
    /// Returns true if a project's file can affect it.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.project, Project::Refused | Project::Ignored)
    }

    const fn variable(self, name: &'static str) -> Self {
        Self {
            variable: Some(name),
            ..self
        }
    }

    /// Returns a project's right to set it, in a word.
    pub(crate) fn project_word(&self) -> &'static str {
        match self.project {
            Project::Refused => "no",
            Project::Ignored => "no (ignored)",
            Project::Replaces => "yes",
            Project::Adds => "add",
            Project::Lowers => "lower",
        }
    }

    const fn project(self, project: Project) -> Self {
        Self { project, ..self }
    }

    /// Returns the description of a default that is not a value.
    pub(crate) fn without(&self) -> Option<&'static str> {
        self.default.strip_prefix("- ")
    }
}

/// All keys, in the order of display; keys of one section are adjacent.
pub(crate) const KEYS: &[Key] = &[
    key(
        "store",
        "- $XDG_DATA_HOME/ikigai/ikigai.db",
        "the database, as --db takes it",
    )
    .variable("IKIGAI_DB"),
    key(
        "model",
        "- one whose key is present, else demo",
        "the model of new agents: [PROVIDER:]NAME[/LEVEL]",
    )
    .project(Project::Replaces),
    key(
        "resume",
        "\"ask\"",
        "turns that stopped in the middle, at start: ask, auto or never",
    ),
    key(
        "on_hangup",
        "\"background\"",
        "agents at work when the terminal is gone: background or pause",
    ),
    key(
        "theme",
        "\"terminal\"",
        "colours: terminal, dark, light, daltonized or mono",
    )
    .project(Project::Ignored),
    key(
        "symbols",
        "- as the locale says",
        "signs on the screen: unicode or ascii",
    )
    .project(Project::Ignored),
    key("mouse", "true", "whether the screen takes the mouse").project(Project::Ignored),
    key(
        "notify",
        "\"osc9\"",
        "how you are told when you look elsewhere: osc9, bell, command … or off",
    ),
    key(
        "budget_tokens",
        "- what the model takes",
        "requests are kept below so many tokens",
    )
    .variable("IKIGAI_SLIDING_CONTEXT_TOKENS")
    .project(Project::Lowers),
    key(
        "compact_at",
        "80",
        "percent of that at which a summary is made; 0: never",
    )
    .project(Project::Replaces),
    key(
        "ca_file",
        "- SSL_CERT_FILE, if that is set",
        "certificates trusted beside the usual ones",
    ),
    key(
        "keys.*",
        "- as docs/keys.md says",
        "the action of a key: \"ctrl-o\" = \"newline\"",
    )
    .project(Project::Ignored),
    key(
        "context.shorten_at",
        "70",
        "percent of the budget above which old tool outputs are shortened",
    )
    .project(Project::Replaces),
    key("context.shorten_to", "50", "… down to this percent").project(Project::Replaces),
    key(
        "context.keep_outputs",
        "40",
        "percent of the budget that the newest tool outputs may fill and stay whole",
    )
    .project(Project::Replaces),
    key(
        "context.keep_messages",
        "20",
        "percent of the budget for your own messages, word for word, after a summary",
    )
    .project(Project::Replaces),
    key(
        "context.keep_messages_tokens",
        "20000",
        "… but no more tokens than this",
    )
    .project(Project::Replaces),
    key(
        "context.result_percent",
        "25",
        "percent of the budget for the results of one answer together",
    )
    .project(Project::Replaces),
    key(
        "context.result_kb",
        "32",
        "… but no more KB than this for each of them",
    )
    .project(Project::Replaces),
    key(
        "permissions.allow",
        "[]",
        "calls that are not asked about, by tool and pattern",
    ),
    key(
        "permissions.refuse",
        "[]",
        "calls that are refused, by tool and pattern",
    )
    .project(Project::Adds),
    key(
        "sandbox.enabled",
        "true",
        "whether processes of tools are confined",
    ),
    key(
        "sandbox.network",
        "false",
        "whether they may use the network",
    ),
    key(
        "sandbox.hidden",
        "[]",
        "what they cannot read, beside keys and the store",
    )
    .project(Project::Adds),
    key(
        "sandbox.pass_env",
        "[]",
        "variables they get although these look like secrets",
    ),
    key("sandbox.keep_variables", "[]", "older name of pass_env"),
    key(
        "web.private_addresses",
        "false",
        "whether web_fetch may ask this machine and its network",
    ),
    key("limits.requests", "200", "requests of one turn").project(Project::Lowers),
    key("limits.calls", "1000", "calls of one turn").project(Project::Lowers),
    key("limits.minutes", "480", "minutes of one turn").project(Project::Lowers),
    key("agents.depth", "8", "generations below a root"),
    key("agents.children", "100", "living children of one agent"),
    key("agents.family", "1000", "living agents below one root"),
    key(
        "agents.requests",
        "16",
        "requests of one process at the same time",
    ),
    key(
        "providers.*.base_url",
        "- the usual address",
        "where the server is",
    ),
    key(
        "providers.*.dialect",
        "- the usual one, else chat",
        "responses, chat, messages or gemini",
    ),
    key(
        "providers.*.key_env",
        "- the usual variable",
        "the variable that holds the key",
    ),
    key(
        "providers.*.key_command",
        "- none",
        "a command that prints the key",
    ),
    key(
        "providers.*.headers",
        "- none",
        "further headers of requests",
    ),
    key("providers.*.connect", "10", "seconds for a connection"),
    key(
        "providers.*.first_byte",
        "120",
        "seconds until an answer begins",
    ),
    key(
        "providers.*.idle",
        "120",
        "seconds between two pieces of it",
    ),
    key(
        "providers.*.ca_file",
        "- the one for all",
        "certificates trusted beside the usual ones",
    ),
    key(
        "providers.*.short_call_ids",
        "- as the provider needs",
        "chat: whether ids of calls are nine characters",
    ),
    key(
        "providers.*.alternating_roles",
        "- as the provider needs",
        "chat: whether neighbours of one role are sent as one",
    ),
    key(
        "models.*.context_window",
        "- as in the table, or as its server states",
        "tokens that the model takes",
    )
    .project(Project::Lowers),
    key(
        "models.*.max_output",
        "- as its server decides",
        "tokens of its longest answer",
    )
    .project(Project::Lowers),
    key(
        "models.*.price_in",
        "- as in the table",
        "dollars for a million tokens that it reads",
    ),
    key(
        "models.*.price_out",
        "- as in the table",
        "… that it writes",
    ),
    key(
        "models.*.price_cache_read",
        "- as in the table",
        "… that come from its cache",
    ),
    key(
        "models.*.price_cache_write",
        "- as in the table",
        "… that go into its cache",
    ),
];

/// Returns the list of keys for `--help`.
pub(crate) fn help() -> String {
    let mut text = String::from("Keys, what holds if nobody says anything, and what they mean:\n");
    for key in KEYS {
        let default = key.without().unwrap_or(key.default);
        let _ = write!(text, "\n  {:<29} {default}\n      {}", key.path, key.about);
        if let Some(variable) = key.variable {
            let _ = write!(text, "; {variable} comes first");
        }
        let _ = write!(text, " [project: {}]", key.project_word());
    }
    text.push_str(
        "\n\nThey are in $XDG_CONFIG_HOME/ikigai/config.toml (~/.config/ikigai/config.toml), then in\n\
         .ikigai/config.toml of the project, which may forbid more and allow nothing. With examples:\n\
         docs/configuration.md, docs/providers.md.",
    );
    text
}

#[cfg(test)]
mod tests;
