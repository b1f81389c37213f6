//! Descriptions of models for users.

use ikigai_core::settings::ModelChoice;

use super::Registry;
use crate::catalogue::{Level, ModelSpec};
use crate::demo::{DEMO, WINDOW_TOKENS};
use crate::presets::preset;
use crate::{Described, Offer, WindowSource};

impl Registry {
    pub(super) fn describe(&self, choice: &ModelChoice) -> Described {
        let provider = choice.provider.as_deref().unwrap_or_default();
        let model = choice.model.as_deref().unwrap_or_default();
        let title = match preset(provider) {
            Some(preset) => preset.title.to_owned(),
            None if provider == DEMO => "the built-in".to_owned(),
            None => provider.to_owned(),
        };
        let catalogue = self.catalogue();
        let spec = catalogue.find(Some(provider), model);
        let level = choice.level.as_deref().and_then(|word| word.parse().ok());
        let window = (provider != DEMO).then(|| self.window(provider, model, spec));
        Described {
            title,
            thinking: thinking(spec, level),
            context_tokens: window.map(|(window, _)| window),
            window_source: window.map_or(WindowSource::Known, |(_, source)| source),
        }
    }

    pub(super) fn offer(&self) -> Vec<Offer> {
        let catalogue = self.catalogue();
        let mut offers: Vec<Offer> = Vec::new();
        for spec in catalogue.models() {
            let same = offers.iter().find(|offer| offer.provider == spec.provider);
            let reachable = match same {
                Some(offer) => offer.reachable,
                None => self.is_reachable(&spec.provider),
            };
            offers.push(Offer {
                provider: spec.provider.clone(),
                model: spec.id.clone(),
                context_tokens: spec.context_window,
                price_in: spec.price_in,
                price_out: spec.price_out,
                levels: spec.levels().map(Level::word).collect(),
                reachable,
            });
        }
        offers.push(Offer {
            provider: DEMO.to_owned(),
            model: DEMO.to_owned(),
            context_tokens: Some(WINDOW_TOKENS),
            price_in: Some(0.0),
            price_out: Some(0.0),
            levels: Vec::new(),
            reachable: true,
        });
        offers
    }
}

/// Describes the thinking level in the program's and the wire's words: `low (budget: 4096)`.
fn thinking(spec: Option<&ModelSpec>, level: Option<Level>) -> Option<String> {
    let spec = spec?;
    if spec.thinking.is_none() {
        return Some("none".to_owned());
    }
    let Some(level) = level else {
        return Some("provider default".to_owned());
    };
    let (level, value) = spec.thinking_value(level)?;
    let word = match &value.value {
        serde_json::Value::String(word) => word.clone(),
        other => other.to_string(),
    };
    Some(format!("{level} ({}: {word})", value.style.word()))
}
