//! `glob` and `grep`: the files and lines that they find.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use ikigai_tools::output::MOST_SENT_BYTES;
use ikigai_tools::{CallEnding, Need, Touches};
use rustix::fs::{CWD, FileType, Mode};
use serde_json::json;

use crate::desk::{Desk, text};

/// Returns a small project; its files are listed from oldest to newest.
fn project() -> Desk {
    let desk = Desk::new();
    let files = [
        (".gitignore", "target/\n*.log\n"),
        ("Cargo.toml", "[package]\n"),
        ("src/main.rs", "fn main() {\n    run();\n}\n"),
        ("src/deep/er/lib.rs", "pub fn run() {}\n"),
        ("target/out.rs", "fn run() {}\n"),
        ("build.log", "run\n"),
        (".github/ci.yml", "run: test\n"),
        (".git/config", "run\n"),
    ];
    for (age, (name, content)) in files.into_iter().rev().enumerate() {
        let path = desk.put(name, content);
        let age = Duration::from_secs(1 + age as u64);
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_hours(1) - age)
            .unwrap();
    }
    desk
}

#[test]
fn files_are_found_by_pattern_newest_first() {
    let desk = project();
    let work = desk.place.workdir.to_str().unwrap().to_owned();
    let table = [
        (
            json!({"pattern": "**/*.rs"}),
            "src/deep/er/lib.rs\nsrc/main.rs\n",
        ),
        (
            json!({"pattern": "*.rs"}),
            "no files; those that ignore files name are left out\n",
        ),
        (json!({"pattern": "*.rs", "path": "src"}), "src/main.rs\n"),
        (
            json!({"pattern": "src/**"}),
            "src/deep/er/lib.rs\nsrc/main.rs\n",
        ),
        (json!({"pattern": "./src/*.rs"}), "src/main.rs\n"),
        (json!({"pattern": "../work/src/*.rs"}), "src/main.rs\n"),
        (
            json!({"pattern": format!("{work}/src/*.{{rs,toml}}")}),
            "src/main.rs\n",
        ),
        (json!({"pattern": "Cargo.toml"}), "Cargo.toml\n"),
        (json!({"pattern": "**/*.yml"}), ".github/ci.yml\n"),
        (json!({"pattern": "target/*.rs"}), "target/out.rs\n"),
        (
            json!({"pattern": "s*"}),
            "no files; those that ignore files name are left out\n[it matches 1 directories; \
             `src/**` finds what is in the first]\n",
        ),
    ];

    for (arguments, expected) in table {
        assert_eq!(desk.done("glob", &arguments), expected, "{arguments}");
    }
    let output = desk.call("glob", &json!({"pattern": "**/*.rs"}));
    assert_eq!(output.shown, "2 files");
}

#[test]
fn ignore_files_count_outside_of_repositories() {
    let desk = Desk::new();
    desk.put(".gitignore", "*.log\n");
    desk.put(".ignore", "*.tmp\n");
    desk.put("a.log", "x\n");
    desk.put("b.tmp", "x\n");
    desk.put("c.txt", "x\n");

    assert_eq!(desk.done("glob", &json!({"pattern": "?.*"})), "c.txt\n");
    assert_eq!(desk.done("grep", &json!({"pattern": "x"})), "c.txt\n1:x\n");
}

#[test]
fn the_start_of_a_pattern_is_what_a_call_touches() {
    let desk = project();

    let prepared = desk
        .prepare("glob", &json!({"pattern": "src/deep/**"}))
        .unwrap();

    assert_eq!(prepared.touches, Touches::reading([desk.path("src/deep")]));
    assert_eq!(prepared.subject, "src/deep");
    assert_eq!(prepared.shown, r#"pattern="src/deep/**""#);
}

#[test]
fn many_files_are_capped_with_their_count() {
    let desk = Desk::new();
    for number in 0..250 {
        desk.put(&format!("{number}.txt"), "");
    }

    let text = desk.done("glob", &json!({"pattern": "*.txt"}));

    assert_eq!(text.lines().count(), 201);
    assert!(text.ends_with("[the 200 newest of 250 files; a narrower pattern shows others]\n"));
}

#[test]
fn bad_patterns_and_places_are_explained() {
    let desk = project();
    symlink("loop", desk.path("loop")).unwrap();
    rustix::fs::mknodat(CWD, desk.path("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let table = [
        (
            "glob",
            json!({"pattern": "a{b"}),
            "the pattern is not understood",
        ),
        (
            "glob",
            json!({"pattern": "*", "path": "none"}),
            "`none` is not a directory",
        ),
        (
            "glob",
            json!({"pattern": "*", "path": "Cargo.toml"}),
            "is not a directory",
        ),
        (
            "glob",
            json!({"pattern": "*", "path": "loop"}),
            "loop of symbolic links",
        ),
        ("glob", json!({"path": "src"}), "missing field `pattern`"),
        ("grep", json!({"pattern": "("}), "unclosed group"),
        (
            "grep",
            json!({"pattern": "x", "path": "none"}),
            "`none` does not exist",
        ),
        (
            "grep",
            json!({"pattern": "x", "path": "pipe"}),
            "is a named pipe",
        ),
        (
            "grep",
            json!({"pattern": "x", "path": "/dev/zero"}),
            "is a device",
        ),
        (
            "grep",
            json!({"pattern": "x", "glob": "a{b"}),
            "`glob` is not understood",
        ),
        (
            "grep",
            json!({"pattern": "x", "output_mode": "all"}),
            "expected one of `content`, `files`",
        ),
    ];

    for (tool, arguments, expected) in table {
        let reason = desk.failed(tool, &arguments);
        assert!(reason.contains(expected), "{arguments}: {reason}");
    }
}

#[test]
fn lines_are_found_by_expression() {
    let desk = project();
    desk.put("binary", b"run\0run\n");
    desk.put("late", [b"run(\n".repeat(50_000), b"\0".to_vec()].concat());
    desk.put("windows.txt", "running\r\nrun\r\n");
    rustix::fs::mknodat(CWD, desk.path("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    symlink("src/main.rs", desk.path("link.rs")).unwrap();
    let table = [
        (
            json!({"pattern": r"\brun\("}),
            "src/deep/er/lib.rs\n1:pub fn run() {}\n\nsrc/main.rs\n2:    run();\n",
        ),
        (
            json!({"pattern": "run$", "glob": "*.txt"}),
            "windows.txt\n2:run\n",
        ),
        (
            json!({"pattern": "(?i)RUN", "path": "src/main.rs"}),
            "src/main.rs\n2:    run();\n",
        ),
        (
            json!({"pattern": "RUN\\(\\)", "type": "rust", "ignore_case": true, "path": "src/deep"}),
            "src/deep/er/lib.rs\n1:pub fn run() {}\n",
        ),
        (
            json!({"pattern": "RUN", "type": "rust"}),
            "no matches; files that ignore files name are left out\n",
        ),
        (
            json!({"pattern": "run", "type": "yaml"}),
            ".github/ci.yml\n1:run: test\n",
        ),
        (
            json!({"pattern": "run$", "type": ".txt"}),
            "windows.txt\n2:run\n",
        ),
        (
            json!({"pattern": "(?m)^run$", "type": "rust", "path": "windows.txt"}),
            "windows.txt\n2:run\n",
        ),
        (
            json!({"pattern": "run", "path": "src", "glob": "src/deep/**"}),
            "src/deep/er/lib.rs\n1:pub fn run() {}\n",
        ),
        (
            json!({"pattern": "run", "path": "src", "glob": "*.rs", "output_mode": "files"}),
            "src/deep/er/lib.rs\nsrc/main.rs\n",
        ),
        (
            json!({"pattern": "run", "glob": "src/**", "output_mode": "count"}),
            "src/deep/er/lib.rs:1\nsrc/main.rs:1\n[2 matching lines in 2 files]\n",
        ),
        (
            json!({"pattern": "run", "path": "src", "glob": "main.*", "context": 1}),
            "src/main.rs\n1-fn main() {\n2:    run();\n3-}\n",
        ),
        (
            json!({"pattern": "run", "path": "src", "glob": "main.*", "-B": 1}),
            "src/main.rs\n1-fn main() {\n2:    run();\n",
        ),
        (
            json!({"pattern": "run", "path": "src", "glob": "main.*", "context": 1, "before": 0}),
            "src/main.rs\n2:    run();\n3-}\n",
        ),
        (
            json!({"pattern": "none of this"}),
            "no matches; files that ignore files name are left out\n",
        ),
        (
            json!({"pattern": "run", "path": "build.log"}),
            "build.log\n1:run\n",
        ),
    ];

    for (arguments, expected) in table {
        assert_eq!(desk.done("grep", &arguments), expected, "{arguments}");
    }
    let output = desk.call("grep", &json!({"pattern": "run", "path": "src"}));
    assert_eq!(output.shown, "2 matching lines in 2 files");
}

#[test]
fn stored_outputs_are_searched() {
    let mut desk = Desk::new();
    desk.inputs.blob = Some(b"one\n\x1b[31mtwo\x1b[0m\0\nthree\n".to_vec());
    let hash = "AB".repeat(32);
    let blob = json!({"pattern": "TWO", "path": format!("blob:{hash}"), "-i": true});
    let row = json!({"pattern": "^t", "path": "#12", "output_mode": "count"});

    let prepared = desk.prepare("grep", &row).unwrap();
    let found = desk.done("grep", &blob);
    let counted = desk.done("grep", &row);

    assert_eq!(prepared.needs, [Need::Row(12)]);
    assert_eq!(prepared.subject, "#12");
    assert_eq!(found, format!("blob:{}\n2:two\n", hash.to_lowercase()));
    assert_eq!(counted, "#12:1\n[1 matching line in 1 file]\n");
    let nothing = json!({"pattern": "four", "path": "#12"});
    assert_eq!(desk.done("grep", &nothing), "no matches\n");
    desk.inputs.blob = None;
    let missing = desk.failed("grep", &row);
    assert_eq!(missing, "there is no stored output `#12`");
}

#[test]
fn hidden_files_are_not_searched() {
    let desk = project();
    let base = desk
        .place
        .workdir
        .parent()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    symlink("../../secret", desk.path("src/secret")).unwrap();

    let found = desk.done("grep", &json!({"pattern": "sk-|fn main", "path": base}));
    let refused = desk.failed("grep", &json!({"pattern": "sk-", "path": "src/secret/key"}));

    assert_eq!(found, "src/main.rs\n1:fn main() {\n");
    assert!(refused.contains("off limits"), "{refused}");
}

#[test]
fn expressions_that_explode_are_refused() {
    let desk = project();
    let nested = format!("{}x{}", "(".repeat(200), ")".repeat(200));
    let table = [
        (r"\w{1000}{1000}{1000}", "size limit"),
        (r"(?:(?:(?:a{100}){100}){100}){100}", "size limit"),
        (nested.as_str(), "nest"),
    ];

    for (pattern, expected) in table {
        let reason = desk.failed("grep", &json!({"pattern": pattern}));
        assert!(reason.contains(expected), "{pattern}: {reason}");
    }
}

#[test]
fn expressions_that_backtrack_elsewhere_take_no_time() {
    let desk = Desk::new();
    desk.put("a.txt", format!("{}b\n", "a".repeat(20_000)));

    let text = desk.done("grep", &json!({"pattern": "(a*)*(a*)*c", "path": "a.txt"}));

    assert!(text.starts_with("no matches"), "{text}");
}

#[test]
fn long_lines_are_shown_around_the_match() {
    let desk = Desk::new();
    let line = format!("{}needle{}", "x".repeat(50_000), "y".repeat(50_000));
    desk.put("a.txt", format!("{line}\n"));

    let text = desk.done("grep", &json!({"pattern": "needle"}));

    let expected = format!(
        "a.txt\n1:…{}needle{}… [line of 100006 bytes]\n",
        "x".repeat(100),
        "y".repeat(294)
    );
    assert_eq!(text, expected);
}

#[test]
fn many_matches_are_capped_with_their_count() {
    let desk = Desk::new();
    for number in 0..10 {
        desk.put(
            &format!("{number}.txt"),
            "some matching line\n".repeat(5_000),
        );
    }

    let output = desk.call("grep", &json!({"pattern": "match"}));

    assert!(output.body.len() <= MOST_SENT_BYTES);
    let expected = "[50000 matching lines in 10 files; not all are shown: use a narrower pattern \
                    or path]\n";
    assert!(text(&output).ends_with(expected), "{}", text(&output));
}

#[test]
fn stopped_searches_end_with_what_they_have() {
    let desk = project();
    desk.stop.cancel();

    for (tool, arguments) in [
        ("glob", json!({"pattern": "**"})),
        ("grep", json!({"pattern": "."})),
    ] {
        let output = desk.call(tool, &arguments);
        assert_eq!(
            (output.success, output.ending),
            (false, CallEnding::Stopped)
        );
        assert!(text(&output).ends_with("[stopped before it was done]\n"));
    }
}

#[test]
fn names_cannot_pretend_to_be_lines() {
    let desk = Desk::new();
    fs::write(desk.path("a\nb\u{1b}.txt"), "x\n").unwrap();

    assert_eq!(desk.done("glob", &json!({"pattern": "*"})), "a␊b␛.txt\n");
    assert_eq!(
        desk.done("grep", &json!({"pattern": "x"})),
        "a␊b␛.txt\n1:x\n"
    );
}
