//! Where control sockets are.

use std::env;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::config;

/// The directory of the sockets of this user: `$IKIGAI_RUNTIME_DIR`, else `ikigai` in
/// `$XDG_RUNTIME_DIR`, else `run` among what is remembered of this machine.
pub(crate) fn directory() -> Result<PathBuf> {
    let named = |name: &str| {
        let value = env::var_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    if let Some(own) = named("IKIGAI_RUNTIME_DIR") {
        return std::path::absolute(&own)
            .with_context(|| format!("IKIGAI_RUNTIME_DIR is `{}`", own.display()));
    }
    if let Some(runtime) = named("XDG_RUNTIME_DIR").filter(|path| path.is_absolute()) {
        return Ok(runtime.join("ikigai"));
    }
    let state = config::state_home();
    let state = state.context("there is no home directory\nhint: set IKIGAI_RUNTIME_DIR")?;
    Ok(state.join("run"))
}

/// The socket of a process.
pub(crate) fn socket_of(directory: &Path, pid: u32) -> PathBuf {
    directory.join(format!("ikigai-{pid}.sock"))
}

/// Makes the directory if it is missing, for its owner alone; one of somebody else is refused.
pub(super) fn prepare(directory: &Path) -> Result<()> {
    let named = || {
        format!(
            "cannot use `{}` for the control socket",
            directory.display()
        )
    };
    let made = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory);
    made.with_context(named)?;
    let found = fs::metadata(directory).with_context(named)?;
    if found.uid() != rustix::process::geteuid().as_raw() {
        bail!("{}: it belongs to somebody else", named());
    }
    let is_own = env::var_os("IKIGAI_RUNTIME_DIR").is_none_or(|value| value.is_empty());
    if is_own && found.mode() & 0o077 != 0 {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).with_context(named)?;
    }
    Ok(())
}

/// The processes that listen, with their sockets. What is left of dead ones is removed.
pub(crate) fn instances(directory: &Path) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let sockets = entries.filter_map(|entry| {
        let name = entry.file_name();
        let pid = name.to_str()?.strip_prefix("ikigai-")?;
        let pid = pid.strip_suffix(".sock")?.parse().ok()?;
        Some((pid, entry.path()))
    });
    let mut living: Vec<_> = sockets.filter(|(_, path)| is_heard(path)).collect();
    living.sort();
    living
}

/// Whether somebody listens at a socket; removes it if it is certain that nobody does.
fn is_heard(path: &Path) -> bool {
    match UnixStream::connect(path) {
        Ok(_) => true,
        Err(error) => {
            if error.kind() == std::io::ErrorKind::ConnectionRefused {
                // Somebody else may have removed it already.
                let _ = fs::remove_file(path);
            }
            false
        }
    }
}
