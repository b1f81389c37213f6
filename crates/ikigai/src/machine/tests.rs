use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::tempdir;

use super::load_or_create;

#[test]
fn the_key_is_created_once_for_its_owner_alone() {
    let home = tempdir().unwrap();
    let path = home.path().join("state/ikigai/grant.key");

    let key = load_or_create(&path).unwrap();

    assert_eq!(load_or_create(&path).unwrap(), key);
    let about = fs::metadata(&path).unwrap();
    assert_eq!(about.permissions().mode() & 0o777, 0o600);
    assert_eq!(about.len(), 32);
    let files = fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(files, 1, "nothing is left beside the key");
}

#[test]
fn a_key_that_others_can_read_or_replace_is_refused() {
    let home = tempdir().unwrap();
    let path = home.path().join("grant.key");
    fs::write(&path, [7; 32]).unwrap();

    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    assert!(load_or_create(&path).is_err(), "readable for a group");
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    assert!(load_or_create(&path).is_ok());
    fs::write(&path, [7; 31]).unwrap();
    assert!(load_or_create(&path).is_err(), "cut");
    let link = home.path().join("link.key");
    symlink(home.path().join("elsewhere"), &link).unwrap();
    assert!(load_or_create(&link).is_err(), "a link");
}
