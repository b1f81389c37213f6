//! Identity of this process: its person and its machine.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use ikigai_core::{MachineId, PersonName};
use ikigai_engine::{Environment, System};
use sha2::{Digest, Sha256};

use crate::config::{self, Config};
use crate::private_file;
use crate::store_location::StoreLocation;

/// Name of the file with the random part of the machine's id, in the local state directory.
const MACHINE_FILE: &str = "machine.id";

const SYSTEM_FILES: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

/// Files that container engines mount from a directory named after the container.
const MOUNTED_FILES: [&str; 3] = ["/etc/hostname", "/etc/hosts", "/etc/resolv.conf"];

/// Shortest number in hexadecimal that is the id of a container.
const CONTAINER_DIGITS: usize = 32;

/// Returns the person of this process: the role on a server, else the configured or login name.
pub(crate) fn person(place: &StoreLocation, config: &Config) -> Option<PersonName> {
    match place {
        StoreLocation::Server { url, .. } => url.user().parse().ok(),
        StoreLocation::File(_) => config.user_name().or_else(login_name),
    }
}

/// Returns the name under which the user is logged in.
fn login_name() -> Option<PersonName> {
    let variables = ["LOGNAME", "USER"].into_iter();
    let mut named = variables.filter_map(|name| env::var(name).ok()?.parse().ok());
    named.next().or_else(|| {
        let uid = rustix::process::geteuid().as_raw();
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let known = user_of(&users, uid).and_then(|name| name.parse().ok());
        known.or_else(|| format!("uid-{uid}").parse().ok())
    })
}

/// Returns the name of a user id in the text of `/etc/passwd`.
fn user_of(users: &str, uid: u32) -> Option<&str> {
    let uid = uid.to_string();
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then_some(name)
    })
}

/// Returns the id of this machine; a change of any of its parts makes it another machine.
pub(crate) fn machine() -> MachineId {
    static MACHINE: OnceLock<MachineId> = OnceLock::new();
    *MACHINE.get_or_init(|| MachineParts::read().id())
}

/// Parts that identify a machine.
#[derive(Clone, Debug, Default)]
struct MachineParts {
    /// Random number in this user's local state.
    local: Option<[u8; 16]>,
    /// Id of the system.
    system: Option<String>,
    /// Id of the container.
    container: Option<String>,
}

impl MachineParts {
    fn read() -> Self {
        let local = machine_file().and_then(|path| {
            let loaded = private_file::load_or_create(&path, || Some(System.random()));
            // The id is no secret: another user who works with this directory is on this machine.
            loaded
                .or_else(|_| private_file::load_readable(&path))
                .inspect_err(|error| tracing::warn!(error = %error, "no id of this machine"))
                .ok()
        });
        let mut systems = SYSTEM_FILES.iter().map(fs::read_to_string);
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Self {
            local,
            system: systems.find_map(Result::ok),
            container: container_of(&mounts).map(str::to_owned),
        }
    }

    /// Digests the parts, so that the store learns none of them.
    fn id(&self) -> MachineId {
        let mut attempt = 0_u32;
        loop {
            let mut digest = Sha256::new_with_prefix("ikigai machine\n");
            let system = self.system.as_deref().map(str::trim);
            for part in [
                self.local.as_ref().map(<[u8; 16]>::as_slice),
                system.map(str::as_bytes),
                self.container.as_deref().map(str::as_bytes),
            ] {
                // The length separates the parts.
                digest.update(
                    part.map_or(u64::MAX, |part| part.len() as u64)
                        .to_be_bytes(),
                );
                digest.update(part.unwrap_or_default());
            }
            digest.update(attempt.to_be_bytes());
            let digest = digest.finalize();
            let bytes = std::array::from_fn(|i| digest[i]);
            if let Some(id) = MachineId::from_random(bytes) {
                return id;
            }
            attempt += 1;
        }
    }
}

fn machine_file() -> Option<PathBuf> {
    Some(config::state_home()?.join(MACHINE_FILE))
}

/// Returns the id of the container that the text of `/proc/self/mountinfo` shows.
fn container_of(mounts: &str) -> Option<&str> {
    MOUNTED_FILES.iter().find_map(|file| {
        let mut roots = mounts.lines().filter_map(|line| {
            let mut fields = line.split(' ');
            let root = fields.nth(3)?;
            (fields.next()? == *file).then_some(root)
        });
        roots.find_map(|root| {
            let mut names = root.split(['/', '.']);
            names.find(|name| {
                let digits = name.bytes().filter(u8::is_ascii_hexdigit).count();
                let is_id = name
                    .bytes()
                    .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
                is_id && digits >= CONTAINER_DIGITS
            })
        })
    })
}

#[cfg(test)]
mod tests;
