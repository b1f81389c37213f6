//! Providers that are known by name: how they are talked to, where, and with which key.

use crate::dialect::{Quirks, ends_in_version};

/// What is known of a provider before anything is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The name by which settings call it.
    pub name: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// How it is talked to.
    pub dialect: &'static str,
    /// Where it is.
    pub base: &'static str,
    /// The variables in which its key may be, first that is set wins; none for a local server.
    pub keys: &'static [&'static str],
    /// The variable that names another address.
    pub base_variable: Option<&'static str>,
    /// What its server does differently.
    pub quirks: Quirks,
    /// True if its server cuts answers at a few thousand tokens where a request states no limit.
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

/// Mistral refuses an id that is not its own kind, and a user who speaks after a result.
const STRICT: Quirks = Quirks {
    short_call_ids: true,
    alternating_roles: true,
    ..PLAIN
};

/// A compatible server, of which nothing is known but its address.
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

/// The table: a provider is one line.
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

/// A provider by its name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// A base address as requests need it: without trailing slashes and, but for Gemini, with a version.
pub fn full_base(dialect: &str, base: &str) -> String {
    let base = base.trim_end_matches('/');
    if dialect == "gemini" || ends_in_version(base) {
        base.to_owned()
    } else {
        format!("{base}/v1")
    }
}
