//! Real tools in the built program: effects, leftovers and questions.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::{TestUser, said};

impl TestUser {
    fn file(&self, name: &str) -> std::path::PathBuf {
        self.home().join("project").join(name)
    }
}

/// Starts a turn that runs a command, and returns when the command has begun.
fn running(user: &TestUser, command: &str) -> Child {
    let prompt = format!("run `touch begun; echo $$ > pid; {command}`");
    let mut child = user
        .command(&["run", "--approve", "all", &prompt])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    // The call is printed once it is stored; then poll for the file that it writes.
    err.read_line(&mut line).unwrap();
    while fs::read_to_string(user.file("pid"))
        .unwrap_or_default()
        .trim()
        .is_empty()
    {
        std::thread::yield_now();
    }
    std::thread::spawn(move || std::io::copy(&mut err, &mut std::io::sink()));
    child
}

fn lives(user: &TestUser) -> bool {
    let pid = fs::read_to_string(user.file("pid")).unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    // A zombie counts as ended.
    !stat.is_empty() && !stat.contains(") Z ")
}

#[test]
fn a_model_lists_files_and_answers() {
    let user = TestUser::new();
    for name in ["a.rs", "b.rs", "c.txt"] {
        fs::write(user.file(name), "").unwrap();
    }

    let ran = user.ikigai(&["run", "list the rust files and count them"]);

    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("Found 2 Rust files"), "{}", ran.out);
    assert!(
        ran.err.contains("→ glob: pattern=\"**/*.rs\""),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("← glob: 2 files"), "{}", ran.err);
}

#[test]
fn what_would_be_asked_is_refused_where_nobody_can_answer() {
    let user = TestUser::new();
    let create = "create notes.txt with three lines, then change the second";

    let refused = user.ikigai(&["run", create]);
    let written = user.file("notes.txt").exists();
    let allowed = user.ikigai(&["run", "--approve", "edits", create]);

    assert!(
        refused.err.contains("there is no terminal to ask on"),
        "{}",
        refused.err
    );
    assert!(!written);
    assert_eq!(allowed.code, Some(0), "{}", allowed.err);
    let text = fs::read_to_string(user.file("notes.txt")).unwrap();
    assert_eq!(text, "line 1\nline 2, changed\nline 3\n");
    assert!(
        allowed.err.contains("-line 2\n+line 2, changed"),
        "{}",
        allowed.err
    );
}

#[test]
fn a_turn_with_two_calls_is_told_as_json() {
    let user = TestUser::new();
    fs::write(user.file("one.md"), "1\n").unwrap();
    fs::write(user.file("two.md"), "2\n").unwrap();

    let ran = user.ikigai(&["run", "--json", "read one.md and two.md"]);

    let rows: Vec<Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let kinds: Vec<_> = rows
        .iter()
        .map(|row| row["kind"].as_str().unwrap())
        .collect();
    let results = ["tool_result", "tool_result"];
    assert_eq!(kinds[..4], ["user", "tool_call", "tool_call", "usage"]);
    assert_eq!(kinds[4..6], results);
    assert_eq!(kinds[6..], ["assistant", "usage"]);
}

#[test]
fn an_interrupt_ends_everything_that_a_command_started() {
    let user = TestUser::new();
    let child = running(&user, "sleep 300 & sleep 300");

    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::INT,
    )
    .unwrap();
    let ended = said(child.wait_with_output().unwrap());

    assert_eq!(ended.code, Some(130));
    assert!(!lives(&user));
    let log = user.ikigai(&["log"]).out;
    assert!(log.contains("✗ bash: stopped"), "{log}");
    assert!(log.contains("✗ interrupted by you"), "{log}");
}

/// E16a, E16b: a command that outlived its program is ended and settled as unknown.
#[test]
fn a_command_that_outlived_its_program_is_ended_and_told() {
    let user = TestUser::new();
    let mut child = running(&user, "sleep 300");
    child.kill().unwrap();
    child.wait().unwrap();
    let outlived = lives(&user);

    let before = user.ikigai(&["agents"]);
    let resumed = user.ikigai(&["run", "--resume"]);
    let after = user.ikigai(&["agents"]);

    assert!(outlived, "or else there was nothing to end");
    assert!(!lives(&user));
    assert!(before.out.contains("⏸ stopped"), "{}", before.out);
    assert!(after.out.contains("· idle"), "{}", after.out);
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    assert!(resumed.err.contains("Outcome unknown"), "{}", resumed.err);
    assert!(resumed.err.contains("still running and"), "{}", resumed.err);
}

#[test]
fn children_work_beside_their_parent() {
    let user = TestUser::new();
    for (directory, files) in [("docs", 1), ("src", 2)] {
        fs::create_dir(user.file(directory)).unwrap();
        for number in 0..files {
            let name = format!("{directory}/{number}.txt");
            fs::write(user.file(&name), "").unwrap();
        }
    }
    let ask = "fork two helpers, let each count the files of one directory, wait for both and tell me the sum";

    let ran = user.ikigai(&["run", ask]);
    let listed = user.ikigai(&["agents"]);
    let merged = user.ikigai(&["run", "/merge helper-2"]);
    let killed = user.ikigai(&["run", "/kill helper-1"]);
    let again = user.ikigai(&["run", "/kill helper-1"]);

    assert!(
        ran.out.contains("1 + 2 = 3 files."),
        "{} {}",
        ran.out,
        ran.err
    );
    assert!(listed.out.contains("    helper-1 "), "{}", listed.out);
    assert!(
        merged.out.contains("⇐ merged helper-2 #3–#8"),
        "{}",
        merged.out
    );
    assert_eq!(killed.out, "✗ killed helper-1\n");
    assert_eq!(again.code, Some(1), "{}", again.out);
}

#[test]
fn tools_are_listed_and_a_broken_one_is_told() {
    let user = TestUser::new();
    let directory = user.home().join(".config/ikigai/tools");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("broken-tool"), "no program").unwrap();

    let listed = user.ikigai(&["tools"]);

    assert!(listed.out.contains("\nfile_read "), "{}", listed.out);
    assert!(listed.err.contains("broken-tool"), "{}", listed.err);
}

/// Runs a turn on a real terminal and answers its questions in order.
fn on_a_terminal(user: &TestUser, prompt: &str, answers: &[&str]) -> String {
    let program = env!("CARGO_BIN_EXE_ikigai");
    let mut command = Command::new("script");
    command.args(["-qec", &format!("{program} run '{prompt}'"), "/dev/null"]);
    let mut child = user
        .at_home(&mut command)
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("TERM", "dumb")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keys = child.stdin.take().unwrap();
    let mut screen = child.stdout.take().unwrap();
    let mut seen = String::new();
    let mut left = answers.iter();
    let mut asked = 0;
    let mut bytes = [0; 4096];
    loop {
        let count = screen.read(&mut bytes).unwrap_or(0);
        if count == 0 {
            break;
        }
        seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
        let questions = seen.matches("with a reason > ").count();
        if questions > asked {
            asked = questions;
            if let Some(answer) = left.next() {
                keys.write_all(answer.as_bytes()).unwrap();
            }
        }
    }
    child.wait().unwrap();
    seen
}

#[test]
fn a_question_is_asked_on_the_terminal_and_answered_there() {
    let user = TestUser::new();
    let create = "create notes.txt with three lines, then change the second";

    let refused = on_a_terminal(&user, create, &["r not here\n", "n\n"]);
    let written = user.file("notes.txt").exists();
    let allowed = on_a_terminal(&user, create, &["y\n", "a\n"]);
    let again = on_a_terminal(&user, create, &["y\n"]);

    assert!(refused.contains("The user said no: not here"), "{refused}");
    assert!(!written);
    assert!(
        allowed.contains("? project: file_write needs approval, in"),
        "{allowed}"
    );
    assert!(
        allowed.contains("+line 3"),
        "the whole diff is shown: {allowed}"
    );
    let text = fs::read_to_string(user.file("notes.txt")).unwrap();
    assert_eq!(text, "line 1\nline 2, changed\nline 3\n");
    assert_eq!(
        again.matches("file_edit asks").count(),
        0,
        "always: {again}"
    );
    let log = user.ikigai(&["log", "--all", "--json"]).out;
    assert!(log.contains("\"args\":\"always\""), "{log}");
}

/// Starts a turn on a real terminal and presses Ctrl-C when it asks.
#[test]
fn ctrl_c_at_a_question_ends_the_turn() {
    let user = TestUser::new();

    let seen = on_a_terminal(&user, "run touch x", &["\u{3}"]);

    assert!(
        seen.contains("Interrupted; the answer so far is saved"),
        "{seen}"
    );
    assert!(!user.file("x").exists());
    let log = user.ikigai(&["log"]).out;
    assert!(log.contains("not run: the user stopped the turn"), "{log}");
}

/// E23: `run --fresh` works in a fresh child; the root's conversation is not affected.
#[test]
fn run_fresh_works_in_a_child_of_the_root() {
    let user = TestUser::new();
    user.ikigai(&["run", "hello"]);

    let fresh = user.ikigai(&["run", "--fresh", "what did I say"]);
    let root = user.ikigai(&["run", "what did I say"]);
    let agents = user.ikigai(&["agents", "--json"]);

    assert!(fresh.out.contains("your first message"), "{}", fresh.out);
    assert!(root.out.contains("1. hello"), "{}", root.out);
    let agents: Vec<Value> = agents
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(agents.len(), 2);
    assert_eq!(agents[1]["parent"], agents[0]["id"]);
    assert_eq!(agents[1]["fork_point"], Value::Null);
}

/// E19b: `/merge` is one `user` row with `merge` and starts no request; `/undo` takes it back.
#[test]
fn merge_is_one_user_row_without_request() {
    let user = TestUser::new();
    user.ikigai(&["run", "hello"]);
    user.ikigai(&["run", "/fork --name docs count to 3"]);
    let rows = |user: &TestUser| -> Vec<Value> {
        let log = user.ikigai(&["log", "--all", "--json"]).out;
        log.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let before = rows(&user).len();

    user.ikigai(&["run", "/merge docs"]);
    let merged = rows(&user);
    let request = user.ikigai(&["log", "--request"]).out;
    user.ikigai(&["run", "/undo"]);
    let undone = user.ikigai(&["log", "--request"]).out;

    let kinds: Vec<_> = merged[before..]
        .iter()
        .map(|row| row["kind"].clone())
        .collect();
    assert_eq!(kinds, ["user", "command"]);
    let merge = &merged[before]["data"]["merge"];
    assert_eq!((&merge["from"], &merge["to"]), (&json!(2), &json!(4)));
    assert!(request.contains("1 2 3"), "{request}");
    assert!(!undone.contains("1 2 3"), "{undone}");
}

#[test]
fn a_command_plants_nothing_that_runs_later_and_says_so() {
    for without_namespaces in [false, true] {
        let user = TestUser::new();
        let plant = "run `git init -q . && git config core.fsmonitor 'touch ran' && \
                     git config user.name me && mkdir -p .git/hooks .vscode && \
                     cp /bin/true .git/hooks/pre-commit && echo {} >.vscode/tasks.json`";
        let mut command = user.command(&["run", "--approve", "all", plant]);
        command.env("TMPDIR", user.home());
        if without_namespaces {
            command.env("IKIGAI_TEST_NO_USERNS", "1");
        }

        let ran = said(command.output().unwrap());

        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let stored = user.ikigai(&["log", "--json"]).out;
        assert!(
            stored.contains("protected paths were changed and restored"),
            "{stored}"
        );
        let config = fs::read_to_string(user.file(".git/config")).unwrap();
        assert!(
            config.contains("me") && !config.contains("touch"),
            "{config}"
        );
        assert!(!user.file(".git/hooks/pre-commit").exists());
        assert!(!user.file(".vscode").exists());
    }
}

#[test]
fn secrets_of_other_programs_are_out_of_reach_for_commands() {
    let user = TestUser::new();
    let home = user.home().to_path_buf();
    for (name, content) in [
        (".docker/config.json", "secret-docker"),
        (".bash_history", "secret-history"),
        ("elsewhere/kube", "secret-kube"),
        (
            ".config/ikigai/config.toml",
            "# secret-header\n[sandbox]\npass_env = [\"PASSED_TOKEN\"]\n",
        ),
        (".local/state/ikigai/log", "secret-diagnostics"),
        (".gitconfig", "[user]\nname = readable\n"),
    ] {
        fs::create_dir_all(home.join(name).parent().unwrap()).unwrap();
        fs::write(home.join(name), content).unwrap();
    }
    let read = "run `cat $HOME/.docker/config.json $HOME/.bash_history $HOME/elsewhere/kube \
                $HOME/.config/ikigai/config.toml $HOME/.local/state/ikigai/log; \
                git config user.name; env | grep value-of`";
    let mut command = user.command(&["run", "--approve", "all", read]);
    command
        .env("KUBECONFIG", home.join("elsewhere/kube"))
        .env("SOME_PASS", "value-of-pass")
        .env("AUTHORIZATION", "value-of-authorization")
        .env("PASSED_TOKEN", "value-of-token")
        .env("MY_SETTING", "value-of-setting");

    let ran = said(command.output().unwrap());

    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let stored = user.ikigai(&["log", "--json"]).out;
    assert!(
        stored.contains("readable") && stored.contains("value-of-setting"),
        "{stored}"
    );
    assert!(stored.contains("value-of-token"), "{stored}");
    assert!(!stored.contains("secret-"), "{stored}");
    assert!(!stored.contains("value-of-pass"), "{stored}");
    assert!(!stored.contains("value-of-authorization"), "{stored}");
}

#[test]
fn a_command_in_the_home_directory_reaches_neither_our_files_nor_what_runs_later() {
    for without_namespaces in [false, true] {
        let user = TestUser::new();
        let home = user.home();
        for (name, content) in [
            (".config/ikigai/config.toml", "# ours\n"),
            (".config/ikigai/tools/x-tool", "ours"),
            (".config/other/settings", "theirs"),
            (".gitconfig", "[user]\nname = me\n"),
            (".ssh/config", "ours"),
            ("notes", "old"),
        ] {
            let path = home.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let attack = "run `echo evil >.config/ikigai/config.toml; echo evil >.config/ikigai/new; \
                      echo evil >.config/ikigai/tools/x-tool; rm -rf .config/ikigai .ssh; \
                      mv .config away; mv .ssh away; cat .config/ikigai/config.toml .ssh/config; \
                      git config --global alias.x '!evil'; git config --global user.email e; \
                      echo new >notes; echo new >.config/other/settings`";
        let mut command = user.command(&["run", "--approve", "all", attack]);
        command
            .current_dir(home)
            .env("TMPDIR", home.join("project"));
        if without_namespaces {
            command.env("IKIGAI_TEST_NO_USERNS", "1");
        }

        let ran = said(command.output().unwrap());

        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let read = |name: &str| fs::read_to_string(home.join(name)).unwrap();
        assert_eq!(read(".config/ikigai/config.toml"), "# ours\n");
        assert_eq!(read(".config/ikigai/tools/x-tool"), "ours");
        assert!(!home.join(".config/ikigai/new").exists());
        assert_eq!(read(".ssh/config"), "ours");
        assert_eq!(read("notes"), "new\n");
        assert_eq!(read(".config/other/settings"), "new\n");
        assert!(!read(".gitconfig").contains("evil"));
        let stored = user.ikigai(&["log", "--json"]).out;
        assert!(!stored.contains("# ours"), "{stored}");
    }
}
