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
    /// It removes hosts.
    Narrows,
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
            Project::Narrows => "narrow",
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
        "database: PATH, sqlite:PATH or postgres://…",
    )
    .variable("IKIGAI_DB"),
    key(
        "model",
        "- the first provider with a key, else demo",
        "model of new agents: [PROVIDER:]NAME[/LEVEL]",
    )
    .project(Project::Replaces),
    key(
        "resume",
        "\"ask\"",
        "interrupted turns at start: ask (list them), auto (continue) or never (ignore)",
    ),
    key(
        "on_hangup",
        "\"background\"",
        "when the terminal closes: background (keep working) or pause",
    ),
    key(
        "theme",
        "\"terminal\"",
        "colours: terminal, dark, light, daltonized or mono",
    )
    .project(Project::Ignored),
    key(
        "symbols",
        "- from the locale",
        "symbols on the screen: unicode or ascii",
    )
    .project(Project::Ignored),
    key(
        "mouse",
        "true",
        "use the mouse; false: leave it to the terminal",
    )
    .project(Project::Ignored),
    key(
        "notify",
        "\"osc9\"",
        "notifications while the terminal is not focused: osc9, bell, off or command PROGRAM",
    ),
    key(
        "budget_tokens",
        "- the model's context window",
        "maximum tokens of a request",
    )
    .variable("IKIGAI_SLIDING_CONTEXT_TOKENS")
    .project(Project::Lowers),
    key(
        "compact_at",
        "80",
        "summarise the conversation at this percent of the budget; 0: never",
    )
    .project(Project::Replaces),
    key(
        "ca_file",
        "- SSL_CERT_FILE, if set",
        "additional trusted certificates",
    ),
    key(
        "user.name",
        "- the login name",
        "your name as author in a local store; on a server it is your role",
    ),
    key(
        "keys.*",
        "- see docs/keys.md",
        "key binding: \"ctrl-o\" = \"newline\"",
    )
    .project(Project::Ignored),
    key(
        "context.shorten_at",
        "70",
        "shorten old tool outputs above this percent of the budget",
    )
    .project(Project::Replaces),
    key("context.shorten_to", "50", "… down to this percent").project(Project::Replaces),
    key(
        "context.keep_outputs",
        "40",
        "keep the newest tool outputs whole, up to this percent of the budget",
    )
    .project(Project::Replaces),
    key(
        "context.keep_messages",
        "20",
        "keep your messages verbatim after a summary, up to this percent of the budget",
    )
    .project(Project::Replaces),
    key(
        "context.keep_messages_tokens",
        "20000",
        "… and at most this many tokens",
    )
    .project(Project::Replaces),
    key(
        "context.result_percent",
        "25",
        "all tool results of one answer, at most this percent of the budget",
    )
    .project(Project::Replaces),
    key(
        "context.result_kb",
        "32",
        "… and each result at most this many KB",
    )
    .project(Project::Replaces),
    key(
        "permissions.allow",
        "[]",
        "calls to allow without asking: tool and pattern",
    ),
    key(
        "permissions.refuse",
        "[]",
        "calls to refuse: tool and pattern",
    )
    .project(Project::Adds),
    key("sandbox.enabled", "true", "run tool processes in a sandbox"),
    key(
        "sandbox.network",
        "false",
        "network access in the sandbox: true, or a list of hosts such as `*.example.com`",
    )
    .project(Project::Narrows),
    key(
        "sandbox.writable",
        "[]",
        "paths that tools can write, besides the working directory",
    ),
    key(
        "sandbox.loopback_ports",
        "[]",
        "ports on 127.0.0.1 and ::1 that tools can connect to, besides their own",
    ),
    key(
        "sandbox.hidden",
        "[]",
        "paths that tools cannot access, besides API keys and the store",
    )
    .project(Project::Adds),
    key(
        "sandbox.pass_env",
        "[]",
        "environment variables to pass to tools although they look like secrets",
    ),
    key("sandbox.keep_variables", "[]", "old name of pass_env"),
    key(
        "web.private_addresses",
        "false",
        "let web_fetch access this machine and the local network",
    ),
    key(
        "web.searxng",
        "\"\"",
        "address of a SearXNG server that web_search uses",
    ),
    key("limits.requests", "200", "maximum requests per turn").project(Project::Lowers),
    key("limits.calls", "1000", "maximum tool calls per turn").project(Project::Lowers),
    key("limits.minutes", "480", "maximum minutes per turn").project(Project::Lowers),
    key(
        "limits.process_hours",
        "24",
        "maximum hours of a background process",
    )
    .project(Project::Lowers),
    key(
        "agents.depth",
        "8",
        "maximum generations below a root agent",
    ),
    key("agents.children", "100", "maximum live children per agent"),
    key("agents.family", "1000", "maximum live agents per root"),
    key(
        "agents.requests",
        "16",
        "maximum parallel requests per process",
    ),
    key("providers.*.base_url", "- built in", "URL of the server"),
    key(
        "providers.*.dialect",
        "- built in, else chat",
        "API: responses, chat, messages or gemini",
    ),
    key(
        "providers.*.key_env",
        "- built in",
        "environment variable with the API key",
    ),
    key(
        "providers.*.key_command",
        "- none",
        "command that prints the API key",
    ),
    key("providers.*.headers", "- none", "additional HTTP headers"),
    key("providers.*.connect", "10", "connection timeout in seconds"),
    key(
        "providers.*.first_byte",
        "120",
        "timeout for the start of an answer, in seconds",
    ),
    key(
        "providers.*.idle",
        "120",
        "timeout between two parts of an answer, in seconds",
    ),
    key(
        "providers.*.ca_file",
        "- the global ca_file",
        "additional trusted certificates",
    ),
    key(
        "providers.*.short_call_ids",
        "- depends on the provider",
        "chat: use tool call ids of nine characters",
    ),
    key(
        "providers.*.alternating_roles",
        "- depends on the provider",
        "chat: merge consecutive messages of one role",
    ),
    key(
        "models.*.context_window",
        "- built-in table, else from the server",
        "context window in tokens",
    )
    .project(Project::Lowers),
    key(
        "models.*.max_output",
        "- decided by the server",
        "maximum tokens of an answer",
    )
    .project(Project::Lowers),
    key(
        "models.*.images",
        "- built-in table, else false",
        "true: the model takes images",
    ),
    key(
        "models.*.price_in",
        "- built-in table",
        "$ per million input tokens",
    ),
    key(
        "models.*.price_out",
        "- built-in table",
        "$ per million output tokens",
    ),
    key(
        "models.*.price_cache_read",
        "- built-in table",
        "$ per million tokens read from the cache",
    ),
    key(
        "models.*.price_cache_write",
        "- built-in table",
        "$ per million tokens written to the cache",
    ),
];

/// Returns the list of keys for `--help`.
pub(crate) fn help() -> String {
    let mut text = String::from("Settings, defaults and meaning:\n");
    for key in KEYS {
        let default = key.without().unwrap_or(key.default);
        let _ = write!(text, "\n  {:<29} {default}\n      {}", key.path, key.about);
        if let Some(variable) = key.variable {
            let _ = write!(text, "; {variable} overrides it");
        }
        let _ = write!(text, " [project: {}]", key.project_word());
    }
    text.push_str(
        "\n\nYour config:    $XDG_CONFIG_HOME/ikigai/config.toml (~/.config/ikigai/config.toml)\n\
         Project config: .ikigai/config.toml in the project; it can only restrict: [project: …]\n\
         says what it may do with a setting.\n\
         Examples: docs/configuration.md, docs/providers.md",
    );
    text
}

#[cfg(test)]
mod tests;
