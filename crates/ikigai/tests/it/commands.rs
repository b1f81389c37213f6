//! Command line: arguments, output and exit codes.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::control;
use crate::support::{TestUser, said};

#[test]
fn the_first_command_answers_and_the_second_remembers() {
    let user = TestUser::new();

    let first = user.ikigai(&["run", "hello"]);
    let second = user.ikigai(&["run", "what did I say"]);

    assert_eq!((first.code, first.err.as_str()), (Some(0), ""));
    assert!(
        first.out.starts_with("Hello. I am the built-in demo model"),
        "{}",
        first.out
    );
    assert_eq!(second.out, "Your earlier messages:\n1. hello\n");
}

#[test]
fn the_next_request_holds_what_was_said_before() {
    let user = TestUser::new();
    user.ikigai(&["run", "hello"]);
    user.ikigai(&["run", "count to 3"]);

    let request = user.ikigai(&["log", "--request"]);

    let request: serde_json::Value = serde_json::from_str(&request.out).unwrap();
    let said: Vec<_> = request["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| {
            let text = message["blocks"][0]["text"].as_str().unwrap();
            // The environment block comes before the first message.
            let text = text.rsplit("</environment>\n\n").next().unwrap();
            (
                message["role"].as_str().unwrap(),
                text.split('.').next().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("user", "hello"),
        ("assistant", "Hello"),
        ("user", "count to 3"),
        ("assistant", "1 2 3"),
    ];
    assert_eq!(said, expected);
}

#[test]
fn the_log_shows_the_conversation_and_all_of_it_as_json() {
    let user = TestUser::new();
    user.ikigai(&["run", "count to 2"]);

    let shown = user.ikigai(&["log"]);
    let tail = user.ikigai(&["log", "--tail", "1"]);
    let json = user.ikigai(&["log", "--json"]);

    assert!(
        shown
            .out
            .contains(&format!("#3 user by {}\n❯ count to 2\n", user.person())),
        "{}",
        shown.out
    );
    assert!(shown.out.contains("#4 assistant\n● 1 2\n"), "{}", shown.out);
    assert_eq!(tail.out.matches('#').count(), 1, "{}", tail.out);
    let kinds: Vec<_> = json
        .out
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["kind"].clone())
        .collect();
    assert_eq!(kinds, ["system", "command", "user", "assistant", "usage"]);
}

#[test]
fn run_with_json_prints_every_stored_event() {
    let user = TestUser::new();

    let ran = user.ikigai(&["run", "count to 2", "--json"]);

    let kinds: Vec<_> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["kind"].clone())
        .collect();
    assert_eq!(kinds, ["user", "assistant", "usage"]);
}

#[test]
fn a_message_can_come_from_standard_input() {
    let user = TestUser::new();
    let mut child = user
        .command(&["run", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"count to 4\n")
        .unwrap();

    let said = said(child.wait_with_output().unwrap());

    assert_eq!(said.out, "1 2 3 4\n");
}

#[test]
fn each_failure_has_its_exit_code_and_says_what_to_do() {
    let user = TestUser::new();
    user.ikigai(&["run", "hello"]);
    let not_ours = user.home().join("not-ours");
    fs::write(
        &not_ours,
        "something else entirely, and long enough to be looked at",
    )
    .unwrap();
    let not_ours = not_ours.to_str().unwrap();
    let cases: [(&[&str], i32, &str); 8] = [
        (
            &["run", "please fail"],
            1,
            "error: the demo model failed, as requested",
        ),
        (&["run", " "], 2, "error: the message is empty"),
        (
            &["run"],
            2,
            "error: the following required arguments were not provided",
        ),
        (
            &["run", "x", "--timeout", "0"],
            2,
            "error: invalid value '0'",
        ),
        (
            &["run", "x", "--db", not_ours],
            3,
            "hint: choose another file with --db",
        ),
        (
            &["agents", "--db", "postgres://me:secret@127.0.0.1:1/log"],
            3,
            "hint: check that the file or server is reachable",
        ),
        (
            &["run", "x", "--agent", "stranger"],
            4,
            "hint: `ikigai agents` lists them",
        ),
        (
            &["log", "stranger"],
            4,
            "error: there is no agent `stranger`",
        ),
    ];

    for (arguments, code, words) in cases {
        let said = user.ikigai(arguments);
        assert_eq!(said.code, Some(code), "{arguments:?}: {}", said.err);
        assert!(said.err.contains(words), "{arguments:?}: {}", said.err);
        assert_eq!(said.out, "", "{arguments:?}");
        assert!(!said.err.contains("secret"), "{arguments:?}: {}", said.err);
    }
    assert_eq!(
        fs::read_to_string(not_ours).unwrap(),
        "something else entirely, and long enough to be looked at",
        "nothing is overwritten"
    );
}

#[test]
fn a_message_that_is_nothing_but_a_key_is_held_back() {
    let user = TestUser::new();
    let key = "sk-ant-0123456789abcdefghijkl";

    for arguments in [&["run", key][..], &[key][..]] {
        let held = user.ikigai(arguments);
        assert_eq!(held.code, Some(1), "{}", held.err);
        assert!(held.err.contains("looks like an API key"), "{}", held.err);
        assert!(held.err.contains("/key PROVIDER"), "{}", held.err);
        assert!(!held.err.contains(key), "{}", held.err);
    }
    assert!(!user.ikigai(&["log"]).out.contains(key));

    let meant = user.ikigai(&["run", &format!(" {key}")]);
    assert_eq!(meant.code, Some(0), "{}", meant.err);
    assert!(user.ikigai(&["log"]).out.contains(key));
}

#[test]
fn agents_are_listed_by_session_and_new_ones_get_a_number() {
    let user = TestUser::new();
    user.ikigai(&["run", "hello"]);
    user.ikigai(&["run", "hello", "--new"]);

    let listed = user.ikigai(&["agents"]);
    let json = user.ikigai(&["agents", "--json"]);

    let names: Vec<_> = listed
        .out
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(names, ["project", "project-2"], "{}", listed.out);
    assert_eq!(json.out.lines().count(), 2);
    let first = user.ikigai(&["run", "what did I say", "--agent", "project"]);
    assert_eq!(first.out, "Your earlier messages:\n1. hello\n");
}

#[test]
fn another_store_is_chosen_by_flag_and_environment() {
    let user = TestUser::with_file();
    let other = format!(
        "sqlite:{}",
        user.home().join("deep/down/other.db").display()
    );
    user.ikigai(&["--db", &other, "run", "hello"]);

    let by_environment = user
        .command(&["agents"])
        .env("IKIGAI_DB", &other)
        .output()
        .unwrap();

    assert!(said(by_environment).out.contains("project "));
    assert!(!user.database().exists());
}

#[test]
fn the_store_is_for_its_owner_alone() {
    let user = TestUser::with_file();
    user.ikigai(&["run", "hello"]);

    let directory = user.database().parent().unwrap().to_owned();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;

    assert_eq!(mode(&directory), 0o700);
    for entry in fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path) & 0o077, 0, "{}", path.display());
    }
}

#[test]
fn doctor_finds_nothing_wrong_with_a_sound_store_and_names_what_is() {
    let user = TestUser::with_file();
    let before = user.ikigai(&["doctor"]);
    user.ikigai(&["run", "hello"]);
    let sound = user.ikigai(&["doctor"]);
    fs::set_permissions(user.database(), fs::Permissions::from_mode(0o644)).unwrap();
    let open = user.ikigai(&["doctor"]);
    fs::write(
        user.database(),
        "no database at all, but long enough to be looked at",
    )
    .unwrap();
    let broken = user.ikigai(&["doctor"]);

    assert_eq!(before.code, Some(0));
    assert!(before.out.contains("not created yet"), "{}", before.out);
    assert!(!user.home().join("project/.git").exists());
    assert_eq!(sound.code, Some(0), "{}", sound.out);
    assert!(
        sound.out.lines().all(|line| line.starts_with("ok ")),
        "{}",
        sound.out
    );
    assert!(open.out.contains("hint: chmod 600"), "{}", open.out);
    assert_eq!(broken.code, Some(3));
    assert!(broken.out.contains("\nerror "), "{}", broken.out);
}

#[test]
fn help_and_version_answer_without_a_store() {
    let user = TestUser::new();

    let help = user.ikigai(&["--help"]);
    let version = user.ikigai(&["--version"]);

    assert!(help.out.contains("Exit codes: 0 success"), "{}", help.out);
    let number = concat!("ikigai ", env!("CARGO_PKG_VERSION"));
    let rest = version.out.strip_prefix(number).unwrap().trim_end();
    // From a repository it names the commit and its date.
    let is_commit = rest.starts_with(" (") && rest.ends_with(')') && rest.contains(" 20");
    assert!(rest.is_empty() || is_commit, "{}", version.out);
    assert!(!user.database().exists());
}

#[test]
fn a_reader_that_goes_away_ends_a_listing_quietly_and_no_turn() {
    let user = TestUser::new();
    user.ikigai(&["run", "hello"]);
    let with_closed_output = |arguments: &[&str]| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        said(user.command(arguments).stdout(writer).output().unwrap())
    };

    let listing = with_closed_output(&["log"]);
    let turn = with_closed_output(&["run", "count to 3"]);

    assert_eq!((listing.code, listing.err.as_str()), (Some(141), ""));
    assert_eq!(turn.code, Some(0), "{}", turn.err);
    assert!(user.ikigai(&["log"]).out.contains("● 1 2 3"));
}

#[test]
fn a_prompt_that_begins_with_a_slash_is_a_command() {
    let user = TestUser::new();
    user.ikigai(&["run", "count to 2"]);

    let marked = user.ikigai(&["run", "/mark a"]);
    let unknown = user.ikigai(&["run", "/rewnid a"]);
    let path = user.ikigai(&["run", "/usr/bin/x"]);
    let rewound = user.ikigai(&["run", "/rewind a"]);

    assert_eq!(
        (marked.code, marked.out.as_str(), marked.err.as_str()),
        (Some(0), "⚑ a · /rewind a to return\n", "")
    );
    assert_eq!(
        (unknown.code, unknown.out.as_str()),
        (
            Some(1),
            "⚠ no command /rewnid · did you mean /rewind? · start with a space to send it as text\n"
        )
    );
    assert_eq!(path.code, Some(0));
    assert_eq!(
        rewound.out,
        "↶ rewound to ⚑ a #6: 1 turn hidden. /redo to reverse\n"
    );
    let log = user.ikigai(&["log"]).out;
    assert!(!log.contains("/usr/bin/x"), "{log}");
    assert!(log.contains("/rewind a\n\n↶ rewound to ⚑ a #6"), "{log}");
}

#[test]
fn lines_for_the_shell_files_and_pins_reach_the_model() {
    let user = TestUser::new();
    let project = user.home().join("project");
    fs::write(project.join("AGENTS.md"), "Be kind.").unwrap();
    fs::write(project.join("a.txt"), "text").unwrap();

    let ran = user.ikigai(&["run", "!echo hi; exit 3"]);
    let kept = user.ikigai(&["run", "!!echo hidden"]);
    let named = user.ikigai(&["run", "look at @a.txt"]);
    let missing = user.ikigai(&["run", "look at @./b.txt"]);

    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(1), "$ echo hi; exit 3\nhi\n(exit 3)\n"),
        "the command failed"
    );
    assert_eq!(kept.out, "$ echo hidden\nhidden\n(exit 0)\n");
    assert_eq!(
        (named.code, named.err.as_str()),
        (Some(0), "@a.txt · 4 bytes\n")
    );
    assert_eq!(missing.code, Some(1));
    assert!(
        missing.err.contains("not sent: b.txt cannot be read"),
        "{}",
        missing.err
    );
    let request = user.ikigai(&["log", "--request"]).out;
    assert!(request.contains("AGENTS.md\\n\\nBe kind."), "{request}");
    assert!(request.contains("@a.txt:\\n```\\ntext"), "{request}");
    assert!(request.contains("$ echo hi"), "{request}");
    assert!(!request.contains("hidden"), "{request}");
    let models = user.ikigai(&["run", "/model"]).out;
    assert!(models.starts_with("model: demo:demo\n"), "{models}");
    let switched = user.ikigai(&["run", "/model ollama:qwen3"]).out;
    assert!(
        switched.starts_with("Switched to Ollama qwen3\n"),
        "{switched}"
    );
}

#[test]
fn the_search_index_can_be_made_again() {
    let user = TestUser::new();
    user.ikigai(&["run", "hello"]);

    let said = user.ikigai(&["doctor", "--reindex"]);

    let expected = "Search index rebuilt: 5 events\n";
    assert_eq!((said.out.as_str(), said.code), (expected, Some(0)));
}

#[test]
fn words_are_found_as_text_and_json_with_filters_and_pages() {
    let user = TestUser::new();
    user.ikigai(&["run", "the first marmalade"]);
    user.ikigai(&["run", "the second marmalade"]);

    let text = user.ikigai(&["search", "marmalade", "kind:user"]);
    let json = user.ikigai(&[
        "search",
        "marmalade kind:user path:.",
        "--json",
        "--limit",
        "1",
    ]);
    let nothing = user.ikigai(&["search", "marmalade", "path:/elsewhere"]);
    let wrong = user.ikigai(&["search", "kind:dream"]);

    let lines: Vec<_> = text.out.lines().collect();
    assert!(lines[0].starts_with("#project.6 "), "{}", text.out);
    assert_eq!(lines[1], "  the second marmalade");
    assert_eq!(lines[3], "  the first marmalade");
    let hit: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(
        (&hit["seq"], &hit["marks"][0]),
        (&6.into(), &serde_json::json!([11, 20]))
    );
    let place = json
        .err
        .strip_prefix("More results: --from ")
        .unwrap()
        .trim();
    let more = user.ikigai(&["search", "marmalade kind:user", "--from", place]);
    assert!(
        more.out.contains("the first") && !more.out.contains("the second"),
        "{}",
        more.out
    );
    assert_eq!((nothing.out.as_str(), nothing.code), ("", Some(1)));
    assert_eq!(wrong.code, Some(2), "{}", wrong.err);
}

/// A name selects the running agent; its id selects a dead namesake.
#[test]
fn what_was_found_is_opened_by_the_id_that_search_prints() {
    let user = TestUser::new();
    user.ikigai(&["run", "hello"]);
    user.ikigai(&["run", "/fork --fresh --name docs say zanzibar"]);
    user.ikigai(&["run", "/kill docs"]);
    let alone = user.ikigai(&["search", "zanzibar", "kind:user"]);
    user.ikigai(&["run", "/fork --fresh --name docs say marmalade"]);

    let found = user.ikigai(&["search", "zanzibar", "kind:user"]);
    let row = found.out.split_whitespace().next().unwrap();
    let around = user.ikigai(&["log", "--around", row]);
    let program = control::start(&user, &["--at", row, "--size", "80x20"]);
    let screen = control::screen(&program);
    program.end().unwrap();
    let nothing = user.ikigai(&["log", "--around", "#docs.4711"]);

    assert!(alone.out.starts_with("#docs."), "{}", alone.out);
    assert!(!found.out.starts_with("#docs."), "{}", found.out);
    assert!(around.out.contains("say zanzibar"), "{}", around.err);
    assert!(!around.out.contains("marmalade"), "{}", around.out);
    assert!(screen.contains("❯ say zanzibar"), "{screen}");
    assert!(screen.contains("history"), "{screen}");
    assert_eq!(nothing.code, Some(1), "{}", nothing.err);
}

#[test]
fn the_rows_around_one_are_ten_before_and_ten_after() {
    let user = TestUser::new();
    for number in 1..=30 {
        user.ikigai(&["run", &format!("/mark m{number}")]);
    }
    let around = |row: &str| {
        let said = user.ikigai(&["log", "--around", row, "--json"]);
        let rows = said.out.lines().map(|line| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            row["seq"].as_u64().unwrap()
        });
        let rows: Vec<_> = rows.collect();
        (rows.first().copied(), rows.last().copied(), rows.len())
    };

    assert_eq!(around("#30"), (Some(20), Some(40), 21));
    assert_eq!(around("4"), (Some(1), Some(14), 14));
    assert_eq!(around("#project.60"), (Some(50), Some(62), 13));
}

/// A subcommand refuses options of the screen.
#[test]
fn what_is_asked_of_the_screen_stands_alone() {
    let user = TestUser::new();

    let refused = user.ikigai(&["--new", "agents"]);

    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(
        refused.err.contains("put options after the command"),
        "{}",
        refused.err
    );
}

#[test]
fn the_log_calls_rows_and_agents_as_the_screen_does() {
    let user = TestUser::new();
    user.ikigai(&["run", "count to 2"]);
    user.ikigai(&["run", "/mark a"]);
    user.ikigai(&["run", "/rewind a"]);
    user.ikigai(&["run", "/fork --name helper"]);
    user.ikigai(&["run", "--agent", "helper", "/rewind a"]);
    user.ikigai(&["run", "/kill helper"]);
    user.ikigai(&["run", "/reap helper"]);

    let own = user.ikigai(&["log"]);
    let child = user.ikigai(&["log", "helper"]);
    let by = format!(" by {}", user.person());

    assert!(
        own.out.contains(&format!(" rewind{by}\n↶ rewound to #6\n")),
        "{}",
        own.out
    );
    let forked = format!(" fork{by}\n├ forked helper\n");
    assert!(own.out.contains(&forked), "{}", own.out);
    assert!(own.out.contains("\n✗ killed helper\n"), "{}", own.out);
    let inherited = format!(" #project.3 user{by}\n");
    assert!(child.out.contains(&inherited), "{}", child.out);
    assert!(
        child.out.contains("\n↶ rewound to #project.6\n"),
        "{}",
        child.out
    );

    user.ikigai(&["run", "/redo"]);
    let own = user.ikigai(&["log"]);
    let redone = format!(" rewind{by}\n↷ redone to #");
    assert!(own.out.contains(&redone), "{}", own.out);
}

/// A word that is a command elsewhere is never sent to a model by mistake.
#[test]
fn commands_and_options_of_other_tools_name_the_way_here() {
    let user = TestUser::new();
    let cases: [(&[&str], &str); 8] = [
        (&["resume"], "`ikigai --agent NAME` opens another one"),
        (&["resume"], "to send it as a message: `ikigai run resume`"),
        (&["exec", "say hello"], "use `ikigai run \"PROMPT\"`"),
        (&["-p", "hello"], "use `ikigai run \"PROMPT\"`"),
        (&["--resume"], "continues the last agent"),
        (&["--permission-mode=plan"], "use `--approve MODE`"),
        (&["fix", "the", "bug"], "quote the message: `ikigai \"…\"`"),
        (
            &["run", "fix", "it"],
            "quote the message: `ikigai run \"…\"`",
        ),
    ];

    for (arguments, expected) in cases {
        let said = user.ikigai(arguments);
        assert_eq!(said.code, Some(2), "{arguments:?}: {}", said.err);
        assert!(said.err.contains(expected), "{arguments:?}: {}", said.err);
    }
    let other = user.ikigai(&["log", "a", "b"]);
    assert!(!other.err.contains("quote"), "{}", other.err);
}

/// The demo model is in no table, and is found all the same.
#[test]
fn the_demo_model_is_found_among_the_models() {
    let user = TestUser::new();

    let found = user.ikigai(&["models", "demo"]);
    let missing = user.ikigai(&["models", "no-such-model"]);

    assert!(found.err.contains("demo is built in"), "{}", found.err);
    assert!(!found.err.contains("No model matches"), "{}", found.err);
    assert!(missing.err.contains("No model matches"), "{}", missing.err);
}
