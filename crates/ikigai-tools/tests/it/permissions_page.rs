//! Table of tools and modes in `docs/permissions.md`: each cell equals the decision.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use ikigai_core::settings::Approve;
use ikigai_testkit::docs::table_of;
use ikigai_tools::builtin::web_fetch::{WebFetch, WebLimits};
use ikigai_tools::builtin::web_search::WebSearch;
use ikigai_tools::permission::{Decision, Grant, Permissions, Sandbox, decide};
use ikigai_tools::process::ChildEnvironment;
use ikigai_tools::toolbox::{Places, Toolbox};
use ikigai_tools::trust::Trust;
use ikigai_tools::{Place, Tool, builtin};
use serde_json::{Value, json};

/// The columns of the table.
const MODES: [Approve; 4] = [Approve::Read, Approve::Ask, Approve::Edits, Approve::All];

/// Tools of the engine, whose rows a test there checks.
const AGENT_TOOLS: [&str; 5] = ["fork", "kill", "recall", "send", "wait"];

/// The name of an external tool in the table.
const EXTERNAL: &str = "your own tool";

/// Working directory with files of every sort around it.
struct Ground {
    _directory: tempfile::TempDir,
    place: Place,
    tools: Vec<Arc<dyn Tool>>,
}

impl Ground {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        for name in ["work/.git/hooks", "elsewhere", "keys", "tools"] {
            fs::create_dir_all(base.join(name)).unwrap();
        }
        for name in [
            "work/a.txt",
            "work/.git/hooks/a.txt",
            "elsewhere/a.txt",
            "keys/a.txt",
        ] {
            fs::write(base.join(name), "old").unwrap();
        }
        let schema = r#"{"description":"d","parameters":{"type":"object","properties":{}}}"#;
        let script = base.join("tools/deploy-tool");
        fs::write(&script, format!("#!/bin/sh\necho '{schema}'\n")).unwrap();
        make_executable(&script);
        let mut tools = builtin::all(ChildEnvironment::default());
        tools.push(Arc::new(WebFetch::new(WebLimits::default())));
        let key = "key".to_owned().into();
        tools.push(Arc::new(WebSearch::new(key, "https://search.invalid")));
        let places = Places {
            system: base.join("none"),
            user: Some(base.join("tools")),
            cache: None,
            trust: Trust::new(None),
            hidden: [].into(),
        };
        let toolbox = Toolbox::new(tools, places, ChildEnvironment::default());
        let workdir = base.join("work");
        let tools = toolbox.tools(&workdir).await;
        Self {
            place: Place {
                workdir,
                hidden: [base.join("keys")].into(),
            },
            tools,
            _directory: directory,
        }
    }

    /// Returns the file for a location that the table names.
    fn file(&self, place: &str) -> String {
        let base = self.place.workdir.parent().unwrap();
        let file = match place {
            "inside the working directory" => "work/a.txt",
            "outside of it" => "elsewhere/a.txt",
            "in a guarded directory" => "work/.git/hooks/a.txt",
            "hidden" => "keys/a.txt",
            other => panic!("the table names a place `{other}`"),
        };
        base.join(file).to_str().unwrap().to_owned()
    }

    /// Returns the decision about the call that a row describes, in one mode.
    fn decided(&self, tool: &str, what: &str, mode: Approve) -> &'static str {
        let (name, sandbox, arguments) = self.call(tool, what);
        let tool = self.tools.iter().find(|it| it.spec().name == name);
        let tool = tool.unwrap_or_else(|| panic!("there is no tool `{name}`"));
        let Ok(prepared) = tool.prepare(&arguments.to_string(), &self.place) else {
            return "refused";
        };
        let permissions = Permissions {
            grant: Grant {
                mode,
                rules: Vec::new(),
            },
            allow: Vec::new(),
            refuse: Vec::new(),
            sandbox,
        };
        match decide(&permissions, name, &prepared, &self.place) {
            Decision::Allow => "runs",
            Decision::AllowConfined => "sandboxed",
            Decision::Ask { .. } => "asked",
            Decision::Refuse(_) => "refused",
        }
    }

    fn call<'a>(&self, tool: &'a str, what: &str) -> (&'a str, Sandbox, Value) {
        let in_force = Sandbox::InForce;
        match (tool, what) {
            ("process", "list, read, wait") => {
                (tool, in_force, json!({ "action": "read", "process": 1 }))
            }
            ("process", "stop") => (tool, in_force, json!({ "action": "stop", "process": 1 })),
            ("process", "send") => (
                tool,
                in_force,
                json!({ "action": "send", "process": 1, "text": "y" }),
            ),
            ("bash", "read-only command") => {
                (tool, in_force, json!({ "command": "cat a.txt | wc" }))
            }
            ("bash", "read-only command, no sandbox") => {
                let arguments = json!({ "command": "cat a.txt | wc" });
                (tool, Sandbox::Missing, arguments)
            }
            ("bash", "outside the sandbox") => {
                let reason = "needs the package cache";
                let arguments = json!({ "command": "ls", "unconfined": true, "reason": reason });
                (tool, in_force, arguments)
            }
            ("bash", "other command") => (tool, in_force, json!({ "command": "make test" })),
            ("file_read", place) => (tool, in_force, json!({ "file_path": self.file(place) })),
            ("file_write", place) => {
                let arguments = json!({ "file_path": self.file(place), "content": "new" });
                (tool, in_force, arguments)
            }
            ("file_edit", place) => {
                let file = self.file(place);
                let arguments =
                    json!({ "file_path": file, "old_string": "old", "new_string": "new" });
                (tool, in_force, arguments)
            }
            ("glob" | "grep", place) => {
                let arguments = json!({ "pattern": "a", "path": self.file(place) });
                (tool, in_force, arguments)
            }
            ("todo", "") => (tool, in_force, json!({ "items": ["a"] })),
            ("web_fetch", "") => (tool, in_force, json!({ "url": "https://docs.rs/a" })),
            ("web_search", "") => (tool, in_force, json!({ "query": "a" })),
            (EXTERNAL, "") => ("deploy", in_force, json!({})),
            _ => panic!("the table has a row `{tool}` `{what}`, which no test knows"),
        }
    }
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn every_cell_of_the_table_is_what_is_decided() {
    let ground = Ground::new().await;
    let mut seen = Vec::new();

    for row in table_of("permissions.md", "tools and modes") {
        let [tool, what, cells @ ..] = row.as_slice() else {
            panic!("a short row: {row:?}");
        };
        let tool = tool.trim_matches('`');
        seen.push(tool.to_owned());
        if AGENT_TOOLS.contains(&tool) {
            continue;
        }
        let decided = MODES.map(|mode| ground.decided(tool, what, mode));
        assert_eq!(decided.as_slice(), cells, "{tool} {what}");
    }

    let mut all: Vec<_> = ground.tools.iter().map(|tool| tool.spec().name).collect();
    all.extend(AGENT_TOOLS.map(str::to_owned));
    for name in all {
        let name = if name == "deploy" { EXTERNAL } else { &name };
        assert!(
            seen.iter().any(|it| it == name),
            "`{name}` is not in the table"
        );
    }
}
