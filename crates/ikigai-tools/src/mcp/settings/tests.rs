use secrecy::ExposeSecret;

use super::*;

fn variables(name: &str) -> Result<Option<String>, String> {
    match name {
        "SET" => Ok(Some("value".to_owned())),
        "EMPTY" => Ok(Some(String::new())),
        "KEY" => Err("`KEY` is a key of ikigai, which no server gets".to_owned()),
        _ => Ok(None),
    }
}

fn resolve(json: &str) -> Result<McpServerSettings, String> {
    let definition: McpDefinition = serde_json::from_str(json).unwrap();
    definition.resolve("it", &variables, Some(std::path::Path::new("/home/me")))
}

#[test]
fn variables_are_put_in_place() {
    let cases = [
        ("plain $SET", Ok("plain $SET")),
        ("a${SET}b${SET}", Ok("avaluebvalue")),
        ("${NONE:-other}", Ok("other")),
        ("${EMPTY:-other}", Ok("other")),
        ("${EMPTY}", Ok("")),
        ("${SET:-other}", Ok("value")),
        ("${open", Ok("${open")),
        ("${NONE}", Err("the variable `NONE` is not set")),
        (
            "${KEY}",
            Err("`KEY` is a key of ikigai, which no server gets"),
        ),
        (
            "${KEY:-x}",
            Err("`KEY` is a key of ikigai, which no server gets"),
        ),
    ];

    for (text, expected) in cases {
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(expand(text, &variables), expected, "{text}");
    }
}

#[test]
fn a_definition_of_another_program_resolves() {
    let settings = resolve(
        r#"{"type": "stdio", "command": "npx", "args": ["-y", "${SET}"], "env": {"API_TOKEN": "${SET}", "HOME_PAGE": "x"},
            "writable": ["~/data"], "alwaysAllow": [], "disabled": true}"#,
    )
    .unwrap();

    let McpLaunch::Process(process) = &settings.launch else {
        panic!("{settings:?}");
    };
    assert_eq!(process.arguments, ["-y", "value"]);
    assert_eq!(process.writable, [PathBuf::from("/home/me/data")]);
    assert!(!settings.enabled);
    assert!(process.sandbox);
    // A token is kept out of logs; another value may be an ordinary word.
    let secrets: Vec<_> = settings.secrets();
    assert_eq!(secrets.len(), 1);
    assert_eq!(secrets[0].expose_secret(), "value");
    assert!(!format!("{settings:?}").contains("SecretString(\"value"));
}

#[test]
fn a_wrong_definition_says_what_is_wrong() {
    let cases = [
        ("{}", "it has neither `command` nor `url`"),
        (
            r#"{"command": "a", "url": "https://a"}"#,
            "it has both `command` and `url`",
        ),
        (r#"{"command": " "}"#, "`command` is empty"),
        (
            r#"{"url": "ftp://a"}"#,
            "`url` must begin with http:// or https://",
        ),
        (
            r#"{"url": "https://a", "type": "sse"}"#,
            "the transport `sse` is not supported; most servers offer `http` too",
        ),
        (
            r#"{"url": "https://a", "bearer_token_env_var": "NONE"}"#,
            "the variable `NONE` is not set",
        ),
        (
            r#"{"command": "a", "tool_timeout": 0}"#,
            "`tool_timeout` must be 1 to 3600 seconds",
        ),
        (
            r#"{"command": "a", "cwd": "here"}"#,
            "`here` is not an absolute path",
        ),
    ];

    for (json, expected) in cases {
        assert_eq!(resolve(json).unwrap_err(), expected, "{json}");
    }
}

#[test]
fn addresses_are_described_without_secrets() {
    let settings = resolve(
        r#"{"url": "https://me:pass@example.com/mcp?token=abc#x", "headers": {"X-Key": "${SET}"}}"#,
    )
    .unwrap();

    assert_eq!(settings.describe(), "https://example.com/mcp");
    assert_eq!(settings.secrets()[0].expose_secret(), "value");
}
