//! A sandbox that is ready to be entered.

use std::io;
use std::path::Path;

use landlock::RulesetCreated;
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use seccompiler::BpfProgram;

use super::calls::{Network, Writes};
use super::{calls, files};
use crate::Confinement;

/// What root keeps in a sandbox: to handle files of any owner, and to become somebody else. The
/// rest would let it walk around the sandbox, through raw disks for example.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// A sandbox that a process, or a single thread, can enter.
#[derive(Debug)]
pub(crate) struct Jail {
    capabilities: Option<CapabilitySets>,
    files: RulesetCreated,
    calls: &'static BpfProgram,
}

impl Jail {
    /// Builds the sandbox of a program's confinement, if it has one. Reads directories. What the kernel does
    /// not know is left out; [`super::in_force`] tells.
    pub(crate) fn of(confinement: &Confinement, program: &Path) -> io::Result<Option<Self>> {
        let Confinement::Sandbox {
            write,
            network,
            hidden,
        } = confinement
        else {
            return Ok(None);
        };
        let network = if *network {
            Network::Allowed
        } else {
            Network::Refused
        };
        let writes = if write.is_empty() {
            Writes::None
        } else {
            Writes::Some
        };
        Ok(Some(Self {
            capabilities: fewer_capabilities(),
            files: files::ruleset(write, hidden, program).map_err(io::Error::other)?,
            calls: calls::filter(network, writes)?,
        }))
    }

    /// Enters it for good. A forked child calls this, so on its way to success it makes system
    /// calls and nothing else: `capset`, `prctl`, `landlock_restrict_self`, `close`, `seccomp`.
    pub(crate) fn enter(self) -> io::Result<()> {
        if let Some(capabilities) = self.capabilities {
            set_capabilities(None, capabilities)?;
        }
        self.files.restrict_self().map_err(|_| Errno::PERM)?;
        seccompiler::apply_filter(self.calls).map_err(|_| Errno::PERM)?;
        Ok(())
    }
}

/// What is left of our capabilities in a sandbox; none if there is nothing to give up.
fn fewer_capabilities() -> Option<CapabilitySets> {
    let ours = capabilities(None).ok()?;
    let fewer = CapabilitySets {
        effective: ours.effective & KEPT,
        permitted: ours.permitted & KEPT,
        inheritable: ours.inheritable & KEPT,
    };
    (fewer.permitted != ours.permitted).then_some(fewer)
}
