//! Pickers whose entries are read from the store.

use ikigai_core::counts::counted;
use ikigai_core::settings::ModelChoice;
use ikigai_engine::{Engine, EngineError, Offer, figures, since};

use crate::app::{Picker, PickerAction, PickerEntry, PickerKind};

/// Reads the entries of a picker; `model` is the current one.
pub(super) async fn picker(
    engine: &Engine,
    what: PickerKind,
    model: Option<&ModelChoice>,
) -> Result<Picker, EngineError> {
    match what {
        PickerKind::Model => Ok(models(engine.offers(), model)),
        PickerKind::Session => sessions(engine).await,
    }
}

/// Creates a picker of models, the available ones first.
fn models(mut offers: Vec<Offer>, answering: Option<&ModelChoice>) -> Picker {
    let answers = |offer: &&Offer| {
        answering.is_some_and(|choice| {
            let provider = choice.provider.as_deref() == Some(&offer.provider);
            provider && choice.model.as_deref() == Some(&offer.model)
        })
    };
    let answering = offers.iter().find(answers).map(Offer::name);
    offers.sort_by_key(|offer| !offer.reachable);
    let entries = offers.iter().map(|offer| {
        let name = offer.name();
        let run = PickerAction::Run(format!("/model {name}"));
        let action = if offer.levels.len() > 1 {
            PickerAction::Choose(Box::new(levels(&name, offer)))
        } else {
            run
        };
        PickerEntry::new(name, about(offer), action)
    });
    let now = match &answering {
        Some(answering) => format!(" (now {answering})"),
        None => String::new(),
    };
    let title = format!("Choose a model{now} · context, $/M in / out");
    Picker::new(title, entries.collect(), answering.as_deref())
}

/// Creates a picker of a model's thinking levels.
fn levels(name: &str, offer: &Offer) -> Picker {
    let run = PickerAction::Run(format!("/model {name}"));
    let usual = PickerEntry::new("default", "provider default", run);
    let levels = offer.levels.iter().map(|level| {
        PickerEntry::new(
            *level,
            "",
            PickerAction::Run(format!("/model {name}/{level}")),
        )
    });
    let entries = [usual].into_iter().chain(levels).collect();
    Picker::new(format!("Thinking level of {name}"), entries, None)
}

/// Describes context, price per million tokens, levels and availability.
fn about(offer: &Offer) -> String {
    let context = offer.context_tokens;
    let context = context.map_or_else(|| "?".to_owned(), figures::tokens);
    let price =
        |price: Option<f64>| price.map_or_else(|| "?".to_owned(), |price| price.to_string());
    let prices = format!("${} / ${}", price(offer.price_in), price(offer.price_out));
    let levels = offer.levels.join(" ");
    let key = if offer.reachable { "" } else { "no key" };
    format!("{key:<6}  {context:>5}  {prices:<14}  {levels}")
}

async fn sessions(engine: &Engine) -> Result<Picker, EngineError> {
    let now = engine.now();
    let entries = engine.session_entries().await?.into_iter();
    let entries = entries.filter_map(|entry| {
        // A session without living agents cannot be opened.
        let latest = entry.latest?;
        let living = counted(entry.living, "agent");
        let ago = since(entry.touched_at, now);
        let about = format!("{living:<10} {ago:>8}  {}", latest.name);
        let action = PickerAction::Run(format!("/switch {}", latest.name));
        Some(PickerEntry::new(entry.session.directory, about, action))
    });
    Ok(Picker::new("Go to a session", entries.collect(), None))
}
