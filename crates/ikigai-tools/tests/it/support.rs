//! Shared helpers: runs with separate cookies, and an independent scan of `/proc`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ikigai_testkit::copy_program;
use ikigai_tools::Confinement;
use ikigai_tools::process::{ChildEnvironment, Ended, Errors, Job, run};
use tokio_util::sync::CancellationToken;

/// Time limit that only a failing test reaches.
pub(crate) const PATIENCE: Duration = Duration::from_secs(100);

/// A run of a command line.
pub(crate) struct Line {
    pub(crate) job: Job,
    stop_at: Option<String>,
}

impl Line {
    pub(crate) fn new(line: &str) -> Self {
        Self {
            job: Job {
                program: "bash".into(),
                arguments: vec!["-c".into(), line.into()],
                workdir: PathBuf::from("/"),
                variables: ChildEnvironment::default().variables(),
                input: None,
                errors: Errors::Together,
                most_bytes: 1 << 20,
                deadline: PATIENCE,
                cookie: unique("cookie"),
                confinement: Confinement::None,
                recording: None,
            },
            stop_at: None,
        }
    }

    /// Stops the run when this is the newest line of its output.
    pub(crate) fn stopped_at(mut self, line: &str) -> Self {
        self.stop_at = Some(line.to_owned());
        self
    }

    pub(crate) fn marked(mut self, mark: &str) -> Self {
        self.job.variables.push(("MARK".into(), mark.into()));
        self
    }

    pub(crate) fn within(mut self, directory: &Path) -> Self {
        self.job.workdir = directory.to_path_buf();
        self
    }

    /// Runs it, and checks that no process with its cookie is left.
    pub(crate) async fn run(self) -> Ended {
        let cookie = self.job.cookie.clone();
        let stop = CancellationToken::new();
        let (stopper, stop_at) = (stop.clone(), self.stop_at);
        let progress = Arc::new(move |line: &str| {
            if Some(line) == stop_at.as_deref() {
                stopper.cancel();
            }
        });

        let ended = run(self.job, &stop, progress).await.unwrap();

        assert_eq!(with_cookie(&cookie), Vec::<String>::new());
        ended
    }
}

/// Names that Python scripts use; an attempt prints `ok`, or the name of the error.
const PRELUDE: &str = "\
import errno, os, socket, threading
def attempt(act):
    try:
        act()
        print('ok', flush=True)
    except OSError as error:
        print(errno.errorcode[error.errno], flush=True)
def tcp(family=socket.AF_INET):
    return socket.socket(family, socket.SOCK_STREAM)
def unix(kind=socket.SOCK_STREAM):
    return socket.socket(socket.AF_UNIX, kind)
";

/// Returns a run of a Python script in a directory.
pub(crate) fn python_line(directory: &Path, script: &str, confinement: Confinement) -> Line {
    fs::write(directory.join("main.py"), format!("{PRELUDE}{script}")).unwrap();
    let mut line = Line::new("python3 main.py 2>&1").within(directory);
    line.job.confinement = confinement;
    line
}

/// Returns a word that nothing else on this machine has.
pub(crate) fn unique(word: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{word}-{}-{number}", std::process::id())
}

/// Returns the processes whose environment holds a cookie.
pub(crate) fn with_cookie(cookie: &str) -> Vec<String> {
    with("environ", &format!("IKIGAI_RUN={cookie}"))
}

/// Returns the processes one of whose arguments is `mark`.
pub(crate) fn with_argument(mark: &str) -> Vec<String> {
    with("cmdline", mark)
}

fn with(file: &str, part: &str) -> Vec<String> {
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/{file}")).is_ok_and(|all| {
                all.split(|byte| *byte == 0)
                    .any(|one| one == part.as_bytes())
            })
        })
        .collect()
}

/// Prefix that runs a command as an unprivileged user, for tests that run as root.
pub(crate) const ORDINARY_USER: &[&str] = &[
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
];

/// Runs tests of this program again as another user or with other variables.
pub(crate) fn run_again(tests: &[&str], prefix: &[&str], variables: &[(&str, &str)]) {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("tests");
    // Another user may not reach the build directory.
    copy_program(&program);
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(directory.path(), open).unwrap();
    // An ordinary user needs no help to be one.
    let prefix = if rustix::process::geteuid().is_root() {
        prefix
    } else {
        &[]
    };
    let words: Vec<PathBuf> = prefix
        .iter()
        .map(PathBuf::from)
        .chain([program])
        .chain(["--exact", "--nocapture"].map(PathBuf::from))
        .chain(tests.iter().map(PathBuf::from))
        .collect();
    let output = Command::new(&words[0])
        .args(&words[1..])
        .envs(variables.iter().copied())
        .current_dir(directory.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let all_ran = said.contains(&format!("{} passed; 0 failed", tests.len()));
    assert!(
        output.status.success() && all_ran,
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
