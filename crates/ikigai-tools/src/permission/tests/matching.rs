//! Tests of patterns.

use std::path::Path;

use proptest::prelude::*;

use crate::permission::Sandbox;
use crate::permission::patterns::{
    Reach, is_exactly, literal, matches_address, matches_command, matches_path, matches_text,
};
use crate::permission::rules::refuses_line;
use crate::{Place, permission::rules};

fn allow_line(patterns: &[&str], line: &str, sandbox: Sandbox) -> bool {
    let place = Place {
        workdir: "/nowhere/at/all".into(),
        hidden: [].into(),
    };
    rules::allow_line(patterns, line, sandbox, &place)
}

/// Attack: a command that rides along with an allowed one.
#[test]
fn a_rule_allows_no_command_that_rides_along() {
    let allowed = |line| allow_line(&["cargo test *", "git commit *"], line, Sandbox::InForce);
    let yes = [
        "cargo test",
        "cargo test --workspace -- a",
        "  cargo   test  a",
        "cargo test a; cargo test b",
        "cargo test 'a; rm -rf ~'",
        "cargo test 2>&1 | tail -20",
        "cd sub && cargo test",
        "cargo test && git commit -m 'a && b'",
        "'cargo' te\"st\" a",
        "cargo test; git status",
        "cargo test && git diff --stat | cat && git log -1",
    ];
    let no = [
        "cargo testify",
        "cargo",
        "cargo 'test a'",
        "cargo test x; rm -rf ~",
        "cargo test x && rm -rf ~",
        "cargo test x || rm -rf ~",
        "cargo test x | sh",
        "cargo test x & rm -rf ~",
        "cargo test x\nrm -rf ~",
        "cargo test $(rm -rf ~)",
        "cargo test `rm -rf ~`",
        "cargo test \"$(rm -rf ~)\"",
        "cargo test > ~/.bashrc",
        "cargo test <(rm x)",
        "cargo test $X",
        "cargo test # x",
        "X=1 cargo test",
        "PATH=. cargo test",
        "sudo cargo test",
        "./cargo test",
        "cd .. && cargo test",
        "cd /tmp/x && cargo test",
        "cd && cargo test",
        "cd - && cargo test",
        "cargo test && git push",
        "cargo test && git -c core.pager=x status",
        "cargo test && git status *",
        "cargo test && git status && git commit -m x",
        "cargo test && git status && timeout 5 git commit -m x",
        "cargo test && timeout 5 git status",
        "cargo test && GIT_DIR=x git status",
        "cargo test && cat *",
        "ls",
        "! cargo test",
        "then cargo test",
    ];

    for line in yes {
        assert!(allowed(line), "{line}");
    }
    for line in no {
        assert!(!allowed(line), "{line}");
    }
}

#[test]
fn reading_commands_next_to_an_allowed_one_need_the_sandbox() {
    let patterns = ["cargo test *"];

    assert!(allow_line(&patterns, "cargo test | head", Sandbox::InForce));
    assert!(!allow_line(
        &patterns,
        "cargo test | head",
        Sandbox::Missing
    ));
    assert!(allow_line(&patterns, "cargo test", Sandbox::Missing));
}

#[test]
fn a_line_that_is_not_understood_is_allowed_only_as_it_stands() {
    let line = "for x in *; do rm $x; done";

    assert!(allow_line(&[&literal(line)], line, Sandbox::InForce));
    assert!(allow_line(&["*"], line, Sandbox::InForce));
    for pattern in ["for *", line, "* *", "**"] {
        assert!(!allow_line(&[pattern], line, Sandbox::InForce), "{pattern}");
    }
}

/// Attack: a refused command inside a line, behind `sudo` or options.
#[test]
fn refusing_looks_into_the_line() {
    let yes = [
        "git push",
        "git push origin main",
        "git  push",
        "ls && git push",
        "ls; git push --force",
        "(git push)",
        "x=$(git push)",
        "echo `git push`",
        "bash -c 'git push'",
        "sudo git push",
        "sudo env A=1 git push",
        "A=1 git push",
        "/usr/bin/git push",
        "timeout 60 git push",
        "timeout -k 5 1.5m git push",
        "nice -n 10 git push",
        "sudo -u root nice git push",
        "stdbuf -oL git push",
        "g'i't push",
        "if true; then git push; fi",
        "git status\ngit push",
        "eval git push",
        "eval 'git push'",
        "busybox git push",
        "flock lock git push",
        "flock -w 5 lock git push",
        "chroot /srv git push",
        "strace -f git push",
        "trap 'git push' EXIT",
        "if false; then ls; elif git push; then ls; fi",
        "find . -name x -exec git push {} +",
        "find . -execdir sudo git push \\;",
        "sudo find . -ok git push \\;",
        ">log git push",
        "2>/dev/null git push",
        "2>&1 git push",
        "<in >>out git push origin",
        "<<<text git push",
        "> 'two words' git push",
        ">log g'i't push",
        ">log g\\it push",
        "git \\\npush",
        "gi\\\nt push",
        "nsenter -t 1 git push",
        "runuser -u user -- git push",
        "systemd-run --user git push",
        "git -C sub push",
        "git -c a=b push origin",
        "git --no-pager push",
        "git --git-dir=x --work-tree . push --force",
        "sudo /usr/bin/git -C sub push",
        "{git,push,origin}",
        "ssh host git push",
        "arch -x86_64 git push",
        "cpulimit -l 5 -- git push",
        "fd x --exec git push",
    ];
    let no = [
        "git status",
        "echo git push",
        "git pushy",
        "gitpush",
        "find . -name git push",
        "find . -exec echo git push",
        "flock lock echo git push",
        ">log echo git push",
        "echo 'a\\nb' >git.txt",
        "git -C sub status",
        "git commit -m push",
        "git -C sub commit -m push",
        "echo {a,git,push}",
    ];

    for line in yes {
        assert!(refuses_line("git push *", line), "{line}");
    }
    for line in no {
        assert!(!refuses_line("git push *", line), "{line}");
    }
}

#[test]
fn a_star_in_a_path_stands_for_no_slash_and_no_guarded_name() {
    let table = [
        ("src/**", "/w/src/a/b.rs", true),
        ("src/**", "/w/src2/a.rs", false),
        ("src/*", "/w/src/a.rs", true),
        ("src/*", "/w/src/a/b.rs", false),
        ("src/*.rs", "/w/src/a.rs", true),
        ("**/*.rs", "/w/a.rs", true),
        ("**/*.rs", "/w/a/b/c.rs", true),
        ("**/*.rs", "/x/a.rs", false),
        ("/etc/*", "/etc/passwd", true),
        ("etc/*", "/etc/passwd", false),
        ("./src/../lib/*", "/w/lib/a", true),
        ("src/../../etc/**", "/etc/passwd", true),
        ("a[1]?.rs", "/w/a[1]?.rs", true),
        ("a[1]?.rs", "/w/a1b.rs", false),
        (r"a\*.rs", "/w/a*.rs", true),
        (r"a\*.rs", "/w/ab.rs", false),
        ("**", "/w/.git/hooks/x", false),
        ("**", "/w/a/.GIT/config", false),
        ("*/config", "/w/.git/config", false),
        (".g*/config", "/w/.git/config", false),
        (".git/config", "/w/.git/config", true),
        (".git/**", "/w/.git/hooks/x", true),
        ("**", "/w/.gitignore", true),
        ("**", "/w/.ikigai/tools/x", false),
        ("/**", "/anything/at/all", true),
    ];

    for (pattern, path, wanted) in table {
        let found = matches_path(
            pattern,
            Path::new(path),
            Path::new("/w"),
            Reach::ExceptGuarded,
        );
        assert_eq!(found, wanted, "{pattern} {path}");
    }
    let git = Path::new("/w/.git/hooks/x");
    assert!(matches_path("**", git, Path::new("/w"), Reach::Everything));
}

#[test]
fn a_star_in_a_host_stands_for_nothing_else() {
    let table = [
        ("https://docs.rs/*", "https://docs.rs/serde?x=1", true),
        ("https://docs.rs/*", "https://docs.rs/", true),
        ("https://DOCS.rs/*", "https://docs.rs/a", true),
        ("https://docs.rs/*", "https://docs.rs./a", true),
        ("https://docs.rs/*", "http://docs.rs/a", false),
        ("https://docs.rs/*", "https://docs.rs.evil.com/a", false),
        ("https://docs.rs/*", "https://docs.rs@evil.com/a", false),
        ("https://docs.rs/*", "https://docs.rs:8443/a", false),
        ("https://docs.rs:8443/*", "https://docs.rs:8443/a", true),
        ("https://*.rs/*", "https://docs.rs/a", true),
        ("https://*.rs/*", "https://evil.com/x.rs/a", false),
        ("https://*.rs/*", "https://evil.com?x.rs/a", false),
        ("https://*.rs/*", "https://a@evil.com/x.rs/a", false),
        ("https://docs.rs/serde/*", "https://docs.rs/tokio/a", false),
        (
            "https://docs.rs/serde/*",
            "https://docs.rs/serde/../tokio/a",
            false,
        ),
        ("https://docs.rs", "https://docs.rs/", true),
        ("https://docs.rs", "https://docs.rs/a", false),
        ("docs.rs/*", "https://docs.rs/a", false),
        ("https://docs.rs/*", "nonsense", false),
    ];

    for (pattern, address, wanted) in table {
        assert_eq!(
            matches_address(pattern, address),
            wanted,
            "{pattern} {address}"
        );
    }
}

#[test]
fn a_star_at_the_end_stands_for_no_words_too() {
    assert!(matches_command("make *", "make"));
    assert!(matches_command("make *", "make all"));
    assert!(!matches_command("make *", "makefile"));
    assert!(!matches_command("make", "make all"));
}

proptest! {
    #[test]
    fn a_literal_pattern_means_its_text_only(text in "[a*\\\\ ]{0,8}", other in "[a*\\\\ ]{0,8}") {
        let pattern = literal(&text);
        prop_assert!(is_exactly(&pattern, &text));
        prop_assert_eq!(matches_text(&pattern, &other), text == other);
    }

    #[test]
    fn stars_match_as_a_plain_search_does(pattern in "[ab*]{0,8}", text in "[ab]{0,10}") {
        prop_assert_eq!(matches_text(&pattern, &text), searched(pattern.as_bytes(), text.as_bytes()));
    }
}

/// Obvious implementation, which is far too slow for long patterns.
fn searched(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', rest @ ..] => (0..=text.len()).any(|at| searched(rest, &text[at..])),
        [one, rest @ ..] => text.first() == Some(one) && searched(rest, &text[1..]),
    }
}

#[test]
fn a_pattern_of_many_stars_ends_soon() {
    let pattern = "*a".repeat(2000);

    assert!(!matches_text(&pattern, &"b".repeat(20_000)));
}
