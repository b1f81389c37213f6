//! Sandbox that is ready to be entered.

use std::io;
use std::path::{Path, PathBuf};

use landlock::RulesetCreated;
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use seccompiler::BpfProgram;

use super::FileStops;
use super::calls::{CallJudge, IpcScope, Network, WriteAccess};
use super::files::real;
use super::listener::{self, ListenerSender};
pub(crate) use super::listener::{Listener, ListenerReceiver};
use super::namespaces::{Entered, Mounts, Namespaces};
use super::{calls, files};
use crate::Confinement;
use crate::paths::follow_all;

/// Capabilities that root keeps: files of any owner, and becoming another user.
///
/// The rest would let it bypass the sandbox, for example through raw disks.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// Sandbox that a process, or a single thread, can enter.
#[derive(Debug)]
pub(crate) struct Jail {
    capabilities: Option<CapabilitySets>,
    files: RulesetCreated,
    private_ipc: CallFilters,
    shared_ipc: CallFilters,
    /// For processes only: a thread shares its namespaces and has no supervisor.
    namespaces: Option<Namespaces>,
    supervisor: Option<ListenerSender>,
}

/// Filters of a sandbox with and without a supervisor.
#[derive(Clone, Copy, Debug)]
struct CallFilters {
    supervised: &'static BpfProgram,
    refusing: &'static BpfProgram,
}

impl Jail {
    /// Builds the sandbox of a program's confinement, if it has one.
    ///
    /// Reads directories. Omits features that the kernel lacks; [`super::in_force`] lists them.
    pub(crate) fn of(
        confinement: &Confinement,
        program: &Path,
        files: FileStops,
    ) -> io::Result<Option<Self>> {
        let Confinement::Sandbox {
            write,
            network,
            hidden,
            ..
        } = confinement
        else {
            return Ok(None);
        };
        let writes = if write.is_empty() {
            WriteAccess::None
        } else {
            WriteAccess::Some
        };
        let network = match writes {
            _ if *network => Network::Allowed,
            WriteAccess::Some => Network::Loopback,
            // Commands that only read run unasked and get nothing.
            WriteAccess::None => Network::Refused,
        };
        let filters = |ipc| -> io::Result<CallFilters> {
            Ok(CallFilters {
                supervised: calls::filter(network, writes, ipc, CallJudge::Supervisor, files)?,
                refusing: calls::filter(network, writes, ipc, CallJudge::Refusal, FileStops::None)?,
            })
        };
        Ok(Some(Self {
            capabilities: fewer_capabilities(),
            files: files::ruleset(write, hidden, program).map_err(io::Error::other)?,
            private_ipc: filters(IpcScope::Private)?,
            shared_ipc: filters(IpcScope::Shared)?,
            namespaces: None,
            supervisor: None,
        }))
    }

    /// Adds private namespaces for a process that may write.
    ///
    /// A process that only reads does not need them.
    pub(crate) fn with_namespaces(
        mut self,
        confinement: &Confinement,
        read_only: &[PathBuf],
    ) -> Self {
        if let Confinement::Sandbox { write, hidden, .. } = confinement
            && !write.is_empty()
        {
            let hidden = follow_all(hidden);
            let is_above = |path: &PathBuf| write.iter().any(|write| real(write).starts_with(path));
            let sealed: Vec<_> = hidden.into_iter().filter(|path| !is_above(path)).collect();
            self.namespaces = Namespaces::prepare(read_only, &sealed);
        }
        self
    }

    /// Lets a supervisor judge calls on processes; serve the receiver after the start.
    pub(crate) fn supervise(&mut self) -> io::Result<ListenerReceiver> {
        let (receiver, sender) = listener::channel(self.files.try_clone()?)?;
        self.supervisor = Some(sender);
        Ok(receiver)
    }

    /// Enters the sandbox for good.
    ///
    /// A forked child calls this, so on its way to success it makes system calls and neither
    /// allocates nor locks.
    pub(crate) fn enter(self) -> io::Result<()> {
        let entered = match &self.namespaces {
            Some(namespaces) => namespaces.enter().map_err(|_| NAMESPACE_FAILURE)?,
            None => Entered::Shared,
        };
        // `exec` discards the memory; freeing it here could wait for a lock.
        std::mem::forget(self.namespaces);
        if let Some(capabilities) = self.capabilities {
            set_capabilities(None, capabilities)?;
        } else if entered != Entered::Shared {
            // A new user namespace comes with all capabilities.
            set_capabilities(None, NO_CAPABILITIES)?;
        }
        self.files.restrict_self().map_err(|_| Errno::PERM)?;
        let filters = match entered {
            Entered::Private(_) => self.private_ipc,
            Entered::Shared => self.shared_ipc,
        };
        // A process that has a supervisor already, or an old kernel, gets no listener.
        let has_mounts = entered == Entered::Private(Mounts::Complete);
        let is_supervised = self
            .supervisor
            .is_some_and(|supervisor| supervisor.install(filters.supervised, has_mounts).is_ok());
        if !is_supervised {
            seccompiler::apply_filter(filters.refusing).map_err(|_| Errno::PERM)?;
        }
        Ok(())
    }
}

/// Error of a child that entered namespaces and could not set them up. No other step returns it.
const NAMESPACE_FAILURE: Errno = Errno::UCLEAN;

/// Returns true if a start failed because of its namespaces.
///
/// Then it also disables them, so that the next attempt goes without.
pub(crate) fn give_up_namespaces(error: &io::Error) -> bool {
    let is_theirs = error.raw_os_error() == Some(NAMESPACE_FAILURE.raw_os_error());
    is_theirs && Namespaces::give_up()
}

const NO_CAPABILITIES: CapabilitySets = CapabilitySets {
    effective: CapabilitySet::empty(),
    permitted: CapabilitySet::empty(),
    inheritable: CapabilitySet::empty(),
};

/// Returns our capabilities reduced to [`KEPT`]; none if there is nothing to drop.
fn fewer_capabilities() -> Option<CapabilitySets> {
    let ours = capabilities(None).ok()?;
    let fewer = CapabilitySets {
        effective: ours.effective & KEPT,
        permitted: ours.permitted & KEPT,
        inheritable: ours.inheritable & KEPT,
    };
    (fewer.permitted != ours.permitted).then_some(fewer)
}
