//! Person and machine of a process.

use std::fs;

use crate::support::{TestUser, said};

/// Returns the line of `doctor` about the identity.
fn identity(user: &TestUser, variables: &[(&str, &str)]) -> String {
    let mut command = user.command(&["doctor"]);
    let doctor = said(command.envs(variables.iter().copied()).output().unwrap());
    let line = doctor.out.lines().find(|line| line.contains("identity:"));
    line.unwrap_or_else(|| panic!("{}{}", doctor.out, doctor.err))
        .to_owned()
}

fn machine(line: &str) -> &str {
    line.split_once("(machine ").unwrap().1
}

#[test]
fn a_home_is_one_machine_and_its_person_is_the_configured_or_the_login_name() {
    let (user, other) = (TestUser::with_file(), TestUser::with_file());
    let login = [("LOGNAME", "ann")];

    let first = identity(&user, &login);
    let again = identity(&user, &login);
    let elsewhere = identity(&other, &login);
    let settings = user.home().join(".config/ikigai");
    fs::create_dir_all(&settings).unwrap();
    fs::write(settings.join("config.toml"), "[user]\nname = \"Ann Lee\"\n").unwrap();
    let named = identity(&user, &login);
    fs::write(settings.join("config.toml"), "[user]\nname = \" \"\n").unwrap();
    let refused = user.ikigai(&["doctor"]);

    assert!(first.contains("identity: ann on "), "{first}");
    assert_eq!(first, again);
    assert_ne!(machine(&first), machine(&elsewhere));
    assert!(named.contains("identity: Ann Lee on "), "{named}");
    assert_eq!(machine(&named), machine(&first), "a name is no machine");
    assert_eq!(refused.code, Some(1), "{}", refused.out);
    assert!(
        refused.err.contains("expected 1 to 63 bytes"),
        "{}",
        refused.err
    );
}

#[test]
fn a_lost_machine_file_makes_another_machine() {
    let user = TestUser::with_file();
    let before = identity(&user, &[]);

    fs::remove_file(user.home().join(".local/state/ikigai/machine.id")).unwrap();
    let after = identity(&user, &[]);

    assert_ne!(machine(&before), machine(&after));
}
