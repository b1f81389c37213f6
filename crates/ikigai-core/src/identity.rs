//! Names of people.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use thiserror::Error;

/// Limit of a name in bytes: that of a PostgreSQL role.
pub const PERSON_BYTES: usize = 63;

/// Why a text is not a person's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("expected 1 to {PERSON_BYTES} bytes without control characters or spaces at the ends")]
pub struct BadPersonName;

/// Name of a person: the author of rows, and the user of a process.
///
/// On a server it is the role; in a local store the configured name, else the login name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct PersonName(String);

impl PersonName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PersonName {
    type Err = BadPersonName;

    fn from_str(text: &str) -> Result<Self, BadPersonName> {
        let fits = (1..=PERSON_BYTES).contains(&text.len());
        let is_plain = text.trim() == text && !text.chars().any(char::is_control);
        (fits && is_plain)
            .then(|| Self(text.to_owned()))
            .ok_or(BadPersonName)
    }
}

impl fmt::Display for PersonName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{BadPersonName, PersonName};

    #[test]
    fn a_persons_name_is_short_and_printable() {
        let parse = |text: &str| text.parse::<PersonName>();
        for good in ["ann", "Ann Lee", "ann@example.org", &"a".repeat(63)] {
            assert_eq!(
                parse(good).map(|name| name.to_string()),
                Ok(good.to_owned())
            );
        }
        for bad in ["", " ann", "ann ", "an\nn", "\u{1b}[31m", &"a".repeat(64)] {
            assert_eq!(parse(bad), Err(BadPersonName), "{bad:?}");
        }
    }
}
