//! A budget of a tree of agents that several processes work on.

use std::process::{Child, Stdio};

use serde_json::Value;

use crate::support::{TestUser, said};

const CAP: u64 = 60_000;

/// Forks 8 children, each of which forks 3.
const STORM: &str = "fork 8 helpers to fork 3 helpers to count slowly to 5 and wait";

/// Returns the tokens of each response, from the log.
fn responses(user: &TestUser) -> Vec<u64> {
    let asked = "SELECT data FROM messages WHERE kind = 'usage'";
    let answer = user.ikigai(&["sql", asked, "--json"]);
    let tokens = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        let usage: Value = serde_json::from_str(row["data"].as_str().unwrap()).unwrap();
        let part = |key: &str| usage[key].as_u64().unwrap_or(0);
        part("input") + part("output")
    };
    answer.out.lines().map(tokens).collect()
}

/// Three processes with a storm of forks pass a cap by at most one request.
#[test]
fn a_storm_of_forks_stays_below_its_budget() {
    check_storm(&TestUser::with_file());
}

/// The same on a server.
#[test]
fn a_storm_of_forks_on_a_server_stays_below_its_budget() {
    check_storm(&TestUser::with_server());
}

fn check_storm(user: &TestUser) {
    let set = user.ikigai(&["run", "/budget 60k"]);
    assert_eq!(set.code, Some(0), "{}", set.err);
    let storm = || -> Child {
        let mut command = user.command(&["run", "--fresh", "--approve", "all", STORM]);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };

    let running: Vec<Child> = (0..3).map(|_| storm()).collect();
    for process in running {
        said(process.wait_with_output().unwrap());
    }

    let responses = responses(user);
    let (spent, largest) = (responses.iter().sum::<u64>(), responses.iter().max());
    assert!(spent >= CAP, "the storm ended at {spent} tokens");
    let most = CAP + largest.unwrap();
    assert!(spent <= most, "{spent} tokens of {CAP} in {responses:?}");
    let total = user.ikigai(&["sql", "SELECT tokens FROM spending", "--json"]);
    let total: Value = serde_json::from_str(total.out.trim()).unwrap();
    assert_eq!(total["tokens"].as_u64(), Some(spent));
    let left = user.ikigai(&["sql", "SELECT count(*) AS rows FROM reservations", "--json"]);
    let left: Value = serde_json::from_str(left.out.trim()).unwrap();
    assert_eq!(
        left["rows"].as_u64(),
        Some(0),
        "requests that ended reserve nothing"
    );
    let refused = user.ikigai(&["run", "hello"]);
    assert!(
        refused
            .err
            .contains("the budget of this agent and its descendants is used up"),
        "{refused:?}"
    );
}
