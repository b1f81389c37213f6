//! Words that are stored beside rows.

use thiserror::Error;

/// Why a stored word is none that this program knows.
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
            /// The stored word.
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
    /// What a tool does to the world.
    EffectClass {
        /// Nothing.
        Read = "read",
        /// It changes files.
        Write = "write",
        /// It runs programs.
        Execute = "execute",
        /// It talks to other machines.
        Network = "network",
        /// It makes, ends or talks to agents.
        Agent = "agent",
    }
}
