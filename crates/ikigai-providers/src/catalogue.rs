//! Model table: context, prices, and wire values of thinking levels.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::OnceLock;

use ikigai_core::data::Amounts;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

/// The built-in table; `[models]` in the configuration adds to it and corrects it.
const EMBEDDED: &str = include_str!("models.json");

/// Smallest and largest plausible window of a server, in tokens.
pub(crate) const PLAUSIBLE_WINDOWS: RangeInclusive<u64> = 1_024..=16_777_216;

ikigai_core::words::named_variants! {
    /// Thinking level, in the program's words.
    #[derive(PartialOrd, Ord, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Level: word {
        /// No thinking.
        None = "none",
        /// The least that the model can.
        Min = "min",
        /// Little.
        Low = "low",
        /// Some.
        Med = "med",
        /// Much.
        High = "high",
        /// The most that the model can.
        Max = "max",
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// Error for a word that is no level.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown thinking level `{0}`: use none, min, low, med, high or max")]
pub struct NoLevel(pub String);

impl FromStr for Level {
    type Err = NoLevel;

    fn from_str(word: &str) -> Result<Self, NoLevel> {
        let known = Self::ALL.into_iter().find(|level| level.word() == word);
        known.ok_or_else(|| NoLevel(word.chars().take(32).collect()))
    }
}

ikigai_core::words::named_variants! {
    /// Wire field of a thinking value.
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum ThinkingStyle: word {
        /// Responses `reasoning.effort`, Chat `reasoning_effort`.
        Effort = "effort",
        /// Messages `output_config.effort` with adaptive thinking.
        Adaptive = "adaptive",
        /// Messages `budget_tokens`, Gemini `thinkingBudget`.
        Budget = "budget",
        /// Gemini `thinkingLevel`.
        Level = "level",
        /// The model does not think.
        None = "none",
    }
}

/// Wire form of a thinking level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThinkingValue {
    /// The wire field.
    pub style: ThinkingStyle,
    /// The exact value from the table: a word or a number.
    pub value: Value,
}

/// Wire values of one model's thinking levels.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Thinking {
    /// The wire field.
    pub style: ThinkingStyle,
    /// The value of each level; null if the model has no such level.
    pub levels: BTreeMap<Level, Value>,
}

/// One model of the table.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ModelSpec {
    /// Its name at its provider.
    pub id: String,
    /// Its provider.
    pub provider: String,
    /// Dialect of its provider.
    pub dialect: String,
    /// Largest number of input and output tokens together.
    pub context_window: Option<u64>,
    /// Largest number of output tokens.
    pub max_output: Option<u64>,
    /// Largest output that the user configured; none: its server decides.
    #[serde(skip)]
    pub output_limit: Option<u64>,
    /// Dollars per million input tokens.
    pub price_in: Option<f64>,
    /// Dollars per million output tokens.
    pub price_out: Option<f64>,
    /// Dollars per million tokens read from the cache.
    pub price_cache_read: Option<f64>,
    /// Dollars per million tokens written to the cache.
    pub price_cache_write: Option<f64>,
    /// True if the model can call tools.
    #[serde(default)]
    pub tools: bool,
    /// True if the model takes images.
    #[serde(default)]
    pub images: bool,
    /// Wire values of its thinking levels.
    pub thinking: Option<Thinking>,
}

impl ModelSpec {
    /// Makes a model of which only the name is known; the dialect is its provider's.
    pub fn unknown(provider: String, id: String) -> Self {
        Self {
            id,
            provider,
            dialect: String::new(),
            context_window: None,
            max_output: None,
            output_limit: None,
            price_in: None,
            price_out: None,
            price_cache_read: None,
            price_cache_write: None,
            tools: false,
            images: false,
            thinking: None,
        }
    }

    /// Returns the levels that it has.
    pub fn levels(&self) -> impl Iterator<Item = Level> + '_ {
        Level::ALL
            .into_iter()
            .filter(|level| self.value_of(*level).is_some())
    }

    fn value_of(&self, level: Level) -> Option<&Value> {
        let value = self.thinking.as_ref()?.levels.get(&level)?;
        Some(value).filter(|value| !value.is_null())
    }

    /// Returns the wire value for a level, or for the nearest level that exists.
    pub fn thinking_value(&self, level: Level) -> Option<(Level, ThinkingValue)> {
        let nearest = match level {
            Level::None => Level::Min,
            Level::Max => Level::High,
            other => other,
        };
        let level = if self.value_of(level).is_some() {
            level
        } else {
            nearest
        };
        let style = self.thinking.as_ref()?.style;
        let value = self.value_of(level)?.clone();
        Some((level, ThinkingValue { style, value }))
    }

    /// Returns the cost in billionths of a dollar; none if the table has no price.
    pub fn cost_nano_usd(&self, usage: &Amounts) -> Option<u64> {
        let (input, output) = (self.price_in?, self.price_out?);
        let counted = [
            (usage.input, input),
            (usage.cache_read, self.price_cache_read.unwrap_or(input)),
            (usage.cache_write, self.price_cache_write.unwrap_or(input)),
            (usage.output, output),
        ];
        let cost = counted
            .iter()
            .map(|(tokens, price)| nano_usd(tokens.unwrap_or(0), *price));
        Some(cost.fold(0, u64::saturating_add))
    }
}

/// Converts dollars to billionths; none if negative or not finite.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is not negative, and `as` saturates"
)]
pub(crate) fn nano_of(dollars: f64) -> Option<u64> {
    let nano = (dollars * 1e9).round();
    (nano.is_finite() && nano >= 0.0).then_some(nano as u64)
}

/// Multiplies tokens by a price: a dollar per million tokens is 1000 billionths per token.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "prices have few digits, token counts are far below 2^52, and `as` saturates"
)]
fn nano_usd(tokens: u64, price: f64) -> u64 {
    (tokens as f64 * price * 1000.0).round() as u64
}

/// All models that are known by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalogue {
    models: Vec<ModelSpec>,
}

#[derive(Deserialize)]
struct Table {
    models: Vec<ModelSpec>,
}

impl Catalogue {
    /// Returns the built-in table, which is parsed once on first use.
    pub fn embedded() -> &'static Self {
        static TABLE: OnceLock<Catalogue> = OnceLock::new();
        TABLE.get_or_init(|| {
            // A test parses the built-in table, so this is never empty.
            let table = serde_json::from_str::<Table>(EMBEDDED).ok();
            Self {
                models: table.map(|table| table.models).unwrap_or_default(),
            }
        })
    }

    /// Adds models; they replace models with the same name.
    #[must_use]
    pub fn with(&self, models: Vec<ModelSpec>) -> Self {
        let mut all = self.models.clone();
        for model in models {
            let same = |known: &&mut ModelSpec| {
                (&known.provider, &known.id) == (&model.provider, &model.id)
            };
            match all.iter_mut().find(same) {
                Some(known) => *known = model,
                None => all.push(model),
            }
        }
        Self { models: all }
    }

    /// Returns the models, in the order of the table.
    pub fn models(&self) -> &[ModelSpec] {
        &self.models
    }

    /// Finds a model by its name, of one provider if that is given.
    pub fn find(&self, provider: Option<&str>, name: &str) -> Option<&ModelSpec> {
        let of_provider =
            |model: &&ModelSpec| provider.is_none_or(|provider| model.provider == provider);
        self.models
            .iter()
            .filter(of_provider)
            .find(|model| model.id == name)
    }

    /// Returns similar names for an unknown one, nearest first.
    pub fn near(&self, name: &str) -> Vec<&str> {
        let names: Vec<_> = self.models.iter().map(|model| model.id.as_str()).collect();
        near_words(name, &names)
    }
}

/// Returns at most three words similar to a mistyped one, nearest first.
pub(crate) fn near_words<'a>(typed: &str, words: &[&'a str]) -> Vec<&'a str> {
    // The cost grows with both lengths; no name is that long.
    const MOST_TYPED: usize = 64;
    let typed: String = typed.chars().take(MOST_TYPED).collect();
    let mut near: Vec<(usize, &str)> = words
        .iter()
        .map(|word| (strsim::levenshtein(&typed, word), *word))
        .filter(|(edits, word)| *edits <= (word.len() / 3).max(1))
        .collect();
    near.sort_unstable();
    near.dedup_by(|one, other| one.1 == other.1);
    near.into_iter().take(3).map(|(_, word)| word).collect()
}

/// A typed model name: `[provider:]name[/level]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelName {
    /// The provider, if it was named.
    pub provider: Option<String>,
    /// The model's name there, which may itself have slashes.
    pub model: String,
    /// The level, if the last part is one.
    pub level: Option<Level>,
}

impl ModelName {
    /// Parses a typed name. Total: a last part that is no level belongs to the name.
    pub fn parse(text: &str) -> Self {
        let (name, level) = match text.rsplit_once('/') {
            Some((name, last)) => match last.parse() {
                Ok(level) => (name, Some(level)),
                Err(_) => (text, None),
            },
            None => (text, None),
        };
        let (provider, model) = match name.split_once(':') {
            Some((provider, model)) if !provider.is_empty() && !model.is_empty() => {
                (Some(provider.to_owned()), model)
            }
            _ => (None, name),
        };
        Self {
            provider,
            model: model.to_owned(),
            level,
        }
    }
}
