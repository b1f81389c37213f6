//! Tests of decisions about calls.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ikigai_core::EffectClass;
use ikigai_core::settings::{Approve, Rule};
use proptest::prelude::*;

use crate::permission::{Decision, Grant, Permissions, Sandbox, decide, narrower, pattern_for};
use crate::{Output, Place, Prepared, Run, Touches};

const MODES: [Approve; 4] = [Approve::Read, Approve::Ask, Approve::Edits, Approve::All];

fn prepared(class: EffectClass, subject: &str, pattern: &str, touches: Touches) -> Prepared {
    Prepared {
        class,
        touches,
        shown: subject.to_owned(),
        subject: subject.to_owned(),
        pattern: pattern.to_owned(),
        preview: None,
        deadline: Duration::from_secs(1),
        needs: Vec::new(),
        unconfined: None,
        run: Run::Blocking(Box::new(|_| Output::done("", ""))),
    }
}

fn bash(line: &str) -> Prepared {
    let pattern = pattern_for(line);
    prepared(EffectClass::Execute, line, &pattern, Touches::everything())
}

fn write(path: &Path) -> Prepared {
    let text = path.to_str().unwrap();
    let touches = Touches::writing([path.to_owned()]);
    prepared(EffectClass::Write, text, text, touches)
}

fn read(path: &Path) -> Prepared {
    let text = path.to_str().unwrap();
    let touches = Touches::reading([path.to_owned()]);
    prepared(EffectClass::Read, text, text, touches)
}

fn fetch(address: &str) -> Prepared {
    let pattern = "https://docs.rs/*";
    prepared(EffectClass::Network, address, pattern, Touches::default())
}

fn rule(tool: &str, pattern: &str) -> Rule {
    Rule {
        tool: Some(tool.to_owned()),
        pattern: Some(pattern.to_owned()),
    }
}

fn in_mode(mode: Approve) -> Permissions {
    Permissions {
        grant: Grant {
            mode,
            rules: Vec::new(),
        },
        allow: Vec::new(),
        refuse: Vec::new(),
        sandbox: Sandbox::InForce,
    }
}

fn place(workdir: impl Into<PathBuf>) -> Place {
    Place {
        workdir: workdir.into(),
        hidden: [].into(),
    }
}

fn ask(pattern: &str) -> Decision {
    Decision::Ask {
        pattern: pattern.to_owned(),
    }
}

/// Returns the decision in one word.
fn word(decision: &Decision) -> &'static str {
    match decision {
        Decision::Allow => "allow",
        Decision::AllowConfined => "confined",
        Decision::Ask { .. } => "ask",
        Decision::Refuse(_) => "refuse",
    }
}

#[test]
fn modes_decide_by_what_a_call_does() {
    let directory = tempfile::tempdir().unwrap();
    let place = place(directory.path());
    let inside = directory.path().join("a/b.rs");
    let family = prepared(EffectClass::Agent, "helper", "*", Touches::default());
    let others = prepared(EffectClass::Agent, "other", "*", Touches::everything());
    let tool = prepared(EffectClass::Execute, "{}", "*", Touches::everything());
    let table = [
        ("file_read", read(Path::new("/etc/passwd")), ["allow"; 4]),
        (
            "bash",
            bash("ls | head"),
            ["confined", "confined", "confined", "allow"],
        ),
        ("bash", bash("make test"), ["refuse", "ask", "ask", "allow"]),
        (
            "file_write",
            write(&inside),
            ["refuse", "ask", "allow", "allow"],
        ),
        (
            "file_write",
            write(Path::new("/etc/x")),
            ["refuse", "ask", "ask", "allow"],
        ),
        (
            "web_fetch",
            fetch("https://docs.rs/a"),
            ["refuse", "ask", "ask", "allow"],
        ),
        ("send", family, ["refuse", "allow", "allow", "allow"]),
        ("send", others, ["refuse", "ask", "ask", "allow"]),
        ("deploy", tool, ["refuse", "ask", "ask", "allow"]),
    ];

    for (tool, call, wanted) in table {
        let found = MODES.map(|mode| word(&decide(&in_mode(mode), tool, &call, &place)));
        assert_eq!(found, wanted, "{tool} {}", call.shown);
    }
}

#[test]
fn a_refusal_in_read_mode_says_read() {
    let decision = decide(&in_mode(Approve::Read), "bash", &bash("make"), &place("/w"));

    let Decision::Refuse(reason) = decision else {
        panic!("{decision:?}");
    };
    assert!(reason.contains("`read` mode"), "{reason}");
}

#[test]
fn reading_lines_are_asked_about_without_a_sandbox() {
    let bare = |mode| Permissions {
        sandbox: Sandbox::Missing,
        ..in_mode(mode)
    };
    let decided = |mode| decide(&bare(mode), "bash", &bash("git status"), &place("/w"));

    assert_eq!(word(&decided(Approve::Read)), "refuse");
    assert_eq!(decided(Approve::Ask), ask("git status *"));
    assert_eq!(decided(Approve::Edits), ask("git status *"));
}

/// Only blanks of the shell are ignored around a line; other ones are part of a word.
#[test]
fn blanks_that_a_shell_does_not_ignore_are_judged() {
    let directory = tempfile::tempdir().unwrap();
    let place = place(directory.path());
    let permissions = Permissions {
        allow: vec![rule("bash", "make *"), rule("bash", "./run x")],
        ..in_mode(Approve::Ask)
    };
    let decided = |line: &str| word(&decide(&permissions, "bash", &bash(line), &place));

    for line in ["make all", " \tmake all \n", "\n./run x\t"] {
        assert_eq!(decided(line), "allow", "{line:?}");
    }
    assert_eq!(decided(" ls \n"), "confined");
    let blanks = [
        "\r", "\u{b}", "\u{c}", "\u{85}", "\u{a0}", "\u{2003}", "\u{2028}", "\u{3000}",
    ];
    for blank in blanks {
        for line in ["make all", "./run x", "ls", "make all; ls"] {
            for line in [format!("{line}{blank}"), format!("{blank}{line}")] {
                assert_eq!(decided(&line), "ask", "{line:?}");
                let exact = trimmed_pattern(&line);
                assert!(exact.contains(blank), "{line:?}: {exact}");
            }
        }
    }
    assert_eq!(decided("./run x\\ "), "ask");
}

fn trimmed_pattern(line: &str) -> String {
    pattern_for(&format!(" {line} "))
}

#[test]
fn only_bash_is_judged_as_a_shell_line() {
    let call = prepared(EffectClass::Execute, "ls", "ls", Touches::everything());

    let decision = decide(&in_mode(Approve::Ask), "deploy", &call, &place("/w"));

    assert_eq!(decision, ask("ls"));
}

#[test]
fn rules_allow_in_every_mode_but_read() {
    let mut found = Vec::new();
    for mode in MODES {
        let mut permissions = in_mode(mode);
        permissions.grant.rules = vec![rule("bash", "make *")];
        found.push(word(&decide(
            &permissions,
            "bash",
            &bash("make test"),
            &place("/w"),
        )));
    }

    assert_eq!(found, ["refuse", "allow", "allow", "allow"]);
}

#[test]
fn rules_are_for_their_tool_and_whole() {
    let decided = |rule: Rule| {
        let mut permissions = in_mode(Approve::Ask);
        permissions.allow = vec![rule];
        word(&decide(
            &permissions,
            "bash",
            &bash("make test"),
            &place("/w"),
        ))
    };
    let half = Rule {
        tool: Some("bash".to_owned()),
        pattern: None,
    };

    assert_eq!(decided(rule("bash", "make *")), "allow");
    assert_eq!(decided(rule("ba*", "make *")), "allow");
    assert_eq!(decided(rule("fetch", "make *")), "ask");
    assert_eq!(decided(half), "ask");
    assert_eq!(decided(Rule::default()), "ask");
}

#[test]
fn what_is_refused_stays_refused_whatever_else_allows_it() {
    for mode in MODES {
        let mut permissions = in_mode(mode);
        permissions.grant.rules = vec![rule("*", "*")];
        permissions.refuse = vec![
            rule("bash", "git push *"),
            rule("file_*", "/etc/**"),
            rule("web_fetch", "https://*.example.com/*"),
        ];
        let decided = |tool, call| word(&decide(&permissions, tool, &call, &place("/w")));

        assert_eq!(decided("bash", bash("ls && git push")), "refuse");
        assert_eq!(decided("Bash", bash("git push")), "refuse");
        assert_eq!(
            decided("file_read", read(Path::new("/etc/passwd"))),
            "refuse"
        );
        assert_eq!(decided("file_read", read(Path::new("/etc"))), "refuse");
        assert_eq!(decided("file_write", write(Path::new("/etc/x"))), "refuse");
        assert_eq!(
            decided("web_fetch", fetch("https://a.example.com/")),
            "refuse"
        );
        assert_eq!(decided("file_read", read(Path::new("/usr/x"))), "allow");
    }
}

#[test]
fn a_refusal_without_a_pattern_is_for_every_call() {
    let mut permissions = in_mode(Approve::All);
    permissions.refuse = vec![Rule {
        tool: Some("bash".to_owned()),
        pattern: None,
    }];

    let decision = decide(&permissions, "bash", &bash("ls"), &place("/w"));

    assert_eq!(word(&decision), "refuse");
}

/// Attack: an edit that a link leads out of the working directory.
#[cfg(unix)]
#[test]
fn edits_are_free_only_where_links_really_lead_inside() {
    use std::os::unix::fs::symlink;
    let outside = tempfile::tempdir().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let workdir = directory.path();
    std::fs::create_dir_all(workdir.join("real/.git/hooks")).unwrap();
    std::fs::write(outside.path().join("target"), "").unwrap();
    symlink(outside.path(), workdir.join("out")).unwrap();
    symlink(outside.path().join("target"), workdir.join("file")).unwrap();
    symlink(outside.path().join("missing"), workdir.join("dangling")).unwrap();
    symlink("loop", workdir.join("loop")).unwrap();
    symlink("real", workdir.join("in")).unwrap();
    symlink("real/.git", workdir.join("innocent")).unwrap();
    let table = [
        ("new", "allow"),
        ("deep/er/new", "allow"),
        ("in/new", "allow"),
        (".gitignore", "allow"),
        ("out/new", "ask"),
        ("file", "ask"),
        ("dangling", "ask"),
        ("loop", "ask"),
        ("loop/x", "ask"),
        ("../sibling", "ask"),
        (".git/config", "ask"),
        (".GIT/config", "ask"),
        (".git", "ask"),
        ("real/.git/hooks/pre-commit", "ask"),
        ("innocent/hooks/pre-commit", "ask"),
        (".ikigai/tools/x-tool", "ask"),
        ("sub/.claude/settings.json", "ask"),
        (".vscode/tasks.json", "ask"),
        (".VSCode/tasks.json", "ask"),
        (".vscode-extension/a", "allow"),
    ];

    for (path, wanted) in table {
        let place = place(workdir);
        let call = write(&crate::paths::resolve(&place, path));
        let decision = decide(&in_mode(Approve::Edits), "file_write", &call, &place);
        assert_eq!(word(&decision), wanted, "{path}");
    }
}

#[cfg(unix)]
#[test]
fn writes_to_guarded_paths_need_approval_in_every_mode() {
    use std::os::unix::fs::symlink;
    let directory = tempfile::tempdir().unwrap();
    let workdir = directory.path();
    std::fs::create_dir_all(workdir.join("sub/.git/hooks")).unwrap();
    symlink("sub/.git/hooks", workdir.join("innocent")).unwrap();
    let guarded = [
        ".git/hooks/pre-commit",
        ".git/config",
        ".git/modules/sub/config",
        ".git/worktrees/one/config.worktree",
        "innocent/post-merge",
        "sub/.git/config",
        "sub/.GIT/Hooks/x",
        ".ikigai/config.toml",
        ".claude/settings.json",
        "deep/er/.vscode/tasks.json",
        "../elsewhere/.git/hooks/pre-push",
    ];

    for path in guarded {
        let place = place(workdir);
        let call = write(&crate::paths::resolve(&place, path));
        let decided = |mode| word(&decide(&in_mode(mode), "file_write", &call, &place));
        assert_eq!(
            MODES.map(decided),
            ["refuse", "ask", "ask", "ask"],
            "{path}"
        );
    }
}

#[test]
fn always_for_a_guarded_path_allows_it_from_then_on() {
    let place = place("/w");
    let call = write(Path::new("/w/.git/hooks/pre-commit"));
    let mut permissions = in_mode(Approve::All);
    let Decision::Ask { pattern } = decide(&permissions, "file_write", &call, &place) else {
        panic!("it was not asked about");
    };

    permissions.grant.rules = vec![rule("file_write", &pattern)];

    let again = decide(&permissions, "file_write", &call, &place);
    assert_eq!(again, Decision::Allow);
    let other = write(Path::new("/w/.git/config"));
    assert_eq!(
        word(&decide(&permissions, "file_write", &other, &place)),
        "ask"
    );
}

#[cfg(unix)]
#[test]
fn a_working_directory_may_be_reached_through_a_link() {
    use std::os::unix::fs::symlink;
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("real")).unwrap();
    let workdir = directory.path().join("link");
    symlink("real", &workdir).unwrap();
    let call = write(&workdir.join("src/a"));
    let place = place(&workdir);
    let absolute = workdir.join("src/**");
    let mut allowing = in_mode(Approve::Ask);
    allowing.grant.rules = vec![rule("file_write", absolute.to_str().unwrap())];
    let mut relative = in_mode(Approve::Ask);
    relative.grant.rules = vec![rule("file_write", "src/**")];

    assert_eq!(
        decide(&in_mode(Approve::Edits), "file_write", &call, &place),
        Decision::Allow
    );
    assert_eq!(
        decide(&allowing, "file_write", &call, &place),
        Decision::Allow
    );
    assert_eq!(
        decide(&relative, "file_write", &call, &place),
        Decision::Allow
    );
}

#[cfg(unix)]
#[test]
fn a_rule_for_a_directory_is_not_for_where_its_links_lead() {
    use std::os::unix::fs::symlink;
    let outside = tempfile::tempdir().unwrap();
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("src")).unwrap();
    symlink(outside.path(), directory.path().join("src/out")).unwrap();
    let mut permissions = in_mode(Approve::Ask);
    permissions.grant.rules = vec![rule("file_write", "src/**")];
    let call = write(&directory.path().join("src/out/x"));
    let place = place(directory.path());

    let decision = decide(&permissions, "file_write", &call, &place);

    // The question names the real target, so *always* means that one.
    let real = outside.path().canonicalize().unwrap().join("x");
    let Decision::Ask { pattern } = decision else {
        panic!("{decision:?}");
    };
    assert_eq!(Path::new(&pattern), real);
    permissions.grant.rules = vec![rule("file_write", &pattern)];
    assert_eq!(
        decide(&permissions, "file_write", &call, &place),
        Decision::Allow
    );
}

proptest! {
    #[test]
    fn always_is_not_asked_again(
        line in "(cargo test|cargo|git push|git status|ls|rm|make|npm run|A=1 y|sudo a|cat <x)\
                 ( [a-z*'\\\\-]{1,4}){0,3}((;|&&| [|]|\n) (ls|rm x|cargo test|git log|cd ..)){0,2}",
        is_confined in any::<bool>(),
    ) {
        let mut permissions = in_mode(Approve::Ask);
        permissions.sandbox = if is_confined { Sandbox::InForce } else { Sandbox::Missing };
        let Decision::Ask { pattern } = decide(&permissions, "bash", &bash(&line), &place("/w"))
        else {
            return Ok(());
        };

        permissions.grant.rules = vec![rule("bash", &pattern)];

        let again = decide(&permissions, "bash", &bash(&line), &place("/w"));
        prop_assert_eq!(again, Decision::Allow, "{} with {}", line, pattern);
    }
}

/// Attack: a child with more rights than its parent.
#[test]
fn a_child_never_has_more_than_its_parent() {
    for parent in MODES {
        for child in MODES {
            let grant = |mode, rules: &[Rule]| Grant {
                mode,
                rules: rules.to_vec(),
            };
            let (a, b, c) = (
                rule("bash", "a *"),
                rule("bash", "b *"),
                rule("bash", "c *"),
            );

            let found = narrower(
                &grant(parent, &[a.clone(), b.clone()]),
                &grant(child, &[b.clone(), c]),
            );

            let wider = |one: Approve| MODES.iter().position(|mode| *mode == one);
            assert!(wider(found.mode) <= wider(parent));
            assert!(found.mode == parent || found.mode == child);
            assert!(wider(found.mode) <= wider(child));
            assert_eq!(found.rules, [b]);
        }
    }
}

fn unconfined(line: &str) -> Prepared {
    Prepared {
        unconfined: Some("no cache in the sandbox".to_owned()),
        ..bash(line)
    }
}

#[test]
fn leaving_the_sandbox_is_asked_about_in_every_mode_that_can_ask() {
    let place = place("/w");
    for line in ["ls", "cargo add serde", "rm -rf x"] {
        for sandbox in [Sandbox::InForce, Sandbox::Missing] {
            let decide = |mode| {
                let permissions = Permissions {
                    sandbox,
                    ..in_mode(mode)
                };
                decide(&permissions, "bash", &unconfined(line), &place)
            };
            let found = MODES.map(|mode| word(&decide(mode)));
            assert_eq!(found, ["refuse", "ask", "ask", "ask"], "{line}");
        }
    }
}

#[test]
fn only_rules_for_calls_outside_the_sandbox_let_a_command_leave_it() {
    let place = place("/w");
    let decided = |tool: &str, pattern: &str, line: &str| {
        let permissions = Permissions {
            allow: vec![rule(tool, pattern)],
            ..in_mode(Approve::All)
        };
        word(&decide(&permissions, "bash", &unconfined(line), &place))
    };

    for tool in ["bash", "bash*", "*", "bash unconfine?", "bash un*"] {
        assert_eq!(decided(tool, "*", "cargo add serde"), "ask", "{tool}");
    }
    let granted = |line| decided("bash unconfined", "cargo add *", line);
    assert_eq!(granted("cargo add serde"), "allow");
    // Without the sandbox a reading command needs a rule too.
    for line in [
        "cargo add serde; rm -rf x",
        "cargo add serde && cat /etc/passwd",
    ] {
        assert_eq!(granted(line), "ask", "{line}");
    }
    // Such a rule is none for commands inside.
    let permissions = Permissions {
        allow: vec![rule("bash unconfined", "*")],
        ..in_mode(Approve::Ask)
    };
    let inside = decide(&permissions, "bash", &bash("make"), &place);
    assert_eq!(word(&inside), "ask");
}

#[test]
fn refusals_for_bash_also_hold_outside_the_sandbox() {
    let place = place("/w");
    for tool in ["bash", "bash unconfined", "*"] {
        let permissions = Permissions {
            allow: vec![rule("bash unconfined", "*")],
            refuse: vec![rule(tool, "rm *")],
            ..in_mode(Approve::All)
        };
        let decision = decide(&permissions, "bash", &unconfined("rm -rf x"), &place);
        assert_eq!(word(&decision), "refuse", "{tool}");
    }
}

#[test]
fn the_pattern_offered_for_leaving_the_sandbox_allows_the_call() {
    let place = place("/w");
    for line in ["cargo add serde", "cargo add serde | tail", "echo a > ~/b"] {
        let asked = decide(&in_mode(Approve::All), "bash", &unconfined(line), &place);
        let Decision::Ask { pattern } = asked else {
            panic!("{asked:?}");
        };
        let granted = Permissions {
            allow: vec![rule("bash unconfined", &pattern)],
            ..in_mode(Approve::Ask)
        };
        let again = decide(&granted, "bash", &unconfined(line), &place);
        assert_eq!(word(&again), "allow", "{line}: {pattern}");
    }
}
