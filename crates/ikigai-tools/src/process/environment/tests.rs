use super::*;

fn selected(environment: &ChildEnvironment, all: &[(&str, &str)]) -> Vec<String> {
    environment
        .select(
            all.iter()
                .map(|(name, value)| (OsString::from(name), OsString::from(value))),
        )
        .into_iter()
        .map(|(name, value)| format!("{}={}", name.display(), value.display()))
        .filter(|line| {
            let (name, _) = line.split_once('=').unwrap();
            name == "TERM" || SET.iter().all(|(set, _)| *set != name)
        })
        .collect()
}

/// Attack: secrets in the environment of a command.
#[test]
fn secrets_and_what_steers_ikigai_stay_behind() {
    let everyday = [
        ("HOME", "/home/me"),
        ("LANG", "C.UTF-8"),
        ("OLDPWD", "/"),
        ("PATH", "/bin"),
        ("PWD", "/home/me"),
        ("SSH_AUTH_SOCK", "/run/agent"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("HISTKEYS", "1"),
        ("HOMEPAGE", "https://example.org:80/a@b:c"),
        ("KEYBOARD", "us"),
        ("XAUTHORITY", "/home/me/.Xauthority"),
    ];
    let secret = [
        ("ANTHROPIC_API_KEY", "x"),
        ("AWS_ACCESS_KEY_ID", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("AZURE_CLIENT_SECRET", "x"),
        ("DATABASE_URL", "postgres://me:word@host/base"),
        ("GITHUB_PAT", "x"),
        ("GITHUB_TOKEN", "x"),
        ("GITHUBTOKEN", "x"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "x"),
        ("IKIGAI_DB", "/x"),
        ("IKIGAI_RUN", "outer"),
        ("MYSQL_PWD", "x"),
        ("PGPASSWORD", "x"),
        ("openai_api_key", "x"),
        ("AUTHORIZATION", "x"),
        ("HTTP_AUTHORIZATION", "x"),
        ("MY_JWT", "x"),
        ("DB_PASS", "x"),
        ("PASS", "x"),
        ("PGPASSFILE", "/x"),
        ("SSH_ASKPASS", "/x"),
        ("TOKEN_FOR_CI", "x"),
        ("NPM_TOKENS", "x"),
        ("SIGNING_KEY", "x"),
        ("SIGNING_KEY_2", "x"),
        ("SESSION_COOKIE", "x"),
        ("CONNECTION", "Server=s;User=u;Password=word;"),
        ("LIBPQ", "host=h password=word"),
        ("HTTPS_PROXY", "http://me:word@proxy:3128"),
        ("HEADER", "Bearer abc"),
        ("INNOCENT", "ghp_0123456789"),
        ("PEM", "-----BEGIN PRIVATE KEY-----"),
    ];

    let all: Vec<_> = everyday.iter().chain(&secret).copied().collect();

    let mut expected: Vec<_> = everyday
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    expected.push("TERM=dumb".to_owned());
    assert_eq!(selected(&ChildEnvironment::default(), &all), expected);
}

#[test]
fn the_user_can_let_one_through_but_not_one_of_our_keys() {
    let environment = ChildEnvironment::default()
        .withholding(["MINE".to_owned(), "OUR_KEY".to_owned()])
        .keeping(["GH_TOKEN".to_owned(), "OUR_KEY".to_owned()]);

    let left = selected(
        &environment,
        &[("GH_TOKEN", "a"), ("MINE", "b"), ("OUR_KEY", "c")],
    );

    assert_eq!(left, ["GH_TOKEN=a", "TERM=dumb"]);
}

#[test]
fn a_line_of_the_user_gets_everything_but_our_keys_and_what_steers_us() {
    let environment = ChildEnvironment::default()
        .withholding(["OUR_KEY".to_owned()])
        .for_the_user();
    let all = [("GITHUB_TOKEN", "x"), ("OUR_KEY", "x"), ("IKIGAI_DB", "/x")];

    assert_eq!(
        selected(&environment, &all),
        ["GITHUB_TOKEN=x", "TERM=dumb"]
    );
}
