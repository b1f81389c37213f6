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
    /// Right of a project's file.
    pub(crate) project: Project,
}

impl Key {
    /// Returns true if a project's file can affect it.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.project, Project::Refused | Project::Ignored)
    }

    /// Returns the environment variable that overrides the files.
    pub(crate) fn variable(&self) -> Option<&'static str> {
        match self.path {
            "store" => Some("IKIGAI_DB"),
            "budget_tokens" => Some("IKIGAI_SLIDING_CONTEXT_TOKENS"),
            _ => None,
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

    /// Returns the description of a default that is not a value.
    pub(crate) fn without(&self) -> Option<&'static str> {
        self.default.strip_prefix("- ")
    }
}

/// Defines the table: path, default, right of a project, description.
macro_rules! keys {
    ($($path:literal $default:literal $project:ident $about:literal)+) => {
        /// All keys, in the order of display; keys of one section are adjacent.
        pub(crate) const KEYS: &[Key] = &[$(Key {
            path: $path,
            default: $default,
            about: $about,
            project: Project::$project,
        }),+];
    };
}

keys! {
    "store" "- $XDG_DATA_HOME/ikigai/ikigai.db" Refused "database: PATH, sqlite:PATH or postgres://…"
    "model" "- the first provider with a key, else demo" Replaces "model of new agents: [PROVIDER:]NAME[/LEVEL]"
    "resume" "\"ask\"" Refused "interrupted turns at start: ask (list them), auto (continue) or never (ignore)"
    "undo" "\"ask\"" Refused "what /undo, /rewind and /redo take back: ask (list files first), conversation (leave files) or files (restore them)"
    "on_hangup" "\"background\"" Refused "when the terminal closes: background (keep working) or pause"
    "theme" "\"terminal\"" Ignored "colours: terminal, dark, light, daltonized or mono"
    "symbols" "- from the locale" Ignored "symbols on the screen: unicode or ascii"
    "mouse" "true" Ignored "use the mouse; false: leave it to the terminal"
    "notify" "\"osc9\"" Refused "notifications while the terminal is not focused: osc9, bell, off or command PROGRAM"
    "program_status" "\"auto\"" Ignored "report working, waiting or done to the terminal (OSC 7501): auto (if it answers), on or off"
    "budget_tokens" "- the model's context window" Lowers "maximum tokens of a request"
    "compact_at" "80" Replaces "summarise the conversation at this percent of the budget; 0: never"
    "ca_file" "- SSL_CERT_FILE, if set" Refused "additional trusted certificates"
    "user.name" "- the login name" Refused "your name as author in a local store; on a server it is your role"
    "keys.*" "- see docs/keys.md" Ignored "key binding: \"ctrl-o\" = \"newline\""
    "context.shorten_at" "70" Replaces "shorten old tool outputs above this percent of the budget"
    "context.shorten_to" "50" Replaces "… down to this percent"
    "context.keep_outputs" "40" Replaces "keep the newest tool outputs whole, up to this percent of the budget"
    "context.keep_messages" "20" Replaces "keep your messages verbatim after a summary, up to this percent of the budget"
    "context.keep_messages_tokens" "20000" Replaces "… and at most this many tokens"
    "context.result_percent" "25" Replaces "all tool results of one answer, at most this percent of the budget"
    "context.result_kb" "32" Replaces "… and each result at most this many KB"
    "permissions.allow" "[]" Refused "calls to allow without asking: tool and pattern"
    "permissions.refuse" "[]" Adds "calls to refuse: tool and pattern"
    "sandbox.enabled" "true" Refused "run tool processes in a sandbox"
    "sandbox.network" "false" Narrows "network access in the sandbox: true, or a list of hosts such as `*.example.com`"
    "sandbox.writable" "[]" Refused "paths that tools can write, besides the working directory"
    "sandbox.loopback_ports" "[]" Refused "ports on 127.0.0.1 and ::1 that tools can connect to, besides their own"
    "sandbox.hidden" "[]" Adds "paths that tools cannot access, besides API keys and the store"
    "sandbox.pass_env" "[]" Refused "environment variables to pass to tools although they look like secrets"
    "sandbox.keep_variables" "[]" Refused "old name of pass_env"
    "web.private_addresses" "false" Refused "let web_fetch access this machine and the local network"
    "web.searxng" "\"\"" Refused "address of a SearXNG server that web_search uses"
    "limits.requests" "200" Lowers "maximum requests per turn"
    "limits.calls" "1000" Lowers "maximum tool calls per turn"
    "limits.minutes" "480" Lowers "maximum minutes per turn"
    "limits.process_hours" "24" Lowers "maximum hours of a background process"
    "agents.depth" "8" Refused "maximum generations below a root agent"
    "agents.children" "100" Refused "maximum live children per agent"
    "agents.family" "1000" Refused "maximum live agents per root"
    "agents.requests" "16" Refused "maximum parallel requests per process"
    "agents.explore_model" "- the parent's model" Refused "model of children that only explore: [PROVIDER:]NAME[/LEVEL]"
    "providers.*.base_url" "- built in" Refused "URL of the server"
    "providers.*.dialect" "- built in, else chat" Refused "API: responses, chat, messages or gemini"
    "providers.*.key_env" "- built in" Refused "environment variable with the API key"
    "providers.*.key_command" "- none" Refused "command that prints the API key"
    "providers.*.headers" "- none" Refused "additional HTTP headers"
    "providers.*.connect" "10" Refused "connection timeout in seconds"
    "providers.*.first_byte" "120" Refused "timeout for the start of an answer, in seconds"
    "providers.*.idle" "120" Refused "timeout between two parts of an answer, in seconds"
    "providers.*.ca_file" "- the global ca_file" Refused "additional trusted certificates"
    "providers.*.short_call_ids" "- depends on the provider" Refused "chat: use tool call ids of nine characters"
    "providers.*.alternating_roles" "- depends on the provider" Refused "chat: merge consecutive messages of one role"
    "mcp.*.command" "- none" Refused "program of a local MCP server (docs/mcp.md)"
    "mcp.*.args" "[]" Refused "its arguments"
    "mcp.*.env" "- none" Refused "its environment variables; ${NAME} is one of yours"
    "mcp.*.cwd" "- the agent's directory" Refused "its working directory"
    "mcp.*.url" "- none" Refused "address of a remote MCP server"
    "mcp.*.type" "- from command or url" Refused "transport: stdio or http"
    "mcp.*.headers" "- none" Refused "additional HTTP headers; ${NAME} is one of your variables"
    "mcp.*.bearer_token_env_var" "- none" Refused "environment variable with the token"
    "mcp.*.startup_timeout" "30" Refused "seconds for the start"
    "mcp.*.tool_timeout" "120" Refused "seconds for a call"
    "mcp.*.enabled" "true" Refused "use the server"
    "mcp.*.disabled" "false" Refused "other programs' word for enabled = false"
    "mcp.*.required" "false" Refused "let the first request wait for the start"
    "mcp.*.enabled_tools" "- all" Refused "the only tools to offer"
    "mcp.*.disabled_tools" "[]" Refused "tools not to offer"
    "mcp.*.sandbox" "true" Refused "run a local server in the sandbox"
    "mcp.*.network" "true" Refused "network access in its sandbox"
    "mcp.*.writable" "[]" Refused "paths that it can write, besides the working directory"
    "models.*.context_window" "- built-in table, else from the server" Lowers "context window in tokens"
    "models.*.max_output" "- decided by the server" Lowers "maximum tokens of an answer"
    "models.*.images" "- built-in table, else false" Refused "true: the model takes images"
    "models.*.price_in" "- built-in table" Refused "$ per million input tokens"
    "models.*.price_out" "- built-in table" Refused "$ per million output tokens"
    "models.*.price_cache_read" "- built-in table" Refused "$ per million tokens read from the cache"
    "models.*.price_cache_write" "- built-in table" Refused "$ per million tokens written to the cache"
}

/// Returns the list of keys for `--help`.
pub(crate) fn help() -> String {
    let mut text = String::from("Settings, defaults and meaning:\n");
    for key in KEYS {
        let default = key.without().unwrap_or(key.default);
        let _ = write!(text, "\n  {:<29} {default}\n      {}", key.path, key.about);
        if let Some(variable) = key.variable() {
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
