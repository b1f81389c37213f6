//! `ikigai mcp`: adds, lists and removes MCP servers.

mod file;

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use ikigai_tools::mcp::{McpStatus, McpStatusPhase};
use serde_json::json;
use toml::{Table, Value};

use crate::arguments::{McpAddOrder, McpListOrder, McpOrder, McpVerb, exit};
use crate::config;
use crate::context::{configuration, registry};
use crate::output::{print, print_json, print_stderr, visible};
use crate::runtime::runtime;
use crate::store_location::{self, Here};
use crate::tools;

/// Lines of a failed server's standard error that are listed.
const ERROR_LINES: usize = 10;

pub(crate) fn mcp(db: Option<String>, order: &McpOrder) -> Result<ExitCode> {
    match &order.verb {
        McpVerb::Add(order) => add(order),
        McpVerb::List(order) => list(db, order),
        McpVerb::Remove(order) => remove(&order.name),
    }
}

fn add(order: &McpAddOrder) -> Result<ExitCode> {
    let file = own_file()?;
    let known = configuration()?.work().mcp;
    if known.contains_key(&order.name) {
        bail!(
            "there is a server `{name}` already\nhint: ikigai mcp remove {name}",
            name = order.name
        );
    }
    let pairs = |texts: &[String], separator: char| {
        let pairs = texts.iter().map(|text| {
            let pair = text.split_once(separator);
            let (name, value) = pair
                .with_context(|| format!("`{text}` has no `{separator}` between name and value"))?;
            Ok((
                name.trim().to_owned(),
                Value::String(value.trim().to_owned()),
            ))
        });
        pairs.collect::<Result<Table>>()
    };
    let mut server = Table::new();
    let is_url = order.target.starts_with("http://") || order.target.starts_with("https://");
    if is_url {
        if !order.arguments.is_empty() || !order.env.is_empty() {
            bail!("an address takes no arguments and no --env");
        }
        server.insert("url".to_owned(), order.target.clone().into());
        insert_table(&mut server, "headers", pairs(&order.header, ':')?);
    } else {
        if !order.header.is_empty() {
            bail!("a command takes no --header");
        }
        server.insert("command".to_owned(), order.target.clone().into());
        if !order.arguments.is_empty() {
            server.insert("args".to_owned(), order.arguments.clone().into());
        }
        insert_table(&mut server, "env", pairs(&order.env, '=')?);
    }
    file::add(&file, &order.name, &server)?;
    print_stderr(&format!(
        "added: {} in {}\nhint: ikigai mcp list tries it",
        order.name,
        file.display()
    ));
    Ok(ExitCode::SUCCESS)
}

fn insert_table(server: &mut Table, key: &str, table: Table) {
    if !table.is_empty() {
        server.insert(key.to_owned(), Value::Table(table));
    }
}

fn remove(name: &str) -> Result<ExitCode> {
    let file = own_file()?;
    file::remove(&file, name)?;
    print_stderr(&format!("removed: {name} from {}", file.display()));
    Ok(ExitCode::SUCCESS)
}

fn own_file() -> Result<std::path::PathBuf> {
    let home = config::home().context("there is no home directory for a config")?;
    Ok(config::user_file(&home))
}

fn list(db: Option<String>, order: &McpListOrder) -> Result<ExitCode> {
    let config = configuration()?;
    let store = store_location::database(db, config.store.as_deref())?;
    let here = Here::find()?;
    let work = config.work();
    let registry = std::sync::Arc::new(registry(&config)?);
    let safety = tools::safety(&store, &registry, &work);
    let all = tools::all(&registry, &work, safety.hidden.clone());
    let workdir = Path::new(&here.workdir);
    let servers = runtime()?.block_on(async {
        all.servers.connect(workdir).await;
        all.servers.status(workdir).await
    });
    if servers.is_empty() && !order.json {
        print_stderr("no MCP servers\nhint: ikigai mcp add NAME COMMAND");
    }
    for server in &servers {
        if order.json {
            print_json(&as_json(server))?;
        } else {
            let text = describe(server);
            let text = (safety.blank)(text.as_bytes()).into_owned();
            print(&visible(&String::from_utf8_lossy(&text)))?;
        }
    }
    let is_down = |server: &McpStatus| matches!(server.phase, McpStatusPhase::Failed(_));
    Ok(if servers.iter().any(is_down) {
        exit::FAILED.into()
    } else {
        ExitCode::SUCCESS
    })
}

fn describe(server: &McpStatus) -> String {
    let mut text = format!(
        "{} {}  {}\n  {}\n",
        server.symbol(),
        server.name,
        server.describe_phase(),
        server.way
    );
    for (tool, reason) in &server.refused {
        let _ = writeln!(text, "  ⚠ {tool} is not offered: {reason}");
    }
    if matches!(server.phase, McpStatusPhase::Failed(_)) {
        let first = server.errors.len().saturating_sub(ERROR_LINES);
        for line in &server.errors[first..] {
            let _ = writeln!(text, "  | {line}");
        }
    }
    text
}

fn as_json(server: &McpStatus) -> serde_json::Value {
    let (state, reason) = match &server.phase {
        McpStatusPhase::Disabled => ("disabled", None),
        McpStatusPhase::Idle => ("idle", None),
        McpStatusPhase::Starting => ("starting", None),
        McpStatusPhase::Ready => ("ready", None),
        McpStatusPhase::Failed(reason) => ("failed", Some(reason)),
    };
    json!({
        "name": server.name,
        "state": state,
        "reason": reason,
        "way": server.way,
        "tools": server.tools,
        "errors": server.errors,
    })
}
