//! Windows in the answers of model servers: lists of models, `/props`, `/api/show`, `/api/ps`.

use serde_json::Value;

use crate::catalogue::PLAUSIBLE_WINDOWS;

/// Fields with the window that a server has loaded, best first.
const LOADED: &[&str] = &["/loaded_context_length", "/meta/n_ctx", "/n_ctx"];

/// Fields with the window that a server states for a model, best first.
const STATED: &[&str] = &[
    "/max_model_len",
    "/context_length",
    "/context_window",
    "/max_context_length",
    "/max_input_tokens",
    "/inputTokenLimit",
    "/metadata/context_length",
];

/// Field with the window of a model's training, which its server may not offer.
const TRAINED: &str = "/meta/n_ctx_train";

/// Fields with the output limit of a model.
const OUTPUTS: &[&str] = &[
    "/outputTokenLimit",
    "/top_provider/max_completion_tokens",
    "/max_completion_tokens",
    "/max_output_tokens",
];

/// Limits of a model as its server states them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServedWindow {
    /// Input and output tokens together.
    pub(super) tokens: u64,
    /// Output limit, if the server states it.
    pub(super) max_output: Option<u64>,
    /// True if the server can still load the model with a smaller window.
    pub(super) is_provisional: bool,
}

impl ServedWindow {
    fn of(tokens: u64) -> Self {
        Self {
            tokens,
            max_output: None,
            is_provisional: false,
        }
    }
}

/// Software of a model server, as far as its list of models shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerKind {
    LlamaCpp,
    LmStudio,
    Ollama,
    /// A server whose list has all it knows.
    Listing,
    Unknown,
}

/// Reads a plausible number of tokens; none for texts, fractions and negative numbers.
fn tokens(value: Option<&Value>) -> Option<u64> {
    let value = value?;
    let whole = || {
        let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
        format!("{number:.0}").parse().ok()
    };
    let tokens = value.as_u64().or_else(whole);
    tokens.filter(|tokens| PLAUSIBLE_WINDOWS.contains(tokens))
}

/// Returns the entry of a model in a list of models.
///
/// A server with a single model serves it under any name.
pub(super) fn entry<'a>(list: &'a Value, model: &str) -> Option<&'a Value> {
    let entries = list.get("data").or_else(|| list.get("models"))?;
    let entries = entries.as_array()?;
    let named: Vec<_> = entries.iter().filter(|it| is_named(it, model)).collect();
    // LM Studio can list a model twice, loaded and not.
    let is_loaded = |entry: &&&Value| LOADED.iter().any(|path| entry.pointer(path).is_some());
    let named = named.iter().find(is_loaded).or(named.first());
    let single = || entries.first().filter(|_| entries.len() == 1);
    named.copied().or_else(single)
}

fn is_named(entry: &Value, model: &str) -> bool {
    let fields = ["id", "name", "model"];
    let names = fields.iter().filter_map(|field| entry.get(field)?.as_str());
    let bare = |name: &str| {
        let name = name.strip_prefix("models/").unwrap_or(name);
        name.strip_suffix(":latest").unwrap_or(name).to_owned()
    };
    names.into_iter().any(|name| bare(name) == bare(model))
}

/// Returns the limits in the entry of a model.
pub(super) fn entry_window(entry: &Value) -> Option<ServedWindow> {
    let at = |paths: &[&str]| paths.iter().find_map(|path| tokens(entry.pointer(path)));
    let loaded = at(LOADED);
    // OpenRouter states the largest window first, and that of the provider it routes to below.
    let routed = tokens(entry.pointer("/top_provider/context_length"));
    let stated = at(STATED);
    let stated = stated.map_or(routed, |stated| {
        Some(routed.map_or(stated, |routed| routed.min(stated)))
    });
    let trained = || tokens(entry.pointer(TRAINED));
    let window = loaded.or(stated).or_else(trained)?;
    let whole = |path: &&str| entry.pointer(path)?.as_u64();
    // In other lists `max_tokens` can mean anything; Anthropic states it with the input.
    let by_anthropic = || entry.get("max_input_tokens").and(whole(&"/max_tokens"));
    let max_output = OUTPUTS.iter().find_map(whole).or_else(by_anthropic);
    Some(ServedWindow {
        max_output: max_output.filter(|tokens| *tokens > 0),
        is_provisional: loaded.is_none() && entry["state"] == "not-loaded",
        ..ServedWindow::of(window)
    })
}

/// Returns the software that the entry of a model shows.
pub(super) fn server_kind(entry: &Value) -> ServerKind {
    match entry.get("owned_by").and_then(Value::as_str) {
        Some("llamacpp") => ServerKind::LlamaCpp,
        Some("library") => ServerKind::Ollama,
        Some("organization_owner") => ServerKind::LmStudio,
        Some("vllm" | "sglang") => ServerKind::Listing,
        _ if entry.pointer("/meta/n_ctx_train").is_some() => ServerKind::LlamaCpp,
        _ => ServerKind::Unknown,
    }
}

/// Returns the window of llama.cpp's `/props`: that of one slot.
pub(super) fn props_window(props: &Value) -> Option<ServedWindow> {
    let places = ["/default_generation_settings/n_ctx", "/n_ctx"];
    let mut places = places.iter();
    let window = places.find_map(|path| tokens(props.pointer(path)));
    window.map(ServedWindow::of)
}

/// Returns true if a document is Ollama's `/api/ps`.
pub(super) fn is_running_list(document: &Value) -> bool {
    document.get("models").is_some_and(Value::is_array)
}

/// Returns the window of a model that Ollama's `/api/ps` lists as loaded.
pub(super) fn running_window(running: &Value, model: &str) -> Option<ServedWindow> {
    let mut models = running.get("models")?.as_array()?.iter();
    let named = models.find(|entry| is_named(entry, model))?;
    tokens(named.get("context_length")).map(ServedWindow::of)
}

/// Returns the window of Ollama's `/api/show`: its parameter `num_ctx`, else the largest.
pub(super) fn shown_window(shown: &Value) -> Option<ServedWindow> {
    let info = shown.get("model_info").and_then(Value::as_object);
    let architecture = info.and_then(|info| info.get("general.architecture")?.as_str());
    let own = architecture.map(|name| format!("{name}.context_length"));
    let trained = info.and_then(|info| {
        let mut lengths = info.iter().filter(|(name, _)| match &own {
            Some(own) => *name == own,
            None => name.ends_with(".context_length"),
        });
        lengths.find_map(|(_, value)| tokens(Some(value)))
    });
    let parameters = shown.get("parameters").and_then(Value::as_str);
    let configured = parameters.unwrap_or_default().lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let number = words
            .next()
            .filter(|name| *name == "num_ctx")
            .and(words.next())?;
        number
            .parse()
            .ok()
            .filter(|tokens| PLAUSIBLE_WINDOWS.contains(tokens))
    });
    match configured {
        Some(configured) => Some(ServedWindow::of(
            trained.map_or(configured, |trained| trained.min(configured)),
        )),
        None => trained.map(|trained| ServedWindow {
            is_provisional: true,
            ..ServedWindow::of(trained)
        }),
    }
}

#[cfg(test)]
mod tests;
