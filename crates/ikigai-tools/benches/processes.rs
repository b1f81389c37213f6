//! Cost of starting a process, with and without sandbox, relative to the standard library.
//!
//! Also the cost of checking 20 external tools that did not change.
//!
//!     cargo bench -p ikigai-tools --bench processes
#![expect(
    clippy::unwrap_used,
    reason = "a bench is no part of the program: whatever fails ends it"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ikigai_testkit::stores::rounds::{Case, judge, rounds};
use ikigai_tools::Confinement;
use ikigai_tools::process::{ChildEnvironment, Errors, Job, run};
use ikigai_tools::sandbox::{in_force, usual};
use ikigai_tools::toolbox::{Places, Toolbox};
use ikigai_tools::trust::Trust;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 300;
const TOOLS: usize = 20;

/// Secret paths of a usual home directory.
const HIDDEN: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".config/gh",
    ".cargo/credentials.toml",
    ".netrc",
    ".local/share/ikigai/ikigai.db",
];

fn main() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    processes(&runtime);
    tools(&runtime);
}

/// Directories of the repository that commands run in, and files in each.
const DIRECTORIES: usize = 60;
const FILES: usize = 5;

/// Runs `true` by the standard library, by ours, and by ours in the sandbox in two directories.
fn processes(runtime: &Runtime) {
    let home = std::env::home_dir().unwrap_or_default();
    let hidden: Arc<[PathBuf]> = HIDDEN.iter().map(|name| home.join(name)).collect();
    let (empty, repository) = (tempfile::tempdir().unwrap(), repository());
    let confined = |directory: &Path| usual(directory, false, Arc::clone(&hidden));
    let (in_empty, in_repository) = (confined(empty.path()), confined(repository.path()));
    // The sandbox check runs once per process; run it before the measurement.
    in_force();

    let figures = rounds(
        ROUNDS,
        vec![
            Case::new(&"std", bare),
            Case::new(&"ours", || ours(runtime, Path::new("/"), Confinement::None)),
            Case::new(&"sandbox, empty directory", || {
                ours(runtime, empty.path(), in_empty.clone())
            }),
            Case::new(&"sandbox, repository", || {
                ours(runtime, repository.path(), in_repository.clone())
            }),
        ],
    );

    figures.print("`true` started, read and waited for");
    figures.judge("a process", &"ours", &"std", 2.0);
    figures.judge("a process", &"sandbox, empty directory", &"std", 3.0);
    figures.judge("a process", &"sandbox, repository", &"std", 3.0);
}

/// Makes a repository with files, hooks, settings, a submodule and a nested repository.
fn repository() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let script = r#"
        set -e
        export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_COUNT=1
        export GIT_CONFIG_KEY_0=protocol.file.allow GIT_CONFIG_VALUE_0=always
        make() {
            git init -q "$1"
            git -C "$1" config user.name n
            git -C "$1" config user.email e
            git -C "$1" commit -q --allow-empty -m first
            printf '#!/bin/sh\nexit 0\n' >"$1/.git/hooks/pre-commit"
            chmod +x "$1/.git/hooks/pre-commit"
        }
        make .
        make examples/nested
        git submodule --quiet add ./examples/nested library
        mkdir .vscode .claude
        echo '{}' | tee .vscode/settings.json .vscode/tasks.json >.claude/settings.json
    "#;
    let status = Command::new("bash")
        .args(["-c", script])
        .current_dir(directory.path())
        .status();
    assert!(status.unwrap().success());
    for number in 0..DIRECTORIES {
        let source = directory
            .path()
            .join(format!("src/{}/{number}", number % 7));
        fs::create_dir_all(&source).unwrap();
        for file in 0..FILES {
            fs::write(source.join(format!("{file}.rs")), "fn main() {}\n").unwrap();
        }
    }
    directory
}

fn bare() -> Duration {
    let begun = Instant::now();
    Command::new("true").stdin(Stdio::null()).output().unwrap();
    begun.elapsed()
}

fn ours(runtime: &Runtime, workdir: &Path, confinement: Confinement) -> Duration {
    let begun = Instant::now();
    let job = Job {
        program: "true".into(),
        arguments: Vec::new(),
        workdir: workdir.to_path_buf(),
        variables: ChildEnvironment::default().variables(),
        input: None,
        errors: Errors::Together,
        most_bytes: 1 << 20,
        deadline: Duration::from_mins(1),
        cookie: "bench".to_owned(),
        confinement,
        recording: None,
    };
    let stop = CancellationToken::new();
    let ended = runtime.block_on(run(job, &stop, Arc::new(|_: &str| {})));
    let took = begun.elapsed();
    assert_eq!(ended.unwrap().warning, None);
    took
}

/// Finds 20 tools that were asked before, as a start of ikigai does.
fn tools(runtime: &Runtime) {
    let directory = tempfile::tempdir().unwrap();
    let runs = directory.path().join("runs");
    fs::create_dir(directory.path().join("tools")).unwrap();
    for number in 0..TOOLS {
        let path = directory.path().join(format!("tools/bench-{number}-tool"));
        let script = format!(
            "#!/bin/sh\necho >> {}\necho '{{\"description\":\"does nothing\"}}'\n",
            runs.display()
        );
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let places = Places {
        system: directory.path().join("tools"),
        user: None,
        cache: Some(directory.path().join("cache/tools.json")),
        trust: Trust::new(None),
        hidden: Arc::from([]),
    };
    let start = || {
        let toolbox = Toolbox::new(Vec::new(), places.clone(), ChildEnvironment::default());
        let begun = Instant::now();
        let found = runtime.block_on(toolbox.tools(Path::new("/")));
        assert_eq!(found.len(), TOOLS);
        begun.elapsed()
    };
    let count = || fs::read_to_string(&runs).unwrap().lines().count();
    let first = start();
    assert_eq!(count(), TOOLS);

    let figures = rounds(ROUNDS, vec![Case::new(&"known", start)]);

    figures.print("20 external tools found");
    judge(
        "asked for the first time",
        first.as_secs_f64() * 1e3,
        1000.0,
        " ms",
    );
    judge(
        "known ones",
        figures.median(&"known").as_secs_f64() * 1e3,
        2.0,
        " ms",
    );
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    judge("runs of known ones", (count() - TOOLS) as f64, 0.0, "");
}
