use super::*;

fn server(text: &str) -> Table {
    toml::from_str(text).unwrap()
}

#[test]
fn adding_and_removing_a_server_leaves_the_other_lines() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config.toml");
    let before = "# mine\nmodel = \"demo\" # best\n\n[mcp.other]\ncommand = \"x\"\n";
    fs::write(&file, before).unwrap();
    let git = server("command = 'uvx'\nargs = ['a b', '--']\nenv = { 'X Y' = '\"quoted\"' }");

    add(&file, "my git", &git).unwrap();

    let text = fs::read_to_string(&file).unwrap();
    assert!(text.starts_with(before), "{text}");
    let parsed: Table = toml::from_str(&text).unwrap();
    assert_eq!(parsed["mcp"]["my git"].as_table(), Some(&git));

    remove(&file, "my git").unwrap();

    assert_eq!(fs::read_to_string(&file).unwrap(), before);
}

#[test]
fn removing_a_server_takes_its_inner_sections_too() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config.toml");
    let text = "[mcp.a]\ncommand = 'x'\n[mcp.a.env]\nKEY = 'v'\n[mcp.ab]\ncommand = 'y'\n";
    fs::write(&file, text).unwrap();

    remove(&file, "a").unwrap();

    let left = fs::read_to_string(&file).unwrap();
    assert_eq!(left, "[mcp.ab]\ncommand = 'y'\n");
}

#[test]
fn a_file_that_cannot_be_changed_by_lines_stays() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config.toml");
    let text = "mcp = { a = { command = 'x' } }\n";
    fs::write(&file, text).unwrap();

    let error = remove(&file, "a").unwrap_err();

    assert!(error.to_string().contains("in an editor"), "{error}");
    assert!(
        remove(&file, "b")
            .unwrap_err()
            .to_string()
            .contains("no server `b`")
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn a_new_file_is_private() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("new/config.toml");

    add(&file, "a", &server("command = 'x'")).unwrap();

    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o077, 0);
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        "[mcp.a]\ncommand = \"x\"\n"
    );
}
