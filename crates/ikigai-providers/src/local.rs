//! Model servers on this machine: probed on their well-known ports, offered, never chosen.

use std::time::Duration;

use serde_json::Value;

use crate::presets::{PRESETS, Preset, full_base};
use crate::transport::{Client, fetch::fetch};

/// Time limit of a probe: a server on this machine answers at once.
const DEADLINE: Duration = Duration::from_millis(300);

/// Largest number of models of a server that are reported.
const MOST_MODELS: usize = 50;

/// A server that answered with a list of models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalServer {
    /// Its preset.
    pub preset: &'static Preset,
    /// The models that it serves.
    pub models: Vec<String>,
}

/// Probes the loopback ports of known servers.
pub async fn look(client: &Client) -> Vec<LocalServer> {
    let mut found = Vec::new();
    for preset in PRESETS.iter().filter(|preset| preset.keys.is_empty()) {
        let url = format!("{}/models", full_base(preset.dialect, preset.base));
        let listed = fetch(client, &url, DEADLINE).await;
        if let Some(models) = listed.as_ref().and_then(models_of) {
            found.push(LocalServer { preset, models });
        }
    }
    found
}

/// Returns the ids of a list of models; none if the answer has another shape.
fn models_of(answer: &Value) -> Option<Vec<String>> {
    let models = answer.get("data")?.as_array()?;
    let ids = models.iter().take(MOST_MODELS);
    ids.map(|model| model.get("id")?.as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_list_of_models_is_an_answer_in_shape() {
        let cases = [
            (
                json!({ "data": [{ "id": "qwen3" }, { "id": "b" }] }),
                Some(vec!["qwen3", "b"]),
            ),
            (json!({ "data": [] }), Some(vec![])),
            (json!({ "data": [{ "name": "qwen3" }] }), None),
            (json!({ "data": "qwen3" }), None),
            (json!({ "models": [] }), None),
            (json!("hello"), None),
        ];

        for (answer, models) in cases {
            let models = models.map(|ids| ids.into_iter().map(str::to_owned).collect());
            assert_eq!(models_of(&answer), models, "{answer}");
        }
    }
}
