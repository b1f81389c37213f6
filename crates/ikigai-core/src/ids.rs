//! Identifiers of agents, sessions, machines and processes, positions in the log, and times.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};
use thiserror::Error;
use uuid::{Builder, Uuid, Variant, Version};

/// Why a text is not an identifier.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not an id: 22 base64url characters of a version 4 UUID, the first a letter or digit"
)]
pub struct ParseIdError(String);

/// Length of every written identifier.
pub const ID_CHARS: usize = 22;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn encode(uuid: Uuid) -> [u8; ID_CHARS] {
    let bits = uuid.as_u128();
    let mut out = [0_u8; ID_CHARS];
    for (i, slot) in out.iter_mut().enumerate() {
        // 128 bits are 21 groups of six and a last one of two, which is padded with zeros.
        let six = if i < 21 {
            (bits >> (122 - 6 * i)) & 63
        } else {
            (bits & 3) << 4
        };
        *slot = ALPHABET[usize::try_from(six).unwrap_or(0)];
    }
    out
}

/// Returns the index of a byte in the base64url alphabet.
///
/// It computes the index, because ids are parsed with every row that names another.
fn six_of(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'-' => Some(62),
        b'_' => Some(63),
        _ => None,
    }
}

fn decode(text: &str) -> Option<Uuid> {
    let bytes = text.as_bytes();
    if bytes.len() != ID_CHARS || !bytes[0].is_ascii_alphanumeric() {
        return None;
    }
    let mut bits = 0_u128;
    for (i, byte) in bytes.iter().enumerate() {
        let six = u128::from(six_of(*byte)?);
        if i < 21 {
            bits = bits << 6 | six;
        } else if six.trailing_zeros() >= 4 {
            bits = bits << 2 | six >> 4;
        } else {
            return None;
        }
    }
    let uuid = Uuid::from_u128(bits);
    let random = uuid.get_version() == Some(Version::Random);
    (random && uuid.get_variant() == Variant::RFC4122).then_some(uuid)
}

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Uuid);

        impl $name {
            /// Makes an id of 16 random bytes.
            ///
            /// `None` if it would not begin with a letter or digit: the caller draws again.
            pub fn from_random(bytes: [u8; 16]) -> Option<Self> {
                let uuid = Builder::from_random_bytes(bytes).into_uuid();
                encode(uuid)[0].is_ascii_alphanumeric().then_some(Self(uuid))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(std::str::from_utf8(&encode(self.0)).unwrap_or_default())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                decode(text).map(Self).ok_or_else(|| ParseIdError(text.chars().take(64).collect()))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    };
}

id_type! {
    /// Permanent id of an agent, across forks and machines: 22 base64url characters.
    AgentId
}
id_type! {
    /// Id of a session: a workspace to which agents belong.
    SessionId
}
id_type! {
    /// Id of a running process of ikigai, which may own agents.
    ProcessId
}
id_type! {
    /// Id of a machine: one user's local state in one system or container.
    MachineId
}

/// Position of a row in its agent's log, from 1 without gaps. 0 is before the first row.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// Returns the next position.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Returns the previous position, 0 for the first.
    #[must_use]
    pub const fn before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Number of a lease. A takeover raises it, which fences off the previous owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Microseconds since 1970 in UTC.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Micros(pub i64);

impl Micros {
    /// Returns the time after a duration.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros))
    }
}

/// Permanent reference to one row: its agent and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct RowRef {
    /// The agent.
    pub agent: AgentId,
    /// Position in that agent's log.
    pub seq: Seq,
}

impl RowRef {
    /// Makes a reference to row `seq` of `agent`.
    pub const fn new(agent: AgentId, seq: Seq) -> Self {
        Self { agent, seq }
    }
}

impl<'de> Deserialize<'de> for RowRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Only an object is a reference; a derived reader would also accept a list of two values.
        let mut object = Map::<String, Value>::deserialize(deserializer)?;
        let mut field = |name| object.remove(name).unwrap_or_default();
        let agent = AgentId::deserialize(field("agent")).map_err(de::Error::custom)?;
        let seq = Seq::deserialize(field("seq")).map_err(de::Error::custom)?;
        Ok(Self { agent, seq })
    }
}

impl fmt::Display for RowRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}.{}", self.agent, self.seq)
    }
}
