//! Encoded requests for inspection. Needs no key.

use ikigai_core::Request;
use ikigai_core::settings::ModelChoice;
use serde_json::Value;

use super::{Level, Registry};
use crate::dialect::{Dialect, Order};
use crate::dialects;
use crate::presets::{COMPATIBLE, preset};

impl Registry {
    /// Returns the body of a request to the model of the settings.
    ///
    /// In the dialect of its provider this is the sent body, byte for byte; in another one, the
    /// body for a server of that dialect.
    pub fn preview(
        &self,
        choice: &ModelChoice,
        request: &Request,
        conversation: &str,
        dialect: &dyn Dialect,
    ) -> Value {
        let provider = choice.provider.as_deref().unwrap_or_default();
        let name = choice.model.as_deref().unwrap_or_default();
        let catalogue = self.catalogue();
        let spec = catalogue.find(Some(provider), name);
        let level: Option<Level> = choice.level.as_deref().and_then(|level| level.parse().ok());
        let thinking = level
            .zip(spec)
            .and_then(|(level, spec)| spec.thinking_value(level))
            .map(|(_, value)| value);
        let usual = preset(provider).map_or(COMPATIBLE, |preset| preset.quirks);
        let configured = self.configured.get(provider);
        let limits = self.limits(provider, name, spec, dialect);
        dialect.encode(&Order {
            request,
            model: name,
            thinking: thinking.as_ref(),
            max_output: limits.output.unwrap_or(0),
            cache_key: conversation,
            quirks: configured.map_or(usual, |config| config.quirks(usual)),
        })
    }

    /// Returns the dialect of a name; `own` means that of the settings' provider.
    pub fn dialect(&self, name: &str, choice: &ModelChoice) -> Option<&'static dyn Dialect> {
        let own = self.dialect_of(choice.provider.as_deref().unwrap_or_default());
        dialects::by_name(if name == "own" { own } else { name })
    }
}
