//! Engine environment of this machine, with the key that tags the user's grants.

use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

use ikigai_core::{MachineId, Micros, PersonName};
use ikigai_engine::{Environment, GrantKey, Platform, System};
use jiff::tz::TimeZone;

use crate::config;
use crate::keepers::this_host;
use crate::{identity, private_file};

/// Name of the key file in the local state directory.
const KEY_FILE: &str = "grant.key";

/// Environment of the system, with the person and the key of its user.
pub(crate) struct Machine {
    person: Option<PersonName>,
    key: OnceLock<GrantKey>,
}

impl Machine {
    /// Creates the environment of a person.
    pub(crate) fn of(person: Option<PersonName>) -> Self {
        Self {
            person,
            key: OnceLock::new(),
        }
    }
}

/// Returns the path of the file with this user's key.
pub(crate) fn key_file() -> Option<PathBuf> {
    Some(config::state_home()?.join(KEY_FILE))
}

impl Environment for Machine {
    fn now(&self) -> Micros {
        System.now()
    }

    fn random(&self) -> [u8; 16] {
        System.random()
    }

    fn day(&self, at: Micros) -> String {
        System.day(at)
    }

    fn zone(&self) -> TimeZone {
        System.zone()
    }

    fn home(&self) -> Option<PathBuf> {
        System.home()
    }

    fn platform(&self) -> Option<Platform> {
        System.platform()
    }

    fn person(&self) -> Option<PersonName> {
        self.person.clone()
    }

    fn machine(&self) -> Option<MachineId> {
        Some(identity::machine())
    }

    fn host(&self) -> Option<String> {
        Some(this_host())
    }

    fn grant_key(&self) -> GrantKey {
        *self.key.get_or_init(|| {
            let path = key_file().ok_or_else(|| io::Error::other("no home directory"));
            let draw = || GrantKey::draw().map(|key| *key.bytes());
            path.and_then(|path| private_file::load_or_create(&path, draw))
                .map_or_else(
                    |error| {
                        tracing::warn!(error = %error, "grants end with this process: no key file");
                        GrantKey::of_this_process()
                    },
                    GrantKey::new,
                )
        })
    }
}
