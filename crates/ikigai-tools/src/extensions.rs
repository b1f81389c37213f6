//! Skills, commands and agent definitions: Markdown files with front matter.
//!
//! They come from the project, if it is trusted, from the user's configuration, and from the
//! directories in the home directory that several programs share. The first of one name wins.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::front_matter::{FrontMatter, split_list};
use crate::tool_names::current_name;
use crate::trust::{ProjectTrust, Trust, TrustItem, TrustKind, own_items, user_items};

/// Most characters of a name.
const MOST_NAME_CHARS: usize = 64;

/// Most characters of a description.
const MOST_DESCRIPTION_CHARS: usize = 1024;

/// Kinds of extensions.
const KINDS: [TrustKind; 3] = [TrustKind::Skill, TrustKind::Command, TrustKind::Agent];

/// Instructions that the model reads when it needs them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// Name and text.
    pub text: ExtensionText,
    /// False if only the user calls it.
    pub is_for_model: bool,
    /// False if only the model uses it.
    pub is_for_user: bool,
}

/// Prompt that the user calls as `/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionText {
    /// Name: letters, digits, `-`, `_`, and `:` after a directory.
    pub name: String,
    /// One paragraph about it.
    pub description: String,
    /// Description of the arguments.
    pub argument_hint: Option<String>,
    /// File.
    pub path: PathBuf,
    /// Text behind the front matter.
    pub body: String,
    /// True if it runs in a child agent.
    pub forks: bool,
    /// Agent definition of that child.
    pub agent: Option<String>,
    /// Model of that child.
    pub model: Option<String>,
    /// Tools of that child, by our names.
    pub tools: Option<Vec<String>>,
}

/// Kind of child agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentDefinition {
    /// Name.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// Tools of the child, by our names; none for all.
    pub tools: Option<Vec<String>>,
    /// Tools that the child does not get.
    pub refused_tools: Vec<String>,
    /// Model as written; none for the parent's.
    pub model: Option<String>,
    /// True if it works in a git worktree.
    pub worktree: bool,
    /// System prompt.
    pub body: String,
    /// File.
    pub path: PathBuf,
}

/// Extensions that are available in a directory, each sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    /// Skills.
    pub skills: Vec<Skill>,
    /// Commands.
    pub commands: Vec<ExtensionText>,
    /// Agent definitions.
    pub agents: Vec<AgentDefinition>,
}

/// Places of extensions.
#[derive(Clone, Debug)]
pub struct ExtensionPlaces {
    /// Home directory, with the directories that programs share.
    pub home: Option<PathBuf>,
    /// Configuration directory of this program.
    pub configuration: Option<PathBuf>,
    /// Decisions about projects.
    pub trust: Trust,
}

impl ExtensionPlaces {
    /// Reads the extensions for an agent that works in a directory. Blocks.
    pub fn load(&self, workdir: &Path) -> Extensions {
        let project = self.trust.items_of(workdir, &KINDS);
        let own = self.configuration.as_deref();
        let own = own.map(|directory| own_items(directory, &KINDS));
        let home = self.home.as_deref();
        let home = home.map(|directory| user_items(directory, &KINDS));
        let mut found = Extensions::default();
        for items in [Some(project), own, home].into_iter().flatten() {
            found.add(&items);
        }
        found.skills.sort_by(|a, b| a.text.name.cmp(&b.text.name));
        found.commands.sort_by(|a, b| a.name.cmp(&b.name));
        found.agents.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }
}

impl Extensions {
    /// Returns the command or skill that the user calls by a name.
    ///
    /// The last part of a name is enough if only one has it: `/fix` for `git:fix`.
    pub fn callable(&self, name: &str) -> Option<&ExtensionText> {
        if let Some(found) = self.callables().find(|text| text.name == name) {
            return Some(found);
        }
        let ends = |text: &&ExtensionText| text.name.rsplit(':').next() == Some(name);
        let mut found = self.callables().filter(ends);
        found.next().filter(|_| found.next().is_none())
    }

    /// Returns everything that the user can call: commands, then skills of other names.
    pub fn callables(&self) -> impl Iterator<Item = &ExtensionText> {
        let names: BTreeSet<&str> = self.commands.iter().map(|it| it.name.as_str()).collect();
        let skills = self.skills.iter().filter(|skill| skill.is_for_user);
        let skills = skills.map(|skill| &skill.text);
        let others = skills.filter(move |text| !names.contains(text.name.as_str()));
        self.commands.iter().chain(others)
    }

    /// Returns the skill of a name.
    pub fn skill(&self, name: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.text.name == name)
    }

    /// Returns the agent definition of a name.
    pub fn agent(&self, name: &str) -> Option<&AgentDefinition> {
        let exact = self.agents.iter().find(|agent| agent.name == name);
        exact.or_else(|| {
            let alike = |agent: &&AgentDefinition| agent.name.eq_ignore_ascii_case(name);
            self.agents.iter().find(alike)
        })
    }

    /// Returns true if a text is the body of a skill.
    pub fn is_skill(&self, text: &ExtensionText) -> bool {
        self.skills.iter().any(|skill| skill.text.path == text.path)
    }

    fn add(&mut self, items: &ProjectTrust) {
        for item in items.trusted(TrustKind::Skill) {
            let skill = Skill::read(item);
            if is_name(&skill.text.name) && self.skill(&skill.text.name).is_none() {
                self.skills.push(skill);
            }
        }
        for item in items.trusted(TrustKind::Command) {
            let (front, body) = FrontMatter::split(&item.content);
            let text = ExtensionText::read(item, &front, body);
            let is_known = self.commands.iter().any(|it| it.name == text.name);
            if is_name(&text.name) && !is_known {
                self.commands.push(text);
            }
        }
        for item in items.trusted(TrustKind::Agent) {
            let agent = AgentDefinition::read(item);
            let is_known = self.agents.iter().any(|it| it.name == agent.name);
            if is_name(&agent.name) && !is_known && !agent.body.trim().is_empty() {
                self.agents.push(agent);
            }
        }
    }
}

/// Returns true if a name can be typed after `/`.
fn is_name(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':');
    name.len() <= MOST_NAME_CHARS
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(is_letter)
}

impl Skill {
    fn read(item: &TrustItem) -> Self {
        let (front, body) = FrontMatter::split(&item.content);
        let text = ExtensionText::read(item, &front, body);
        Self {
            is_for_model: front.flag("disable-model-invocation") != Some(true),
            is_for_user: front.flag("user-invocable") != Some(false),
            text,
        }
    }

    /// Returns the directory with the skill's files.
    pub fn directory(&self) -> &Path {
        self.text.path.parent().unwrap_or(Path::new("/"))
    }
}

impl ExtensionText {
    fn read(item: &TrustItem, front: &FrontMatter, body: &str) -> Self {
        let description = front.text("description");
        let description = description.unwrap_or_else(|| item.summary.clone());
        let is_fork = front.text("context").as_deref() == Some("fork");
        Self {
            name: item.name.clone(),
            description: crate::arguments::one_line(&description, MOST_DESCRIPTION_CHARS),
            argument_hint: front
                .text("argument-hint")
                .map(|hint| crate::arguments::one_line(&hint, MOST_NAME_CHARS)),
            path: item.path.clone(),
            body: body.to_owned(),
            forks: is_fork || front.flag("subtask") == Some(true),
            agent: front.text("agent"),
            model: front.text("model"),
            tools: front.list("allowed-tools").map(|names| our_tools(&names)),
        }
    }
}

impl AgentDefinition {
    fn read(item: &TrustItem) -> Self {
        let (front, body) = FrontMatter::split(&item.content);
        let description = front.text("description").unwrap_or_default();
        // opencode writes `tools` as a table of names with true or false.
        let table = front.keys().filter_map(|key| key.strip_prefix("tools."));
        let switched_off = table.filter(|name| front.flag(&format!("tools.{name}")) == Some(false));
        let refused = front.list("disallowedTools").unwrap_or_default();
        let refused = refused.into_iter().chain(switched_off.map(str::to_owned));
        Self {
            name: item.name.clone(),
            description: crate::arguments::one_line(&description, MOST_DESCRIPTION_CHARS),
            tools: front.list("tools").map(|names| our_tools(&names)),
            refused_tools: our_tools(&refused.collect::<Vec<_>>()),
            model: front.text("model").filter(|model| model != "inherit"),
            worktree: front.text("isolation").as_deref() == Some("worktree"),
            body: body.trim().to_owned(),
            path: item.path.clone(),
        }
    }
}

/// Returns our names of tools; a pattern such as `Bash(git add:*)` means its tool.
fn our_tools(names: &[String]) -> Vec<String> {
    let words = names.iter().flat_map(|name| {
        // The specification separates by spaces, most files by commas.
        let outside = name.split('(').next().unwrap_or(name).trim().to_owned();
        split_list(&outside.replace(' ', ","))
    });
    let mut ours: Vec<String> = Vec::new();
    for word in words {
        let ours_of = match word.to_ascii_lowercase().as_str() {
            "agent" | "task" => vec!["fork".to_owned(), "wait".to_owned(), "send".to_owned()],
            "edit" | "multiedit" => vec!["file_edit".to_owned()],
            "read" => vec!["file_read".to_owned()],
            "write" => vec!["file_write".to_owned()],
            "webfetch" => vec!["web_fetch".to_owned()],
            "websearch" => vec!["web_search".to_owned()],
            "todowrite" => vec!["todo".to_owned()],
            lower @ ("bash" | "glob" | "grep") => vec![lower.to_owned()],
            _ => vec![current_name(&word).to_owned()],
        };
        for name in ours_of {
            if !ours.contains(&name) {
                ours.push(name);
            }
        }
    }
    ours
}

#[cfg(test)]
mod tests;
