//! Trust in projects: which of their files may run, or reach the model without a call.
//!
//! A repository can bring settings, tools, hooks, MCP servers, skills, commands and agent
//! definitions. None of them is loaded before the user has trusted it. Trust belongs to content: a
//! file that changes must be trusted again. Loaders take items from here, with the text that was
//! hashed, so that nothing can change between the check and the use.

mod project;
mod records;
mod references;
mod scan;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use self::project::ProjectExtent;
use self::records::TrustRecords;
pub use self::scan::{own_items, user_items};

/// Kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrustKind {
    /// Configuration file with settings that choose how the model is used.
    Settings,
    /// Executable that the model can call.
    Tool,
    /// Command that runs at an event.
    Hook,
    /// MCP server.
    McpServer,
    /// Skill.
    Skill,
    /// Slash command.
    Command,
    /// Definition of a kind of agent.
    Agent,
}

impl TrustKind {
    /// All kinds, in the order of display.
    pub const ALL: [Self; 7] = [
        Self::Settings,
        Self::Tool,
        Self::Hook,
        Self::McpServer,
        Self::Skill,
        Self::Command,
        Self::Agent,
    ];

    /// Returns the name of the kind.
    pub fn word(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Tool => "tool",
            Self::Hook => "hook",
            Self::McpServer => "server",
            Self::Skill => "skill",
            Self::Command => "command",
            Self::Agent => "agent",
        }
    }
}

impl fmt::Display for TrustKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}

/// Decision of the user about an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustState {
    /// Trusted with this content.
    Trusted,
    /// Refused with this content.
    Refused,
    /// Never decided.
    Undecided,
    /// Decided for another content.
    Changed,
}

impl TrustState {
    /// Returns the name of the state.
    pub fn word(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Refused => "refused",
            Self::Undecided => "new",
            Self::Changed => "changed",
        }
    }

    /// Returns true if the user has to decide.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Undecided | Self::Changed)
    }
}

/// Part of a project, or of the user's configuration, that runs or reaches the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustItem {
    /// Kind.
    pub kind: TrustKind,
    /// Name: of the skill, command, agent, tool or server, or the event of a hook.
    pub name: String,
    /// File.
    pub path: PathBuf,
    /// Text that was hashed: the file, or the JSON of one hook or server. Empty for a tool.
    pub content: String,
    /// One line for people.
    pub summary: String,
    /// SHA-256 of everything that the trust covers.
    pub digest: String,
    /// Decision.
    pub state: TrustState,
    /// Identity in the project: kind, path below its root, and name.
    pub id: String,
}

/// Items of a project with the user's decisions.
#[derive(Clone, Debug, Default)]
pub struct ProjectTrust {
    /// Root of the project: its repository, or the working directory.
    pub root: PathBuf,
    /// Items: nearest directory first, then by kind and name.
    pub items: Vec<TrustItem>,
    /// Files that cannot be read, with the reason.
    pub broken: Vec<(PathBuf, String)>,
}

impl ProjectTrust {
    /// Returns the trusted items of a kind; the nearest of one name first.
    pub fn trusted(&self, kind: TrustKind) -> impl Iterator<Item = &TrustItem> {
        let is_trusted =
            move |item: &&TrustItem| item.kind == kind && item.state == TrustState::Trusted;
        self.items.iter().filter(is_trusted)
    }

    /// Returns the items about which the user has to decide.
    pub fn open_items(&self) -> Vec<&TrustItem> {
        let is_open = |item: &&TrustItem| item.state.is_open();
        self.items.iter().filter(is_open).collect()
    }

    /// Returns one line about what is not loaded; none if the user decided about everything.
    pub fn notice(&self) -> Option<String> {
        let open = self.open_items();
        let counts = TrustKind::ALL.into_iter().filter_map(|kind| {
            let count = open.iter().filter(|item| item.kind == kind).count();
            let plural = match kind {
                TrustKind::Settings => "",
                _ if count == 1 => "",
                _ => "s",
            };
            match (kind, count) {
                (_, 0) => None,
                (TrustKind::Settings, _) => Some("settings".to_owned()),
                _ => Some(format!("{count} {kind}{plural}")),
            }
        });
        let counts: Vec<_> = counts.collect();
        (!counts.is_empty()).then(|| {
            format!(
                "Not loaded, because this project is not trusted: {}. Review and trust: ikigai trust",
                counts.join(", ")
            )
        })
    }
}

/// Describes the settings of a project's configuration that need trust; none if it has none.
pub type DescribeSettings = fn(&str) -> Option<String>;

/// Reads projects, and stores decisions about them.
#[derive(Clone)]
pub struct Trust {
    /// Directory of the decisions; without it nothing is ever trusted.
    directory: Option<PathBuf>,
    describe_settings: DescribeSettings,
    /// Digests of large files that did not change.
    digests: Arc<Mutex<scan::DigestCache>>,
}

impl fmt::Debug for Trust {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Trust");
        shown
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl Trust {
    /// Creates a reader of decisions in a directory that only the user can access.
    pub fn new(directory: Option<PathBuf>) -> Self {
        Self {
            directory,
            describe_settings: |_| None,
            digests: Arc::default(),
        }
    }

    /// Sets the description of settings; without it settings are no items.
    #[must_use]
    pub fn describing_settings(mut self, describe: DescribeSettings) -> Self {
        self.describe_settings = describe;
        self
    }

    /// Reads all items of the project around a working directory. Blocks.
    pub fn project(&self, workdir: &Path) -> ProjectTrust {
        self.items_of(workdir, &TrustKind::ALL)
    }

    /// Reads the items of these kinds. Blocks.
    pub fn items_of(&self, workdir: &Path, kinds: &[TrustKind]) -> ProjectTrust {
        let project = ProjectExtent::around(workdir);
        let mut found = {
            let mut digests = self.digests.lock().unwrap_or_else(PoisonError::into_inner);
            scan::project_items(&project, kinds, self.describe_settings, &mut digests)
        };
        if !found.items.is_empty() {
            let records = TrustRecords::load(self.directory.as_deref(), &project.identity);
            for item in &mut found.items {
                item.state = records.state(&item.id, &item.digest);
            }
        }
        found
    }

    /// Stores the same decision about some items of a project. Blocks.
    pub fn decide<'a>(
        &self,
        workdir: &Path,
        items: impl IntoIterator<Item = &'a TrustItem>,
        is_trusted: bool,
    ) -> io::Result<()> {
        let project = ProjectExtent::around(workdir);
        let directory = self.directory.as_deref();
        let mut records = TrustRecords::load(directory, &project.identity);
        for item in items {
            records.set(&item.id, &item.digest, is_trusted);
        }
        records.save(directory)
    }

    /// Forgets all decisions about a project; returns false if there were none. Blocks.
    pub fn forget(&self, workdir: &Path) -> io::Result<bool> {
        let project = ProjectExtent::around(workdir);
        records::forget(self.directory.as_deref(), &project.identity)
    }
}

#[cfg(test)]
mod tests;
