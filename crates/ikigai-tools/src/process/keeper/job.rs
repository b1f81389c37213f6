//! Description of a process that a keeper runs, as it is sent to the keeper.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::file_history::RecordingPlan;
use crate::process::{Errors, Job, ports_of, runs_of};
use crate::{AllowedHost, Confinement};

/// Process that a keeper is to run.
#[derive(Clone, Debug)]
pub struct KeptJob {
    /// Executable: a path, or a name to look up in `PATH`.
    pub program: OsString,
    /// Command-line arguments.
    pub arguments: Vec<OsString>,
    /// Working directory.
    pub workdir: PathBuf,
    /// All environment variables except for the cookie and the directory for temporary files.
    pub variables: Vec<(OsString, OsString)>,
    /// Time after which the process is stopped.
    pub time_limit: Duration,
    /// Cookie of the run.
    pub cookie: String,
    /// Restrictions of the process.
    pub confinement: Confinement,
    /// True if it gets a private directory for temporary files.
    pub has_temporary: bool,
    /// True if a call waits for it: it has no input, and its output is also copied to the call.
    pub is_foreground: bool,
    /// Recording of the files that it changes.
    pub recording: Option<RecordingPlan>,
}

/// A [`KeptJob`] as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeeperJob {
    directory: RawText,
    program: RawText,
    arguments: Vec<RawText>,
    workdir: RawText,
    variables: Vec<(RawText, RawText)>,
    milliseconds: u64,
    cookie: String,
    confinement: Option<KeeperConfinement>,
    has_temporary: bool,
    is_foreground: bool,
    #[serde(default)]
    recording: Option<KeeperRecording>,
}

/// A [`RecordingPlan`] as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeeperRecording {
    directory: RawText,
    roots: Vec<RawText>,
}

/// A [`Confinement::Sandbox`] as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeeperConfinement {
    write: Vec<RawText>,
    network: bool,
    #[serde(default)]
    hosts: Vec<AllowedHost>,
    loopback_ports: Vec<u16>,
    #[serde(default)]
    loopback_runs: Vec<String>,
    hidden: Vec<RawText>,
    guarded: Vec<RawText>,
}

/// Text of the system: a string, or bytes if it is not UTF-8.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum RawText {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<OsString> for RawText {
    fn from(text: OsString) -> Self {
        match text.into_string() {
            Ok(text) => Self::Text(text),
            Err(text) => Self::Bytes(text.as_bytes().to_vec()),
        }
    }
}

impl From<&Path> for RawText {
    fn from(path: &Path) -> Self {
        path.as_os_str().to_owned().into()
    }
}

impl From<RawText> for OsString {
    fn from(text: RawText) -> Self {
        match text {
            RawText::Text(text) => text.into(),
            RawText::Bytes(bytes) => Self::from_vec(bytes),
        }
    }
}

impl From<RawText> for PathBuf {
    fn from(text: RawText) -> Self {
        Self::from(OsString::from(text))
    }
}

impl KeeperJob {
    /// Describes a process whose keeper uses `directory`.
    pub(super) fn new(job: KeptJob, directory: &Path) -> Self {
        let paths = |paths: &[PathBuf]| paths.iter().map(|path| path.as_path().into()).collect();
        let confinement = match job.confinement {
            Confinement::None => None,
            Confinement::Sandbox {
                write,
                network,
                hosts,
                loopback,
                hidden,
                guarded,
            } => Some(KeeperConfinement {
                write: paths(&write),
                network,
                hosts: hosts.to_vec(),
                loopback_ports: ports_of(&loopback),
                loopback_runs: runs_of(&loopback),
                hidden: paths(&hidden),
                guarded: paths(&guarded),
            }),
        };
        let variables = job.variables.into_iter();
        Self {
            directory: directory.into(),
            program: job.program.into(),
            arguments: job.arguments.into_iter().map(RawText::from).collect(),
            workdir: job.workdir.as_path().into(),
            variables: variables
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            milliseconds: u64::try_from(job.time_limit.as_millis()).unwrap_or(u64::MAX),
            cookie: job.cookie,
            confinement,
            has_temporary: job.has_temporary,
            is_foreground: job.is_foreground,
            recording: job.recording.map(|plan| KeeperRecording {
                directory: plan.directory.as_path().into(),
                roots: paths(&plan.roots),
            }),
        }
    }

    /// Returns the directory of the process.
    pub(super) fn directory(&self) -> PathBuf {
        self.directory.clone().into()
    }

    /// Returns true if the process gets a private directory for temporary files.
    pub(super) fn has_temporary(&self) -> bool {
        self.has_temporary
    }

    /// Returns true if a call waits for the process.
    pub(super) fn is_foreground(&self) -> bool {
        self.is_foreground
    }

    /// Returns the process to run; `temporary` becomes its `TMPDIR`.
    pub(super) fn into_job(self, temporary: Option<&Path>) -> Job {
        let paths = |paths: Vec<RawText>| paths.into_iter().map(PathBuf::from).collect::<Vec<_>>();
        let confinement = match self.confinement {
            None => Confinement::None,
            Some(sandbox) => Confinement::Sandbox {
                write: paths(sandbox.write),
                network: sandbox.network,
                hosts: sandbox.hosts.into(),
                loopback: Arc::default(),
                hidden: paths(sandbox.hidden).into(),
                guarded: paths(sandbox.guarded),
            }
            .with_loopback_ports(&sandbox.loopback_ports)
            .with_servers_of(&sandbox.loopback_runs),
        };
        let variables = self.variables.into_iter();
        let mut variables: Vec<(OsString, OsString)> = variables
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        if let Some(path) = temporary {
            variables.retain(|(name, _)| name != "TMPDIR");
            variables.push(("TMPDIR".into(), path.into()));
        }
        Job {
            program: self.program.into(),
            arguments: self.arguments.into_iter().map(OsString::from).collect(),
            workdir: self.workdir.into(),
            variables,
            input: None,
            errors: Errors::Together,
            most_bytes: 0,
            deadline: Duration::from_millis(self.milliseconds),
            cookie: self.cookie,
            confinement,
            recording: self.recording.map(|plan| RecordingPlan {
                directory: plan.directory.into(),
                roots: paths(plan.roots),
            }),
        }
    }
}
