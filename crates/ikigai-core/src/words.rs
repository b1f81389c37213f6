//! Enums that are stored as words.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Error for an unknown stored word.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a word that this program knows")]
pub struct UnknownWord(pub String);

/// Defines an enum of named values, with `ALL` and a function that returns the name.
#[macro_export]
macro_rules! named_variants {
    ($(#[$about:meta])* $vis:vis enum $name:ident: $function:ident {
        $($(#[$variant_about:meta])* $variant:ident = $text:literal,)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $vis enum $name { $($(#[$variant_about])* $variant,)+ }

        impl $name {
            /// All values, in the order of the enum.
            $vis const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            #[doc = concat!("Returns the ", stringify!($function), " of the value.")]
            $vis const fn $function(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }
    };
}
pub use named_variants;

/// Defines an enum whose variants are stored as words.
#[macro_export]
macro_rules! stored_words {
    ($(#[$about:meta])* $name:ident { $($(#[$word_about:meta])* $variant:ident = $word:literal,)+ }) => {
        $crate::words::named_variants! {
            $(#[$about])*
            pub enum $name: word {
                $($(#[$word_about])* #[doc = concat!("`", $word, "`")] $variant = $word,)+
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
                let known = Self::ALL.into_iter().find(|known| known.word() == word);
                known.ok_or_else(|| $crate::words::UnknownWord(word.chars().take(64).collect()))
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
