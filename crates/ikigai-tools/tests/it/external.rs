//! External tools: discovery, schema query and calls.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ikigai_tools::process::ChildEnvironment;
use ikigai_tools::toolbox::{Places, Toolbox};
use ikigai_tools::trust::Trust;
use ikigai_tools::{
    CallContext, CallEnding, CallInputs, Confinement, Output, Place, Run, Tool, builtin,
};
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::{PATIENCE, unique, with_cookie};

/// Directories for tools, a project in them, and a count of tool runs.
struct Machine {
    _directory: TempDir,
    base: PathBuf,
}

impl Machine {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        for name in [
            "system",
            "user",
            "project/.git",
            "project/.ikigai/tools",
            "project/src",
        ] {
            fs::create_dir_all(base.join(name)).unwrap();
        }
        // Next to a hidden path, a process can change files but not create them.
        fs::write(base.join("runs"), "").unwrap();
        Self {
            _directory: directory,
            base,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    fn places(&self) -> Places {
        Places {
            system: self.path("system"),
            user: Some(self.path("user")),
            cache: Some(self.path("state/tools.json")),
            trust: self.trust(),
            hidden: self.hidden(),
        }
    }

    fn trust(&self) -> Trust {
        Trust::new(Some(self.path("state/trust")))
    }

    /// Trusts the project's tools as they are now.
    fn trust_project(&self) {
        let (trust, workdir) = (self.trust(), self.path("project/src"));
        let items = trust.project(&workdir).items;
        trust.decide(&workdir, &items, true).unwrap();
    }

    /// Tools lie in a hidden directory, as in the program; they can still be run.
    fn hidden(&self) -> Arc<[PathBuf]> {
        Arc::from([self.path("user"), self.path("user/key")])
    }

    fn toolbox(&self) -> Toolbox {
        Toolbox::new(
            builtin::all(ChildEnvironment::default()),
            self.places(),
            ChildEnvironment::default(),
        )
        .with_patience(PATIENCE)
    }

    /// Writes an executable that counts the queries of its schema.
    fn tool(&self, file: &str, schema: &str, body: &str) {
        let text = format!(
            "#!/bin/bash\nif [ \"$1\" = --schema ]; then echo {file} >> {runs}; {schema}\nexit; fi\n{body}\n",
            runs = self.path("runs").display(),
        );
        self.script(file, &text);
    }

    fn script(&self, file: &str, text: &str) {
        fs::write(self.path(file), text).unwrap();
        fs::set_permissions(self.path(file), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.path("runs"))
            .unwrap_or_default()
            .lines()
            .count()
    }

    async fn names(&self, toolbox: &Toolbox) -> Vec<String> {
        let built_in: Vec<String> = builtin::all(ChildEnvironment::default())
            .iter()
            .map(|tool| tool.spec().name)
            .collect();
        toolbox
            .tools(&self.path("project/src"))
            .await
            .iter()
            .map(|tool| tool.spec().name)
            .filter(|name| !built_in.contains(name))
            .collect()
    }

    async fn broken(&self, toolbox: &Toolbox) -> Vec<(String, String)> {
        toolbox
            .broken(&self.path("project/src"))
            .await
            .into_iter()
            .map(|broken| {
                let path = broken.path.strip_prefix(&self.base).unwrap();
                (path.display().to_string(), broken.reason)
            })
            .collect()
    }

    async fn called(&self, name: &str, arguments: &str) -> Output {
        let tool = find(&self.toolbox().tools(&self.path("project")).await, name);
        let place = Place {
            workdir: self.path("project"),
            hidden: Arc::from([]),
        };
        let Run::Async(run) = tool.prepare(arguments, &place).ok().unwrap().run else {
            panic!("external tools do not block");
        };
        let cookie = unique("external");
        let output = run(CallContext {
            place,
            stop: CancellationToken::new(),
            inputs: CallInputs::default(),
            progress: Arc::new(|_| {}),
            output: Arc::new(|_| {}),
            cookie: cookie.clone(),
            temporary: None,
            confinement: Confinement::Sandbox {
                write: vec![self.path("project")],
                network: false,
                hosts: Arc::default(),
                loopback: Arc::default(),
                hidden: self.hidden(),
                guarded: Vec::new(),
            },
        })
        .await;
        assert_eq!(with_cookie(&cookie), Vec::<String>::new());
        output
    }
}

fn find(tools: &[Arc<dyn Tool>], name: &str) -> Arc<dyn Tool> {
    let found = tools.iter().find(|tool| tool.spec().name == name);
    Arc::clone(found.unwrap())
}

fn schema(description: &str) -> String {
    format!(
        "echo '{}'",
        json!({
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {"word": {"type": "string"}},
                "required": ["word"],
            },
        })
    )
}

fn text(output: &Output) -> &str {
    std::str::from_utf8(&output.body).unwrap()
}

#[tokio::test]
async fn tools_are_found_in_all_places_and_the_later_wins() {
    let machine = Machine::new();
    machine.tool("system/one-tool", &schema("system"), "");
    machine.tool("system/two-words-tool", &schema("system"), "");
    machine.tool("user/one-tool", &schema("user"), "");
    machine.tool("user/three-tool", &schema("user"), "");
    machine.tool("project/.ikigai/tools/three-tool", &schema("project"), "");
    fs::write(machine.path("user/readme"), "no tool").unwrap();
    let toolbox = machine.toolbox();
    machine.trust_project();

    let tools = toolbox.tools(&machine.path("project/src")).await;

    let described: Vec<_> = ["one", "three", "two_words"]
        .map(|name| find(&tools, name).spec().description)
        .into();
    assert_eq!(described, ["user", "project", "system"]);
    let names: Vec<_> = tools.iter().map(|tool| tool.spec().name).collect();
    assert!(names.is_sorted(), "{names:?}");
    assert!(names.contains(&"bash".to_owned()));
}

#[tokio::test]
async fn a_tool_is_asked_once_as_long_as_its_file_is_the_same() {
    let machine = Machine::new();
    for number in 0..20 {
        machine.tool(&format!("user/n{number}-tool"), &schema("a tool"), "");
    }
    machine.tool("user/broken-tool", "exit 1", "");

    let first = machine.names(&machine.toolbox()).await;
    assert_eq!((first.len(), machine.runs()), (20, 21));

    // Another process, with all that the first one remembered.
    let toolbox = machine.toolbox();
    assert_eq!(machine.names(&toolbox).await, first);
    assert_eq!(machine.broken(&toolbox).await.len(), 1);
    assert_eq!(machine.runs(), 21);

    machine.tool("user/n3-tool", &schema("another"), "");
    assert_eq!(machine.names(&toolbox).await, first);
    assert_eq!(machine.runs(), 22);

    fs::write(machine.path("state/tools.json"), "damaged").unwrap();
    assert_eq!(machine.names(&machine.toolbox()).await, first);
    assert_eq!(machine.runs(), 43);
}

#[tokio::test]
async fn what_is_broken_is_listed_with_the_reason() {
    let machine = Machine::new();
    machine.tool("user/fails-tool", "echo what is this >&2; exit 3", "");
    machine.tool("user/mute-tool", "true", "");
    machine.tool("user/much-tool", "head -c 10000000 /dev/zero", "");
    machine.tool("user/nameless-tool", "echo '{}'", "");
    machine.tool("user/list-tool", &schema("a tool"), "");
    machine.tool(
        "user/other-tool",
        r#"echo '{"name":"it","description":"d"}'"#,
        "",
    );
    machine.tool(
        "user/odd-tool",
        r#"echo '{"description":"d","parameters":[]}'"#,
        "",
    );
    machine.tool(
        "user/scalar-tool",
        r#"echo '{"description":"d","parameters":{"type":"string"}}'"#,
        "",
    );
    machine.tool("user/bad name-tool", &schema("a tool"), "");
    machine.tool("user/-tool", &schema("a tool"), "");
    machine.tool("user/bash-tool", &schema("a tool"), "");
    machine.tool(
        "user/writes-tool",
        &format!("{}; touch /etc/x-$$ || exit", schema("a tool")),
        "",
    );
    fs::create_dir(machine.path("user/directory-tool")).unwrap();
    fs::write(machine.path("user/plain-tool"), "text").unwrap();
    machine.script("user/alien-tool", "#!/no/such/program\n");
    symlink("/nowhere", machine.path("user/gone-tool")).unwrap();

    let found = machine.broken(&machine.toolbox()).await;

    let name = "its name must begin with a letter and have only letters, digits, `-` and `_`";
    let alien = format!(
        "cannot start `{}`: No such file or directory (os error 2)",
        machine.path("user/alien-tool").display()
    );
    let expected = [
        ("user/-tool", name),
        ("user/alien-tool", &alien),
        ("user/bad name-tool", name),
        ("user/bash-tool", "`bash` is the name of a built-in tool"),
        ("user/directory-tool", "not a regular file"),
        (
            "user/fails-tool",
            "`--schema` failed with exit 3: what is this",
        ),
        ("user/gone-tool", "No such file or directory (os error 2)"),
        ("user/list-tool", "`list` is the name of a built-in tool"),
        (
            "user/much-tool",
            "`--schema` did not print JSON: expected value at line 1 column 1",
        ),
        (
            "user/mute-tool",
            "`--schema` did not print JSON: EOF while parsing a value at line 1 column 0",
        ),
        ("user/nameless-tool", "`--schema` has no `description`"),
        (
            "user/odd-tool",
            "`--schema` has `parameters` that are not a JSON schema",
        ),
        (
            "user/other-tool",
            "`--schema` names it `it`, but its file `other`",
        ),
        ("user/plain-tool", "not executable"),
        (
            "user/scalar-tool",
            "`--schema` has `parameters` of another type than `object`",
        ),
        (
            "user/writes-tool",
            "`--schema` failed with exit 1: touch: cannot touch '/etc/x': Permission denied",
        ),
    ];
    let found: Vec<_> = found
        .into_iter()
        .map(|(path, reason)| {
            let digits = |c: char| c.is_ascii_digit();
            let reason = match reason.find("/etc/x-") {
                Some(at) => format!(
                    "{}/etc/x{}",
                    &reason[..at],
                    reason[at + 7..].trim_start_matches(digits)
                ),
                None => reason,
            };
            (path, reason)
        })
        .collect();
    let expected: Vec<_> = expected
        .map(|(path, reason)| (path.to_owned(), reason.to_owned()))
        .into();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_tool_that_says_nothing_for_a_second_is_given_up() {
    let machine = Machine::new();
    machine.tool("user/hangs-tool", "sleep 1000", "");
    let toolbox = machine.toolbox().with_patience(Duration::from_secs(1));

    let expected = [(
        "user/hangs-tool".to_owned(),
        "`--schema` took longer than 1 s".to_owned(),
    )];
    assert_eq!(machine.broken(&toolbox).await, expected);

    // A broken tool is not queried again soon.
    assert_eq!(machine.broken(&machine.toolbox()).await, expected);
    assert!(machine.runs() <= 1);
}

#[tokio::test]
async fn a_project_brings_tools_only_after_their_content_was_trusted() {
    let machine = Machine::new();
    machine.tool("user/mine-tool", &schema("mine"), "");
    machine.tool("project/.ikigai/tools/mine-tool", &schema("theirs"), "");
    machine.tool("project/.ikigai/tools/new-tool", &schema("theirs"), "");
    let toolbox = machine.toolbox();

    assert_eq!(machine.names(&toolbox).await, ["mine"]);
    let reason = "not trusted; review it with `ikigai trust`".to_owned();
    assert_eq!(
        machine.broken(&toolbox).await,
        [
            ("project/.ikigai/tools/mine-tool".to_owned(), reason.clone()),
            ("project/.ikigai/tools/new-tool".to_owned(), reason.clone()),
        ]
    );
    assert_eq!(machine.runs(), 1);

    machine.trust_project();

    let toolbox = machine.toolbox();
    assert_eq!(machine.names(&toolbox).await, ["mine", "new"]);
    assert_eq!(machine.broken(&toolbox).await, []);
    machine.tool("project/.ikigai/tools/later-tool", &schema("theirs"), "");
    machine.tool("project/.ikigai/tools/new-tool", &schema("changed"), "");
    assert_eq!(machine.names(&toolbox).await, ["mine"]);
    assert_eq!(
        machine.broken(&toolbox).await,
        [
            (
                "project/.ikigai/tools/later-tool".to_owned(),
                reason.clone()
            ),
            ("project/.ikigai/tools/new-tool".to_owned(), reason),
        ]
    );
}

#[tokio::test]
async fn a_project_ends_at_the_top_of_its_repository() {
    let machine = Machine::new();
    machine.tool("project/.ikigai/tools/new-tool", &schema("theirs"), "");
    machine.trust_project();
    fs::create_dir_all(machine.path("project/src/.git")).unwrap();

    assert_eq!(
        machine.names(&machine.toolbox()).await,
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn a_call_is_answered() {
    let machine = Machine::new();
    machine.tool(
        "user/echo-tool",
        &schema("echoes"),
        r#"read -r given; echo "$IKIGAI_RUN" | grep -q external && printf '{"output":%s}' "$(printf '%s' "$given" | sed 's/.*"word":\("[^"]*"\).*/\1/')""#,
    );

    let output = machine.called("echo", r#"{ "word": "hello" }"#).await;

    assert_eq!((text(&output), output.shown.as_str()), ("hello", "hello"));
    assert_eq!((output.success, output.ending), (true, CallEnding::Ran));
}

#[tokio::test]
async fn a_call_is_confined_and_leaves_nothing() {
    let machine = Machine::new();
    fs::write(machine.path("user/key"), "secret").unwrap();
    machine.tool(
        "user/nosy-tool",
        &schema("looks around"),
        "cat $(dirname $0)/key && exit; touch $(dirname $0)/new && exit; touch here || exit; sleep 1000 & echo '\"kept\"'",
    );

    let output = machine.called("nosy", r#"{"word":""}"#).await;

    assert_eq!(
        text(&output),
        "kept\n1 process left in the background was ended"
    );
    assert!(output.success);
    assert!(fs::exists(machine.path("project/here")).unwrap());
    assert!(!fs::exists(machine.path("user/new")).unwrap());
}

#[tokio::test]
async fn arguments_must_fit_before_anything_is_run() {
    let machine = Machine::new();
    machine.tool("user/echo-tool", &schema("echoes"), "");
    let tool = find(&machine.toolbox().tools(Path::new("/")).await, "echo");
    let place = Place {
        workdir: PathBuf::from("/"),
        hidden: Arc::from([]),
    };
    let wanted = json!({
        "type": "object",
        "properties": {"word": {"type": "string"}},
        "required": ["word"],
    });

    for (arguments, complaint) in [
        ("", "`word` is missing"),
        ("[]", "they must be an object, not array"),
        (r#"{"word":1}"#, "`word` must be string, not number"),
        ("{word}", "key must be a string at line 1 column 2"),
    ] {
        let error = tool.prepare(arguments, &place).err().unwrap();
        assert_eq!(
            error.to_string(),
            format!(
                "the arguments do not fit: {complaint}. They must be a JSON object that fits this schema: {wanted}"
            )
        );
    }
}
