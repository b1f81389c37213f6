//! Permission checks: a call is allowed, needs approval, or is refused.
//!
//! A decision depends only on its arguments, and on the targets of links in a call's paths.

mod git;
mod grants;
mod patterns;
mod programs;
mod proposal;
mod read_only_lines;
mod rules;
mod shell;
#[cfg(test)]
mod tests;
mod wrappers;

use std::path::{Path, PathBuf};

use ikigai_core::EffectClass;
use ikigai_core::settings::{Approve, Rule};

use crate::paths::follow;
use crate::protected_paths::is_guarded;
use crate::tool_names::current_name;
use crate::{Place, Prepared, Touches};
use patterns::literal;
use rules::RuleCall;

pub use grants::GrantKey;
pub(crate) use patterns::directory_pattern;
pub use patterns::literal as literal_pattern;
pub use proposal::pattern_for;
pub use read_only_lines::reading_commands;
pub(crate) use read_only_lines::reads_with_git;

/// Permissions of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permissions {
    /// Mode and rules from the agent's log.
    pub grant: Grant,
    /// Rules of the user's configuration that allow calls.
    pub allow: Vec<Rule>,
    /// Rules of the user's configuration that refuse calls. They override everything.
    pub refuse: Vec<Rule>,
    /// Sandbox that can keep calls from writing and from the network.
    pub sandbox: Sandbox,
}

/// Mode and rules of an agent, as its log has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Approval mode.
    pub mode: Approve,
    /// Rules from answers *always*.
    pub rules: Vec<Rule>,
}

/// Availability of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sandbox {
    /// Processes are confined.
    InForce,
    /// Not available, or disabled.
    Missing,
}

/// Decision about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Run it.
    Allow,
    /// Run it in a sandbox without write access and network.
    AllowConfined,
    /// Ask for approval.
    Ask {
        /// Pattern of the rule that *always* would add. Such a rule allows this call.
        pattern: String,
    },
    /// Refuse it, with a sentence for the model.
    Refuse(String),
}

impl Default for Grant {
    fn default() -> Self {
        Self {
            mode: Approve::Ask,
            rules: Vec::new(),
        }
    }
}

/// Returns the tool of a rule that *always* adds for a call.
///
/// Calls outside the sandbox have rules of a separate name, which no wildcard matches.
pub fn rule_tool(tool: &str, prepared: &Prepared) -> String {
    let tool = current_name(tool);
    match prepared.unconfined {
        Some(_) => format!("{tool} unconfined"),
        None => tool.to_owned(),
    }
}

/// Decides about a call of a tool. Follows links on disk, so it may take a moment.
pub fn decide(
    permissions: &Permissions,
    tool: &str,
    prepared: &Prepared,
    place: &Place,
) -> Decision {
    let tool = current_name(tool);
    let call = RuleCall::new(tool, prepared, place);
    if let Some(rule) = permissions
        .refuse
        .iter()
        .find(|rule| call.is_refused_by(rule))
    {
        let pattern = rule.pattern.as_deref().unwrap_or("*");
        return Decision::Refuse(format!(
            "refused: the user's configuration refuses `{tool}` for `{pattern}`. Do not try to get around it."
        ));
    }
    if prepared.unconfined.is_some() {
        return decide_unconfined(permissions, &call, prepared);
    }
    let mode = permissions.grant.mode;
    let is_free = mode == Approve::All && !writes_guarded(prepared);
    if prepared.class == EffectClass::Read || is_free {
        return Decision::Allow;
    }
    let rules = || permissions.grant.rules.iter().chain(&permissions.allow);
    if mode != Approve::Read && call.is_allowed_by(rules(), permissions.sandbox) {
        return Decision::Allow;
    }
    if permissions.sandbox == Sandbox::InForce && call.is_reading_line() {
        return Decision::AllowConfined;
    }
    match mode {
        Approve::Read => Decision::Refuse(format!(
            "refused: this agent is in `read` mode, in which only reading is allowed, and `{tool}` does more than read here. Say what you would do instead of doing it."
        )),
        Approve::Ask | Approve::Edits if stays_in_family(prepared) => Decision::Allow,
        Approve::Edits if writes_only_within(prepared, place) => Decision::Allow,
        Approve::Ask | Approve::Edits | Approve::All => Decision::Ask {
            pattern: sure_pattern(&call, prepared, permissions),
        },
    }
}

/// Decides about a call outside the sandbox: asked in every mode that can ask.
///
/// Only a rule for such calls allows one, and every command of its line needs a rule.
fn decide_unconfined(
    permissions: &Permissions,
    call: &RuleCall<'_>,
    prepared: &Prepared,
) -> Decision {
    if permissions.grant.mode == Approve::Read {
        return Decision::Refuse(
            "refused: this agent is in `read` mode, in which no command leaves the sandbox. Run it without `unconfined`, or tell the user what you would do.".to_owned(),
        );
    }
    let outside = Permissions {
        sandbox: Sandbox::Missing,
        ..permissions.clone()
    };
    let mut rules = outside.grant.rules.iter().chain(&outside.allow);
    if call.is_allowed_by(&mut rules, Sandbox::Missing) {
        return Decision::Allow;
    }
    Decision::Ask {
        pattern: sure_pattern(call, prepared, &outside),
    }
}

/// Returns the grant of a child, limited to its parent's.
///
/// The mode is never wider, and rules that the parent lacks are dropped.
pub fn narrower(parent: &Grant, child: &Grant) -> Grant {
    let is_parents = |rule: &&Rule| parent.rules.contains(rule);
    Grant {
        mode: child.mode.narrower(parent.mode),
        rules: child.rules.iter().filter(is_parents).cloned().collect(),
    }
}

/// Returns true if a call acts only on agents of the caller's family.
fn stays_in_family(prepared: &Prepared) -> bool {
    prepared.class == EffectClass::Agent && prepared.touches == Touches::default()
}

/// Returns true if a call writes only below the working directory.
///
/// Links are followed, and guarded paths, which could make programs run later, do not count.
fn writes_only_within(prepared: &Prepared, place: &Place) -> bool {
    let crate::Paths::Below(writes) = &prepared.touches.writes else {
        return false;
    };
    let Some(workdir) = follow(&place.workdir) else {
        return false;
    };
    // The call uses the path itself, so links created meanwhile must not hide it.
    let is_named_within =
        |path: &Path| path.starts_with(&place.workdir) || path.starts_with(&workdir);
    let leads_within = |path: &Path| {
        follow(path).is_some_and(|path| path.starts_with(&workdir) && !is_guarded(&path))
    };
    let is_within = |path: &Path| leads_within(path) && is_named_within(path) && !is_guarded(path);
    prepared.class == EffectClass::Write
        && !writes.is_empty()
        && writes.iter().all(|path| is_within(path))
}

/// Returns true if a call writes to a guarded path; this always needs approval.
fn writes_guarded(prepared: &Prepared) -> bool {
    let crate::Paths::Below(writes) = &prepared.touches.writes else {
        return false;
    };
    // The call uses the path itself, so links created meanwhile must not hide it.
    let leads_into_guarded =
        |path: &PathBuf| is_guarded(path) || follow(path).is_some_and(|real| is_guarded(&real));
    prepared.class == EffectClass::Write && writes.iter().any(leads_into_guarded)
}

/// Returns the call's pattern if it suffices as a rule, else an exact one.
///
/// So an answer *always* keeps the same question from coming again.
fn sure_pattern(call: &RuleCall<'_>, prepared: &Prepared, permissions: &Permissions) -> String {
    let suffices = |pattern: &str| {
        let rule = call.rule(pattern.to_owned());
        call.is_allowed_by(std::iter::once(&rule), permissions.sandbox)
    };
    if suffices(&prepared.pattern) {
        return prepared.pattern.clone();
    }
    let exact = literal(&call.exact_subject());
    if suffices(&exact) {
        return exact;
    }
    prepared.pattern.clone()
}
