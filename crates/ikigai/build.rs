//! Lays the functions that a usual run calls side by side in the program file.
//!
//! The kernel maps 64 kB around each page of code that is touched. A turn calls a fifth of the
//! code; scattered over the file it would have most of it mapped. `layout.txt` names them, in
//! their order.

use std::path::Path;
use std::{env, fs, io};

const NAMES: &str = "layout.txt";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={NAMES}");
    if layout_is_taken() {
        let names = fs::read_to_string(NAMES)?;
        let path = Path::new(&env::var_os("OUT_DIR").unwrap_or_default()).join("layout.ld");
        fs::write(&path, script(&names))?;
        println!("cargo::rustc-link-arg-bins=-T{}", path.display());
    }
    Ok(())
}

/// Whether this is a release build with the linker that Rust brings, or GNU's: both take the
/// script. Others may refuse it, and whoever names one knows why.
fn layout_is_taken() -> bool {
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    let own_flags = env::var("CARGO_ENCODED_RUSTFLAGS").is_ok_and(|flags| flags.contains("link"));
    is("PROFILE", "release")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && is("CARGO_CFG_TARGET_ARCH", "x86_64")
        && env::var_os("RUSTC_LINKER").is_none()
        && !own_flags
}

/// What the linker is told: a section before all other code. The compiler puts what it takes to be
/// called seldom under another name; when it is called at every start, that is no reason.
fn script(names: &str) -> String {
    let sections: Vec<String> = names
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|name| format!("*(.text.{name} .text.unlikely.{name})"))
        .collect();
    let sections = sections.join("\n");
    format!("SECTIONS {{ .text.hot : {{\n{sections}\n}} }}\nINSERT BEFORE .text;\n")
}
