//! Rights of agents: `[permissions]`, `[sandbox]`, `[web]`, `[limits]` and `[agents]`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ikigai_core::settings::Rule;
use ikigai_engine::{AgentLimits, Limits};
use ikigai_tools::AllowedHost;
use ikigai_tools::mcp::McpDefinition;
use serde::Deserialize;

use super::network::NetworkSetting;

/// Longest turn: a month.
const MOST_MINUTES: u64 = 31 * 24 * 60;

/// Usual and longest time of a background process, in hours.
const PROCESS_HOURS: u64 = 24;
const MOST_PROCESS_HOURS: u64 = 31 * 24;

/// Most parallel requests; no provider allows more.
const MOST_REQUESTS: usize = 1000;

/// Sections about the rights of agents.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Work {
    pub(crate) permissions: PermissionSettings,
    pub(crate) sandbox: SandboxSettings,
    pub(crate) web: WebSettings,
    pub(crate) limits: LimitsSection,
    pub(crate) agents: AgentsSection,
    pub(crate) mcp: BTreeMap<String, McpDefinition>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PermissionSettings {
    /// Rules for calls that need no approval.
    allow: Vec<AllowRule>,
    /// Rules for refused calls; they override all others.
    refuse: Vec<RefuseRule>,
}

/// `[[permissions.allow]]`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct AllowRule {
    tool: String,
    pattern: String,
}

/// `[[permissions.refuse]]`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct RefuseRule {
    tool: String,
    pattern: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SandboxSettings {
    /// True if processes of tools are sandboxed; the default is true.
    enabled: Option<bool>,
    /// Network access of sandboxed processes.
    network: Option<NetworkSetting>,
    /// Paths that sandboxed processes may write besides the working directory.
    writable: Vec<String>,
    /// Ports on loopback that sandboxed processes may connect to.
    loopback_ports: Vec<u16>,
    /// Additional paths that no tool may read or write.
    hidden: Vec<String>,
    /// Variables that processes get although they look like secrets.
    pass_env: Vec<String>,
    /// Older name of `pass_env`.
    keep_variables: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WebSettings {
    /// True if addresses of this machine and the local network may be fetched.
    private_addresses: Option<bool>,
    /// Address of a `SearXNG` server for `web_search`.
    searxng: Option<String>,
}

/// `[limits]` of one turn.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitsSection {
    requests: Option<usize>,
    calls: Option<usize>,
    minutes: Option<u64>,
    process_hours: Option<u64>,
}

/// `[agents]`: limits on the number of agents, and the model of explorers.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AgentsSection {
    depth: Option<usize>,
    children: Option<usize>,
    family: Option<usize>,
    requests: Option<usize>,
    pub(crate) explore_model: Option<String>,
}

impl AgentsSection {
    pub(crate) fn crowd(&self) -> AgentLimits {
        let usual = AgentLimits::default();
        AgentLimits {
            depth: self.depth.unwrap_or(usual.depth),
            children: self.children.unwrap_or(usual.children),
            family: self.family.unwrap_or(usual.family),
            // With zero requests no model could ever be called.
            requests: self
                .requests
                .unwrap_or(usual.requests)
                .clamp(1, MOST_REQUESTS),
        }
    }
}

impl Work {
    /// Merges a project's settings, as far as they are narrower.
    pub(super) fn narrowed_by(mut self, theirs: Self) -> Self {
        self.permissions.refuse.extend(theirs.permissions.refuse);
        self.sandbox.hidden.extend(theirs.sandbox.hidden);
        if let Some(theirs) = theirs.sandbox.network {
            let ours = self.sandbox.network.unwrap_or_default();
            self.sandbox.network = Some(ours.narrowed_by(theirs));
        }
        let ours = self.limits.limits();
        let minutes = ours.time.as_secs() / 60;
        let lowered = |ours: usize, theirs: Option<usize>| theirs.map(|theirs| theirs.min(ours));
        self.limits = LimitsSection {
            requests: lowered(ours.requests, theirs.limits.requests).or(self.limits.requests),
            calls: lowered(ours.calls, theirs.limits.calls).or(self.limits.calls),
            minutes: theirs
                .limits
                .minutes
                .map(|theirs| theirs.min(minutes))
                .or(self.limits.minutes),
            process_hours: theirs
                .limits
                .process_hours
                .map(|theirs| theirs.min(self.limits.process_hours()))
                .or(self.limits.process_hours),
        };
        self
    }
}

impl LimitsSection {
    fn process_hours(&self) -> u64 {
        let hours = self.process_hours.unwrap_or(PROCESS_HOURS);
        hours.clamp(1, MOST_PROCESS_HOURS)
    }

    /// Returns the time after which a background process is stopped.
    pub(crate) fn process_time(&self) -> Duration {
        Duration::from_secs(self.process_hours() * 60 * 60)
    }
}

impl PermissionSettings {
    pub(crate) fn allow(&self) -> Vec<Rule> {
        let rule = |rule: &AllowRule| Rule {
            tool: Some(rule.tool.clone()),
            pattern: Some(rule.pattern.clone()),
        };
        self.allow.iter().map(rule).collect()
    }

    pub(crate) fn refuse(&self) -> Vec<Rule> {
        let rule = |rule: &RefuseRule| Rule {
            tool: Some(rule.tool.clone()),
            pattern: rule.pattern.clone(),
        };
        self.refuse.iter().map(rule).collect()
    }
}

impl SandboxSettings {
    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled.unwrap_or(true)
    }

    pub(crate) fn disabled(self) -> Self {
        Self {
            enabled: Some(false),
            ..self
        }
    }

    pub(crate) fn has_network(&self) -> bool {
        self.network == Some(NetworkSetting::All)
    }

    /// Returns the hosts that sandboxed processes may reach through a proxy.
    pub(crate) fn hosts(&self) -> &[AllowedHost] {
        match &self.network {
            Some(NetworkSetting::Hosts(hosts)) => hosts,
            _ => &[],
        }
    }

    pub(crate) fn loopback_ports(&self) -> Vec<u16> {
        self.loopback_ports.clone()
    }

    /// Returns the writable paths, with `~/` expanded; skips relative ones.
    pub(crate) fn writable(&self, home: Option<&Path>) -> Vec<PathBuf> {
        absolute(&self.writable, home)
    }

    /// Returns the hidden paths, with `~/` expanded; skips relative ones.
    pub(crate) fn hidden(&self, home: Option<&Path>) -> Vec<PathBuf> {
        absolute(&self.hidden, home)
    }

    pub(crate) fn pass_env(&self) -> Vec<String> {
        [&*self.pass_env, &*self.keep_variables].concat()
    }
}

/// Expands `~/`; drops relative paths.
fn absolute(paths: &[String], home: Option<&Path>) -> Vec<PathBuf> {
    let resolve = |text: &String| match text.strip_prefix("~/") {
        Some(rest) => home.map(|home| home.join(rest)),
        None => Some(PathBuf::from(text)).filter(|path| path.is_absolute()),
    };
    paths.iter().filter_map(resolve).collect()
}

impl WebSettings {
    pub(crate) fn may_fetch_private(&self) -> bool {
        self.private_addresses.unwrap_or(false)
    }

    /// Returns the address of the `SearXNG` server for `web_search`, if there is one.
    pub(crate) fn searxng(&self) -> Option<&str> {
        self.searxng.as_deref().filter(|url| !url.trim().is_empty())
    }
}

impl LimitsSection {
    pub(crate) fn limits(&self) -> Limits {
        let usual = Limits::default();
        let time = self
            .minutes
            .map(|minutes| Duration::from_secs(minutes.clamp(1, MOST_MINUTES) * 60));
        Limits {
            requests: self.requests.unwrap_or(usual.requests).max(1),
            calls: self.calls.unwrap_or(usual.calls),
            time: time.unwrap_or(usual.time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writable_paths_are_absolute_or_below_home() {
        let text = "writable = [\"~/data\", \"/srv/cache\", \"relative\"]";
        let settings: SandboxSettings = toml::from_str(text).unwrap();

        let paths = settings.writable(Some(Path::new("/home/me")));

        assert_eq!(paths, ["/home/me/data", "/srv/cache"].map(PathBuf::from));
        assert!(!settings.disabled().is_enabled());
    }
}
