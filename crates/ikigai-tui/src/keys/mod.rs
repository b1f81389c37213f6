//! Key bindings: one table of named actions.
//! The configuration can bind actions to other keys; the on-screen help and `docs/keys.md` are made
//! from the table.

mod name;
mod table;

use std::fmt::Write as _;

use thiserror::Error;

use crate::key::KeyPress;

pub use name::NoSuchKey;
pub use table::{Action, ActionEntry, entries};

use table::ESSENTIAL;

ikigai_core::words::named_variants! {
    /// Context of a key. Several can apply at once; the first that binds the key decides.
    pub enum KeyMode: heading {
        /// The input.
        Input = "Input",
        /// The input while it is empty; precedes the input.
        Empty = "Empty input",
        /// Everywhere; always comes last.
        Always = "Everywhere",
        /// The list of completions; precedes the input.
        List = "Completion list",
        /// Search in sent messages; above the input, whose edits change the needle.
        Search = "Search in sent messages",
        /// A question that does not yet take keys; precedes the input.
        ClosedQuestion = "A question appears while you type",
        /// A question that takes keys.
        Question = "Question",
        /// Questions of other agents; precedes the input.
        Others = "Questions of other agents",
        /// Browsing the conversation.
        Browse = "Browse mode",
        /// The board.
        Board = "Board",
        /// The inbox; precedes the question of its selected entry.
        Inbox = "Inbox",
        /// Choosing from a list; if above the input, its edits change the filter.
        Picker = "Pickers",
        /// An overlay, such as help.
        Overlay = "Help and other overlays",
    }
}

impl KeyMode {
    /// Returns true if a key bound in this mode applies in another one too.
    fn covers(self, other: Self) -> bool {
        let empty = self == Self::Input && other == Self::Empty;
        self == other || self == Self::Always || empty
    }
}

/// Meaning of a sequence of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// An action.
    Action(Action),
    /// A prefix of a longer binding; the next key decides.
    Prefix,
    /// Not bound: a character is typed, other keys are ignored.
    Nothing,
}

/// Error in the configured bindings.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BindError {
    /// Unknown key.
    #[error("`{keys}`: {source}")]
    Key {
        /// The keys as configured.
        keys: String,
        /// The wrong key.
        source: NoSuchKey,
    },
    /// Neither one key nor two.
    #[error("`{0}`: use one key, or two separated by a space")]
    Length(String),
    /// Unknown action.
    #[error("unknown action `{action}` for {keys}")]
    Action {
        /// The keys as configured.
        keys: String,
        /// The name.
        action: String,
    },
}

/// Bindings of keys to actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bindings {
    bound: Vec<Binding>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Binding {
    mode: KeyMode,
    /// One key, or two in sequence.
    keys: Vec<KeyPress>,
    action: Action,
}

/// Most keys of one action at the top of the on-screen help.
const ESSENTIAL_KEYS: usize = 2;

/// Action name that removes a binding.
const NONE: &str = "none";

impl Default for Bindings {
    fn default() -> Self {
        let mut bound = Vec::new();
        for entry in entries() {
            for (mode, names) in entry.keys {
                for keys in names.iter().filter_map(|names| parse_keys(names).ok()) {
                    bound.push(Binding {
                        mode: *mode,
                        keys,
                        action: entry.action,
                    });
                }
            }
        }
        Self { bound }
    }
}

impl Bindings {
    /// Adds configured bindings to the default ones: pairs of keys and an action. An example is
    /// `ctrl-x a` and `board`. The action `none` unbinds the keys everywhere.
    pub fn with(configured: &[(String, String)]) -> Result<Self, BindError> {
        let mut bindings = Self::default();
        for (names, action) in configured {
            let keys = parse_keys(names)?;
            if action == NONE {
                bindings.bound.retain(|bound| bound.keys != keys);
                continue;
            }
            let unknown = || BindError::Action {
                keys: names.clone(),
                action: action.clone(),
            };
            let found = entries().find(|entry| entry.name == action);
            let entry = found.ok_or_else(unknown)?;
            let (mode, _) = entry.keys.first().ok_or_else(unknown)?;
            // Remove bindings that the new keys hide, or that hide them.
            bindings.bound.retain(|bound| {
                let overlaps = bound.keys.starts_with(&keys) || keys.starts_with(&bound.keys);
                !overlaps || !mode.covers(bound.mode)
            });
            bindings.bound.push(Binding {
                mode: *mode,
                keys,
                action: entry.action,
            });
        }
        Ok(bindings)
    }

    /// Returns the meaning of consecutive key presses, in the first mode that binds them.
    /// [`KeyMode::Always`] comes last.
    pub fn meaning(&self, modes: &[KeyMode], pressed: &[KeyPress]) -> Meaning {
        let pressed: Vec<KeyPress> = pressed.iter().map(|key| key.plain()).collect();
        for mode in modes.iter().chain([&KeyMode::Always]) {
            let here = || self.bound.iter().filter(|bound| bound.mode == *mode);
            if let Some(bound) = here().find(|bound| bound.keys == pressed) {
                return Meaning::Action(bound.action);
            }
            if here().any(|bound| bound.keys.starts_with(&pressed)) {
                return Meaning::Prefix;
            }
        }
        Meaning::Nothing
    }

    /// Returns the names of the keys of an action in a mode.
    pub fn keys_of(&self, mode: KeyMode, action: Action) -> Vec<String> {
        let bound = self.bound.iter();
        let found = bound.filter(|bound| bound.mode == mode && bound.action == action);
        found.map(|bound| names(&bound.keys)).collect()
    }

    /// Returns the keys that continue a prefix, with their actions.
    pub fn next_keys(
        &self,
        modes: &[KeyMode],
        prefix: &[KeyPress],
    ) -> Vec<(KeyPress, &'static ActionEntry)> {
        let prefix: Vec<KeyPress> = prefix.iter().map(|key| key.plain()).collect();
        let bound = self.bound.iter().filter(|bound| {
            let applies = bound.mode == KeyMode::Always || modes.contains(&bound.mode);
            applies && bound.keys.starts_with(&prefix)
        });
        let next = bound.filter_map(|bound| {
            let entry = entries().find(|entry| entry.action == bound.action)?;
            Some((*bound.keys.get(prefix.len())?, entry))
        });
        next.collect()
    }

    /// Returns the help on the keys used most, for the top of the on-screen help.
    pub fn essential_help(&self) -> Help {
        let rows = ESSENTIAL.iter().filter_map(|(mode, action)| {
            let entry = entries().find(|entry| entry.action == *action)?;
            let mut keys = self.keys_of(*mode, *action);
            keys.truncate(ESSENTIAL_KEYS);
            (!keys.is_empty()).then_some((keys, entry))
        });
        Help {
            heading: "Most used",
            rows: rows.collect(),
        }
    }

    /// Returns the help on keys, under headings.
    pub fn help(&self) -> Vec<Help> {
        let all = KeyMode::ALL.into_iter().map(|mode| {
            let here = entries().filter(|entry| entry.keys.iter().any(|(known, _)| *known == mode));
            let rows = here.filter_map(|entry| {
                let keys = self.keys_of(mode, entry.action);
                (!keys.is_empty()).then_some((keys, entry))
            });
            Help {
                heading: mode.heading(),
                rows: rows.collect(),
            }
        });
        all.filter(|help| !help.rows.is_empty()).collect()
    }
}

/// Help on the keys of one mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Help {
    /// Heading of the mode.
    pub heading: &'static str,
    /// Keys and their actions.
    pub rows: Vec<(Vec<String>, &'static ActionEntry)>,
}

/// Generates `docs/keys.md` from the table.
pub fn page() -> String {
    let mut page = String::from(
        "# Keys\n\n\
         This page is generated from the table of actions; `?` with empty input shows the same.\n\n\
         The configuration can bind other keys to an action by its name:\n\n\
         ```toml\n\
         [keys]\n\
         \"ctrl-o\" = \"newline\"\n\
         \"ctrl-x b\" = \"board\"\n\
         \"alt-n\" = \"none\"\n\
         ```\n\n\
         A key is a character or one of `enter tab backspace delete insert home end page-up page-down up down left right esc \
         space f1` … `f24`, with `ctrl-`, `alt-` and `shift-` before it. Two keys with a space between them are pressed in \
         sequence. An action is bound in its own mode; `none` unbinds a key everywhere.\n",
    );
    for help in Bindings::default().help() {
        let _ = write!(page, "\n## {}\n\n", help.heading);
        page.push_str("| keys | action | effect |\n|---|---|---|\n");
        for (keys, entry) in help.rows {
            let keys: Vec<_> = keys.iter().map(|key| format!("`{key}`")).collect();
            let (keys, name, help) = (keys.join(" "), entry.name, entry.help);
            let _ = writeln!(page, "| {keys} | `{name}` | {help} |");
        }
    }
    page
}

fn parse_keys(names: &str) -> Result<Vec<KeyPress>, BindError> {
    let keys = names.split_whitespace().map(str::parse);
    let keys: Vec<KeyPress> = keys
        .collect::<Result<_, _>>()
        .map_err(|source| BindError::Key {
            keys: names.to_owned(),
            source,
        })?;
    if keys.is_empty() || keys.len() > 2 {
        return Err(BindError::Length(names.to_owned()));
    }
    Ok(keys)
}

/// Returns key names as the screen shows them: `Ctrl-X a` for `ctrl-x a`.
pub fn label(names: &str) -> String {
    let labels = names.split_whitespace().map(|name| {
        let key = name.parse::<KeyPress>();
        key.map_or_else(|_| name.to_owned(), |key| key.label())
    });
    labels.collect::<Vec<_>>().join(" ")
}

fn names(keys: &[KeyPress]) -> String {
    let names: Vec<_> = keys.iter().map(KeyPress::to_string).collect();
    names.join(" ")
}

#[cfg(test)]
mod tests;
