//! Client for the conformance suite of MCP: connects, lists the tools and calls each.
//!
//! `scripts/conformance` runs it, once per scenario. The last argument is the address.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use ikigai_tools::mcp::{McpDefinition, McpPlaces, McpServers, McpStatusPhase, PREFIX};
use ikigai_tools::{CallContext, CallInputs, Confinement, Place, Run, Tool};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

/// Name of the server in this program.
const SERVER: &str = "suite";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            #[expect(clippy::print_stderr, reason = "the suite reads it")]
            {
                eprintln!("{reason}");
            }
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), String> {
    let url = std::env::args().next_back();
    let definition = McpDefinition {
        url,
        tool_timeout: Some(20),
        startup_timeout: Some(20),
        ..McpDefinition::default()
    };
    let settings = definition.resolve(SERVER, &|name| Ok(std::env::var(name).ok()), None)?;
    let servers = McpServers::new(vec![settings], Vec::new(), McpPlaces::default(), None);
    let workdir = Path::new("/");
    servers.connect(workdir).await;
    for status in servers.status(workdir).await {
        if let McpStatusPhase::Failed(reason) = status.phase {
            return Err(reason);
        }
    }
    let calls = calls_of_context();
    for tool in servers.tools(workdir).await {
        let spec = tool.spec();
        if !spec.name.starts_with(PREFIX) {
            continue;
        }
        let named = |name: &str| spec.name == ikigai_tools::mcp::tool_name(SERVER, name);
        let wanted: Vec<Value> = match &calls {
            Some(calls) if calls.iter().any(|(name, _)| named(name)) => calls
                .iter()
                .filter(|(name, _)| named(name))
                .map(|(_, arguments)| arguments.clone())
                .collect(),
            _ => vec![example(&spec.parameters)],
        };
        for arguments in wanted {
            call(&tool, &arguments).await?;
        }
    }
    Ok(())
}

/// Returns the calls that the suite wants, if it says so.
fn calls_of_context() -> Option<Vec<(String, Value)>> {
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").ok()?;
    let context: Value = serde_json::from_str(&context).ok()?;
    let calls = context.get("toolCalls")?.as_array()?;
    let calls = calls.iter().filter_map(|call| {
        let name = call.get("name")?.as_str()?.to_owned();
        Some((name, call.get("arguments").cloned().unwrap_or(json!({}))))
    });
    Some(calls.collect())
}

/// Makes arguments that fit a schema.
fn example(schema: &Value) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut arguments = Map::new();
    for (name, property) in properties.into_iter().flatten() {
        let choices = property.get("enum").and_then(Value::as_array);
        if let Some(first) = choices.and_then(|choices| choices.first()) {
            arguments.insert(name.clone(), first.clone());
            continue;
        }
        let value = match property.get("type").and_then(Value::as_str) {
            Some("number" | "integer") => json!(5),
            Some("boolean") => json!(true),
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ => json!("text"),
        };
        arguments.insert(name.clone(), value);
    }
    Value::Object(arguments)
}

async fn call(tool: &Arc<dyn Tool>, arguments: &Value) -> Result<(), String> {
    let place = Place {
        workdir: "/".into(),
        hidden: Arc::from([]),
    };
    let prepared = tool
        .prepare(&arguments.to_string(), &place)
        .map_err(|error| error.0)?;
    let context = CallContext {
        place,
        stop: CancellationToken::new(),
        inputs: CallInputs::default(),
        progress: Arc::new(|_| {}),
        output: Arc::new(|_| {}),
        cookie: "conformance".to_owned(),
        confinement: Confinement::None,
        temporary: None,
    };
    if let Run::Async(run) = prepared.run {
        let output = run(context).await;
        #[expect(clippy::print_stdout, reason = "the suite shows it")]
        {
            println!("{}: {}", tool.spec().name, output.shown);
        }
    }
    Ok(())
}
