//! Enums that are stored as words.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Error for an unknown stored word.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a word that this program knows")]
pub struct UnknownWord(pub String);

/// Defines an enum whose variants are stored as words.
#[macro_export]
macro_rules! stored_words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$word_doc])* $variant,)* }

        impl $name {
            /// Returns the stored word.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::words::UnknownWord;

            fn from_str(word: &str) -> Result<Self, $crate::words::UnknownWord> {
                match word {
                    $($word => Ok(Self::$variant),)*
                    other => Err($crate::words::UnknownWord(other.chars().take(64).collect())),
                }
            }
        }
    };
}
pub use stored_words;

stored_words! {
    /// Effect of a tool.
    EffectClass {
        /// None.
        Read = "read",
        /// Changes files.
        Write = "write",
        /// Runs programs.
        Execute = "execute",
        /// Connects to other machines.
        Network = "network",
        /// Makes, ends or messages agents.
        Agent = "agent",
    }
}

/// Severity of a message to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Ordinary output.
    Info,
    /// Something failed or needs attention.
    Warning,
}

impl Severity {
    /// Sign before a warning in plain text.
    const WARNING_SIGN: &str = "⚠ ";

    /// Returns the text with the sign of its severity.
    pub fn signed(self, text: &str) -> String {
        match self {
            Self::Info => text.to_owned(),
            Self::Warning => format!("{}{text}", Self::WARNING_SIGN),
        }
    }

    /// Splits a text that was stored with its sign.
    pub fn split_sign(text: &str) -> (Self, &str) {
        match text.strip_prefix(Self::WARNING_SIGN) {
            Some(rest) => (Self::Warning, rest),
            None => (Self::Info, text),
        }
    }
}
