//! Tools, permissions and confinement of an agent's calls.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ikigai_core::settings::Approve;
use ikigai_core::{EffectClass, Settings};
use ikigai_tools::extensions::Extensions;
use ikigai_tools::permission::{Decision, Grant, Permissions, Sandbox, decide};
use ikigai_tools::tool_names::current_name;
use ikigai_tools::{Confinement, Place, Prepared, sandbox};

use crate::EngineReader;
use crate::agent_tools::AgentTool;
use crate::offered_tools;
use crate::tools::{Freedom, Tools, Toolset};
use crate::worktrees::reach;

impl Toolset {
    /// Returns the restrictions of a call's processes.
    pub(crate) fn confinement(&self, engine: &EngineReader, freedom: Freedom) -> Confinement {
        let usual = engine.confinement(&self.place, freedom);
        match (freedom, &self.worktree) {
            (Freedom::Working, Some(reach)) => usual
                .with_writable(std::slice::from_ref(&reach.files))
                .with_caches(&reach.git),
            (Freedom::Working | Freedom::Reading | Freedom::Unconfined, _) => usual,
        }
    }
}

impl EngineReader {
    /// Returns the tools under these settings.
    pub(crate) async fn toolset(&self, settings: &Settings) -> Toolset {
        let workdir = PathBuf::from(settings.workdir.as_deref().unwrap_or("/"));
        let offered = self.tools.offer(&workdir).await;
        let named = offered.into_iter().map(|tool| (tool.spec(), tool));
        let chosen = settings.toolset.as_ref();
        let is_chosen = |name: &String| {
            let mut words = chosen.into_iter().flatten();
            chosen.is_none() || words.any(|word| current_name(word) == name)
        };
        let is_reading = settings.approve == Some(Approve::Read);
        let reading = if is_reading {
            Some(self.sandbox().await)
        } else {
            None
        };
        let mut offered = offered_tools::stored(self.reader(), settings).await;
        if let Some(offered) = &mut offered {
            offered.retain(|spec| is_chosen(&spec.name));
        }
        Toolset {
            offered,
            reading,
            tools: named.filter(|(spec, _)| is_chosen(&spec.name)).collect(),
            agent_tools: AgentTool::specs()
                .filter(|spec| is_chosen(&spec.name))
                .collect(),
            worktree: reach(&self.safety, settings).await,
            place: Place {
                workdir,
                hidden: self.safety.hidden.clone(),
            },
        }
    }

    /// Returns the source of tools.
    pub fn tool_source(&self) -> &dyn Tools {
        &*self.tools
    }

    /// Returns the skills, commands and agent definitions of a directory.
    pub async fn extensions(&self, workdir: &Path) -> Arc<Extensions> {
        self.tools.extensions(workdir).await
    }

    /// Drops a request to leave the sandbox if there is none.
    pub(crate) fn without_needless_door(&self, mut prepared: Box<Prepared>) -> Box<Prepared> {
        if self.safety.sandbox.is_none() {
            prepared.unconfined = None;
        }
        prepared
    }

    /// Decides about a call of an agent with this grant.
    pub(crate) fn judge(
        &self,
        grant: Grant,
        sandbox: Sandbox,
        tool: &str,
        prepared: &Prepared,
        place: &Place,
    ) -> Decision {
        let permissions = Permissions {
            grant,
            allow: self.safety.allow.clone(),
            refuse: self.safety.refuse.clone(),
            sandbox,
        };
        decide(&permissions, tool, prepared, place)
    }

    /// Returns the names of all tools that agents can have in a directory.
    pub async fn tool_names(&self, workdir: &str) -> Vec<String> {
        let settings = Settings {
            workdir: Some(workdir.to_owned()),
            ..Settings::default()
        };
        let specs = self.toolset(&settings).await.specs();
        specs.into_iter().map(|spec| spec.name).collect()
    }

    /// Returns whether processes of tools are confined here. Tried once.
    pub async fn confines(&self) -> bool {
        self.sandbox().await == Sandbox::InForce
    }

    /// Returns true if commands are to run in the sandbox, whether or not this machine has it.
    pub fn uses_sandbox(&self) -> bool {
        self.safety.sandbox.is_some()
    }

    pub(crate) async fn sandbox_for(&self, class: EffectClass) -> Sandbox {
        match class {
            EffectClass::Execute => self.sandbox().await,
            _ => Sandbox::Missing,
        }
    }

    /// Returns the sandbox of this machine.
    async fn sandbox(&self) -> Sandbox {
        let Some(probe) = self.safety.sandbox.clone() else {
            return Sandbox::Missing;
        };
        let found = self.confines.get_or_init(|| async {
            let found = tokio::task::spawn_blocking(move || probe()).await;
            found.unwrap_or(Sandbox::Missing)
        });
        *found.await
    }

    /// Returns the restrictions of a call's processes. If they cannot be enforced, the call's
    /// result says so.
    pub(crate) fn confinement(&self, place: &Place, freedom: Freedom) -> Confinement {
        let hidden = self.safety.hidden.clone();
        match freedom {
            _ if self.safety.sandbox.is_none() => Confinement::None,
            Freedom::Unconfined => Confinement::None,
            Freedom::Reading => sandbox::reading(hidden),
            Freedom::Working => sandbox::usual(&place.workdir, self.safety.network, hidden)
                .with_writable(&self.safety.writable)
                .with_caches(&self.safety.caches)
                .with_hosts(self.safety.hosts.clone())
                .with_loopback_ports(&self.safety.loopback_ports),
        }
    }
}
