use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::super::Config;
use super::{KEYS, Project};

/// Returns the names of a section, from the error about an unknown one.
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
        "context",
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
    assert_eq!(
        told.context_limits().unwrap(),
        silent.context_limits().unwrap()
    );
    let (told, silent) = (told.work(), silent.work());
    assert_eq!(told.limits.limits(), silent.limits.limits());
    assert_eq!(told.agents.crowd(), silent.agents.crowd());
    assert_eq!(told.sandbox.is_enabled(), silent.sandbox.is_enabled());
    assert_eq!(told.sandbox.has_network(), silent.sandbox.has_network());
    let private = silent.web.may_fetch_private();
    assert_eq!(told.web.may_fetch_private(), private);
    assert_eq!(told.permissions, silent.permissions);
}

/// Returns a valid value for a key without a default.
fn sample(path: &str) -> &'static str {
    match path {
        "model" => "\"anthropic:theirs\"",
        "symbols" => "\"ascii\"",
        "keys.*" => "\"newline\"",
        _ => "1",
    }
}

/// Returns a file that sets one key, with a comment before it.
fn file_with(path: &str, value: &str) -> String {
    let path = path
        .replace("models.*", "models.\"mine:big\"")
        .replace("keys.*", "keys.\"ctrl-o\"");
    format!(
        "# of the project\n\n{} = {value}\n",
        path.replace('*', "openai")
    )
}

/// Keys that are closed to projects are refused with their line, in each spelling.
#[test]
fn a_project_cannot_set_what_the_table_refuses() {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("project");
    fs::create_dir_all(project.join(".ikigai")).unwrap();
    let file = project.join(".ikigai/config.toml");
    let read = |text: &str| {
        fs::write(&file, text).unwrap();
        Config::read(Some(home.path()), &project)
    };
    let refused = KEYS.iter().filter(|key| key.project == Project::Refused);
    let mut count = 0;
    for key in refused {
        let value = key.without().map_or(key.default, |_| sample(key.path));
        let error = read(&file_with(key.path, value)).unwrap_err().to_string();

        let name = key.path.rsplit('.').next().unwrap();
        assert!(error.contains("line 3: a project may not set"), "{error}");
        assert!(error.contains(name), "{error}");
        count += 1;
    }
    assert!(count > 25, "{count}");
    for text in [
        "[providers]\nopenai = { base_url = \"http://127.0.0.1:9\" }",
        "providers = { openai = { \"base_url\" = \"http://127.0.0.1:9\" } }",
        "[providers.openai.headers]\nAuthorization = \"x\"",
        "[models.\"openai:gpt-5\"]\ncontext_window = 5\nprice_in = 0.0",
        "models.x = { price_out = 0.0 }",
        "[[permissions.allow]]\ntool = \"bash\"\npattern = \"*\"",
        "\"sandbox\".\"enabled\" = false",
        "web.private_addresses = true",
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains("a project may not set"), "{text}: {error}");
    }
}

/// A project never widens the user's settings.
#[test]
fn a_project_lowers_and_adds_and_no_more() {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("project");
    fs::create_dir_all(project.join(".ikigai")).unwrap();
    let yours = "budget_tokens = 50\nmouse = false\ntheme = \"dark\"\n\
                 [limits]\nrequests = 5\ncalls = 5\nminutes = 5\n\
                 [models.\"mine:big\"]\ncontext_window = 60\nprice_in = 3.0\n";
    fs::write(home.path().join("config.toml"), yours).unwrap();
    let read = |text: &str| {
        fs::write(project.join(".ikigai/config.toml"), text).unwrap();
        Config::read(Some(home.path()), &project).unwrap()
    };
    let plain = read("");

    for key in KEYS.iter().filter(|key| key.project == Project::Ignored) {
        let value = key.without().map_or(key.default, |_| sample(key.path));
        assert_eq!(read(&file_with(key.path, value)), plain, "{}", key.path);
    }
    for key in KEYS.iter().filter(|key| key.project == Project::Lowers) {
        let higher = read(&file_with(key.path, "70"));
        assert_eq!(higher.budget_tokens, plain.budget_tokens, "{}", key.path);
        let limits = |config: &Config| config.work().limits.limits();
        assert_eq!(limits(&higher), limits(&plain), "{}", key.path);
        let spec = |config: &Config| config.models().unwrap().pop().unwrap();
        assert_eq!(spec(&higher).context_window, Some(60), "{}", key.path);
        assert_eq!(spec(&higher).price_in, Some(3.0), "{}", key.path);
        assert_ne!(read(&file_with(key.path, "2")), plain, "{}", key.path);
    }
}

/// The documentation has a line for each key with the project's right.
#[test]
fn the_page_says_what_a_project_may_set() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let page = fs::read_to_string(page).unwrap();
    for key in KEYS {
        let line = format!("| `{}` | {} |", key.path, key.project_word());
        assert!(
            page.contains(&line),
            "{line} is not in docs/configuration.md"
        );
    }
}
