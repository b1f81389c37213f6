//! Search for the items of a project and of the user.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::project::ProjectExtent;
use super::references::referenced_files;
use super::{DescribeSettings, ProjectTrust, TrustItem, TrustKind, TrustState};
use crate::external::{PROJECT_TOOLS, tool_files};
use crate::files::{self, Stamp, hex, sha256_hex};
use crate::front_matter::FrontMatter;

/// Largest file of an item.
const MOST_BYTES: u64 = 512 * 1024;

/// Most files in one directory, and deepest level of commands and agents.
const MOST_FILES: usize = 500;
const MOST_LEVELS: usize = 4;

/// Longest summary, in characters.
const MOST_SUMMARY_CHARS: usize = 200;

/// Digests of files by path, valid for the same stamp.
pub(super) type DigestCache = BTreeMap<PathBuf, (Stamp, String)>;

/// Shape of the files of a source.
#[derive(Clone, Copy)]
enum SourceShape {
    /// `NAME/SKILL.md` in a directory.
    Skills,
    /// Markdown files in a directory and its subdirectories.
    Texts(TrustKind),
    /// JSON with `hooks`.
    Hooks,
    /// JSON with `mcpServers`.
    Servers,
    /// TOML configuration.
    Settings,
}

impl SourceShape {
    fn kind(self) -> TrustKind {
        match self {
            Self::Skills => TrustKind::Skill,
            Self::Texts(kind) => kind,
            Self::Hooks => TrustKind::Hook,
            Self::Servers => TrustKind::McpServer,
            Self::Settings => TrustKind::Settings,
        }
    }
}

use SourceShape::{Hooks, Servers, Settings, Skills, Texts};
use TrustKind::{Agent, Command};

/// Files of a project, relative to each of its directories. Ours come first and win.
const PROJECT_SOURCES: [(&str, SourceShape); 19] = [
    (".ikigai/config.toml", Settings),
    (".ikigai/hooks.json", Hooks),
    (".claude/settings.json", Hooks),
    (".claude/settings.local.json", Hooks),
    (".codex/hooks.json", Hooks),
    (".mcp.json", Servers),
    (".ikigai/skills", Skills),
    (".agents/skills", Skills),
    (".claude/skills", Skills),
    (".ikigai/commands", Texts(Command)),
    (".claude/commands", Texts(Command)),
    (".opencode/commands", Texts(Command)),
    (".opencode/command", Texts(Command)),
    (".ikigai/agents", Texts(Agent)),
    (".claude/agents", Texts(Agent)),
    (".opencode/agents", Texts(Agent)),
    (".opencode/agent", Texts(Agent)),
    (".agents/commands", Texts(Command)),
    (".agents/agents", Texts(Agent)),
];

/// Files of the user, relative to the home directory.
const USER_SOURCES: [(&str, SourceShape); 9] = [
    (".claude/settings.json", Hooks),
    (".codex/hooks.json", Hooks),
    (".agents/skills", Skills),
    (".claude/skills", Skills),
    (".agents/commands", Texts(Command)),
    (".claude/commands", Texts(Command)),
    (".config/opencode/commands", Texts(Command)),
    (".claude/agents", Texts(Agent)),
    (".config/opencode/agents", Texts(Agent)),
];

/// Files of the user's own configuration, relative to its directory.
const OWN_SOURCES: [(&str, SourceShape); 4] = [
    ("hooks.json", Hooks),
    ("skills", Skills),
    ("commands", Texts(Command)),
    ("agents", Texts(Agent)),
];

/// Returns the user's items in the home directory that other programs share. Blocks.
pub fn user_items(home: &Path, kinds: &[TrustKind]) -> ProjectTrust {
    trusted_items(home, &USER_SOURCES, kinds)
}

/// Returns the items in the user's configuration directory of this program. Blocks.
pub fn own_items(configuration: &Path, kinds: &[TrustKind]) -> ProjectTrust {
    trusted_items(configuration, &OWN_SOURCES, kinds)
}

fn trusted_items(
    base: &Path,
    sources: &[(&str, SourceShape)],
    kinds: &[TrustKind],
) -> ProjectTrust {
    let mut scan = ItemScan::new(base, None);
    scan.add_all(base, sources, kinds);
    for item in &mut scan.found.items {
        item.state = TrustState::Trusted;
    }
    scan.found
}

/// Returns the items of a project, all of them undecided.
pub(super) fn project_items(
    project: &ProjectExtent,
    kinds: &[TrustKind],
    describe_settings: DescribeSettings,
    digests: &mut DigestCache,
) -> ProjectTrust {
    let mut scan = ItemScan::new(&project.root, Some(describe_settings));
    for directory in &project.directories {
        scan.add_all(directory, &PROJECT_SOURCES, kinds);
    }
    if kinds.contains(&TrustKind::Tool) {
        let mut directories = project.directories.iter();
        let tools = directories.find_map(|directory| {
            let tools = directory.join(PROJECT_TOOLS);
            tools.is_dir().then_some(tools)
        });
        if let Some(tools) = tools {
            scan.add_tools(&tools, digests);
        }
    }
    scan.found
}

/// Search below one root.
struct ItemScan {
    root: PathBuf,
    /// Describes settings; none where links may lead out of the root.
    describe_settings: Option<DescribeSettings>,
    /// Files that were read: links make one file appear in several directories.
    read: BTreeSet<(TrustKind, PathBuf)>,
    found: ProjectTrust,
}

impl ItemScan {
    fn new(root: &Path, describe_settings: Option<DescribeSettings>) -> Self {
        Self {
            root: root.to_owned(),
            describe_settings,
            read: BTreeSet::new(),
            found: ProjectTrust {
                root: root.to_owned(),
                ..ProjectTrust::default()
            },
        }
    }

    fn add_all(&mut self, base: &Path, sources: &[(&str, SourceShape)], kinds: &[TrustKind]) {
        for (name, shape) in sources {
            if !kinds.contains(&shape.kind()) {
                continue;
            }
            let path = base.join(name);
            match shape {
                Skills => self.add_skills(&path),
                Texts(kind) => self.add_texts(&path, &path, *kind, MOST_LEVELS),
                Hooks => self.add_hooks(&path),
                Servers => self.add_servers(&path),
                Settings => self.add_settings(&path),
            }
        }
    }

    fn add_settings(&mut self, path: &Path) {
        // Only the project's own file is read, not those of directories in it.
        if path.parent().and_then(Path::parent) != Some(&self.root) {
            return;
        }
        let Some(describe) = self.describe_settings else {
            return;
        };
        if let Some(content) = self.text(path, TrustKind::Settings)
            && let Some(summary) = describe(&content)
        {
            self.add(TrustKind::Settings, "", path, content, &summary);
        }
    }

    fn add_skills(&mut self, directory: &Path) {
        for path in entries(directory) {
            let file = path.join("SKILL.md");
            let name = name_of(&path);
            if let Some(content) = self.text(&file, TrustKind::Skill) {
                let (front, _) = FrontMatter::split(&content);
                let name = front.text("name").unwrap_or(name);
                let summary = front.text("description").unwrap_or_default();
                self.add(TrustKind::Skill, &name, &file, content, &summary);
            }
        }
    }

    /// Adds commands or agents. A subdirectory is a part of the name: `git/fix.md` is `git:fix`.
    fn add_texts(&mut self, top: &Path, directory: &Path, kind: TrustKind, levels: usize) {
        for path in entries(directory) {
            if path.is_dir() {
                if levels > 1 {
                    self.add_texts(top, &path, kind, levels - 1);
                }
                continue;
            }
            if path.extension().is_none_or(|end| end != "md") {
                continue;
            }
            let Some(content) = self.text(&path, kind) else {
                continue;
            };
            let relative = path.strip_prefix(top).unwrap_or(&path).with_extension("");
            let parts = relative.iter().map(|part| part.to_string_lossy());
            let named = parts.collect::<Vec<_>>().join(":");
            let (front, body) = FrontMatter::split(&content);
            let name = match kind {
                TrustKind::Agent => front.text("name").unwrap_or(named),
                _ => named,
            };
            let first_line = || body.lines().next().map(str::to_owned);
            let summary = front.text("description").or_else(first_line);
            self.add(kind, &name, &path, content, &summary.unwrap_or_default());
        }
    }

    fn add_hooks(&mut self, path: &Path) {
        let Some(events) = self
            .json(path, TrustKind::Hook)
            .and_then(|file| file.get("hooks").and_then(Value::as_object).cloned())
        else {
            return;
        };
        for (event, groups) in &events {
            for (group_number, group) in groups.as_array().into_iter().flatten().enumerate() {
                let matcher = group.get("matcher").and_then(Value::as_str);
                let hooks = group.get("hooks").and_then(Value::as_array);
                for (number, hook) in hooks.into_iter().flatten().enumerate() {
                    let definition = json!({"event": event, "matcher": matcher, "hook": hook});
                    let does = hook.get("command").or_else(|| hook.get("prompt"));
                    let does = does.and_then(Value::as_str).unwrap_or("unknown hook");
                    let calls = matcher.filter(|it| !it.is_empty());
                    let calls = calls.map_or_else(String::new, |it| format!("{it}: "));
                    let summary = format!("{calls}{does}");
                    let place = format!("{event}/{group_number}/{number}");
                    self.add_definition(
                        TrustKind::Hook,
                        event,
                        &place,
                        path,
                        &definition,
                        &summary,
                    );
                }
            }
        }
    }

    fn add_servers(&mut self, path: &Path) {
        let Some(file) = self.json(path, TrustKind::McpServer) else {
            return;
        };
        let servers = file.get("mcpServers").and_then(Value::as_object);
        for (name, definition) in servers.into_iter().flatten() {
            let text = |key: &str| definition.get(key).and_then(Value::as_str);
            let summary = match (text("command"), text("url")) {
                (Some(command), _) => {
                    let words = definition.get("args").and_then(Value::as_array);
                    let words = words.into_iter().flatten().filter_map(Value::as_str);
                    let words: Vec<_> = std::iter::once(command).chain(words).collect();
                    words.join(" ")
                }
                (None, Some(url)) => url.to_owned(),
                (None, None) => "neither command nor url".to_owned(),
            };
            self.add_definition(TrustKind::McpServer, name, name, path, definition, &summary);
        }
    }

    fn add_tools(&mut self, directory: &Path, digests: &mut DigestCache) {
        for path in tool_files(directory) {
            let Some(digest) = tool_digest(&path, digests) else {
                continue;
            };
            let (name, none) = (name_of(&path), String::new());
            let kind = TrustKind::Tool;
            self.push(kind, &name, "", &path, none.clone(), none, digest);
        }
    }

    /// Adds an item that is a whole file.
    fn add(&mut self, kind: TrustKind, name: &str, path: &Path, content: String, summary: &str) {
        let digest = sha256_hex(content.as_bytes());
        let summary = one_line(summary);
        self.push(kind, name, "", path, summary, content, digest);
    }

    /// Adds an item that is a part of a JSON file, with the project files that it names.
    fn add_definition(
        &mut self,
        kind: TrustKind,
        name: &str,
        place: &str,
        path: &Path,
        definition: &Value,
        summary: &str,
    ) {
        let content = definition.to_string();
        let names = match self.describe_settings {
            Some(_) => referenced_files(definition, &self.root),
            None => String::new(),
        };
        let digest = sha256_hex(format!("{content}\n{names}").as_bytes());
        let summary = one_line(summary);
        self.push(kind, name, place, path, summary, content, digest);
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of an item")]
    fn push(
        &mut self,
        kind: TrustKind,
        name: &str,
        place: &str,
        path: &Path,
        summary: String,
        content: String,
        digest: String,
    ) {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        let id = format!("{kind}:{}#{place}", below.display());
        self.found.items.push(TrustItem {
            kind,
            name: one_line(name),
            path: path.to_owned(),
            content,
            summary,
            digest,
            state: TrustState::Undecided,
            id,
        });
    }

    fn json(&mut self, path: &Path, kind: TrustKind) -> Option<Value> {
        let text = self.text(path, kind)?;
        match serde_json::from_str(&text) {
            Ok(value) => Some(value),
            Err(error) => {
                let reason = format!("invalid JSON: {error}");
                self.found.broken.push((path.to_owned(), reason));
                None
            }
        }
    }

    /// Reads a text file once; reports one that exists and cannot be used.
    fn text(&mut self, path: &Path, kind: TrustKind) -> Option<String> {
        let real = path.canonicalize().ok()?;
        if !self.read.insert((kind, real.clone())) {
            return None;
        }
        match self.read_text(&real) {
            Ok(text) => Some(text),
            Err(reason) => {
                self.found.broken.push((path.to_owned(), reason));
                None
            }
        }
    }

    fn read_text(&self, real: &Path) -> Result<String, String> {
        // A repository can contain links to anything that the user can read.
        if self.describe_settings.is_some() && !real.starts_with(&self.root) {
            return Err("is a link out of the project".to_owned());
        }
        let (file, _) = files::open(real).map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        let mut file = file.take(MOST_BYTES + 1);
        file.read_to_end(&mut bytes)
            .map_err(|error| format!("cannot be read: {error}"))?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(format!("is larger than {}", files::size(MOST_BYTES)));
        }
        String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".to_owned())
    }
}

/// Returns the hash of an executable, which is read only if its stamp is new.
fn tool_digest(path: &Path, digests: &mut DigestCache) -> Option<String> {
    let real = path.canonicalize().ok()?;
    let (mut file, metadata) = files::open(&real).ok()?;
    let stamp = Stamp::of(&metadata);
    if let Some((known, digest)) = digests.get(&real)
        && *known == stamp
    {
        return Some(digest.clone());
    }
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => hash.update(&chunk[..count]),
            Err(_) => return None,
        }
    }
    let digest = hex(&hash.finalize());
    digests.insert(real, (stamp, digest.clone()));
    Some(digest)
}

/// Returns the entries of a directory, sorted.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).take(MOST_FILES).collect();
    paths.sort();
    paths
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Returns the first characters of a text as one line without control characters.
fn one_line(text: &str) -> String {
    crate::arguments::one_line(text, MOST_SUMMARY_CHARS)
}
