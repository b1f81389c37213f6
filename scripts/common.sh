# Shared by the scripts of this folder: sourced, never run.
# shellcheck shell=bash

set -euo pipefail

# The root of the workspace; every script works from there.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

die() {
    printf 'error: %s\n' "$1" >&2
    shift
    local hint
    for hint in "$@"; do
        printf 'hint: %s\n' "$hint" >&2
    done
    exit 1
}

# need_command COMMAND PACKAGE…: makes sure that COMMAND exists, installing the Debian packages
# named when we may, and says what to do when we may not.
need_command() {
    local command=$1
    shift
    if command -v "$command" >/dev/null; then
        return 0
    fi
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing $* for \`$command\`" >&2
        if { apt-get install -y --no-install-recommends "$@" ||
            { apt-get update && apt-get install -y --no-install-recommends "$@"; }; } >&2; then
            command -v "$command" >/dev/null && return 0
        fi
    fi
    die "\`$command\` is missing and could not be installed" \
        "install the package(s) $* (or what gives \`$command\` on your system) and run this again"
}

# Everything that a build needs: cargo, and a C compiler for the bundled SQLite.
need_toolchain() {
    command -v cargo >/dev/null ||
        die "\`cargo\` was not found" "install Rust 1.95 or newer with rustup, or put cargo on the PATH"
    need_command cc gcc libc6-dev
}

# is_postgres DIRECTORY: says whether the programs of a server that can be used are there.
is_postgres() {
    local version
    [ -x "$1/initdb" ] && [ -x "$1/pg_ctl" ] || return 1
    version=$("$1/postgres" --version | sed -n 's/^.*(PostgreSQL) \([0-9]*\).*/\1/p')
    [ "${version:-0}" -ge 15 ]
}

# postgres_binaries: prints the directory of PostgreSQL's newest server programs, 15 or newer.
postgres_binaries() {
    local found
    found=$({
        printf '%s\n' /usr/lib/postgresql/*/bin /usr/local/pgsql/bin /opt/homebrew/opt/postgresql@*/bin |
            sort -rV
        dirname "$(command -v initdb || echo /nowhere/initdb)"
    } | while IFS= read -r directory; do
        if is_postgres "$directory"; then
            echo "$directory"
            break
        fi
    done) || true
    [ -n "$found" ] && echo "$found"
}

install_postgres() {
    local install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends)
    "${install[@]}" postgresql-common &&
        # The package would set up its own server, which is not needed.
        sed -ri 's/^#?(create_main_cluster) .*/\1 = false/' /etc/postgresql-common/createcluster.conf &&
        "${install[@]}" postgresql
}

# Makes sure that PostgreSQL's server programs are there, as need_command does.
need_postgres() {
    if postgres_binaries >/dev/null; then
        return 0
    fi
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing postgresql" >&2
        if { install_postgres || { apt-get update && install_postgres; }; } >&2; then
            postgres_binaries >/dev/null && return 0
        fi
    fi
    die "PostgreSQL's server programs are missing and could not be installed" \
        "install PostgreSQL 15 or newer (package \`postgresql\`) and run this again"
}

# workspace_files PATTERN…: the files of the workspace as they stand, committed or not, one a line.
workspace_files() {
    local file
    git -c core.quotepath=off ls-files --cached --others --exclude-standard -- "$@" |
        LC_ALL=C sort -u | while IFS= read -r file; do
        if [ -f "$file" ]; then
            printf '%s\n' "$file"
        fi
    done
}

# usage: prints the comment at the head of the calling script.
usage() {
    sed -n '2,${ /^#/!q; s/^# \{0,1\}//p; }' "$0"
}

# Builds the program for use. `directory` is the target directory then, `ikigai` the program.
release_program() {
    cargo build --locked --quiet --release --package ikigai
    directory=$(cargo metadata --locked --no-deps --format-version 1 |
        sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
    # shellcheck disable=SC2034 # For those who source this.
    ikigai=$directory/release/ikigai
}

# start_loopback CONFIG: starts a server on this machine that answers every request at once, and
# makes it the model of the configuration in that directory. It ends with its standard input.
start_loopback() {
    local address
    cargo build --locked --quiet --release --package ikigai-testkit --example loopback
    coproc loopback_server { exec "$directory/release/examples/loopback"; }
    read -r address <&"${loopback_server[0]}"
    mkdir -p "$1/ikigai"
    printf 'model = "loopback:small"\n[providers.loopback]\nbase_url = "%s"\n' "$address" \
        >"$1/ikigai/config.toml"
}

stop_loopback() {
    eval "exec ${loopback_server[1]}>&-"
    wait
}
