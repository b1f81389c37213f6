use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use tempfile::tempdir;

use super::load_or_create;

fn open(path: &Path) -> std::io::Result<[u8; 32]> {
    load_or_create(path, || Some([7; 32]))
}

#[test]
fn a_private_file_is_created_once_for_its_owner_alone() {
    let home = tempdir().unwrap();
    let path = home.path().join("state/ikigai/grant.key");

    let created = open(&path).unwrap();

    assert_eq!(load_or_create(&path, || Some([8; 32])).unwrap(), created);
    let about = fs::metadata(&path).unwrap();
    assert_eq!(about.permissions().mode() & 0o777, 0o600);
    assert_eq!(about.len(), 32);
    let files = fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(files, 1, "nothing is left beside the file");
}

#[test]
fn a_private_file_that_others_can_read_or_replace_is_refused() {
    let home = tempdir().unwrap();
    let path = home.path().join("grant.key");
    fs::write(&path, [7; 32]).unwrap();

    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    assert!(open(&path).is_err(), "readable for a group");
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    assert!(open(&path).is_ok());
    fs::write(&path, [7; 31]).unwrap();
    assert!(open(&path).is_err(), "cut");
    fs::write(&path, [7; 33]).unwrap();
    assert!(open(&path).is_err(), "too long");
    let link = home.path().join("link.key");
    symlink(home.path().join("elsewhere"), &link).unwrap();
    assert!(open(&link).is_err(), "a link");
}
