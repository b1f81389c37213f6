//! Environment for read-only git: programs that a repository configures do not run.
//!
//! Settings come from variables, which override every file. External diffs and text conversions
//! have no such setting, because their drivers can have any name, so bash gets a function `git`
//! that adds options and disables filters by name.
//!
//! In a line with other commands, only the git commands of the line itself are restricted: there
//! the function sets the variables, and is not passed on to programs that run git for themselves.

use std::ffi::OsString;
use std::fmt::Write as _;

use super::shell;

/// Settings that keep git from starting other programs.
const SETTINGS: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.sshCommand", "false"),
    ("core.gitProxy", "false"),
    ("core.askPass", "false"),
    ("core.alternateRefsCommand", "true"),
    ("credential.helper", ""),
    ("log.showSignature", "false"),
    ("protocol.allow", "never"),
    ("protocol.ext.allow", "never"),
    ("protocol.file.allow", "never"),
    ("protocol.git.allow", "never"),
    ("protocol.http.allow", "never"),
    ("protocol.https.allow", "never"),
    ("protocol.ssh.allow", "never"),
];

/// Variables of git itself. Refreshing the index would write it; missing objects are not fetched.
const VARIABLES: &[(&str, &str)] = &[
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// Variables that would override the settings, or name programs.
const REMOVED: &[&str] = &[
    "GIT_CONFIG_PARAMETERS",
    "GIT_EXTERNAL_DIFF",
    "GIT_PROXY_COMMAND",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_ASKPASS",
];

/// Name by which bash imports a function `git`.
const FUNCTION: &str = "BASH_FUNC_git%%";

/// Body of that function. It runs in a subshell, so that it does not affect the command line. Bash
/// imports only a text that begins with `() {`.
const BODY: &str = r#"() { (
    before=()
    while [ $# -gt 0 ]; do
        case $1 in
        -C)
            before+=("${@:1:2}")
            shift $(($# > 1 ? 2 : 1))
            ;;
        -*)
            before+=("$1")
            shift
            ;;
        *) break ;;
        esac
    done
    set -f
    IFS=$'\n'
    names='^filter\..*\.(clean|smudge|process|required)$'
    for name in $(command git "${before[@]}" config --name-only --get-regexp "$names" 2>/dev/null); do
        value=
        case $name in *.required) value=false ;; esac
        export "GIT_CONFIG_KEY_$GIT_CONFIG_COUNT=$name" "GIT_CONFIG_VALUE_$GIT_CONFIG_COUNT=$value"
        export GIT_CONFIG_COUNT=$((GIT_CONFIG_COUNT + 1))
    done
    case ${1-}/${2-} in
    stash/list | stash/show | reflog/show)
        set -- "$1" "$2" --no-ext-diff --no-textconv "${@:3}"
        ;;
    diff/* | log/* | show/* | reflog/*)
        set -- "$1" --no-ext-diff --no-textconv "${@:2}"
        ;;
    blame/*) set -- "$1" --no-textconv "${@:2}" ;;
    esac
    exec git "${before[@]}" "$@"
) }"#;

/// Prepares the variables of a process that only reads.
pub(crate) fn restrict(variables: &mut Vec<(OsString, OsString)>) {
    let ours = restrictions(variables);
    let is_ours = |name: &OsString| {
        REMOVED.iter().any(|removed| name == removed)
            || ours.iter().any(|(ours, _)| name == &**ours)
    };
    variables.retain(|(name, _)| !is_ours(name));
    let ours = ours.into_iter();
    variables.extend(ours.map(|(name, value)| (name.into(), value.into())));
    variables.push((FUNCTION.into(), BODY.into()));
}

/// Restricts the git commands of a line that does more; returns the line to run.
///
/// Call it only if all of them read, see [`crate::permission::reads_with_git`].
pub(crate) fn restrict_line(line: &str, variables: &mut Vec<(OsString, OsString)>) -> String {
    let mut body = String::from("() { (\n");
    for name in REMOVED {
        let _ = writeln!(body, "unset {name}");
    }
    for (name, value) in restrictions(variables) {
        let _ = writeln!(body, "export {name}='{value}'");
    }
    body.push_str(BODY.strip_prefix("() { (\n").unwrap_or(BODY));
    variables.push((FUNCTION.into(), body.into()));
    format!("export -nf git; {line}")
}

/// Returns true if the shell knows functions in variables.
pub(crate) fn is_enforced() -> bool {
    shell() == "bash"
}

/// Returns the variables of restricted git.
///
/// Settings that the user passes this way stay in force, unless ours have the same name.
fn restrictions(variables: &[(OsString, OsString)]) -> Vec<(String, String)> {
    let count: usize = variables
        .iter()
        .rfind(|(name, _)| name == "GIT_CONFIG_COUNT")
        .and_then(|(_, count)| count.to_str()?.parse().ok())
        .unwrap_or(0);
    let mut ours = Vec::new();
    for (index, (key, value)) in SETTINGS.iter().enumerate() {
        ours.push((
            format!("GIT_CONFIG_KEY_{}", count + index),
            (*key).to_owned(),
        ));
        ours.push((
            format!("GIT_CONFIG_VALUE_{}", count + index),
            (*value).to_owned(),
        ));
    }
    let count = count + SETTINGS.len();
    ours.push(("GIT_CONFIG_COUNT".to_owned(), count.to_string()));
    let plain = VARIABLES.iter();
    ours.extend(plain.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    ours
}
