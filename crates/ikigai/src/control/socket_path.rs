//! Paths of control sockets.

use std::env;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::config;

/// Returns the directory of this user's sockets.
///
/// It is `$IKIGAI_RUNTIME_DIR`, else `ikigai` in `$XDG_RUNTIME_DIR`, else `run` in the state
/// directory.
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
    let state = state.context("no home directory\nhint: set IKIGAI_RUNTIME_DIR")?;
    Ok(state.join("run"))
}

/// Returns the socket of a process.
pub(crate) fn socket_of(directory: &Path, pid: u32) -> PathBuf {
    directory.join(format!("ikigai-{pid}.sock"))
}

/// Creates the directory if it is missing, for its owner alone; refuses an unsafe one.
pub(super) fn prepare(directory: &Path) -> Result<()> {
    let named = || named(directory);
    let made = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory);
    match made {
        // Report a link as a link, not as a file that is in the way.
        Err(_) if directory.is_symlink() => {}
        made => made.with_context(named)?,
    }
    check(directory)?;
    let found = fs::symlink_metadata(directory).with_context(named)?;
    let is_own = env::var_os("IKIGAI_RUNTIME_DIR").is_none_or(|value| value.is_empty());
    if is_own && found.mode() & 0o077 != 0 {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).with_context(named)?;
    }
    Ok(())
}

/// Refuses a directory in which another user could create or replace a socket.
///
/// It must belong to the user and not be a link, and other users must not be able to write it or to
/// replace it from a directory above.
pub(crate) fn check(directory: &Path) -> Result<()> {
    let found = fs::symlink_metadata(directory).with_context(|| named(directory))?;
    if found.is_symlink() || !found.is_dir() {
        bail!("{}: not a directory", named(directory));
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        bail!("{}: it belongs to another user", named(directory));
    }
    if found.mode() & 0o022 != 0 {
        bail!(
            "{}: other users can write to it\nhint: remove it, or run chmod 700 '{}'",
            named(directory),
            directory.display()
        );
    }
    let real = directory.canonicalize().with_context(|| named(directory))?;
    for above in real.ancestors().skip(1) {
        check_above(above).with_context(|| named(directory))?;
    }
    Ok(())
}

/// Refuses a directory in which another user can rename entries. Sticky ones are safe.
fn check_above(above: &Path) -> Result<()> {
    let found = fs::metadata(above)?;
    let is_trusted = [0, rustix::process::geteuid().as_raw()].contains(&found.uid());
    let is_sticky = found.mode() & 0o1000 != 0;
    // If each user has a private group, homes may be writable for it.
    let is_own_group = found.gid() == rustix::process::getegid().as_raw();
    let others = if is_own_group { 0o002 } else { 0o022 };
    if !is_trusted {
        bail!("`{}` belongs to another user", above.display());
    }
    if found.mode() & others != 0 && !is_sticky {
        bail!("other users can write to `{}`", above.display());
    }
    Ok(())
}

fn named(directory: &Path) -> String {
    format!(
        "cannot use `{}` for the control socket",
        directory.display()
    )
}

/// Returns the listening processes with their sockets; removes sockets of dead ones.
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

/// Returns true if a process listens at a socket; removes it if certainly none does.
fn is_heard(path: &Path) -> bool {
    match UnixStream::connect(path) {
        Ok(_) => true,
        Err(error) => {
            if error.kind() == std::io::ErrorKind::ConnectionRefused {
                // Another process may have removed it already.
                let _ = fs::remove_file(path);
            }
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn refusal(directory: &Path) -> String {
        format!("{:#}", prepare(directory).unwrap_err())
    }

    #[test]
    fn a_directory_that_others_can_write_is_refused() {
        let home = tempfile::tempdir().unwrap();
        for mode in [0o777, 0o770, 0o702, 0o1777] {
            let directory = home.path().join(format!("{mode:o}"));
            fs::create_dir(&directory).unwrap();
            set_mode(&directory, mode);

            let error = refusal(&directory);
            assert!(
                error.contains("other users can write to it"),
                "{mode:o}: {error}"
            );
            assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o7777, mode);
        }
    }

    #[test]
    fn a_link_and_a_file_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let real = home.path().join("real");
        fs::create_dir(&real).unwrap();
        set_mode(&real, 0o700);
        symlink(&real, home.path().join("link")).unwrap();
        symlink(home.path().join("missing"), home.path().join("dangling")).unwrap();
        fs::write(home.path().join("file"), "").unwrap();

        for name in ["link", "dangling"] {
            let error = refusal(&home.path().join(name));
            assert!(error.contains("not a directory"), "{name}: {error}");
        }
        assert!(prepare(&home.path().join("file")).is_err());
        assert!(!home.path().join("missing").exists());
    }

    #[test]
    fn a_directory_that_others_can_replace_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let open = home.path().join("open");
        fs::create_dir(&open).unwrap();
        set_mode(&open, 0o777);
        let directory = open.join("ikigai");

        let error = refusal(&directory);
        assert!(error.contains("other users can write to"), "{error}");
        set_mode(&open, 0o1777);
        prepare(&directory).unwrap();
        assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_directory_of_another_user_is_refused() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("theirs");
        fs::create_dir(&directory).unwrap();
        set_mode(&directory, 0o700);
        std::os::unix::fs::chown(&directory, Some(65534), None).unwrap();

        let error = refusal(&directory);
        assert!(error.contains("belongs to another user"), "{error}");
    }
}
