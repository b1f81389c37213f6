//! Grants belong to a user on a machine: a foreign log grants nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ikigai_testkit::postgres::Database;

use crate::support::{MockAnswer, TestUser};

/// Asks the demo model to create a file; returns true if the file exists, and the output.
fn writes(reader: &TestUser, project: &Path, file: &str, options: &[&str]) -> (bool, MockAnswer) {
    let line = format!("create the file {file}");
    let said = reader.ikigai(&[&["run"], options, &[&line]].concat());
    (project.join(file).exists(), said)
}

/// E22: imported rows with `approve: all` let no agent write without asking.
///
/// This holds also for an import by the user who granted the mode.
///
/// Attack: approvals in imported logs.
#[test]
fn an_imported_agent_asks_whatever_its_rows_say() {
    let user = TestUser::new();
    let project = user.home().join("project");
    user.ikigai(&["run", "hello"]);
    let set = user.ikigai(&["run", "/approve all"]);
    assert_eq!(set.code, Some(0), "{}", set.err);
    let (own, said) = writes(&user, &project, "own.txt", &[]);
    assert!(own, "a grant holds in a later process: {said:?}");
    let file = user.home().join("all.json");
    let file = file.to_str().unwrap();
    let exported = user.ikigai(&["export", "--all", "--format", "json", "--output", file]);
    assert_eq!(exported.code, Some(0), "{}", exported.err);
    assert!(fs::read_to_string(file).unwrap().contains("grant"));

    let stranger = TestUser::new();
    for (reader, name) in [(&user, "same"), (&stranger, "stranger")] {
        let file_of = |what: &str| format!("{what}-{name}.txt");
        let store = reader.home().join("other.db");
        let store = store.to_str().unwrap();
        let taken = reader.ikigai(&["import", "--db", store, file]);
        assert_eq!(taken.code, Some(0), "{}", taken.err);
        let options = ["--db", store, "--agent", "project"];
        let (written, said) = writes(reader, &project, &file_of("foreign"), &options);
        assert!(!written, "{said:?}");
        assert!(
            said.err.contains("Not in force here: mode all"),
            "{}",
            said.err
        );
        // The user may grant it permanently or for one run.
        let for_now = [&options[..], &["--approve", "all"]].concat();
        let (written, said) = writes(reader, &project, &file_of("for-now"), &for_now);
        assert!(written, "{said:?}");
        assert!(!said.err.contains("Not in force"), "{}", said.err);
        let granted = reader.ikigai(&[&["run"], &options[..], &["/approve grant"]].concat());
        assert!(
            granted.out.contains("Granted here: mode all"),
            "{granted:?}"
        );
        let (written, said) = writes(reader, &project, &file_of("granted"), &options);
        assert!(written, "{said:?}");
    }
}

/// E22: on a shared server a mode holds for the person who granted it.
#[test]
fn a_mode_on_a_shared_server_holds_for_one_person() {
    let database = Database::fresh();
    let url = database.url();
    let (one, other) = (TestUser::with_file(), TestUser::with_file());
    let options = ["--db", &url, "--agent", "project"];
    one.ikigai(&["--db", &url, "run", "hello"]);
    one.ikigai(&[&["run"], &options[..], &["/approve all"]].concat());

    let project = one.home().join("project");
    let (written, said) = writes(&one, &project, "one.txt", &options);
    assert!(written, "{said:?}");
    let (written, said) = writes(&other, &project, "two.txt", &options);
    assert!(!written, "{said:?}");
    assert!(said.err.contains("Not in force here"), "{}", said.err);
}

/// E22: only its owner can read the key, and no tool can.
#[test]
fn the_key_is_created_for_its_owner_and_hidden_from_tools() {
    let user = TestUser::new();
    user.ikigai(&["run", "hello"]);
    let key = user.home().join(".local/state/ikigai/grant.key");
    assert!(!key.exists(), "nothing was granted");
    user.ikigai(&["run", "/approve all"]);

    let about = fs::metadata(&key).unwrap();
    assert_eq!(about.permissions().mode() & 0o777, 0o600);
    let ran = user.ikigai(&["run", &format!("run wc -c {}", key.display())]);
    assert!(!format!("{ran:?}").contains("32 /"), "{ran:?}");
    let log = user.ikigai(&["log", "--json"]);
    assert!(!log.out.contains("32 /"), "{}", log.out);
}

/// E22: a copy of a whole store by its owner keeps the owner's grants.
#[test]
fn a_copy_by_the_same_user_keeps_grants() {
    let user = TestUser::with_file();
    user.ikigai(&["run", "hello"]);
    user.ikigai(&["run", "/approve all"]);
    let from = user.database();
    let to = user.home().join("copy.db");
    let to = to.to_str().unwrap();

    let copied = user.ikigai(&["copy", "--from", from.to_str().unwrap(), "--to", to]);
    assert_eq!(copied.code, Some(0), "{}", copied.err);
    let project = user.home().join("project");
    let (written, said) = writes(&user, &project, "copied.txt", &["--db", to]);

    assert!(written, "{said:?}");
}
