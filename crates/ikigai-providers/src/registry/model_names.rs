//! Typed model names: their providers, and errors for unknown ones.

use super::Registry;
use crate::NoModel;
use crate::catalogue::{Catalogue, Level, ModelName, near_words};
use crate::demo::DEMO;

impl Registry {
    /// Returns the provider of a typed model name.
    ///
    /// A name that ends in `/word` after a known model is an error: the word is no level.
    pub(super) fn provider_of(&self, name: &ModelName) -> Result<String, NoModel> {
        let catalogue = self.catalogue();
        let provider = name.provider.as_deref();
        let found = catalogue.find(provider, &name.model);
        if found.is_none()
            && let Some(error) = self.unknown_level(name, &catalogue)
        {
            return Err(error);
        }
        match (provider, found) {
            (Some(provider), _) => Ok(provider.to_owned()),
            (None, _) if name.model == DEMO => Ok(DEMO.to_owned()),
            (None, Some(spec)) => Ok(spec.provider.clone()),
            (None, None) => Err(unknown_model(&name.model, &near_models(name, &catalogue))),
        }
    }

    /// Returns the error for a known model with a word that is no level.
    fn unknown_level(&self, name: &ModelName, catalogue: &Catalogue) -> Option<NoModel> {
        let (model, word) = name.model.rsplit_once('/')?;
        let provider = name.provider.as_deref();
        let spec = catalogue.find(provider, model);
        let first = self.first.as_deref().map(ModelName::parse);
        let is_first =
            first.is_some_and(|first| first.model == model && first.provider == name.provider);
        let is_demo = model == DEMO && provider.is_none_or(|provider| provider == DEMO);
        if spec.is_none() && !is_first && !is_demo {
            return None;
        }
        let levels: Vec<_> = match spec {
            Some(spec) => spec.levels().map(Level::word).collect(),
            None => Level::ALL.map(Level::word).to_vec(),
        };
        let typed = match provider {
            Some(provider) => format!("{provider}:{model}"),
            None => model.to_owned(),
        };
        let near = near_words(word, &levels).into_iter();
        let near: Vec<_> = near.map(|level| format!("{typed}/{level}")).collect();
        let advice = if levels.is_empty() || is_demo {
            format!("use {typed}: it has no levels")
        } else if near.is_empty() {
            format!("levels of {typed}: {}", levels.join(", "))
        } else {
            let levels = levels.join(", ");
            format!("did you mean {}? levels: {levels}", near.join(" or "))
        };
        Some(NoModel {
            reason: format!("`{typed}` has no thinking level `{word}`"),
            advice,
        })
    }
}

/// Returns known models similar to a typed name, with or without its last part.
fn near_models<'a>(name: &ModelName, catalogue: &'a Catalogue) -> Vec<&'a str> {
    let near = catalogue.near(&name.model);
    match name.model.rsplit_once('/') {
        Some((model, _)) if near.is_empty() => catalogue.near(model),
        _ => near,
    }
}

pub(super) fn unknown_model(name: &str, near: &[&str]) -> NoModel {
    let advice = if near.is_empty() {
        "`ikigai models` lists them; for others use PROVIDER:NAME".to_owned()
    } else {
        format!("did you mean {}?", near.join(" or "))
    };
    NoModel {
        reason: format!("there is no model `{name}`"),
        advice,
    }
}
