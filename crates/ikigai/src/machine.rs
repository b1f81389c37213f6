//! Engine environment of this machine, with the key that tags the user's grants.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ikigai_core::Micros;
use ikigai_engine::{Environment, GrantKey, Platform, System};
use jiff::tz::TimeZone;

use crate::config;

/// Name of the key file in the local state directory.
const KEY_FILE: &str = "grant.key";

/// Environment of the system, with the user's key.
#[derive(Default)]
pub(crate) struct Machine {
    key: OnceLock<GrantKey>,
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

    fn grant_key(&self) -> GrantKey {
        *self.key.get_or_init(|| {
            let path = key_file().ok_or_else(|| io::Error::other("no home directory"));
            path.and_then(|path| load_or_create(&path))
                .unwrap_or_else(|error| {
                    tracing::warn!(error = %error, "grants end with this process: no key file");
                    GrantKey::of_this_process()
                })
        })
    }
}

/// Reads the key, and creates it if it is missing.
fn load_or_create(path: &Path) -> io::Result<GrantKey> {
    match load(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        loaded => return loaded,
    }
    let directory = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    let key = GrantKey::draw().ok_or_else(|| io::Error::other("no random numbers available"))?;
    // A link to a complete file makes it appear atomically, and the first process wins.
    let partial = path.with_extension(format!("{}.partial", std::process::id()));
    let created = create(&partial, &key).and_then(|()| match fs::hard_link(&partial, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    });
    let _ = fs::remove_file(&partial);
    created?;
    // The link must survive a power loss, or grants of this session would be void.
    let _ = File::open(directory).and_then(|directory| directory.sync_all());
    load(path)
}

fn create(partial: &Path, key: &GrantKey) -> io::Result<()> {
    let _ = fs::remove_file(partial);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(partial)?;
    file.write_all(key.bytes())?;
    file.sync_all()
}

/// Reads the key; refuses a file that others own, can read or could have written.
fn load(path: &Path) -> io::Result<GrantKey> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)?;
    let about = file.metadata()?;
    let is_own = about.uid() == rustix::process::geteuid().as_raw();
    if !is_own || !about.is_file() || about.mode() & 0o077 != 0 {
        return Err(io::Error::other("other users can access the key file"));
    }
    let mut bytes = Vec::new();
    file.take(64).read_to_end(&mut bytes)?;
    let bytes = bytes.try_into();
    let bytes = bytes.map_err(|_| io::Error::other("the key file is damaged"))?;
    Ok(GrantKey::new(bytes))
}

#[cfg(test)]
mod tests;
