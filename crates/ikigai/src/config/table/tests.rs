use std::collections::BTreeSet;
use std::fmt::Write as _;
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
fn the_table_has_every_key_and_no_other() {
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
        let listed = KEYS.iter().filter_map(|key| key.path.strip_prefix(&lead));
        let listed: BTreeSet<_> = listed
            .map(|rest| rest.split('.').next().unwrap().to_owned())
            .collect();

        assert_eq!(listed, names_in(section), "[{section}]");
    }
}

#[test]
fn defaults_are_what_holds_if_nothing_is_said() {
    let keys = KEYS.iter();
    let values = keys.filter(|key| key.without().is_none() && !key.path.contains('*'));
    let text: Vec<_> = values
        .map(|key| format!("{} = {}", key.path, key.default))
        .collect();

    let listed: Config = toml::from_str(&text.join("\n")).unwrap();

    let silent = Config::default();
    assert_eq!(listed.resume(), silent.resume());
    assert_eq!(listed.on_hangup(), silent.on_hangup());
    assert_eq!(listed.notify(), silent.notify());
    assert_eq!(listed.program_status(), silent.program_status());
    assert_eq!(
        listed.context_limits().unwrap(),
        silent.context_limits().unwrap()
    );
    let (listed, silent) = (listed.work(), silent.work());
    assert_eq!(listed.limits.limits(), silent.limits.limits());
    assert_eq!(listed.agents.crowd(), silent.agents.crowd());
    assert_eq!(listed.sandbox.is_enabled(), silent.sandbox.is_enabled());
    assert_eq!(listed.sandbox.has_network(), silent.sandbox.has_network());
    let private = silent.web.may_fetch_private();
    assert_eq!(listed.web.may_fetch_private(), private);
    assert_eq!(listed.permissions, silent.permissions);
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
        Config::read(Some(home.path()), &project, || true)
    };
    let refused = KEYS.iter().filter(|key| key.project == Project::Refused);
    let mut count = 0;
    for key in refused {
        let value = key.without().map_or(key.default, |_| sample(key.path));
        let error = read(&file_with(key.path, value)).unwrap_err().to_string();

        let name = key.path.rsplit('.').next().unwrap();
        assert!(error.contains("line 3: a project cannot set"), "{error}");
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
        assert!(error.contains("a project cannot set"), "{text}: {error}");
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
        Config::read(Some(home.path()), &project, || true).unwrap()
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

/// Formats the table of settings for `docs/configuration.md`.
fn page_table() -> String {
    let mut table =
        String::from("\n| setting | default | meaning | project |\n|---|---|---|---|\n");
    for key in KEYS {
        let default = match key.without() {
            Some(words) => words.to_owned(),
            None => format!("`{}`", key.default),
        };
        let variable = match key.variable() {
            Some(name) => format!("; `{name}` overrides it"),
            None => String::new(),
        };
        let (path, about, project) = (key.path, key.about, key.project_word());
        let about = about.replace('|', "\\|");
        writeln!(
            table,
            "| `{path}` | {default} | {about}{variable} | {project} |"
        )
        .unwrap();
    }
    table
}

/// The page has the table of settings; `IKIGAI_WRITE_DOCS=1` writes it.
#[test]
fn the_page_lists_every_setting() {
    const BEGIN: &str = "<!-- settings: begin -->\n";
    const END: &str = "\n<!-- settings: end -->";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (table, after) = rest.split_once(END).unwrap();

    if std::env::var_os("IKIGAI_WRITE_DOCS").is_some() {
        let page = format!("{before}{BEGIN}{}{END}{after}", page_table());
        return fs::write(path, page).unwrap();
    }

    assert_eq!(table, page_table());
}
