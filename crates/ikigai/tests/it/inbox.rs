//! `ikigai inbox`: what waits for the user, from outside of the program.

use serde_json::Value;

use crate::support::TestUser;

#[test]
fn the_inbox_lists_failures_until_the_agent_goes_on() {
    let user = TestUser::new();
    let empty = user.ikigai(&["inbox"]);
    assert_eq!((empty.out.as_str(), empty.code), ("", Some(0)));
    assert_eq!(empty.err, "Nothing waits for you\n");
    let failed = user.ikigai(&["run", "fail"]);
    assert_ne!(failed.code, Some(0));

    let listed = user.ikigai(&["inbox"]);

    assert_eq!(listed.code, Some(0), "{}", listed.err);
    assert!(listed.out.starts_with("✗ project "), "{}", listed.out);
    assert!(listed.out.contains("  failed: "), "{}", listed.out);
    assert_eq!(listed.out.lines().count(), 1);
    let json = user.ikigai(&["inbox", "--json"]);
    let entry: Value = serde_json::from_str(json.out.trim()).unwrap();
    assert_eq!(entry["name"], "project");
    assert_eq!(entry["kind"], "failed");
    assert!(entry["seq"].as_u64() > Some(1), "{entry}");
    let typed = user.ikigai(&["run", "/inbox"]);
    assert!(typed.out.contains("✗ project"), "{typed:?}");
    // The answer that goes on is printed, so it does not wait either.
    assert_eq!(user.ikigai(&["run", "hello"]).code, Some(0));
    assert_eq!(user.ikigai(&["inbox"]).out, "");
}

#[test]
fn the_inbox_is_cleared_from_outside() {
    let user = TestUser::new();
    assert_ne!(user.ikigai(&["run", "fail"]).code, Some(0));
    assert!(user.ikigai(&["inbox"]).out.contains("failed: "));

    let cleared = user.ikigai(&["inbox", "--clear"]);

    assert_eq!((cleared.out.as_str(), cleared.code), ("", Some(0)));
    assert_eq!(user.ikigai(&["inbox"]).out, "");
    // A child that the user forked reports to the user, from a process that has ended.
    let forked = user.ikigai(&["run", "/fork --fresh --name helper hello"]);
    assert_eq!(forked.code, Some(0), "{}", forked.err);
    let listed = user.ikigai(&["inbox"]);
    assert!(listed.out.starts_with("✓ helper "), "{}", listed.out);
    assert!(listed.out.contains("  report: "), "{}", listed.out);
}
