//! Ordinary programs in the sandbox: builds, runtimes, parallel programs, a database server.
//!
//! A program that is not installed fails its test; `scripts/test` installs all of them.

use std::fs;
use std::path::{Path, PathBuf};

use ikigai_tools::process::Cause;
use ikigai_tools::sandbox::usual;

use crate::support::{Line, ORDINARY_USER, run_again, text};

/// Runs a script in a sandbox that may write its directory, and returns its output.
async fn run_script(script: &str, directory: &Path, network: bool) -> String {
    let mut line = Line::new(&format!("set -e\n{script}")).within(directory);
    line.job.confinement = usual(directory, network, [].into());
    let ended = line.run().await;
    let output = text(&ended.output).to_owned();
    assert!(
        matches!(ended.cause, Cause::Exited(status) if status.success()),
        "{script}\n{output}"
    );
    output
}

fn directory() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    (directory, path)
}

#[tokio::test]
async fn cargo_builds_and_tests_a_crate() {
    let (_guard, directory) = directory();
    fs::create_dir(directory.join("src")).unwrap();
    let manifest = "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    fs::write(directory.join("Cargo.toml"), manifest).unwrap();
    fs::write(
        directory.join("src/lib.rs"),
        "#[test] fn threads() { std::thread::spawn(|| {}).join().unwrap(); }",
    )
    .unwrap();

    let output = run_script("cargo test --offline --lib 2>&1", &directory, false).await;

    assert!(output.contains("1 passed"), "{output}");
}

#[tokio::test]
async fn cargo_and_git_work_beside_hidden_credentials() {
    let (_guard, directory) = directory();
    let home = directory.join("home");
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.unwrap_or_else(|| std::env::home_dir().unwrap().join(".cargo"));
    for name in ["project/src", "home/.ssh"] {
        fs::create_dir_all(directory.join(name)).unwrap();
    }
    let manifest = "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    fs::write(directory.join("project/Cargo.toml"), manifest).unwrap();
    fs::write(directory.join("project/src/lib.rs"), "").unwrap();
    fs::write(home.join(".gitconfig"), "[user]\nname = Me\n").unwrap();
    fs::write(home.join(".git-credentials"), "secret").unwrap();
    let mut line = Line::new(
        "cargo build --offline -q && git config user.name; cat $HOME/.git-credentials 2>&1",
    )
    .within(&directory.join("project"));
    let hidden = [
        cargo.join("credentials.toml"),
        home.join(".git-credentials"),
        home.join(".ssh"),
    ];
    line.job.confinement = usual(&directory.join("project"), false, hidden.into());
    line.job
        .variables
        .push(("HOME".into(), home.clone().into()));
    line.job.variables.push(("CARGO_HOME".into(), cargo.into()));
    let rustup = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
    let rustup = rustup.unwrap_or_else(|| std::env::home_dir().unwrap().join(".rustup"));
    line.job
        .variables
        .push(("RUSTUP_HOME".into(), rustup.into()));

    let ended = line.run().await;

    let output = text(&ended.output);
    assert!(output.starts_with("Me\ncat: "), "{output}");
    assert!(output.contains("Permission denied"), "{output}");
}

#[tokio::test]
async fn node_runs_workers_and_child_processes() {
    let (_guard, directory) = directory();
    fs::write(
        directory.join("main.js"),
        "const {Worker} = require('worker_threads');
         const os = require('os');
         os.setPriority(3);
         os.setPriority(process.pid, 4);
         require('child_process').execFileSync(process.execPath, ['-e', '1']);
         new Worker('require(\"fs\").writeFileSync(\"made\", \"x\")', {eval: true})
             .on('exit', code => console.log('worker', code, os.getPriority()));",
    )
    .unwrap();

    let output = run_script("node main.js", &directory, false).await;

    assert_eq!(output, "worker 0 4\n");
}

#[tokio::test]
async fn python_runs_multiprocessing() {
    let (_guard, directory) = directory();
    fs::write(
        directory.join("main.py"),
        "import multiprocessing, os, resource
from multiprocessing import shared_memory
def square(n):
    os.sched_setaffinity(os.getpid(), os.sched_getaffinity(0))
    return n * n
if __name__ == '__main__':
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.prlimit(os.getpid(), resource.RLIMIT_CORE, (0, 0))
    memory = shared_memory.SharedMemory(create=True, size=16)
    memory.close(); memory.unlink()
    for kind in ['fork', 'spawn']:
        with multiprocessing.get_context(kind).Pool(2) as pool:
            print(kind, sum(pool.map(square, range(10))))
",
    )
    .unwrap();

    let output = run_script("python3 main.py", &directory, false).await;

    assert_eq!(output, "fork 285\nspawn 285\n");
}

#[tokio::test]
async fn openmp_binds_its_threads() {
    let (_guard, directory) = directory();
    fs::write(
        directory.join("main.c"),
        "#define _GNU_SOURCE
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
int main(void) {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    if (pthread_setaffinity_np(pthread_self(), sizeof set, &set)) return 1;
    struct sched_param parameter = {0};
    if (pthread_setschedparam(pthread_self(), SCHED_OTHER, &parameter)) return 2;
    int sum = 0;
    #pragma omp parallel for reduction(+:sum)
    for (int i = 0; i < 1000; i++) sum += i;
    printf(\"%d\\n\", sum);
}",
    )
    .unwrap();

    let script = "gcc -fopenmp main.c -o main
        OMP_NUM_THREADS=4 ./main
        OMP_NUM_THREADS=2 OMP_PROC_BIND=true OMP_PLACES=threads ./main";
    let output = run_script(script, &directory, false).await;

    assert_eq!(output, "499500\n499500\n");
}

#[tokio::test]
async fn a_postgresql_server_starts_answers_and_stops() {
    let (_guard, directory) = directory();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(&directory, open).unwrap();
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    // The server refuses to run as root.
    let script = format!(
        "PATH=\"$PATH:$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)\"
        as_server=()
        if [ \"$(id -u)\" = 0 ]; then
            as_server=(setpriv --reuid=65534 --regid=65534 --clear-groups)
        fi
        ${{as_server[@]}} initdb -D data -A trust -U me -N >log 2>&1 || {{ cat log; exit 1; }}
        ${{as_server[@]}} pg_ctl -D data -w -l server.log -o \"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off\" start >log 2>&1 || {{ cat log server.log; exit 1; }}
        sed -n 7p data/postmaster.pid
        psql -h 127.0.0.1 -p {port} -U me -d postgres -Atc 'select 6 * 7'
        ${{as_server[@]}} pg_ctl -D data -w -m fast stop >log 2>&1 || {{ cat log; exit 1; }}
        grep 'not permitted' server.log || true"
    );
    let output = run_script(&script, &directory, true).await;

    let mut lines = output.lines();
    let segment = lines.next().unwrap().split_whitespace().nth(1).unwrap();
    assert_eq!(lines.next(), Some("42"));
    if std::env::var_os("IKIGAI_TEST_NO_USERNS").is_some() {
        // Without a namespace the server cannot remove its segment.
        assert!(lines.next().unwrap().contains("shmctl"));
        let removal = std::process::Command::new("ipcrm")
            .args(["-m", segment])
            .status();
        assert!(removal.unwrap().success());
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn all_of_them_run_without_namespaces() {
    let all = [
        "cargo_builds_and_tests_a_crate",
        "node_runs_workers_and_child_processes",
        "python_runs_multiprocessing",
        "openmp_binds_its_threads",
        "a_postgresql_server_starts_answers_and_stops",
    ];
    let all = all.map(|name| format!("sandboxed_programs::{name}"));
    let all = all.each_ref().map(String::as_str);
    run_again(&all, &[], &[("IKIGAI_TEST_NO_USERNS", "1")]);
}

#[test]
fn an_ordinary_user_runs_them_in_a_user_namespace() {
    // Toolchains in a home directory are out of reach for another user.
    let all = [
        "sandboxed_programs::openmp_binds_its_threads",
        "sandboxed_programs::a_postgresql_server_starts_answers_and_stops",
    ];
    run_again(&all, ORDINARY_USER, &[]);
}
