//! MCP servers: connection, tools, calls, failures. The servers are shell scripts.

mod failures;
mod lists;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::EffectClass;
use ikigai_tools::mcp::{McpDefinition, McpPlaces, McpServers, McpStatus, PREFIX};
use ikigai_tools::{CallContext, CallEnding, CallInputs, Confinement, Output, Place, Run, Tool};
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::{PATIENCE, unique};

/// Script of a server of the older revision; `CALL` answers a call, with its line in `$line`.
const SERVER: &str = r#"#!/bin/bash
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
text() { reply "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
refuse() { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":"%s"}}\n' "$id" "$1" "$2"; }
echo start >> "$LOG"
echo "Welcome to the server"
echo "warming up" >&2
TOOLS='{"tools":[{"name":"echo","description":"Says it again","inputSchema":{"type":"object","properties":{"say":{"type":"string"}},"required":["say"]}}]}'
while IFS= read -r line; do
  id=$(sed -n 's/.*"id":\([0-9]*\).*/\1/p' <<< "$line")
  case $line in
    *'"method":"initialize"'*) reply '{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"t","version":"1"}}' ;;
    *'"method":"tools/list"'*) reply "$TOOLS" ;;
    *'"method":"tools/call"'*) CALL ;;
    *'"method":"server/discover"'*) refuse -32601 'Method not found' ;;
  esac
done
"#;

/// Directory with a server.
pub(crate) struct Machine {
    _directory: TempDir,
    pub(crate) base: PathBuf,
}

impl Machine {
    /// Makes a server that carries out `call` for each call.
    pub(crate) fn new(call: &str) -> Self {
        Self::of_script(&SERVER.replace("CALL", call))
    }

    pub(crate) fn of_script(script: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        fs::create_dir(base.join("work")).unwrap();
        let machine = Self {
            _directory: directory,
            base,
        };
        machine.write(script);
        machine
    }

    pub(crate) fn write(&self, script: &str) {
        // A running shell reads its script as it goes on.
        let draft = self.base.join("draft");
        fs::write(&draft, script).unwrap();
        fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(draft, self.base.join("server")).unwrap();
    }

    pub(crate) fn workdir(&self) -> PathBuf {
        self.base.join("work")
    }

    pub(crate) fn definition(&self) -> McpDefinition {
        let log = self.base.join("log").display().to_string();
        McpDefinition {
            command: Some(self.base.join("server").display().to_string()),
            env: [("LOG".to_owned(), log)].into(),
            ..McpDefinition::default()
        }
    }

    /// Servers of this definition, unconfined, with a cache.
    pub(crate) fn servers(&self, definition: &McpDefinition) -> Arc<McpServers> {
        let settings = definition.resolve("test", &|_| Ok(None), None).unwrap();
        let places = McpPlaces {
            cache: Some(self.base.join("cache/mcp-tools.json")),
            ..McpPlaces::default()
        };
        McpServers::new(vec![settings], Vec::new(), places, None)
    }

    /// Number of starts of the server.
    pub(crate) fn starts(&self) -> usize {
        let log = fs::read_to_string(self.base.join("log")).unwrap_or_default();
        log.lines().filter(|line| *line == "start").count()
    }
}

pub(crate) async fn names(servers: &Arc<McpServers>, workdir: &Path) -> Vec<String> {
    let tools = servers.tools(workdir).await;
    let names = tools.iter().map(|tool| tool.spec().name);
    names.filter(|name| name.starts_with(PREFIX)).collect()
}

pub(crate) async fn status(servers: &Arc<McpServers>, workdir: &Path) -> McpStatus {
    servers.status(workdir).await.remove(0)
}

/// Calls a tool of the server.
pub(crate) async fn call(servers: &Arc<McpServers>, workdir: &Path, arguments: &str) -> Output {
    call_until(servers, workdir, arguments, CancellationToken::new()).await
}

pub(crate) async fn call_until(
    servers: &Arc<McpServers>,
    workdir: &Path,
    arguments: &str,
    stop: CancellationToken,
) -> Output {
    let tool = servers.tools(workdir).await.remove(0);
    let running = run(&tool, workdir, arguments, stop);
    tokio::time::timeout(PATIENCE, running).await.unwrap()
}

async fn run(
    tool: &Arc<dyn Tool>,
    workdir: &Path,
    arguments: &str,
    stop: CancellationToken,
) -> Output {
    let place = Place {
        workdir: workdir.to_path_buf(),
        hidden: Arc::from([]),
    };
    let prepared = tool.prepare(arguments, &place).unwrap();
    let context = CallContext {
        place,
        stop,
        inputs: CallInputs::default(),
        progress: Arc::new(|_| {}),
        output: Arc::new(|_| {}),
        cookie: unique("mcp"),
        confinement: Confinement::None,
        temporary: None,
    };
    match prepared.run {
        Run::Async(run) => run(context).await,
        Run::Blocking(_) => panic!("a call of a server is a task"),
    }
}

#[tokio::test]
async fn a_server_is_called_as_a_tool() {
    let machine = Machine::new(r#"say=${line##*\"say\":\"}; text "you said ${say%%\"*}""#);
    let servers = machine.servers(&machine.definition());
    let workdir = machine.workdir();

    servers.settle(&workdir).await;

    let tool = servers.tools(&workdir).await.remove(0);
    let spec = tool.spec();
    assert_eq!(spec.name, "mcp__test__echo");
    assert_eq!(spec.description, "Says it again");
    assert_eq!(spec.parameters["required"], json!(["say"]));
    let output = call(&servers, &workdir, r#"{"say": "hello"}"#).await;
    assert_eq!(String::from_utf8_lossy(&output.body), "you said hello\n");
    assert_eq!(output.shown, "you said hello");
    assert!(output.success);
    assert_eq!(machine.starts(), 1);
}

#[tokio::test]
async fn a_call_needs_approval_whatever_the_server_says() {
    let script = SERVER.replace("CALL", "text done").replace(
        "\"inputSchema\"",
        "\"annotations\":{\"readOnlyHint\":true},\"inputSchema\"",
    );
    let machine = Machine::of_script(&script);
    let servers = machine.servers(&machine.definition());

    servers.settle(&machine.workdir()).await;

    let tool = servers.tools(&machine.workdir()).await.remove(0);
    let place = Place {
        workdir: machine.workdir(),
        hidden: Arc::from([]),
    };
    let prepared = tool.prepare(r#"{"say": "x"}"#, &place).unwrap();
    assert_eq!(prepared.class, EffectClass::Execute);
    assert_eq!(prepared.shown, r#"say="x""#);
    assert_eq!(prepared.subject, r#"{"say":"x"}"#);
    let missing = tool.prepare("{}", &place).err().unwrap();
    assert!(missing.0.contains("`say` is missing"), "{}", missing.0);
}

#[tokio::test]
async fn errors_of_a_tool_and_of_the_protocol_reach_the_model() {
    let machine = Machine::new(
        r#"case $line in *soft*) reply '{"isError":true,"content":[{"type":"text","text":"no such file"}]}' ;; *) refuse -32602 'bad path' ;; esac"#,
    );
    let servers = machine.servers(&machine.definition());
    let workdir = machine.workdir();
    servers.settle(&workdir).await;

    let soft = call(&servers, &workdir, r#"{"say": "soft"}"#).await;
    let hard = call(&servers, &workdir, r#"{"say": "hard"}"#).await;

    assert_eq!(
        (soft.success, String::from_utf8_lossy(&soft.body).as_ref()),
        (false, "no such file\n")
    );
    assert_eq!(
        (hard.success, String::from_utf8_lossy(&hard.body).as_ref()),
        (false, "bad path (error -32602)")
    );
}

#[tokio::test]
async fn images_and_other_parts_of_an_answer_are_taken_apart() {
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNgYGAAAAAEAAH2FzhVAAAAAElFTkSuQmCC";
    let machine = Machine::new(&format!(
        r#"reply '{{"content":[{{"type":"text","text":"one"}},{{"type":"image","data":"{png}","mimeType":"image/png"}},{{"type":"image","data":"AAAA","mimeType":"image/png"}},{{"type":"resource","resource":{{"uri":"a://b","text":"inside"}}}},{{"type":"resource_link","uri":"a://c","name":"far"}},{{"type":"audio","data":"AAAA","mimeType":"audio/wav"}}]}}'"#
    ));
    let servers = machine.servers(&machine.definition());
    let workdir = machine.workdir();
    servers.settle(&workdir).await;

    let output = call(&servers, &workdir, r#"{"say": "x"}"#).await;

    let body = String::from_utf8_lossy(&output.body);
    let lines: Vec<&str> = body.lines().collect();
    assert_eq!(lines[0], "one");
    assert!(lines[1].starts_with("[image: PNG, 1 × 1 pixels"), "{body}");
    assert_eq!(
        lines[2],
        "[an image that is not a PNG, JPEG, GIF or WebP image]"
    );
    assert_eq!(
        lines[3..],
        [
            "[resource a://b]",
            "inside",
            "[resource a://c: far]",
            "[audio, audio/wav, not shown]"
        ]
    );
    assert_eq!(output.images.len(), 1);
    assert_eq!(output.images[0].media_type, "image/png");
}

#[tokio::test]
async fn a_stopped_call_ends_at_once_and_the_server_stays() {
    let machine = Machine::new(r"case $line in *wait*) ;; *) text back ;; esac");
    let servers = machine.servers(&machine.definition());
    let workdir = machine.workdir();
    servers.settle(&workdir).await;
    let stop = CancellationToken::new();
    stop.cancel();

    let stopped = call_until(&servers, &workdir, r#"{"say": "wait"}"#, stop).await;
    let next = call(&servers, &workdir, r#"{"say": "go"}"#).await;

    assert_eq!(stopped.ending, CallEnding::Stopped);
    assert_eq!(next.shown, "back");
    assert_eq!(machine.starts(), 1);
}

/// Time limit of calls to servers that do not answer.
pub(crate) const SHORT: Duration = Duration::from_secs(1);
