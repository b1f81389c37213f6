//! Windows and output limits of models: known, stated by the server, or assumed.

use super::Registry;
use crate::WindowSource;
use crate::catalogue::ModelSpec;
use crate::dialect::Dialect;
use crate::presets::preset;

/// Assumed window of a model that neither table nor server know.
const ASSUMED_WINDOW: u64 = 128_000;

/// Output reserve of a model whose limit is unknown.
const UNKNOWN_OUTPUT: u64 = 4_096;

/// Largest reserve for the output: every request's window is smaller by it.
const MOST_OUTPUT: u64 = 32_000;

/// Token limits of requests to a model and of its responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ModelLimits {
    /// Tokens of a request and its response together.
    window: u64,
    /// Tokens of these that are reserved for the response.
    pub(super) reserve: u64,
    /// Output limit that requests state; none: the server decides.
    pub(super) output: Option<u64>,
}

impl ModelLimits {
    /// Returns the tokens that a request may have.
    pub(super) fn request_tokens(&self) -> u64 {
        self.window.saturating_sub(self.reserve)
    }
}

impl Registry {
    /// Returns the window of a model, and its source.
    pub(super) fn window(
        &self,
        provider: &str,
        model: &str,
        spec: Option<&ModelSpec>,
    ) -> (u64, WindowSource) {
        let served = || self.lookups.found(provider, model);
        if let Some(known) = spec.and_then(|spec| spec.context_window) {
            (known, WindowSource::Known)
        } else if let Some(served) = served() {
            (served.tokens, WindowSource::Served)
        } else {
            (ASSUMED_WINDOW, WindowSource::Assumed)
        }
    }

    /// Returns the tokens that a request to a model may have.
    pub(super) fn request_tokens(
        &self,
        provider: &str,
        model: &str,
        spec: Option<&ModelSpec>,
    ) -> u64 {
        self.answer_limits(provider, model, spec).request_tokens()
    }

    /// Returns the limits of requests in a dialect.
    ///
    /// An output limit is sent only if it must be: without one the response can fill the window.
    pub(super) fn limits(
        &self,
        provider: &str,
        model: &str,
        spec: Option<&ModelSpec>,
        dialect: &dyn Dialect,
    ) -> ModelLimits {
        let limits = self.answer_limits(provider, model, spec);
        if limits.output.is_some() {
            return limits;
        }
        let is_known = self.max_output(provider, model, spec).is_some();
        let is_short = preset(provider).is_some_and(|preset| preset.short_answers);
        let is_sent = dialect.requires_max_output() || is_short && is_known;
        ModelLimits {
            output: is_sent.then_some(limits.reserve),
            ..limits
        }
    }

    /// Returns the limits with the output that the user configured, if any.
    fn answer_limits(&self, provider: &str, model: &str, spec: Option<&ModelSpec>) -> ModelLimits {
        let (window, _) = self.window(provider, model, spec);
        let configured = spec.and_then(|spec| spec.output_limit);
        let longest = configured.unwrap_or_else(|| {
            let most = self.max_output(provider, model, spec);
            most.unwrap_or(UNKNOWN_OUTPUT).min(MOST_OUTPUT)
        });
        let reserve = longest.min(window / 2);
        ModelLimits {
            window,
            reserve,
            output: configured.map(|configured| configured.min(reserve).max(1)),
        }
    }

    /// Returns the largest output that table, configuration or server state.
    fn max_output(&self, provider: &str, model: &str, spec: Option<&ModelSpec>) -> Option<u64> {
        let known = spec.and_then(|spec| spec.max_output);
        known.or_else(|| self.lookups.found(provider, model)?.max_output)
    }
}
