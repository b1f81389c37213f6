use std::collections::BTreeSet;

use super::super::Config;
use super::KEYS;

/// The names that a section takes, as the error about a wrong one lists them.
fn names_in(section: &str) -> BTreeSet<String> {
    let text = format!("[{section}]\nno-such-key = 1\n");
    let text = text.replace("[]\n", "");
    let error = toml::from_str::<Config>(&text).unwrap_err().to_string();
    let (_, expected) = error.split_once("expected ").unwrap();
    let names = expected.split('`').skip(1).step_by(2);
    names.map(str::to_owned).collect()
}

#[test]
fn every_key_is_told_and_no_other() {
    let sections = [
        "",
        "permissions",
        "sandbox",
        "web",
        "limits",
        "agents",
        "providers.x",
        "models.x",
    ];
    for section in sections {
        let lead = match section {
            "" => String::new(),
            section => format!("{}.", section.replace(".x", ".*")),
        };
        let told = KEYS.iter().filter_map(|key| key.path.strip_prefix(&lead));
        let told: BTreeSet<_> = told
            .map(|rest| rest.split('.').next().unwrap().to_owned())
            .collect();

        assert_eq!(told, names_in(section), "[{section}]");
    }
}

#[test]
fn defaults_are_what_holds_if_nothing_is_said() {
    let keys = KEYS.iter();
    let values = keys.filter(|key| key.without().is_none() && !key.path.contains('*'));
    let text: Vec<_> = values
        .map(|key| format!("{} = {}", key.path, key.default))
        .collect();

    let told: Config = toml::from_str(&text.join("\n")).unwrap();

    let silent = Config::default();
    assert_eq!(told.resume(), silent.resume());
    assert_eq!(told.on_hangup(), silent.on_hangup());
    assert_eq!(told.notify(), silent.notify());
    assert_eq!(told.summarise_at(), silent.summarise_at());
    let (told, silent) = (told.work(), silent.work());
    assert_eq!(told.limits.limits(), silent.limits.limits());
    assert_eq!(told.agents.crowd(), silent.agents.crowd());
    assert_eq!(told.sandbox.is_enabled(), silent.sandbox.is_enabled());
    assert_eq!(told.sandbox.has_network(), silent.sandbox.has_network());
    let private = silent.web.may_fetch_private();
    assert_eq!(told.web.may_fetch_private(), private);
    assert_eq!(told.permissions, silent.permissions);
}
