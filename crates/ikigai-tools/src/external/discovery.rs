//! Search for external tools, and queries for unknown schemas.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ikigai_core::project::{ToolFacts, ToolSpec};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::cache::{Cache, Identity, ProbeOutcome};
use super::{Broken, External};
use crate::output::clean;
use crate::process::{self, Cause, ChildEnvironment, Errors, Job, describe_exit};
use crate::{Confinement, arguments};

/// Suffix of a tool's file name.
const SUFFIX: &str = "-tool";

/// Directory of a project's tools, relative to the project.
pub(crate) const PROJECT_TOOLS: &str = ".ikigai/tools";

/// Largest schema.
const MOST_SCHEMA_BYTES: usize = 64 * 1024;

/// Longest error text of a tool that is passed on, in characters.
const MOST_REASON_CHARS: usize = 300;

/// Most tools asked in parallel.
const MOST_ASKED: usize = 8;

/// Most files considered in one directory.
const MOST_FILES: usize = 500;

/// Longest name that all providers accept.
const MOST_NAME_BYTES: usize = 64;

/// Parameters of a search.
#[derive(Clone, Debug)]
pub(crate) struct ToolSearch {
    /// Directories of the system and of the user; later ones override.
    pub(crate) directories: Vec<PathBuf>,
    /// Tools of the project that are trusted; they override others.
    pub(crate) project: Vec<PathBuf>,
    /// Tools of the project that are not trusted.
    pub(crate) untrusted: Vec<PathBuf>,
    /// Names in use.
    pub(crate) taken: Vec<String>,
    /// Environment of the tools.
    pub(crate) environment: ChildEnvironment,
    /// Paths that tools may not read while they print their schema.
    pub(crate) hidden: Arc<[PathBuf]>,
    /// Timeout for a schema.
    pub(crate) patience: Duration,
}

/// Result of a search.
#[derive(Debug, Default)]
pub(crate) struct DiscoveredTools {
    pub(crate) tools: Vec<External>,
    pub(crate) broken: Vec<Broken>,
    /// True if tools were asked, so that the cache must be saved.
    pub(crate) has_news: bool,
}

/// File that may be a tool.
struct ToolFile {
    name: String,
    path: PathBuf,
    identity: Identity,
}

/// Searches for tools. Runs only files that are not in `cache` or have changed.
pub(crate) async fn look(search: ToolSearch, cache: &mut Cache) -> DiscoveredTools {
    let listing = {
        let search = search.clone();
        tokio::task::spawn_blocking(move || list(&search)).await
    };
    let (candidates, broken) = listing.unwrap_or_default();
    let mut found = DiscoveredTools {
        broken,
        ..DiscoveredTools::default()
    };

    let mut unknown = Vec::new();
    for candidate in &candidates {
        if cache.get(&candidate.path, candidate.identity).is_none() {
            unknown.push((
                candidate.path.clone(),
                candidate.name.clone(),
                candidate.identity,
            ));
        }
    }
    found.has_news = !unknown.is_empty();
    for (path, identity, outcome) in ask_all(unknown, &search).await {
        cache.put(path, identity, outcome);
    }

    for candidate in candidates {
        match cache.get(&candidate.path, candidate.identity) {
            Some(ProbeOutcome::Tool {
                name,
                description,
                parameters,
            }) => {
                let spec = ToolSpec {
                    name: name.clone(),
                    description: description.clone(),
                    parameters: parameters.clone(),
                    facts: ToolFacts::default(),
                };
                let environment = search.environment.clone();
                found
                    .tools
                    .push(External::new(candidate.path, spec, environment));
            }
            Some(ProbeOutcome::Broken(reason) | ProbeOutcome::Slow { reason, .. }) => {
                found.broken.push(Broken {
                    path: candidate.path,
                    reason: reason.clone(),
                });
            }
            None => found.broken.push(Broken {
                path: candidate.path,
                reason: "cannot run its `--schema`".to_owned(),
            }),
        }
    }
    found.broken.sort();
    found
}

impl ToolSearch {
    /// Returns true if a directory for tools exists. Checks only a few names.
    pub(crate) fn has_directories(&self) -> bool {
        self.directories.iter().any(|directory| directory.exists())
            || !self.project.is_empty()
            || !self.untrusted.is_empty()
    }
}

/// Lists the files of all directories without running any. Blocks.
fn list(search: &ToolSearch) -> (Vec<ToolFile>, Vec<Broken>) {
    let mut by_name = BTreeMap::new();
    let mut broken = Vec::new();
    for directory in &search.directories {
        list_files(tool_files(directory), search, &mut by_name, &mut broken);
    }
    list_files(search.project.clone(), search, &mut by_name, &mut broken);
    // These do not hide others: a foreign project must not disable the user's tools.
    broken.extend(search.untrusted.iter().map(|path| Broken {
        path: path.clone(),
        reason: "not trusted; review it with `ikigai trust`".to_owned(),
    }));
    (by_name.into_values().collect(), broken)
}

fn list_files(
    files: Vec<PathBuf>,
    search: &ToolSearch,
    by_name: &mut BTreeMap<String, ToolFile>,
    broken: &mut Vec<Broken>,
) {
    for path in files {
        match candidate(&path, search) {
            Ok(candidate) => {
                by_name.insert(candidate.name.clone(), candidate);
            }
            Err(reason) => broken.push(Broken { path, reason }),
        }
    }
}

/// Returns files with names of tools, sorted by name.
pub(crate) fn tool_files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.as_encoded_bytes().ends_with(SUFFIX.as_bytes()))
        })
        .take(MOST_FILES)
        .collect();
    files.sort();
    files
}

fn candidate(path: &Path, search: &ToolSearch) -> Result<ToolFile, String> {
    let name = path
        .file_name()
        .and_then(OsStr::to_str)
        .and_then(|name| name.strip_suffix(SUFFIX))
        .map(|name| name.replace('-', "_"))
        .filter(|name| is_legal(name))
        .ok_or("its name must begin with a letter and have only letters, digits, `-` and `_`")?;
    if search.taken.contains(&name) {
        return Err(format!("`{name}` is the name of a built-in tool"));
    }
    let metadata = fs::metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("not a regular file".to_owned());
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err("not executable".to_owned());
    }
    Ok(ToolFile {
        name,
        path: path.to_path_buf(),
        identity: Identity::of(&metadata),
    })
}

fn is_legal(name: &str) -> bool {
    name.len() <= MOST_NAME_BYTES
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Asks tools for their schemas, several in parallel.
async fn ask_all(
    unknown: Vec<(PathBuf, String, Identity)>,
    search: &ToolSearch,
) -> Vec<(PathBuf, Identity, ProbeOutcome)> {
    let mut waiting = unknown.into_iter();
    let mut queries = JoinSet::new();
    let mut outcomes = Vec::new();
    loop {
        while queries.len() < MOST_ASKED
            && let Some((path, name, identity)) = waiting.next()
        {
            let search = search.clone();
            queries.spawn(async move {
                let outcome = ask(&path, &name, search).await;
                (path, identity, outcome)
            });
        }
        match queries.join_next().await {
            Some(Ok(outcome)) => outcomes.push(outcome),
            Some(Err(_)) => {}
            None => return outcomes,
        }
    }
}

/// Asks a tool for its schema, in a sandbox.
///
/// A changed file then gains no more by being asked than by being called.
async fn ask(path: &Path, name: &str, search: ToolSearch) -> ProbeOutcome {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let job = Job {
        program: path.into(),
        arguments: vec!["--schema".into()],
        workdir: path.parent().unwrap_or(Path::new("/")).to_path_buf(),
        variables: search.environment.variables(),
        input: None,
        errors: Errors::Apart,
        most_bytes: MOST_SCHEMA_BYTES,
        deadline: search.patience,
        cookie: format!("schema-{}-{number}", std::process::id()),
        confinement: Confinement::Sandbox {
            write: vec![std::env::temp_dir()],
            network: false,
            hosts: Arc::default(),
            loopback: Arc::default(),
            hidden: search.hidden,
            guarded: Vec::new(),
        },
        recording: None,
    };
    let ended = match process::run(job, &CancellationToken::new(), Arc::new(|_| {})).await {
        Ok(ended) => ended,
        // The machine may be out of processes; try again later.
        Err(error) => return ProbeOutcome::slow(error.to_string()),
    };
    let said = arguments::one_line(&clean(&ended.errors), MOST_REASON_CHARS);
    match ended.cause {
        Cause::Deadline | Cause::Stopped => ProbeOutcome::slow(format!(
            "`--schema` took longer than {} s",
            search.patience.as_secs()
        )),
        Cause::Exited(status) if !status.success() => {
            let separator = if said.is_empty() { "" } else { ": " };
            let exit = describe_exit(status);
            ProbeOutcome::Broken(format!("`--schema` failed with {exit}{separator}{said}"))
        }
        Cause::Exited(_) => match understand(&ended.output, name) {
            Ok(spec) => ProbeOutcome::of(spec),
            Err(reason) => ProbeOutcome::Broken(format!("`--schema` {reason}")),
        },
    }
}

/// Parses and checks a tool's schema.
fn understand(output: &[u8], name: &str) -> Result<ToolSpec, String> {
    let value: Value =
        serde_json::from_slice(output).map_err(|error| format!("did not print JSON: {error}"))?;
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    if let Some(said) = text("name")
        && said.replace('-', "_") != name
    {
        let said = arguments::one_line(said, MOST_NAME_BYTES);
        return Err(format!("names it `{said}`, but its file `{name}`"));
    }
    let description = text("description")
        .ok_or("has no `description`")?
        .to_owned();
    let mut parameters = value
        .get("parameters")
        .cloned()
        .unwrap_or_else(|| json!({"type": "object", "properties": {}}));
    let Value::Object(object) = &mut parameters else {
        return Err("has `parameters` that are not a JSON schema".to_owned());
    };
    let kind = object.entry("type").or_insert_with(|| json!("object"));
    if kind != "object" {
        return Err("has `parameters` of another type than `object`".to_owned());
    }
    Ok(ToolSpec {
        name: name.to_owned(),
        description,
        parameters,
        facts: ToolFacts::default(),
    })
}
