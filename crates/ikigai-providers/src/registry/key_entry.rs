//! Typed keys and local servers.

use std::sync::PoisonError;

use super::Registry;
use super::remote_model::request_headers;
use crate::credentials::CredentialsError;
use crate::keys::{DEADLINE, KeyError, StoredKey, TypedKey, count_models};
use crate::presets::{full_base, preset};
use crate::transport::fetch::{NoDocument, fetch_with};
use crate::{credentials, dialects, local};

impl Registry {
    pub(super) async fn take_typed(
        &self,
        provider: &str,
        key: &TypedKey,
    ) -> Result<StoredKey, KeyError> {
        // Recorded before it is sent, so that every echo of it is redacted.
        self.remember(key);
        let file = self.credentials.as_deref().ok_or(KeyError::NoFile)?;
        let models = self.try_key(provider, key).await?;
        let (path, name, secret) = (file.to_owned(), provider.to_owned(), key.secret().clone());
        let write = move || credentials::write_file(&path, &name, &secret);
        let written = tokio::task::spawn_blocking(write).await;
        written.map_err(|error| CredentialsError::Write {
            path: file.to_owned(),
            source: error.into(),
        })??;
        let catalogue = self.catalogue();
        let mut known = catalogue.models().iter();
        let model = known.find(|spec| spec.provider == provider && spec.tools);
        Ok(StoredKey {
            title: preset(provider)
                .map_or(provider, |preset| preset.title)
                .to_owned(),
            models,
            model: model.map(|spec| format!("{provider}:{}", spec.id)),
            file: file.to_owned(),
            hidden_by: self.before_file(provider),
        })
    }

    fn remember(&self, key: &TypedKey) {
        let mut typed = self.typed.lock().unwrap_or_else(PoisonError::into_inner);
        typed.push(key.secret().clone());
    }

    /// Returns the number of models that the provider lists for this key.
    async fn try_key(&self, provider: &str, key: &TypedKey) -> Result<usize, KeyError> {
        let unknown = || KeyError::NoProvider(provider.to_owned());
        let is_configured = self.configured.contains_key(provider);
        let takes_key = preset(provider).is_some_and(|preset| !preset.keys.is_empty());
        if !takes_key && !is_configured {
            return Err(unknown());
        }
        let base = self.base_of(provider).ok_or_else(unknown)?;
        let dialect = dialects::by_name(self.dialect_of(provider)).ok_or_else(unknown)?;
        let config = self.configured.get(provider);
        let further = config.map(|config| config.headers.clone());
        let headers = request_headers(dialect, Some(key.secret()), &further.unwrap_or_default());
        let url = format!("{}/models", full_base(dialect.name(), &base));
        let client = self.clients.get(provider).unwrap_or(&self.client);
        let answer = fetch_with(client, &url, &headers, DEADLINE).await;
        let answer = answer.map_err(|why| KeyError::of(provider, why))?;
        let no_list = || NoDocument::Unreadable("the answer is not a list of models".to_owned());
        count_models(&answer).ok_or_else(|| KeyError::of(provider, no_list()))
    }

    /// Returns the source of the key that takes precedence over the file, if any.
    fn before_file(&self, provider: &str) -> Option<String> {
        let config = self.configured.get(provider);
        let own = config.and_then(|config| config.key_env.as_deref());
        let usual = preset(provider).map_or(&[][..], |preset| preset.keys);
        let mut variables = own.into_iter().chain(usual.iter().copied());
        let set = variables.find(|name| self.variable(name).is_some());
        let command = config.and_then(|config| config.key_command.as_ref());
        set.map(str::to_owned)
            .or_else(|| command.map(|_| "key_command".to_owned()))
    }

    pub(super) async fn find_server(&self) -> Option<(&'static str, String)> {
        let found = local::look(&self.client).await;
        found.into_iter().find_map(|found| {
            let model = found.models.first()?;
            Some((found.preset.title, format!("{}:{model}", found.preset.name)))
        })
    }
}
