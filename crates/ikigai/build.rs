//! Adds the commit and its date to the version, and packs relocations where the system can read them.

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
    if reads_packed_relocations() {
        // Saves 0.9 MB of relocations, which every start reads.
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Returns true if the C library of this system, glibc 2.36 or newer, reads packed relocations.
fn reads_packed_relocations() -> bool {
    let is_glibc = env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu");
    let is_native = env::var("TARGET") == env::var("HOST");
    let version = output("getconf", &["GNU_LIBC_VERSION"]).unwrap_or_default();
    let mut numbers = version
        .trim_start_matches("glibc ")
        .split('.')
        .map(|number| number.parse().unwrap_or(0));
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    is_glibc && is_native && version >= (2, 36)
}

/// Returns the output of git in the folder of this crate; none if it fails.
fn git(arguments: &[&str]) -> Option<String> {
    output("git", arguments)
}

/// Returns the output of a program; none if it fails or prints nothing.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
