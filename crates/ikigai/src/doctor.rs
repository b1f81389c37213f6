//! `ikigai doctor`: tests the installation, and advises on each finding.

mod server;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use ikigai_providers::Models;
use ikigai_providers::presets::PRESETS;
use ikigai_store::{Agent, AgentRecord, ReadLog, Status, StoreError};
use ikigai_tools::mcp::McpStatusPhase;
use ikigai_tools::process;
use ikigai_tools::sandbox::{self, Force};
use rustix::fs::{Access, access, statvfs};

use crate::arguments::{DoctorOrder, exit};
use crate::config::{self, Config};
use crate::context::{ProgramContext, configuration, registry};
use crate::control;
use crate::identity;
use crate::index;
use crate::keepers::this_host;
use crate::output::{print, visible};
use crate::runtime::runtime;
use crate::store::StoreUse;
use crate::store_location::{self, Here, StoreLocation};
use crate::tools;

/// Free space below which there is a warning.
const LITTLE_SPACE_BYTES: u64 = 256 * 1024 * 1024;

/// Newest rows of each agent that are tested.
const TRIED_ROWS: usize = 256;

/// Result of a check.
enum Finding {
    /// No problem.
    Good(String),
    /// Warning, with advice.
    Warning(String, String),
    /// Failure, with advice.
    Bad(String, String),
}

pub(crate) fn doctor(db: Option<String>, order: &DoctorOrder) -> Result<ExitCode> {
    if order.reindex {
        return index::make_again(&ProgramContext::open(db)?);
    }
    let config = configuration()?;
    let place = store_location::database(db, config.store.as_deref())?;
    let mut findings = place.file().map(check_place).unwrap_or_default();
    if place.file().is_none_or(Path::exists) {
        findings.extend(check_store(&place, &config)?);
    }
    let of_store = findings.len();
    findings.push(check_identity(&place, &config));
    findings.extend(check_directories());
    findings.extend(check_models(&config)?);
    findings.push(check_sandbox(&config)?);
    findings.extend(check_tools(&place, &config)?);
    findings.extend(check_servers(&place, &config)?);
    for finding in &findings {
        print(&visible(&match finding {
            Finding::Good(found) => format!("ok       {found}\n"),
            Finding::Warning(found, remedy) => {
                format!("warning  {found}\n         hint: {remedy}\n")
            }
            Finding::Bad(found, remedy) => format!("error    {found}\n         hint: {remedy}\n"),
        }))?;
    }
    let is_bad = |finding: &Finding| matches!(finding, Finding::Bad(..));
    Ok(if findings[..of_store].iter().any(is_bad) {
        exit::STORE.into()
    } else if findings.iter().any(is_bad) {
        exit::FAILED.into()
    } else {
        ExitCode::SUCCESS
    })
}

/// Shows the person and the machine to which new workspaces belong.
fn check_identity(place: &StoreLocation, config: &Config) -> Finding {
    let (host, machine) = (this_host(), identity::machine());
    match identity::person(place, config) {
        Some(person) => Finding::Good(format!("identity: {person} on {host} (machine {machine})")),
        None => Finding::Warning(
            format!("identity: no usable name on {host} (machine {machine})"),
            "set `name` in the section [user] of the config".to_owned(),
        ),
    }
}

/// Finds directories of the program that other users may read or write.
fn check_directories() -> Vec<Finding> {
    let own = config::own_directories();
    let all = [own.configuration, own.data, own.state, own.cache].concat();
    let existing = all.iter().filter(|path| path.is_dir());
    let mut findings: Vec<_> = existing
        .map(|path| check_mode(path, 0o700))
        .filter(|finding| !matches!(finding, Finding::Good(_)))
        .collect();
    if let Ok(directory) = control::directory()
        && directory.exists()
        && let Err(error) = control::check(&directory)
    {
        findings.push(Finding::Bad(
            format!("control socket: {error:#}"),
            "set IKIGAI_RUNTIME_DIR to a private directory".to_owned(),
        ));
    }
    findings
}

/// Checks the model of new agents, and the providers' keys.
fn check_models(config: &Config) -> Result<Vec<Finding>> {
    let registry = registry(config)?;
    let mut findings = Vec::new();
    findings.push(match registry.first_choice() {
        Ok(first) => {
            let provider = first.provider.unwrap_or_default();
            let model = first.model.unwrap_or_default();
            Finding::Good(format!("model: new agents use {provider}:{model}"))
        }
        Err(missing) => {
            let found = format!("model: none for new agents: {}", missing.reason);
            Finding::Bad(found, missing.advice)
        }
    });
    let with_key: Vec<_> = PRESETS
        .iter()
        .filter(|preset| !preset.keys.is_empty() && registry.is_reachable(preset.name))
        .map(|preset| preset.name)
        .collect();
    findings.push(Finding::Good(if with_key.is_empty() {
        "keys: none found; the built-in demo model needs none".to_owned()
    } else {
        format!("keys: {}", with_key.join(", "))
    }));
    Ok(findings)
}

/// Tests the sandbox of tools.
fn check_sandbox(config: &Config) -> Result<Finding> {
    if !config.work().sandbox.is_enabled() {
        return Ok(Finding::Warning(
            "sandbox: disabled; tools have all your permissions".to_owned(),
            "remove `enabled = false` from [sandbox] in the config".to_owned(),
        ));
    }
    let force = sandbox::in_force();
    let protection = if runtime()?.block_on(process::has_namespaces()) {
        "protected paths are read-only"
    } else {
        "protected paths are checked after each command (no user namespaces)"
    };
    let found = match force {
        Force::None(_) => format!("sandbox: {force}"),
        Force::Full | Force::Partly(_) => format!("sandbox: {force}; {protection}"),
    };
    Ok(match force {
        Force::Full => Finding::Good(found),
        Force::Partly(_) | Force::None(_) => Finding::Warning(
            found,
            "full protection needs Linux 6.12 or newer, with Landlock and seccomp".to_owned(),
        ),
    })
}

/// Lists usable and broken tools.
fn check_tools(store: &StoreLocation, config: &Config) -> Result<Vec<Finding>> {
    let work = config.work();
    let hidden = tools::hidden_paths(store, &work);
    let all = tools::all(&registry(config)?, &work, hidden.into());
    let here = Here::find()?;
    let found = runtime()?.block_on(all.toolbox.look(Path::new(&here.workdir)));
    let names: Vec<_> = found.tools.iter().map(|tool| tool.spec().name).collect();
    let mut findings = vec![Finding::Good(format!("tools: {}", names.join(" ")))];
    findings.extend(found.broken.into_iter().map(|broken| {
        Finding::Warning(
            format!("tool: {}: {}", broken.path.display(), broken.reason),
            "fix or remove it, then run `ikigai tools`".to_owned(),
        )
    }));
    Ok(findings)
}

/// Connects to the MCP servers.
fn check_servers(store: &StoreLocation, config: &Config) -> Result<Vec<Finding>> {
    let work = config.work();
    let hidden = tools::hidden_paths(store, &work);
    let registry = Arc::new(registry(config)?);
    let all = tools::all(&registry, &work, hidden.into());
    let blank = tools::safety(store, &registry, &work).blank;
    let here = Here::find()?;
    let workdir = Path::new(&here.workdir);
    let servers = runtime()?.block_on(async {
        all.servers.connect(workdir).await;
        all.servers.status(workdir).await
    });
    let findings = servers.into_iter().map(|server| {
        let found = format!("MCP server {}: {}", server.name, server.describe_phase());
        let found = String::from_utf8_lossy(&blank(found.as_bytes())).into_owned();
        match server.phase {
            McpStatusPhase::Failed(_) => Finding::Warning(
                found,
                "run `ikigai mcp list` for its last output".to_owned(),
            ),
            McpStatusPhase::Disabled
            | McpStatusPhase::Idle
            | McpStatusPhase::Starting
            | McpStatusPhase::Ready => Finding::Good(found),
        }
    });
    Ok(findings.collect())
}

/// Checks the store's location: write access, privacy and free space.
fn check_place(path: &Path) -> Vec<Finding> {
    let shown = path.display();
    let mut findings = Vec::new();
    if path.exists() {
        findings.push(check_mode(path, 0o600));
        // Other directories are the user's choice.
        let own = path.parent().filter(|parent| parent.ends_with("ikigai"));
        findings.extend(own.map(|parent| check_mode(parent, 0o700)));
    } else {
        findings.push(Finding::Good(format!("store: not created yet ({shown})")));
    }
    let Some(nearest) = path.ancestors().skip(1).find(|ancestor| ancestor.exists()) else {
        return findings;
    };
    let nearest = if nearest.as_os_str().is_empty() {
        Path::new(".")
    } else {
        nearest
    };
    findings.push(match access(nearest, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Finding::Good(format!("directory: {} is writable", nearest.display())),
        Err(error) => {
            let found = format!("directory: {} is not writable: {error}", nearest.display());
            if path.exists() {
                let remedy = "the store is read-only; make the file and its directory writable";
                Finding::Warning(found, remedy.to_owned())
            } else {
                let remedy = "make it writable, or choose another database with --db";
                Finding::Bad(found, remedy.to_owned())
            }
        }
    });
    if let Ok(space) = statvfs(nearest) {
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        let found = match free >> 30 {
            0 => format!("disk: {} MB free", free >> 20),
            gigabytes => format!("disk: {gigabytes} GB free"),
        };
        findings.push(if free < LITTLE_SPACE_BYTES {
            Finding::Warning(found, "free some disk space".to_owned())
        } else {
            Finding::Good(found)
        });
    }
    findings
}

fn check_mode(path: &Path, wanted: u32) -> Finding {
    let shown = path.display();
    let for_others = fs::metadata(path).map(|metadata| metadata.permissions().mode() & 0o077);
    match for_others {
        Ok(0) => Finding::Good(format!("permissions: {shown} is readable only by you")),
        Ok(_) => Finding::Warning(
            format!("permissions: other users can read {shown}"),
            format!("chmod {wanted:o} '{shown}'"),
        ),
        Err(error) => Finding::Bad(
            format!("permissions: cannot check {shown}: {error}"),
            "check the owner and mode of the directory".to_owned(),
        ),
    }
}

/// Opens the store, checks the file for damage, and restores every agent.
fn check_store(place: &StoreLocation, config: &Config) -> Result<Vec<Finding>> {
    let program = match ProgramContext::open_for(place, config, StoreUse::Reading) {
        Ok(program) => program,
        Err(error) => match error.downcast::<StoreError>() {
            Ok(error) => {
                let found = format!("store: cannot open {place}: {error}");
                return Ok(vec![Finding::Bad(found, error.advice().to_owned())]);
            }
            Err(error) => return Err(error),
        },
    };
    let mut findings = vec![Finding::Good(format!("store: {place}"))];
    let what = if place.file().is_some() {
        "file"
    } else {
        "log"
    };
    program.block_on(async {
        findings.push(match program.store.integrity().await {
            Ok(faults) if faults.is_empty() => {
                Finding::Good(format!("store: the {what} is intact"))
            }
            Ok(faults) => Finding::Bad(
                format!("store: the {what} is damaged: {}", faults.join("; ")),
                format!("do not change the {what}; restore a backup"),
            ),
            Err(error) => Finding::Bad(format!("store: {error}"), error.advice().to_owned()),
        });
        if let Some(report) = program.store.report().await.transpose() {
            findings.extend(match report {
                Ok(report) => server::findings(&report),
                Err(error) => vec![Finding::Bad(
                    format!("server: {error}"),
                    error.advice().to_owned(),
                )],
            });
        }
        findings.push(match program.engine.reader().watch() {
            Ok(_) => Finding::Good("store: changes by other processes are seen at once".to_owned()),
            Err(error) => Finding::Warning(
                format!("store: changes by other processes are not seen: {error}"),
                error.advice().to_owned(),
            ),
        });
        match program.engine.agents().await {
            Ok(agents) => findings.extend(check_agents(program.engine.reader(), &agents).await),
            Err(error) => findings.push(Finding::Bad(
                format!("agents: cannot list them: {error}"),
                "run `ikigai doctor` again; if this persists, restore a backup".to_owned(),
            )),
        }
    });
    Ok(findings)
}

async fn check_agents(store: &dyn ReadLog, agents: &[AgentRecord]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut bad_rows = 0_usize;
    for agent in agents {
        match restore(store, agent).await {
            Ok(bad) => bad_rows += bad,
            Err(error) => findings.push(Finding::Bad(
                format!("agent {}: cannot restore it: {error}", agent.name),
                error.advice().to_owned(),
            )),
        }
    }
    let living = agents
        .iter()
        .filter(|agent| agent.status == Status::Running)
        .count();
    findings.push(Finding::Good(format!(
        "agents: {} ({living} alive)",
        agents.len()
    )));
    if bad_rows > 0 {
        findings.push(Finding::Warning(
            format!("events: {bad_rows} recent events are unreadable and skipped"),
            "`ikigai log AGENT` names them; no action is needed".to_owned(),
        ));
    }
    findings
}

/// Restores an agent with its newest rows; returns the number of bad ones.
async fn restore(store: &dyn ReadLog, agent: &AgentRecord) -> Result<usize, StoreError> {
    let mut agent = Agent::restore(store, agent.id).await?;
    agent.lengthen(store, TRIED_ROWS).await?;
    let entries = agent.view.entries().len();
    let missing = usize::from(agent.missing.is_some());
    let bad = (0..entries)
        .filter(|index| agent.view.problem(*index).is_some())
        .count();
    Ok(bad + missing)
}
