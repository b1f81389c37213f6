//! Built-in providers: dialect, URL and key variables.

use crate::dialect::{Quirks, ends_in_version};

/// Built-in description of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Name in settings.
    pub name: &'static str,
    /// Display name.
    pub title: &'static str,
    /// Name of its dialect.
    pub dialect: &'static str,
    /// Base URL.
    pub base: &'static str,
    /// Variables for its key, of which the first that is set wins; none for a local server.
    pub keys: &'static [&'static str],
    /// Variable that overrides the base URL.
    pub base_variable: Option<&'static str>,
    /// Differences of its server.
    pub quirks: Quirks,
    /// True if its server limits responses to a few thousand tokens by default.
    pub short_answers: bool,
}

const PLAIN: Quirks = Quirks {
    old_max_tokens: true,
    echoes_reasoning: false,
    cache_key: false,
    no_encrypted_reasoning: true,
    short_call_ids: false,
    alternating_roles: false,
};

const OWN: Quirks = Quirks {
    old_max_tokens: false,
    echoes_reasoning: false,
    cache_key: true,
    no_encrypted_reasoning: false,
    ..PLAIN
};

const ECHOING: Quirks = Quirks {
    echoes_reasoning: true,
    ..PLAIN
};

/// Mistral refuses call ids of other forms, and a user message after a result.
const STRICT: Quirks = Quirks {
    short_call_ids: true,
    alternating_roles: true,
    ..PLAIN
};

/// Quirks of a compatible server of which only the URL is known.
pub const COMPATIBLE: Quirks = PLAIN;

const fn local(name: &'static str, title: &'static str, base: &'static str) -> Preset {
    Preset {
        name,
        title,
        dialect: "chat",
        base,
        keys: &[],
        base_variable: None,
        quirks: PLAIN,
        short_answers: false,
    }
}

const fn remote(
    name: &'static str,
    title: &'static str,
    dialect: &'static str,
    base: &'static str,
    keys: &'static [&'static str],
    quirks: Quirks,
) -> Preset {
    Preset {
        name,
        title,
        dialect,
        base,
        keys,
        base_variable: None,
        quirks,
        short_answers: false,
    }
}

const fn short(preset: Preset) -> Preset {
    Preset {
        short_answers: true,
        ..preset
    }
}

/// The table: one line per provider.
pub const PRESETS: &[Preset] = &[
    Preset {
        base_variable: Some("ANTHROPIC_BASE_URL"),
        ..remote(
            "anthropic",
            "Anthropic",
            "messages",
            "https://api.anthropic.com",
            &["ANTHROPIC_API_KEY"],
            OWN,
        )
    },
    Preset {
        base_variable: Some("OPENAI_BASE_URL"),
        ..remote(
            "openai",
            "OpenAI",
            "responses",
            "https://api.openai.com",
            &["OPENAI_API_KEY"],
            OWN,
        )
    },
    Preset {
        base_variable: Some("GOOGLE_BASE_URL"),
        ..remote(
            "google",
            "Google",
            "gemini",
            "https://generativelanguage.googleapis.com/v1beta",
            &["GOOGLE_API_KEY", "GEMINI_API_KEY"],
            OWN,
        )
    },
    remote(
        "xai",
        "xAI",
        "responses",
        "https://api.x.ai",
        &["XAI_API_KEY"],
        OWN,
    ),
    short(remote(
        "deepseek",
        "DeepSeek",
        "chat",
        "https://api.deepseek.com",
        &["DEEPSEEK_API_KEY"],
        ECHOING,
    )),
    short(remote(
        "moonshotai",
        "Moonshot",
        "chat",
        "https://api.moonshot.ai",
        &["MOONSHOT_API_KEY"],
        ECHOING,
    )),
    short(remote(
        "zai",
        "Z.ai",
        "chat",
        "https://api.z.ai/api/paas/v4",
        &["ZAI_API_KEY"],
        ECHOING,
    )),
    short(remote(
        "alibaba",
        "Alibaba",
        "chat",
        "https://dashscope-intl.aliyuncs.com/compatible-mode",
        &["DASHSCOPE_API_KEY"],
        PLAIN,
    )),
    short(remote(
        "mistral",
        "Mistral",
        "chat",
        "https://api.mistral.ai",
        &["MISTRAL_API_KEY"],
        STRICT,
    )),
    remote(
        "openrouter",
        "OpenRouter",
        "chat",
        "https://openrouter.ai/api",
        &["OPENROUTER_API_KEY"],
        ECHOING,
    ),
    local("ollama", "Ollama", "http://127.0.0.1:11434"),
    local("llamacpp", "llama.cpp", "http://127.0.0.1:8080"),
    local("lmstudio", "LM Studio", "http://127.0.0.1:1234"),
    local("vllm", "vLLM", "http://127.0.0.1:8000"),
];

/// Finds a provider by its name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// Completes a base URL: no trailing slashes and, except for Gemini, a version.
pub fn full_base(dialect: &str, base: &str) -> String {
    let base = base.trim_end_matches('/');
    if dialect == "gemini" || ends_in_version(base) {
        base.to_owned()
    } else {
        format!("{base}/v1")
    }
}
