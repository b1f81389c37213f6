use super::{Context, complete};

fn context() -> Context {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    Context {
        marks: texts(&["after", "before"]),
        agents: texts(&["docs", "fix-lexer"]),
        models: texts(&["demo", "claude-sonnet-4-5"]),
        tools: texts(&["bash", "file_read"]),
        paths: texts(&["src/", "README.md"]),
        pins: texts(&["AGENTS.md"]),
    }
}

#[test]
fn every_place_of_a_line_completes_to_what_can_stand_there() {
    let cases: [(&str, &[&str]); 17] = [
        ("/rew", &["rewind"]),
        ("/rwd", &["rewind"]),
        ("/und", &["undo"]),
        ("/rewind ", &["after", "before"]),
        ("/rewind be", &["before"]),
        ("/model son", &["claude-sonnet-4-5"]),
        ("/tools f", &["file_read"]),
        ("/tools only bash f", &["file_read"]),
        ("/approve e", &["edits", "read"]),
        ("/cd ", &["src/"]),
        ("/pin R", &["README.md", "src/"]),
        ("/pin -", &["AGENTS.md"]),
        ("/help cl", &["clear"]),
        ("look at @RE", &["README.md"]),
        ("look at RE", &[]),
        ("/mark x", &[]),
        (" /rew", &[]),
    ];

    for (line, expected) in cases {
        let found = complete(line, line.len(), &context());
        let found: Vec<_> = found.iter().map(|found| found.text.as_str()).collect();
        assert_eq!(found, expected, "{line}");
    }
}

#[test]
fn only_what_stands_before_the_cursor_counts() {
    let line = "/re after";
    let at = |cursor| complete(line, cursor, &context()).len();

    assert_eq!(at(4), 0);
    assert!(at(3) >= 4, "retry, redo, rewind, resume");
    assert_eq!(complete("/rewind ä", 9, &context()), []);
    assert_eq!(complete("é", 1, &context()), []);
}
