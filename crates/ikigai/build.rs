//! Adds the commit and its date to the version, if the source is in a git repository.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    // A source archive has no commit, also if it was unpacked inside another repository.
    let is_ours = git(&["rev-parse", "--show-prefix"]).as_deref() == Some("crates/ikigai/");
    let commit = git(&["log", "-1", "--format=%h %cs"]).filter(|_| is_ours);
    let version = match commit {
        Some(commit) => format!("{version} ({commit})"),
        None => version,
    };
    // A new commit changes these, other work does not. A missing file would count as changed.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--path-format=absolute", "--git-path", name]);
        if let Some(path) = path.filter(|path| is_ours && Path::new(path).exists()) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=IKIGAI_VERSION={version}");
}

/// Returns the output of git in the folder of this crate; none if it fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
