//! One log on a server: the program uses it as it uses a file.

use std::fs;

use ikigai_testkit::postgres::Database;

use crate::support::{TestUser, said};

#[test]
fn a_conversation_goes_on_wherever_the_store_is_shared() {
    let database = Database::fresh();
    let url = database.url();
    let (one, other) = (TestUser::new(), TestUser::new());

    let first = one.ikigai(&["--db", &url, "run", "the word is heron"]);
    assert_eq!(first.code, Some(0), "{}", first.err);
    let listed = other.ikigai(&["agents", "--db", &url]);
    assert!(listed.out.contains("project"), "{}", listed.out);
    // By the variable, as for a URL that contains a password.
    let mut again = other.command(&["run", "--agent", "project", "what did I say"]);
    let again = said(again.env("IKIGAI_DB", &url).output().unwrap());
    assert_eq!(again.code, Some(0), "{}", again.err);
    assert!(again.out.contains("1. the word is heron"), "{}", again.out);

    let checked = one.ikigai(&["doctor", "--db", &url]);
    assert_eq!(checked.code, Some(0), "{}", checked.out);
    assert!(
        checked.out.contains("store: the log is intact"),
        "{}",
        checked.out
    );
    for expected in ["server: PostgreSQL", "clock agrees", "notifications arrive"] {
        assert!(
            checked.out.contains(expected),
            "{expected}: {}",
            checked.out
        );
    }
    assert!(!one.database().exists(), "no file is made beside a server");
}

#[test]
fn a_password_is_shown_nowhere_and_reaches_no_tool() {
    let database = Database::fresh();
    // The server uses trust authentication, so any password works.
    let url = database.url().replace("postgres@", "postgres:wednesday9@");
    let one = TestUser::new();
    fs::write(
        one.home().join("project/look.sh"),
        "env; cat /proc/*/cmdline",
    )
    .unwrap();
    let mut ask = one.command(&["run", "--approve", "all", "run sh look.sh"]);
    let ran = said(ask.env("IKIGAI_DB", &url).output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.err);

    let log = one.ikigai(&["--db", &database.url(), "log"]);
    assert!(log.out.contains("HOME="), "the tool ran: {}", log.out);
    for said in [ran.out, ran.err, log.out] {
        assert!(!said.contains("wednesday9"), "{said}");
    }
    let doctor = said(
        one.command(&["doctor"])
            .env("IKIGAI_DB", &url)
            .output()
            .unwrap(),
    );
    assert!(doctor.out.contains("postgres@"), "{}", doctor.out);
    assert!(!doctor.out.contains("wednesday9"), "{}", doctor.out);
}

#[test]
fn a_store_is_copied_to_the_other_kind_and_back() {
    let database = Database::fresh();
    let url = database.url();
    let one = TestUser::with_file();
    one.ikigai(&["run", "hello"]);
    one.ikigai(&["run", "/fork --name scout count to 3"]);
    for number in 0..9 {
        one.ikigai(&["run", &format!("/system you are number {number}")]);
    }
    let file = one.database();
    let file = file.to_str().unwrap();
    let back = one.home().join("back.db");
    let back = back.to_str().unwrap();

    let there = one.ikigai(&["copy", "--from", file, "--to", &url]);
    assert_eq!(there.code, Some(0), "{}", there.err);
    let and_back = one.ikigai(&["copy", "--from", &url, "--to", back]);
    assert_eq!(and_back.code, Some(0), "{}", and_back.err);

    assert!(there.out.contains("2 agents"), "{}", there.out);
    assert_eq!(
        there.out, and_back.out,
        "the same counts and the same digest"
    );
    for store in [file, &url, back] {
        // Snapshots spare the first start from reading all settings rows.
        let snapshots = one.ikigai(&["--db", store, "sql", "SELECT upto FROM paths"]);
        assert!(
            snapshots.out.lines().count() > 2,
            "{store}: {}",
            snapshots.out
        );
        let said = one.ikigai(&["--db", store, "run", "what did I say"]);
        assert!(said.out.contains("1. hello"), "{store}: {}", said.out);
    }
}

#[test]
fn a_copy_that_cannot_be_made_leaves_everything_as_it_was() {
    let database = Database::fresh();
    let url = database.url();
    let one = TestUser::with_file();
    one.ikigai(&["run", "hello"]);
    let file = one.database();
    let file = file.to_str().unwrap();
    let missing = one.home().join("missing.db");
    let missing = missing.to_str().unwrap();

    let itself = one.ikigai(&["copy", "--from", file, "--to", file]);
    assert_eq!(itself.code, Some(2), "{}", itself.err);
    let from_nothing = one.ikigai(&["copy", "--from", missing, "--to", &url]);
    assert_eq!(from_nothing.code, Some(3), "{}", from_nothing.err);
    one.ikigai(&["--db", &url, "run", "mine"]);
    let full = one.ikigai(&["copy", "--from", file, "--to", &url]);
    assert_eq!(full.code, Some(3), "{}", full.err);
    assert!(full.err.contains("is not empty"), "{}", full.err);
    // A row with a gap before it, which no other store accepts.
    database.sql("UPDATE messages SET seq = 9 WHERE seq = 2");
    let broken = one.ikigai(&["copy", "--from", &url, "--to", missing]);
    assert_ne!(broken.code, Some(0), "{}", broken.out);

    assert!(
        !one.home().join("missing.db").exists(),
        "no half target is left"
    );
    database.sql("UPDATE messages SET seq = 2 WHERE seq = 9");
    let again = one.ikigai(&["copy", "--from", &url, "--to", missing]);
    assert_eq!(again.code, Some(0), "{}", again.err);
    let mine = one.ikigai(&["--db", &url, "run", "what did I say"]);
    assert!(mine.out.contains("1. mine"), "{}", mine.out);
}
