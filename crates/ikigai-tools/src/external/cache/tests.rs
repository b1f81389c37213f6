use std::os::unix::fs::PermissionsExt;

use super::*;

fn identity(path: &Path) -> Identity {
    Identity::of(&fs::metadata(path).unwrap())
}

#[test]
fn what_is_remembered_is_read_again_until_the_file_changes() {
    let directory = tempfile::tempdir().unwrap();
    let (tool, file) = (
        directory.path().join("x-tool"),
        directory.path().join("a/cache"),
    );
    fs::write(&tool, "one").unwrap();
    let before = identity(&tool);
    let outcome = ProbeOutcome::Broken("for a reason".to_owned());
    let mut cache = Cache::default();
    cache.put(tool.clone(), before, outcome.clone());

    cache.save(&file).unwrap();
    let loaded = Cache::load(&file);
    fs::write(&tool, "two").unwrap();

    assert_eq!(loaded.get(&tool, before), Some(&outcome));
    assert_eq!(loaded.get(&tool, identity(&tool)), None);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn a_damaged_file_is_as_good_as_none() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cache");

    for bytes in [
        &b""[..],
        b"{",
        b"[]",
        b"\xff",
        br#"{"version":99,"entries":{}}"#,
    ] {
        fs::write(&file, bytes).unwrap();
        assert_eq!(Cache::load(&file), Cache::default());
    }
    assert_eq!(
        Cache::load(&directory.path().join("none")),
        Cache::default()
    );
}

#[test]
fn a_tool_that_was_too_slow_has_another_chance() {
    let directory = tempfile::tempdir().unwrap();
    let tool = directory.path().join("x-tool");
    fs::write(&tool, "one").unwrap();
    let identity = identity(&tool);
    let mut cache = Cache::default();
    let slow = |at| ProbeOutcome::Slow {
        reason: "slow".to_owned(),
        at,
    };

    cache.put(tool.clone(), identity, slow(now()));
    assert!(cache.get(&tool, identity).is_some());
    cache.put(
        tool.clone(),
        identity,
        slow(now() - TRIED_AGAIN_AFTER.as_secs()),
    );
    assert_eq!(cache.get(&tool, identity), None);
}
