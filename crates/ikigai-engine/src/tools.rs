//! Tools of an agent: their source, place and restrictions.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ikigai_core::project::{ReadMode, ToolFacts, ToolSpec};
use ikigai_core::settings::Rule;
use ikigai_core::spelling::spell_out;
use ikigai_store::BoxFuture;
use ikigai_tools::extensions::Extensions;
use ikigai_tools::mcp::{McpStatus, called_by_name, is_server_tool, server_tool_facts};
use ikigai_tools::permission::Sandbox;
use ikigai_tools::process::ChildEnvironment;
use ikigai_tools::tool_names::current_name;
use ikigai_tools::worktree::WorktreeReach;
use ikigai_tools::{AllowedHost, BadArguments, Place, Prepared, Tool, builtin};

use crate::agent_tools::AgentTool;

/// Limit of a formatted call in its row. The arguments in the row are complete.
const MOST_SHOWN_CHARS: usize = 4_000;

/// Source of tools.
pub trait Tools: Send + Sync {
    /// Returns the tools for this directory, in alphabetical order.
    fn offer<'a>(&'a self, workdir: &'a Path) -> BoxFuture<'a, Vec<Arc<dyn Tool>>>;

    /// Starts servers of tools for this directory in the background.
    fn start_servers<'a>(&'a self, _workdir: &'a Path) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    /// Starts servers of tools, and waits a moment for those whose tools are not known yet.
    ///
    /// Called before each turn.
    fn settle_servers<'a>(&'a self, _workdir: &'a Path) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    /// Returns the states of servers of tools.
    fn servers<'a>(&'a self, _workdir: &'a Path) -> BoxFuture<'a, Vec<McpStatus>> {
        Box::pin(async { Vec::new() })
    }

    /// Returns the skills, commands and agent definitions for this directory.
    fn extensions<'a>(&'a self, _workdir: &'a Path) -> BoxFuture<'a, Arc<Extensions>> {
        Box::pin(async { Arc::default() })
    }
}

/// A fixed list of tools.
impl Tools for Vec<Arc<dyn Tool>> {
    fn offer<'a>(&'a self, _workdir: &'a Path) -> BoxFuture<'a, Vec<Arc<dyn Tool>>> {
        Box::pin(async { self.clone() })
    }
}

/// Restrictions of tools, independent of the model.
#[derive(Clone)]
pub struct Safety {
    /// Files that no tool may read or write.
    pub hidden: Arc<[PathBuf]>,
    /// Probe of the sandbox; none if processes are not confined.
    /// Called once, before the first process starts; it may take a moment.
    pub sandbox: Option<Probe>,
    /// Confined processes may use the network.
    pub network: bool,
    /// Hosts that confined processes may reach through a proxy, if they may not use the network.
    pub hosts: Arc<[AllowedHost]>,
    /// Paths that confined processes may write besides the usual ones.
    pub writable: Vec<PathBuf>,
    /// Caches of package managers that they may write.
    pub caches: Vec<PathBuf>,
    /// Directory of the git worktrees of children; without it there are none.
    pub worktrees: Option<PathBuf>,
    /// Ports on loopback that confined processes may connect to, besides their own.
    pub loopback_ports: Arc<[u16]>,
    /// Rules of the configuration that allow without asking.
    pub allow: Vec<Rule>,
    /// Rules of the configuration that refuse.
    pub refuse: Vec<Rule>,
    /// Removes secrets from the output of tools.
    pub blank: Blank,
    /// Environment of the user's own shell commands.
    pub shell: ChildEnvironment,
}

/// Checks if this machine can confine processes.
pub type Probe = Arc<dyn Fn() -> Sandbox + Send + Sync>;

/// Removes secrets from bytes.
pub type Blank = Arc<dyn for<'a> Fn(&'a [u8]) -> Cow<'a, [u8]> + Send + Sync>;

impl Default for Safety {
    fn default() -> Self {
        Self {
            hidden: Arc::default(),
            sandbox: None,
            network: false,
            hosts: Arc::default(),
            writable: Vec::new(),
            caches: Vec::new(),
            worktrees: None,
            loopback_ports: Arc::default(),
            allow: Vec::new(),
            refuse: Vec::new(),
            blank: Arc::new(|bytes| Cow::Borrowed(bytes)),
            shell: ChildEnvironment::default(),
        }
    }
}

/// The tools of one agent.
pub(crate) struct Toolset {
    pub(crate) tools: Vec<(ToolSpec, Arc<dyn Tool>)>,
    pub(crate) agent_tools: Vec<ToolSpec>,
    pub(crate) place: Place,
    /// Directories that commands in a worktree may write besides.
    pub(crate) worktree: Option<WorktreeReach>,
    /// Sandbox of an agent in `read` mode; none in other modes.
    pub(crate) reading: Option<Sandbox>,
    /// Tools of servers that requests offer; none for those that are known now.
    pub(crate) offered: Option<Vec<ToolSpec>>,
}

impl Toolset {
    /// Returns the tool descriptions for the model.
    ///
    /// Tools whose calls would always be refused in this mode are left out.
    pub(crate) fn offer(&self) -> Vec<ToolSpec> {
        let mut specs = self.specs();
        if let Some(offered) = &self.offered {
            specs.retain(|spec| !is_server_tool(&spec.name));
            specs.extend(offered.iter().cloned());
            specs.sort_by(|one, other| one.name.cmp(&other.name));
        }
        if let Some(sandbox) = self.reading {
            specs.retain(|spec| match spec.facts.in_read_mode {
                ReadMode::Runs => true,
                ReadMode::InSandbox => sandbox == Sandbox::InForce,
                ReadMode::Refused => false,
            });
        }
        specs
    }

    /// Returns the descriptions of all tools that the agent has.
    pub(crate) fn specs(&self) -> Vec<ToolSpec> {
        let tools = self.tools.iter().map(|(spec, _)| spec.clone());
        let mut specs: Vec<_> = tools.chain(self.agent_tools.iter().cloned()).collect();
        specs.sort_by(|one, other| one.name.cmp(&other.name));
        specs
    }

    pub(crate) fn agent_tool(&self, name: &str) -> Option<AgentTool> {
        let has = self.agent_tools.iter().any(|spec| spec.name == name);
        AgentTool::from_name(name).filter(|_| has)
    }

    /// Prepares a call, or returns an error message for the model.
    pub(crate) fn prepare(&self, name: &str, arguments: &str) -> Result<Prepared, String> {
        let current = current_name(name);
        let found = self.tools.iter().find(|(spec, _)| spec.name == current);
        let Some((_, tool)) = found else {
            if is_server_tool(name) {
                return Err(format!(
                    "No MCP server offers the tool `{name}` now: its server failed or no longer has it. \
                     tool_search finds those that exist."
                ));
            }
            let names: Vec<_> = self.offer().into_iter().map(|spec| spec.name).collect();
            return Err(format!(
                "There is no tool `{name}`. You have: {}.",
                names.join(", ")
            ));
        };
        tool.prepare(arguments, &self.place)
            .map_err(|BadArguments(reason)| reason)
    }

    /// Formats a call for people, spelled out; shortens a long one.
    pub(crate) fn shown(&self, name: &str, arguments: &str) -> Option<String> {
        let shown = match self.agent_tool(name) {
            Some(tool) => tool.display_text(arguments),
            None => match called_by_name(name, arguments) {
                Some((tool, given)) => {
                    let call = self.prepare(&tool, &given).ok()?;
                    format!("{tool} {}", call.shown)
                }
                None => self.prepare(name, arguments).ok()?.shown,
            },
        };
        Some(match shown.char_indices().nth(MOST_SHOWN_CHARS) {
            None => spell_out(&shown),
            Some((end, _)) => format!("{}…", spell_out(&shown[..end])),
        })
    }
}

/// Returns the facts of a tool in a stored row; it may no longer exist.
pub fn tool_facts(name: &str) -> ToolFacts {
    let of_agents = AgentTool::from_name(name).map(AgentTool::facts);
    of_agents
        .or_else(|| builtin::facts(name))
        .or_else(|| is_server_tool(name).then(|| server_tool_facts(name)))
        .unwrap_or_default()
}

/// Extent of a call's effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freedom {
    /// Read only.
    Reading,
    /// Change files in the working directory.
    Working,
    /// Everything that the user may do.
    Unconfined,
}

impl Freedom {
    /// Returns the extent of an allowed call.
    pub(crate) fn of(prepared: &Prepared) -> Self {
        match prepared.unconfined {
            Some(_) => Self::Unconfined,
            None => Self::Working,
        }
    }
}
