//! Tags of grants: they bind mode and rules in the log to a user on a machine.
//!
//! A log travels: it is exported, imported, shared on a server. A mode or rule counts only where
//! the key that tagged its row is.

use std::fmt;
use std::fmt::Write as _;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::sync::OnceLock;

use ikigai_core::grants::{GrantRow, GrantScope};
use ikigai_core::settings::Approve;
use ikigai_core::{AgentId, AgentState, Seq};
use sha2::{Digest, Sha256};

use super::Grant;

/// Size of a key and of a tag, in bytes.
const KEY_BYTES: usize = 32;

/// Size of a block of SHA-256, in bytes.
const BLOCK_BYTES: usize = 64;

/// Prefix of every tagged message, so that a tag is valid for no other purpose.
const PURPOSE: &[u8] = b"ikigai grant 1\0";

/// Secret of a user on a machine; tags the grants of this user.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct GrantKey([u8; KEY_BYTES]);

impl GrantKey {
    /// Creates a key of these bytes, which must be random.
    pub const fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// Draws a random key; none if the system provides no randomness.
    pub fn draw() -> Option<Self> {
        let mut bytes = [0; KEY_BYTES];
        let mut source = File::open("/dev/urandom").ok()?;
        source.read_exact(&mut bytes).ok()?;
        Some(Self(bytes))
    }

    /// Returns the key of this process; its grants end with the process.
    pub fn of_this_process() -> Self {
        static KEY: OnceLock<GrantKey> = OnceLock::new();
        *KEY.get_or_init(|| Self::draw().unwrap_or_else(Self::scattered))
    }

    /// Makes a key from the standard library's hasher seeds, if no descriptor is left.
    fn scattered() -> Self {
        let mut digest = Sha256::new();
        for number in 0..KEY_BYTES {
            digest.update(RandomState::new().hash_one(number).to_be_bytes());
        }
        Self(digest.finalize().into())
    }

    /// Returns the bytes, to store them in the user's file.
    pub const fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// Returns the tag of a row that sets these values.
    pub fn tag(&self, agent: AgentId, seq: Seq, scope: &GrantScope) -> String {
        let mut text = String::with_capacity(2 * KEY_BYTES);
        for byte in self.mac(agent, seq, scope) {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    fn verifies(&self, agent: AgentId, row: &GrantRow) -> bool {
        let tag = self.tag(agent, row.seq, &row.scope);
        // Compares all bytes, so that the time does not leak the tag.
        let differs = tag.bytes().zip(row.tag.bytes());
        tag.len() == row.tag.len() && differs.fold(0, |all, (one, other)| all | (one ^ other)) == 0
    }

    fn mac(&self, agent: AgentId, seq: Seq, scope: &GrantScope) -> [u8; KEY_BYTES] {
        let agent = agent.to_string();
        let scope = serde_json::to_vec(scope).unwrap_or_default();
        // Agent ids have a fixed length, so that no two messages have the same bytes.
        let parts = [PURPOSE, agent.as_bytes(), &seq.0.to_be_bytes(), &scope];
        hmac(&self.0, &parts)
    }
}

impl fmt::Debug for GrantKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GrantKey")
    }
}

impl Grant {
    /// Returns the mode and rules that this user granted on this machine.
    ///
    /// Without a valid tag the mode is `ask`, or `read` if the log says so, and no rule counts.
    /// `key` is called only if there is a tag.
    pub fn in_force(state: &AgentState, key: impl Fn() -> GrantKey) -> Self {
        let (settings, grants) = (state.settings(), state.grants());
        let verified = |row: Option<&GrantRow>| {
            let row = row.filter(|row| key().verifies(state.agent(), row));
            row.map(|row| row.scope.clone()).unwrap_or_default()
        };
        let granted = match verified(grants.mode.as_deref()).approve {
            Some(mode @ (Approve::Edits | Approve::All)) => mode,
            Some(Approve::Read | Approve::Ask) | None => Approve::Ask,
        };
        let logged = settings.approve.unwrap_or(Approve::Ask);
        let granted_rules = verified(grants.rules.as_deref()).rules.unwrap_or_default();
        let mut rules = settings.rules.clone().unwrap_or_default();
        rules.retain(|rule| granted_rules.contains(rule));
        Self {
            mode: logged.narrower(granted),
            rules,
        }
    }
}

/// Computes the HMAC-SHA256 of a message in parts (RFC 2104).
pub(super) fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; KEY_BYTES] {
    let mut block = [0; BLOCK_BYTES];
    if key.len() > BLOCK_BYTES {
        block[..KEY_BYTES].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let mut inner = Sha256::new_with_prefix(block.map(|byte| byte ^ 0x36));
    for part in parts {
        inner.update(part);
    }
    let outer = Sha256::new_with_prefix(block.map(|byte| byte ^ 0x5c));
    outer.chain_update(inner.finalize()).finalize().into()
}
