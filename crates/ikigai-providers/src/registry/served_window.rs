//! Lookups of windows at model servers, for models that the table does not know.
//!
//! Each model is looked up once, just before its first request, within a short deadline. Lookups go
//! to the address that requests go to, with the same headers, and to no other host.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ikigai_core::settings::ModelChoice;
use reqwest::Url;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::Registry;
use super::remote_model::KeySource;
use super::window_shapes::{
    ServedWindow, ServerKind, entry, entry_window, is_running_list, props_window, running_window,
    server_kind, shown_window,
};
use crate::demo::DEMO;
use crate::dialect::ends_in_version;
use crate::presets::preset;
use crate::transport::Client;
use crate::transport::fetch::{NoDocument, read};

/// Time limit of a lookup, and so the longest delay of a request.
const DEADLINE: Duration = Duration::from_millis(1500);

/// Largest number of lookups of one model: a server may be starting, or load the model with its
/// first request.
const MOST_TRIES: u32 = 3;

const OLLAMA_PORT: u16 = 11434;

/// Lookups of this process, by provider and model.
#[derive(Default)]
pub(super) struct WindowLookups(Mutex<HashMap<(String, String), Arc<WindowLookup>>>);

#[derive(Default)]
struct WindowLookup {
    /// Locked during a lookup, so that others wait for its result.
    gate: tokio::sync::Mutex<()>,
    state: Mutex<LookupState>,
}

#[derive(Clone, Copy, Default)]
struct LookupState {
    tries: u32,
    /// True if the server is not asked again.
    is_settled: bool,
    found: Option<ServedWindow>,
}

impl WindowLookups {
    fn of(&self, provider: &str, model: &str) -> Arc<WindowLookup> {
        let mut lookups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (provider.to_owned(), model.to_owned());
        Arc::clone(lookups.entry(key).or_default())
    }

    /// Returns the window that a server has stated for a model.
    pub(super) fn found(&self, provider: &str, model: &str) -> Option<ServedWindow> {
        let lookups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lookup = lookups.get(&(provider.to_owned(), model.to_owned()))?;
        lookup.state().found
    }
}

impl WindowLookup {
    fn state(&self) -> MutexGuard<'_, LookupState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks a server unless it was asked meanwhile.
    async fn run(&self, server: &ModelServer) {
        let _gate = self.gate.lock().await;
        let earlier = {
            let mut state = self.state();
            if state.is_settled {
                return;
            }
            // Counted before the answer: a dropped lookup counts too.
            state.tries += 1;
            state.found
        };
        let answer = match earlier {
            None => server.window().await,
            Some(earlier) => Ok(server.loaded_window().await.or(Some(earlier))),
        };
        let mut state = self.state();
        let may_change = match answer {
            Ok(window) => {
                state.found = window;
                window.is_some_and(|window| window.is_provisional)
            }
            Err(Unanswered) => true,
        };
        state.is_settled = !may_change || state.tries >= MOST_TRIES;
    }
}

/// Error of a server that does not answer, or not yet.
struct Unanswered;

/// Server of a model, with all parameters of a lookup.
struct ModelServer {
    client: Client,
    headers: Vec<(String, SecretString)>,
    dialect: &'static str,
    /// URL of requests, with its version.
    base: String,
    model: String,
    /// True for a provider's own service, which has only the URLs of its dialect.
    is_hosted: bool,
    /// True if name or port are Ollama's.
    is_ollama: bool,
}

impl Registry {
    /// Looks the window of a model up, unless it is known or was looked up.
    pub(super) async fn look_up_window(&self, choice: &ModelChoice) {
        let provider = choice.provider.as_deref().unwrap_or(DEMO);
        let model = choice.model.as_deref().unwrap_or_default();
        if provider == DEMO || model.is_empty() || self.has_window(provider, model) {
            return;
        }
        let lookup = self.lookups.of(provider, model);
        if lookup.state().is_settled {
            return;
        }
        let Some(server) = self.model_server(provider, model) else {
            return;
        };
        if timeout(DEADLINE, lookup.run(&server)).await.is_err() {
            lookup.state().is_settled = true;
        }
        let window = lookup.state().found.map(|window| window.tokens);
        tracing::debug!(provider, model, ?window, "asked for the window");
    }

    /// Returns true if table or configuration have the window of a model.
    fn has_window(&self, provider: &str, model: &str) -> bool {
        let catalogue = self.catalogue();
        let spec = catalogue.find(Some(provider), model);
        spec.is_some_and(|spec| spec.context_window.is_some())
    }

    /// Returns the server of a model; none if its key is missing or not yet printed.
    fn model_server(&self, provider: &str, model: &str) -> Option<ModelServer> {
        let reachable = self.reach(provider).ok()?;
        let key = match &reachable.key {
            None => None,
            Some(KeySource::Known(key)) => Some(key.clone()),
            Some(KeySource::Command(command)) => Some(command.printed()?.clone()),
        };
        let preset = preset(provider);
        let own_base = self.base_of(provider);
        let is_hosted =
            preset.is_some_and(|it| !it.keys.is_empty() && own_base.as_deref() == Some(it.base));
        let port = Url::parse(&reachable.base).ok().and_then(|url| url.port());
        Some(ModelServer {
            client: self.clients.get(provider).unwrap_or(&self.client).clone(),
            headers: reachable.headers(key.as_ref()),
            dialect: reachable.dialect.name(),
            model: model.to_owned(),
            is_hosted,
            is_ollama: provider == "ollama" || port == Some(OLLAMA_PORT),
            base: reachable.base,
        })
    }
}

impl ModelServer {
    /// Asks for the window, at one URL after the other until one states it.
    async fn window(&self) -> Result<Option<ServedWindow>, Unanswered> {
        if matches!(self.dialect, "messages" | "gemini") {
            let own = self.own_address().ok_or(Unanswered)?;
            if let Some(entry) = self.ask(&own).await?
                && let Some(window) = entry_window(&entry)
            {
                return Ok(Some(window));
            }
        }
        if self.dialect == "gemini" {
            return Ok(None);
        }
        let list = self.ask(&format!("{}/models", self.base)).await?;
        let entry = list.as_ref().and_then(|list| entry(list, &self.model));
        let stated = entry.and_then(entry_window);
        if self.is_hosted {
            return Ok(stated);
        }
        let kind = match entry.map_or(ServerKind::Unknown, server_kind) {
            ServerKind::Unknown if self.is_ollama => ServerKind::Ollama,
            // The window of any other server is in its list.
            ServerKind::Unknown if stated.is_some() => ServerKind::Listing,
            kind => kind,
        };
        let found = match kind {
            ServerKind::Listing => None,
            ServerKind::LlamaCpp => self.props().await,
            ServerKind::LmStudio => self.lm_studio().await,
            ServerKind::Ollama => self.ollama().await,
            ServerKind::Unknown => self.any_kind().await,
        };
        Ok(found.or(stated))
    }

    /// Tries one type of server after the other; only Ollama gets a POST.
    async fn any_kind(&self) -> Option<ServedWindow> {
        if let Some(window) = self.props().await {
            return Some(window);
        }
        if let Some(window) = self.lm_studio().await {
            return Some(window);
        }
        self.running().await?;
        self.ollama().await
    }

    /// Asks again for the window of a model that was not loaded.
    async fn loaded_window(&self) -> Option<ServedWindow> {
        match self.running().await {
            Some(running) => running_window(&running, &self.model),
            None => self.lm_studio().await,
        }
    }

    /// Asks llama.cpp.
    async fn props(&self) -> Option<ServedWindow> {
        let props = self.look("/props", None).await?;
        props_window(&props)
    }

    /// Asks LM Studio, whose own list has the loaded models.
    async fn lm_studio(&self) -> Option<ServedWindow> {
        let list = self.look("/api/v0/models", None).await?;
        entry_window(entry(&list, &self.model)?)
    }

    /// Asks Ollama: a parameter of the model, then the loaded window, then the largest.
    async fn ollama(&self) -> Option<ServedWindow> {
        let question = json!({"model": self.model});
        let shown = self.look("/api/show", Some(&question)).await;
        let shown = shown.as_ref().and_then(shown_window);
        if shown.is_some_and(|shown| !shown.is_provisional) {
            return shown;
        }
        let running = self.running().await;
        let loaded = running.and_then(|running| running_window(&running, &self.model));
        loaded.or(shown)
    }

    /// Returns Ollama's list of loaded models; none if the server is not Ollama.
    async fn running(&self) -> Option<Value> {
        let running = self.look("/api/ps", None).await?;
        is_running_list(&running).then_some(running)
    }

    /// Returns the URL of the model's own entry.
    fn own_address(&self) -> Option<String> {
        let mut url = Url::parse(&format!("{}/models", self.base)).ok()?;
        let name = self.model.strip_prefix("models/").unwrap_or(&self.model);
        url.path_segments_mut().ok()?.push(name);
        Some(url.into())
    }

    /// Returns the URL without its version, for paths outside of the dialect.
    fn root(&self) -> &str {
        match self.base.rsplit_once('/') {
            Some((root, _)) if ends_in_version(&self.base) => root,
            _ => &self.base,
        }
    }

    /// Reads the document at a path outside of the dialect, if there is one.
    async fn look(&self, path: &str, body: Option<&Value>) -> Option<Value> {
        let address = format!("{}{path}", self.root());
        read(&self.client, &address, &self.headers, body).await.ok()
    }

    /// Reads the document at a URL of the dialect; none if the server has none there.
    async fn ask(&self, address: &str) -> Result<Option<Value>, Unanswered> {
        match read(&self.client, address, &self.headers, None).await {
            Ok(document) => Ok(Some(document)),
            // The user may enter another key, and a starting server answers with such a status.
            Err(NoDocument::Unanswered(_) | NoDocument::Status(401 | 403 | 429 | 502..=504)) => {
                Err(Unanswered)
            }
            Err(NoDocument::Status(_) | NoDocument::Unreadable(_)) => Ok(None),
        }
    }
}
