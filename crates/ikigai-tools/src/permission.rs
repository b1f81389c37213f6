//! Permission: whether a call may run, must be asked about, or is refused.
//!
//! A decision looks at nothing but its arguments, and at where links in the paths of a call lead.

mod git;
mod grants;
mod patterns;
mod programs;
mod proposal;
mod reading;
mod rules;
mod shell;
#[cfg(test)]
mod tests;
mod wrapped;

use std::path::{Path, PathBuf};

use ikigai_core::EffectClass;
use ikigai_core::settings::{Approve, Rule};

use crate::paths::follow;
use crate::protected_paths::is_guarded;
use crate::{Place, Prepared, Touches};
use patterns::literal;
use rules::Call;

pub use grants::GrantKey;
pub(crate) use patterns::directory_pattern;
pub use patterns::literal as literal_pattern;
pub use proposal::pattern_for;
pub use reading::reading_commands;

/// What an agent may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permissions {
    /// What it was given.
    pub grant: Grant,
    /// What the user's configuration allows.
    pub allow: Vec<Rule>,
    /// What the user's configuration refuses. It wins over everything.
    pub refuse: Vec<Rule>,
    /// Whether calls can be kept from writing and from the network.
    pub sandbox: Sandbox,
}

/// What was given to an agent: what it has in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// What it may do without asking.
    pub mode: Approve,
    /// What it was given for good: the answers *always*.
    pub rules: Vec<Rule>,
}

/// Whether this machine can confine processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sandbox {
    /// It can and does.
    InForce,
    /// It cannot, or must not.
    Missing,
}

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It runs.
    Allow,
    /// It runs where it can change nothing and has no network.
    AllowConfined,
    /// Somebody is asked.
    Ask {
        /// What *always* would allow. A rule with it allows this very call.
        pattern: String,
    },
    /// It does not run. The sentence is for the model.
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

/// Decides about a call of a tool. Follows links on disk, so it may take a moment.
pub fn decide(
    permissions: &Permissions,
    tool: &str,
    prepared: &Prepared,
    place: &Place,
) -> Decision {
    let call = Call::new(tool, prepared, place);
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

/// What a child gets of what it wishes: never a wider mode than its parent's, and no rule that its
/// parent does not have.
pub fn narrower(parent: &Grant, child: &Grant) -> Grant {
    let is_parents = |rule: &&Rule| parent.rules.contains(rule);
    Grant {
        mode: child.mode.narrower(parent.mode),
        rules: child.rules.iter().filter(is_parents).cloned().collect(),
    }
}

/// Says whether a call acts on no agent but those of the caller's own family.
fn stays_in_family(prepared: &Prepared) -> bool {
    prepared.class == EffectClass::Agent && prepared.touches == Touches::default()
}

/// Whether all that a call writes is below the working directory, links followed, and nothing of
/// it can make a program run later.
fn writes_only_within(prepared: &Prepared, place: &Place) -> bool {
    let crate::Paths::Below(writes) = &prepared.touches.writes else {
        return false;
    };
    let Some(workdir) = follow(&place.workdir) else {
        return false;
    };
    // The call acts on the path as it stands, which links made meanwhile must not hide.
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

/// Reports whether a call writes to a guarded path, which needs approval in every mode.
fn writes_guarded(prepared: &Prepared) -> bool {
    let crate::Paths::Below(writes) = &prepared.touches.writes else {
        return false;
    };
    // The call acts on the path as it stands, which links made meanwhile must not hide.
    let leads_into_guarded =
        |path: &PathBuf| is_guarded(path) || follow(path).is_some_and(|real| is_guarded(&real));
    prepared.class == EffectClass::Write && writes.iter().any(leads_into_guarded)
}

/// The pattern of the call if a rule with it would allow the call, and one for just this call if
/// not: who answers *always* is not asked the same again.
fn sure_pattern(call: &Call<'_>, prepared: &Prepared, permissions: &Permissions) -> String {
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
