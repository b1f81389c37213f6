//! `ikigai models`: the model table.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Result;
use ikigai_core::spelling::clean_line;
use ikigai_providers::catalogue::ModelSpec;
use ikigai_providers::local::look;
use ikigai_providers::transport::{Client, Deadlines};
use serde_json::{Value, json};

use crate::arguments::ModelsOrder;
use crate::context::{configuration, registry};
use crate::output::{print, print_json, print_stderr, visible};
use crate::runtime::runtime;

pub(crate) fn models(order: &ModelsOrder) -> Result<ExitCode> {
    let registry = registry(&configuration()?)?;
    let catalogue = registry.catalogue();
    let word = order.word.as_deref().unwrap_or_default();
    let wanted = |spec: &&ModelSpec| spec.id.contains(word) || spec.provider.contains(word);
    let models: Vec<_> = catalogue.models().iter().filter(wanted).collect();
    if models.is_empty() && "demo".contains(word) {
        print_stderr("● demo is built in and needs no key");
    } else if models.is_empty() {
        print_stderr("No model matches. Models outside this list work as PROVIDER:NAME");
    }
    let mut keys = BTreeMap::new();
    for spec in &models {
        let provider = spec.provider.as_str();
        let key = *keys
            .entry(provider)
            .or_insert_with(|| registry.is_reachable(provider));
        if order.json {
            print_json(&json_of(spec, key))?;
        } else {
            print(&line_of(spec, key))?;
        }
    }
    if !order.json {
        offer_local_servers()?;
    }
    if !order.json && !models.is_empty() {
        print_stderr(
            "● available (key found) · $ per million tokens, in/out · demo is built in and needs no key",
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the model servers of this machine. They are offered, never selected.
fn offer_local_servers() -> Result<()> {
    let client = Client::new(Deadlines::DEFAULT);
    for found in runtime()?.block_on(look(&client)) {
        let name = found.preset.name;
        let models: Vec<_> = found
            .models
            .iter()
            .map(|model| format!("{name}:{model}"))
            .collect();
        print_stderr(&visible(&format!(
            "{} is running here: {}",
            found.preset.title,
            models.join(" ")
        )));
    }
    Ok(())
}

fn line_of(spec: &ModelSpec, key: bool) -> String {
    let name = clean_line(&format!("{}:{}", spec.provider, spec.id)).into_owned();
    let window = spec
        .context_window
        .map_or_else(|| "?".to_owned(), |tokens| format!("{}k", tokens / 1000));
    let price =
        |price: Option<f64>| price.map_or_else(|| "?".to_owned(), |price| price.to_string());
    let levels: Vec<_> = spec
        .levels()
        .map(ikigai_providers::catalogue::Level::word)
        .collect();
    format!(
        "{} {name:<40} {window:>7}  {:>6} / {:<6}  {}\n",
        if key { "●" } else { " " },
        price(spec.price_in),
        price(spec.price_out),
        levels.join(" ")
    )
}

fn json_of(spec: &ModelSpec, key: bool) -> Value {
    let levels: Vec<_> = spec
        .levels()
        .map(ikigai_providers::catalogue::Level::word)
        .collect();
    json!({
        "provider": spec.provider,
        "model": spec.id,
        "dialect": spec.dialect,
        "context_window": spec.context_window,
        "max_output": spec.max_output,
        "images": spec.images,
        "price_in": spec.price_in,
        "price_out": spec.price_out,
        "price_cache_read": spec.price_cache_read,
        "price_cache_write": spec.price_cache_write,
        "levels": levels,
        "key": key,
    })
}
