//! Caches of package managers, which sandboxed processes with network may write.
//!
//! A cache directory that also holds credentials is listed by its other entries.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ikigai_core::word_list::WordList;

/// Caches below the home directory.
const IN_HOME: WordList = WordList(
    ".bun/install/cache .cache/go-build .cache/pip .cache/pnpm .cache/uv .cache/yarn .gradle/caches
     .local/share/pnpm/store .m2/repository .npm/_cacache .npm/_logs go/pkg",
);

/// Entries of `CARGO_HOME` besides credentials, settings and programs.
const OF_CARGO: WordList = WordList(
    ".global-cache .global-cache-journal .package-cache .package-cache-mutate git registry",
);

/// Variables that name a cache directory.
const VARIABLES: &[&str] = &["GOCACHE", "GOMODCACHE", "PIP_CACHE_DIR", "UV_CACHE_DIR"];

/// Returns the caches of a user; `variable` reads the environment.
pub(crate) fn package_caches(
    home: Option<&Path>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Vec<PathBuf> {
    let named = |name: &str| variable(name).map(PathBuf::from);
    let in_home = home
        .into_iter()
        .flat_map(|home| IN_HOME.words().map(|path| home.join(path)));
    let cargo = named("CARGO_HOME").or_else(|| home.map(|home| home.join(".cargo")));
    let of_cargo = cargo
        .into_iter()
        .flat_map(|cargo| OF_CARGO.words().map(move |entry| cargo.join(entry)));
    let variables = VARIABLES.iter().filter_map(|name| named(name));
    in_home
        .chain(of_cargo)
        .chain(variables)
        .filter(|path| path.is_absolute())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_follow_variables_and_leave_credentials_out() {
        let variable = |name: &str| match name {
            "CARGO_HOME" => Some(OsString::from("/srv/cargo")),
            "GOCACHE" => Some(OsString::from("relative")),
            _ => None,
        };

        let caches = package_caches(Some(Path::new("/home/me")), variable);

        assert!(caches.contains(&PathBuf::from("/srv/cargo/registry")));
        assert!(caches.contains(&PathBuf::from("/home/me/.cache/pip")));
        assert!(caches.iter().all(|path| path.is_absolute()));
        let secret = [
            "/srv/cargo",
            "/srv/cargo/credentials.toml",
            "/home/me/.cargo/registry",
            "/home/me/.npm",
        ];
        assert!(
            secret
                .iter()
                .all(|path| !caches.contains(&PathBuf::from(path)))
        );
    }
}
