//! Secret files and directories of other programs, which no tool may read or write.
//!
//! Paths are listed even if they do not exist: a secret that appears later is hidden too. Caches
//! and settings next to credentials (`CARGO_HOME/registry`, `~/.gitconfig`) stay readable.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ikigai_core::word_list::WordList;

/// Paths below the home directory.
const IN_HOME: &[WordList] = &[
    // Keys, agents and password stores.
    WordList(".age .electrum .gnome2/keyrings .gnupg .keychain .op .password-store .pki .ssh"),
    // Clouds, clusters and infrastructure.
    WordList(
        ".aliyun .aws .azure .bluemix .boto .databrickscfg .docker .fly .kaggle .kube .mc .netlify
         .ngrok2 .oci .pulumi/credentials.json .rclone.conf .s3cfg .snowflake .snowsql
         .terraform.d/credentials.tfrc.json .terraformrc .vault-token .wrangler",
    ),
    // Registries of packages and code.
    WordList(
        ".bunfig.toml .cargo/credentials .cargo/credentials.toml .composer/auth.json
         .gem/credentials .git-credentials .ivy2/.credentials .lein/credentials.clj.gpg
         .m2/settings-security.xml .npmrc .pub-cache/credentials.json .pypirc .sbt/.credentials
         .subversion/auth .yarnrc .yarnrc.yml",
    ),
    // Networks, mail and databases.
    WordList(
        ".dbt/profiles.yml .fetchmailrc .mbsyncrc .msmtprc .my.cnf .mylogin.cnf .netrc
         .offlineimaprc .pgpass .thunderbird",
    ),
    // Other agents.
    WordList(".anthropic .claude .claude.json .codex .gemini .huggingface .openai"),
    // Browsers.
    WordList(
        ".librewolf .mozilla .var/app .waterfox .zen snap/chromium snap/firefox Library/Cookies
         Library/Keychains Library/Safari",
    ),
    // Histories, which may contain typed secrets.
    WordList(
        ".bash_history .dbshell .histfile .history .irb_history .ksh_history .lesshst .mongosh
         .mysql_history .node_repl_history .pry_history .psql_history .python_history
         .rediscli_history .sh_history .sqlite_history .viminfo .zhistory .zsh_history",
    ),
];

/// The same, of names with spaces.
const SPACED_IN_HOME: &[&str] = &[
    "Library/Application Support/BraveSoftware",
    "Library/Application Support/Firefox",
    "Library/Application Support/Google/Chrome",
    "Library/Application Support/Microsoft Edge",
];

/// Paths below the configuration directory.
const IN_CONFIG: WordList = WordList(
    "1Password BraveSoftware Signal Slack age anthropic argocd chromium composer/auth.json
     configstore containers/auth.json dart/pub-credentials.json doctl firebase gcloud gh
     git/credentials github-copilot glab-cli google-chrome hcloud helm/registry hub keybase
     linode-cli microsoft-edge msmtp netlify ngrok nushell/history.sqlite3 nushell/history.txt op
     openai opera pypoetry/auth.toml rclone solana sops stripe vivaldi wrangler",
);

const SPACED_IN_CONFIG: &str = "Bitwarden CLI";

/// Paths below the data directory.
const IN_DATA: &[&str] = &[
    "atuin",
    "com.vercel.cli",
    "epiphany",
    "fish/fish_history",
    "gem/credentials",
    "keyrings",
    "kwalletd",
    "opencode/auth.json",
];

/// Paths below the cache directory.
const IN_CACHE: &[&str] = &["huggingface/stored_tokens", "huggingface/token"];

/// Paths below the runtime directory of the session.
const IN_RUNTIME: &[&str] = &["containers/auth.json", "gnupg", "keyring"];

/// Variables with a directory, and secrets below it; an empty name is the directory.
const DIRECTORIES: &[(&str, &[&str])] = &[
    ("AZURE_CONFIG_DIR", &[""]),
    ("CARGO_HOME", &["credentials", "credentials.toml"]),
    ("CLAUDE_CONFIG_DIR", &[""]),
    ("CLOUDSDK_CONFIG", &[""]),
    ("CODEX_HOME", &[""]),
    ("COMPOSER_HOME", &["auth.json"]),
    ("DOCKER_CERT_PATH", &[""]),
    ("DOCKER_CONFIG", &[""]),
    ("GH_CONFIG_DIR", &[""]),
    ("GLAB_CONFIG_DIR", &[""]),
    ("GNUPGHOME", &[""]),
    ("HF_HOME", &["stored_tokens", "token"]),
    ("PASSWORD_STORE_DIR", &[""]),
    ("PULUMI_HOME", &["credentials.json"]),
    ("ZDOTDIR", &[".zsh_history", ".zhistory", ".histfile"]),
];

/// Variables with file paths, separated by colons.
const FILES: WordList = WordList(
    "ANSIBLE_VAULT_PASSWORD_FILE AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE
     AWS_WEB_IDENTITY_TOKEN_FILE BOTO_CONFIG DATABRICKS_CONFIG_FILE GOOGLE_APPLICATION_CREDENTIALS
     HELM_REGISTRY_CONFIG HF_TOKEN_PATH HISTFILE KUBECONFIG LESSHISTFILE MYSQL_HISTFILE
     MYSQL_TEST_LOGIN_FILE NETRC NODE_REPL_HISTORY NPM_CONFIG_USERCONFIG OCI_CLI_CONFIG_FILE
     PGPASSFILE PSQL_HISTORY PYTHON_HISTORY RCLONE_CONFIG REDISCLI_HISTFILE REGISTRY_AUTH_FILE
     SOPS_AGE_KEY_FILE SQLITE_HISTORY TF_CLI_CONFIG_FILE npm_config_userconfig",
);

/// Returns all secret paths for a home directory and an environment.
///
/// Relative paths start at `workdir`. A variable with the home directory, the working directory or
/// one above them is ignored: hiding it would leave nothing to work with.
pub(crate) fn secret_paths(
    home: Option<&Path>,
    workdir: Option<&Path>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Vec<PathBuf> {
    let below = |base: &Path, names: &[&str]| -> Vec<PathBuf> {
        names.iter().map(|name| base.join(name)).collect()
    };
    let in_config: Vec<_> = IN_CONFIG.words().chain([SPACED_IN_CONFIG]).collect();
    let mut paths = Vec::new();
    if let Some(home) = home {
        let names = IN_HOME.iter().flat_map(|list| list.words());
        paths.extend(names.map(|name| home.join(name)));
        paths.extend(below(home, SPACED_IN_HOME));
        paths.extend(below(&home.join(".config"), &in_config));
        paths.extend(below(&home.join(".local/share"), IN_DATA));
        paths.extend(below(&home.join(".cache"), IN_CACHE));
    }
    let is_usable = |path: &PathBuf| {
        let holds_work = [home, workdir]
            .into_iter()
            .flatten()
            .any(|kept| kept.starts_with(path));
        path.is_absolute() && !holds_work && !path.starts_with("/dev")
    };
    let resolve = |path: PathBuf| match workdir {
        Some(workdir) => workdir.join(path),
        None => path,
    };
    let named = |name: &str| {
        let value = variable(name).filter(|value| !value.is_empty());
        value.map(|value| resolve(PathBuf::from(value)))
    };
    for (name, names) in [
        ("XDG_CONFIG_HOME", in_config.as_slice()),
        ("XDG_DATA_HOME", IN_DATA),
        ("XDG_CACHE_HOME", IN_CACHE),
        ("XDG_RUNTIME_DIR", IN_RUNTIME),
    ]
    .into_iter()
    .chain(DIRECTORIES.iter().copied())
    {
        if let Some(base) = named(name) {
            paths.extend(below(&base, names).into_iter().filter(is_usable));
        }
    }
    for name in FILES.words() {
        let value = variable(name).unwrap_or_default();
        let files = std::env::split_paths(&value).filter(|path| !path.as_os_str().is_empty());
        paths.extend(files.map(resolve).filter(is_usable));
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(variables: &[(&str, &str)]) -> Vec<PathBuf> {
        secret_paths(
            Some(Path::new("/home/me")),
            Some(Path::new("/home/me/project")),
            |name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            },
        )
    }

    #[test]
    fn credentials_of_common_tools_are_listed() {
        let paths = list(&[]);

        for path in [
            ".docker",
            ".config/containers/auth.json",
            ".cargo/credentials.toml",
            ".vault-token",
            ".terraformrc",
            ".codex",
            ".claude",
            ".config/gh",
            ".config/rclone",
            ".config/sops",
            ".local/share/keyrings",
            ".mozilla",
            ".config/google-chrome",
            ".my.cnf",
            ".bash_history",
            ".local/share/fish/fish_history",
        ] {
            assert!(paths.contains(&Path::new("/home/me").join(path)), "{path}");
        }
        for path in [
            ".cargo",
            ".gitconfig",
            ".config",
            ".config/git",
            ".local/share",
            "",
        ] {
            assert!(!paths.contains(&Path::new("/home/me").join(path)), "{path}");
        }
    }

    #[test]
    fn variables_lead_to_more_of_them() {
        let paths = list(&[
            ("CARGO_HOME", "/opt/cargo"),
            ("KUBECONFIG", "/k/one:/k/two:"),
            ("DOCKER_CONFIG", "docker"),
            ("XDG_CONFIG_HOME", "/c"),
            ("PGPASSFILE", "/p"),
        ]);

        for path in [
            "/opt/cargo/credentials.toml",
            "/k/one",
            "/k/two",
            "/home/me/project/docker",
            "/c/gh",
            "/p",
            "/home/me/.config/gh",
        ] {
            assert!(paths.contains(&PathBuf::from(path)), "{path}");
        }
        assert!(!paths.contains(&PathBuf::from("/opt/cargo")));
    }

    #[test]
    fn a_variable_cannot_hide_the_work_itself() {
        let paths = list(&[
            ("GNUPGHOME", "/home/me"),
            ("DOCKER_CONFIG", "."),
            ("CODEX_HOME", "/"),
            ("HISTFILE", "/dev/null"),
            ("KUBECONFIG", ""),
        ]);

        for path in ["/home/me", "/home/me/project", "/", "/dev/null"] {
            assert!(!paths.contains(&PathBuf::from(path)), "{path}");
        }
        assert!(!paths.iter().any(|path| path.ends_with(".")));
    }
}
