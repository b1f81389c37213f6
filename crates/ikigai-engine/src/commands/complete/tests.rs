use super::{Candidate, CompletionContext, complete, is_complete};

fn context() -> CompletionContext {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).into()).collect();
    CompletionContext {
        callables: vec![
            Candidate::new("git:fix", "of the project"),
            Candidate::new("clear", ""),
        ],
        marks: texts(&["after", "before", "half way back"]),
        agents: texts(&["docs", "fix-lexer"]),
        models: texts(&["demo", "claude-sonnet-4-5"]),
        tools: texts(&["bash", "file_read"]),
        paths: texts(&["src/", "README.md"]),
        pins: texts(&["AGENTS.md"]),
    }
}

#[test]
fn every_place_of_a_line_completes_to_what_can_stand_there() {
    let cases: [(&str, &[&str]); 20] = [
        ("/rew", &["rewind"]),
        ("/rwd", &["rewind"]),
        ("/und", &["undo"]),
        ("/rewind ", &["after", "before", "half way back"]),
        ("/rewind be", &["before"]),
        ("/rewind half w", &["half way back"]),
        ("/rewind way b", &["half way back"]),
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
        ("/rewind \"a day be", &[]),
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
    let endless = format!("@{}", "R".repeat(2_000));
    assert_eq!(complete(&endless, endless.len(), &context()), []);
}

#[test]
fn what_fits_best_comes_first() {
    let names = [
        "re-do", "xfoo", "oof-o", "a-foo", "Foo", "f-o-o", "foo", "fo-o", "bar",
    ];
    let context = CompletionContext {
        agents: names.iter().map(|name| (*name).into()).collect(),
        ..CompletionContext::default()
    };

    let found = complete("/switch foo", 11, &context);

    let texts: Vec<_> = found.iter().map(|found| found.text.as_str()).collect();
    assert_eq!(texts, ["foo", "Foo", "a-foo", "xfoo", "fo-o", "f-o-o"]);
    let matched: Vec<_> = found.iter().map(|found| found.matched.clone()).collect();
    let expected = [
        vec![0, 1, 2],
        vec![0, 1, 2],
        vec![2, 3, 4],
        vec![1, 2, 3],
        vec![0, 1, 3],
        vec![0, 2, 4],
    ];
    assert_eq!(matched, expected);
}

#[test]
fn letters_are_found_by_their_places_in_bytes() {
    let context = CompletionContext {
        agents: vec!["über-İx".into()],
        ..CompletionContext::default()
    };

    let found = complete("/switch ÜX", 11, &context);

    assert_eq!(found[0].matched, [0, 8]);
}

#[test]
fn a_line_is_complete_if_its_last_word_is() {
    let cases = [
        ("hello", true),
        ("/rew", false),
        ("/rewind", true),
        ("/exit", true),
        ("/nonsense", false),
        ("/rewind ", true),
        ("/rewind aft", false),
        ("/rewind after", true),
        ("/rewind half way", false),
        ("/rewind half way back", true),
        ("/rewind #12", true),
        ("/cd ", false),
        ("/cd sr", false),
        ("/cd src", true),
        ("/pin src", false),
        ("/switch docs", true),
        ("/switch doc", false),
        ("/switch docs ", true),
        ("look at @READ", false),
        ("look at @README.md", true),
        ("look at @", true),
    ];

    for (line, expected) in cases {
        assert_eq!(
            is_complete(line, line.len(), &context()),
            expected,
            "{line}"
        );
    }
}

/// Commands of files follow ours and cannot replace them.
#[test]
fn commands_of_files_are_completed_after_built_in_ones() {
    let texts = |line: &str| -> Vec<String> {
        let found = complete(line, line.len(), &context());
        found.into_iter().map(|found| found.text).collect()
    };

    assert_eq!(texts("/git:f"), ["git:fix"]);
    assert_eq!(
        texts("/clear").iter().filter(|it| *it == "clear").count(),
        1
    );
    assert!(is_complete("/git:fix", 8, &context()));
    assert!(!is_complete("/git:fi", 7, &context()));
}
