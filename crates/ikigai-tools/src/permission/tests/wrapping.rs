//! Tests of words around a command that a rule for the command covers.

use std::fs;
use std::os::unix::fs::symlink;

use tempfile::tempdir;

use crate::Place;
use crate::permission::Sandbox;
use crate::permission::rules::allow_line;

/// Lines that `cargo test *` covers, and similar hostile lines that it does not.
const TABLE: &[(&[&str], &[&str])] = &[
    (
        &[
            "timeout 60 cargo test",
            "timeout 1.5m cargo test --workspace",
            "timeout -k 5 60s cargo test",
            "timeout --signal=KILL --foreground 60 cargo test",
            "timeout -s INT -v 60 cargo test",
        ],
        &[
            "timeout 60 rm -rf x",
            "timeout 60 ./cargo test",
            "timeout 60 /tmp/cargo test",
            "timeout cargo test",
            "timeout cargo cargo test",
            "timeout --kill-after cargo test",
            "timeout -x 60 cargo test",
            "timeout -s /x 60 cargo test",
            "timeout 60 -- cargo test",
            "timeout 60",
            "timeout 60 sh -c 'cargo test'",
            "timeout 60 cargo test; rm x",
            "timeout 60 cargo test & rm x",
            "timeout 60 cargo 'test x'",
            "timeout * cargo test",
            "./timeout 60 cargo test",
        ],
    ),
    (
        &[
            "RUST_BACKTRACE=1 cargo test",
            "CI=true NO_COLOR=1 cargo test",
            "RUST_LOG=debug,parser::lexer=trace cargo test",
            "RUST_LOG='debug, parser=trace' cargo test",
            "LC_ALL=C.UTF-8 LANG=C TZ=UTC cargo test",
            "TERM=dumb cargo test | tail -3",
        ],
        &[
            "PATH=. cargo test",
            "PATH=/tmp:/bin cargo test",
            "LD_PRELOAD=./x.so cargo test",
            "LD_LIBRARY_PATH=. cargo test",
            "GIT_SSH_COMMAND=x cargo test",
            "GIT_DIR=x cargo test",
            "RUSTC=./x cargo test",
            "RUSTC_WRAPPER=./x cargo test",
            "RUSTFLAGS=-Clinker=./x cargo test",
            "RUSTDOCFLAGS=x cargo test",
            "CARGO_HOME=x cargo test",
            "CARGO_BUILD_RUSTC=./x cargo test",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=./x cargo test",
            "PYTHONPATH=. cargo test",
            "PYTHONSTARTUP=x cargo test",
            "NODE_OPTIONS=--require=./x cargo test",
            "IFS=x cargo test",
            "BASH_ENV=x cargo test",
            "ENV=x cargo test",
            "EDITOR=x cargo test",
            "PAGER=x cargo test",
            "HOME=. cargo test",
            "TMPDIR=x cargo test",
            "MAKEFLAGS=--eval=x cargo test",
            "CC=./x cargo test",
            "HTTPS_PROXY=x cargo test",
            "PS4=x cargo test",
            "LOCPATH=. cargo test",
            "GCONV_PATH=. cargo test",
            "LC_all=C cargo test",
            "LANG=../../x cargo test",
            "TZ=/tmp/x cargo test",
            "TERM=$(rm x) cargo test",
            "CI=`rm x` cargo test",
            "CI=1 PATH=. cargo test",
            "CI=1; PATH=. cargo test",
            "CI=1 rm x",
            "CI=1",
            "CI=1 ./cargo test",
            "CI+=1 cargo test",
            "CI[0]=1 cargo test",
            "'CI=1' cargo test",
            "C'I'=1 cargo test",
            "\"CI\"=1 cargo test",
            "CI\\=1 cargo test",
            "'CI=/../x' cargo test",
            "RUST_BACKTRACE=1 sudo cargo test",
        ],
    ),
    (
        &[
            "env RUST_BACKTRACE=1 cargo test",
            "env cargo test",
            "env CI=1 NO_COLOR=1 timeout 60 cargo test",
        ],
        &[
            "env FOO=1 cargo test",
            "env PATH=. cargo test",
            "env CI=1 PATH=. cargo test",
            "env -i cargo test",
            "env -u PATH cargo test",
            "env -C .. cargo test",
            "env --chdir=.. cargo test",
            "env -S 'PATH=. cargo test'",
            "env - cargo test",
            "env 'PATH=.' cargo test",
            "env CI=1 -S 'rm x'",
            "env",
            "env CI=1",
            "env CI=* cargo test",
            "env ./cargo test",
            "/tmp/env cargo test",
        ],
    ),
    (
        &[
            "nice cargo test",
            "nice -n 10 cargo test",
            "nice --adjustment=5 timeout 9 cargo test",
            "time cargo test",
            "time -p cargo test",
            "time RUST_BACKTRACE=1 cargo test",
        ],
        &[
            "nice -n x cargo test",
            "nice -n 10 rm x",
            "nice --help",
            "nice",
            "nice -n 10",
            "time -o file cargo test",
            "time --output=file cargo test",
            "time -f x cargo test",
            "\\time cargo test",
            "'time' -o file cargo test",
            "time",
            "time time -o file cargo test",
            "nohup cargo test",
            "sudo cargo test",
            "xargs cargo test",
            "exec cargo test",
            "command cargo test",
            "stdbuf -o file cargo test",
        ],
    ),
    (
        &[
            "set -o pipefail; cargo test",
            "set -e; cargo test",
            "set -euo pipefail && cargo test | tail -5",
            "set -x; set -u; cargo test",
            "set -o errexit -o pipefail; timeout 60 cargo test",
        ],
        &[
            "set -a; cargo test",
            "set +e; cargo test",
            "set -o posix; cargo test",
            "set -o; cargo test",
            "set -eo; cargo test",
            "set -- rm x; cargo test",
            "set x; cargo test",
            "set -; cargo test",
            "set; cargo test",
            "set -e",
            "set -o pipefail; rm x",
            "shopt -s expand_aliases; cargo test",
            "export PATH=.; cargo test",
            "alias cargo=rm; cargo test",
            "unset PATH; cargo test",
        ],
    ),
    (
        &[
            "cd sub && cargo test",
            "cd sub; cargo test",
            "cd sub/deep && RUST_BACKTRACE=1 timeout 60 cargo test",
            "cd sub && cd deep && cargo test",
            "cd ./sub && cargo test",
            "cd 'sub' && cargo test",
            "cd inner && cargo test",
        ],
        &[
            "cd .. && cargo test",
            "cd sub/../.. && cargo test",
            "cd sub && cd .. && cargo test",
            "cd / && cargo test",
            "cd /tmp && cargo test",
            "cd ~ && cargo test",
            "cd ~root && cargo test",
            "cd - && cargo test",
            "cd -P sub && cargo test",
            "cd -- sub && cargo test",
            "cd && cargo test",
            "cd '' && cargo test",
            "cd su* && cargo test",
            "cd sub deep && cargo test",
            "cd $OLDPWD && cargo test",
            "cd outside && cargo test",
            "cd outside/deep && cargo test",
            "cd sub/up && cargo test",
            "cd sub && cd up && cargo test",
            "cd sub; cd up; cargo test",
            "cd nowhere; cd outside; cargo test",
            "cd loop && cargo test",
            "CDPATH=/tmp cd sub && cargo test",
            "pushd sub && cargo test",
            "cd sub",
            "cd sub && rm x",
        ],
    ),
];

#[test]
fn a_rule_covers_harmless_words_around_its_command_and_no_others() {
    let home = tempdir().unwrap();
    let workdir = home.path().join("work");
    fs::create_dir_all(workdir.join("sub/deep")).unwrap();
    fs::create_dir(home.path().join("elsewhere")).unwrap();
    symlink("../elsewhere", workdir.join("outside")).unwrap();
    symlink("../..", workdir.join("sub/up")).unwrap();
    symlink("sub/deep", workdir.join("inner")).unwrap();
    symlink("loop", workdir.join("loop")).unwrap();
    let place = Place {
        workdir,
        hidden: [].into(),
    };
    let is_covered = |line: &str, sandbox| allow_line(&["cargo test *"], line, sandbox, &place);

    for (covered, asked) in TABLE {
        for line in *covered {
            assert!(is_covered(line, Sandbox::InForce), "{line}");
            // Only commands behind a pipe need the sandbox.
            assert!(
                line.contains('|') || is_covered(line, Sandbox::Missing),
                "{line}"
            );
        }
        for line in *asked {
            assert!(!is_covered(line, Sandbox::InForce), "{line}");
            assert!(!is_covered(line, Sandbox::Missing), "{line}");
        }
    }
}
