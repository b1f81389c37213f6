use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use rustix::fs::{CWD, Mode};
use rustix::io::Errno;

use super::{AnchoredFile, MissingDirectories, PASS, open_directory, step_down};

/// Opens a directory by `openat2` and step by step, and checks that both agree.
fn open_both_ways(path: &Path, missing: MissingDirectories) -> Result<u64, Option<i32>> {
    let root = rustix::fs::openat(CWD, "/", PASS, Mode::empty()).unwrap();
    let inode = |opened: std::io::Result<std::os::fd::OwnedFd>| {
        let opened = opened.map_err(|error| error.raw_os_error())?;
        Ok(fs::File::from(opened).metadata().unwrap().ino())
    };
    let stepped = inode(step_down(root, path.strip_prefix("/").unwrap(), missing));
    let at_once = inode(open_directory(path, missing));
    assert_eq!(stepped, at_once, "{}", path.display());
    stepped
}

#[test]
fn a_path_through_a_link_is_refused_and_one_without_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    fs::create_dir_all(base.join("real/deep")).unwrap();
    fs::write(base.join("file"), "").unwrap();
    symlink("real", base.join("link")).unwrap();
    symlink("/", base.join("root")).unwrap();
    let fail = MissingDirectories::Fail;

    let expected = fs::metadata(base.join("real/deep")).unwrap().ino();
    assert_eq!(open_both_ways(&base.join("real/deep"), fail), Ok(expected));
    let refused = |errno: Errno| Err(Some(errno.raw_os_error()));
    for (name, errno) in [
        ("link", Errno::LOOP),
        ("link/deep", Errno::LOOP),
        ("root/tmp", Errno::LOOP),
        ("file", Errno::NOTDIR),
        ("missing/a", Errno::NOENT),
    ] {
        assert_eq!(
            open_both_ways(&base.join(name), fail),
            refused(errno),
            "{name}"
        );
    }
}

#[test]
fn missing_directories_are_created_but_never_behind_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    fs::create_dir(base.join("real")).unwrap();
    symlink("real", base.join("link")).unwrap();

    let made = open_both_ways(&base.join("a/b/c"), MissingDirectories::Create);
    let behind = open_both_ways(&base.join("link/new"), MissingDirectories::Create);

    assert_eq!(made, Ok(fs::metadata(base.join("a/b/c")).unwrap().ino()));
    assert_eq!(behind, Err(Some(Errno::LOOP.raw_os_error())));
    assert_eq!(fs::read_dir(base.join("real")).unwrap().count(), 0);
}

#[test]
fn a_file_stays_in_the_directory_that_was_opened() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    for name in ["one", "other"] {
        fs::create_dir(base.join(name)).unwrap();
        fs::write(base.join(name).join("a"), name).unwrap();
    }
    let file = AnchoredFile::open(&base.join("one/a"), MissingDirectories::Fail).unwrap();

    fs::rename(base.join("one"), base.join("moved")).unwrap();
    symlink("other", base.join("one")).unwrap();
    file.remove().unwrap();

    assert!(!base.join("moved/a").exists());
    assert!(base.join("other/a").exists());
}
