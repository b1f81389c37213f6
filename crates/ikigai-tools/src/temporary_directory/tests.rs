use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{FlockOperation, flock};

use super::{LockedDirectory, remove_abandoned_in};

/// Directory of a dead process, with a file below it.
fn abandoned(parent: &Path, digit: char) -> PathBuf {
    let path = parent.join(format!("ikigai-tmp-{}", String::from(digit).repeat(16)));
    fs::create_dir_all(path.join("below/deep")).unwrap();
    fs::write(path.join("below/deep/file"), "content").unwrap();
    path
}

#[test]
fn only_directories_without_an_owner_are_removed() {
    let home = tempfile::tempdir().unwrap();
    let living = LockedDirectory::make(home.path()).unwrap();
    fs::write(living.path.join("file"), "content").unwrap();
    let dead = abandoned(home.path(), 'a');
    let others = [
        "ikigai-0123456789abcdef",
        "ikigai-tmp-short",
        "ikigai-tmp-ABCDEF0123456789",
        "ikigai-tmp-0123456789abcdef0",
        "other",
    ];
    for name in others {
        fs::create_dir(home.path().join(name)).unwrap();
    }

    assert_eq!(remove_abandoned_in(home.path()).unwrap(), 1);

    assert!(!dead.exists());
    assert!(living.path.join("file").exists());
    assert!(others.iter().all(|name| home.path().join(name).exists()));
    let path = living.path.clone();
    drop(living);
    assert!(!path.exists());
}

/// Nothing outside changes, with any content that a command leaves.
#[test]
fn links_are_removed_and_never_followed() {
    let home = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("file"), "content").unwrap();
    let mode = fs::Permissions::from_mode(0o500);
    fs::set_permissions(outside.path(), mode.clone()).unwrap();
    let dead = abandoned(home.path(), 'a');
    symlink(outside.path(), dead.join("link")).unwrap();
    symlink(outside.path().join("file"), dead.join("below/link")).unwrap();
    fs::set_permissions(dead.join("below/deep"), mode).unwrap();
    // A link in the place of a directory.
    let link = home.path().join(format!("ikigai-tmp-{}", "b".repeat(16)));
    symlink(outside.path(), &link).unwrap();

    assert_eq!(remove_abandoned_in(home.path()).unwrap(), 1);

    assert!(!dead.exists());
    assert!(link.is_symlink());
    assert_eq!(
        fs::read_to_string(outside.path().join("file")).unwrap(),
        "content"
    );
    assert_eq!(fs::metadata(outside.path()).unwrap().mode() & 0o777, 0o500);
}

#[test]
fn a_directory_of_another_user_or_with_a_lock_stays() {
    let home = tempfile::tempdir().unwrap();
    let locked = abandoned(home.path(), 'a');
    let lock = fs::File::open(&locked).unwrap();
    flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    if rustix::process::geteuid().is_root() {
        chown(abandoned(home.path(), 'b'), Some(65534), None).unwrap();
        assert_eq!(remove_abandoned_in(home.path()).unwrap(), 0);
    }

    assert_eq!(remove_abandoned_in(home.path()).unwrap(), 0);
    assert!(locked.join("below/deep/file").exists());

    drop(lock);
    assert_eq!(remove_abandoned_in(home.path()).unwrap(), 1);
    assert!(!locked.exists());
}

/// A command of a killed process keeps its files until it is ended.
#[test]
fn a_directory_that_a_running_process_uses_stays() {
    let home = tempfile::tempdir().unwrap();
    let used = abandoned(home.path(), 'a');
    let mut command = Command::new("cat");
    let mut process = command
        .env("TMPDIR", &used)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Its environment can be read once the program itself runs.
    process.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    let mut echoed = [0];
    process
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut echoed)
        .unwrap();

    assert_eq!(remove_abandoned_in(home.path()).unwrap(), 0);
    assert!(used.join("below/deep/file").exists());

    drop(process.stdin.take());
    process.wait().unwrap();
    assert_eq!(remove_abandoned_in(home.path()).unwrap(), 1);
    assert!(!used.exists());
}

#[test]
fn a_directory_is_made_once_and_goes_with_its_owner() {
    let home = tempfile::tempdir().unwrap();
    let made = LockedDirectory::make(home.path()).unwrap();
    assert_eq!(fs::metadata(&made.path).unwrap().mode() & 0o777, 0o700);
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);

    // A directory with more levels than descriptors allow stays, without harm.
    let mut deep = made.path.clone();
    for _ in 0..300 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).unwrap();
    let path = made.path.clone();
    drop(made);
    assert!(path.exists());
}
