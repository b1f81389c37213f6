//! Tests of URLs, accepted and refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::ExposeSecret;

use super::{BadUrl, Host, TlsMode, Url, WantedServer};

fn read(text: &str) -> Result<Url, BadUrl> {
    Url::read(text, |_| None)
}

fn password(url: &Url) -> Option<&str> {
    url.password.as_ref().map(ExposeSecret::expose_secret)
}

#[test]
fn an_address_tells_server_user_database_and_schema() {
    let url = read(
        "postgres://ann:s%40fe@db.example:5433/team?schema=work&sslmode=verify-full\
         &sslrootcert=/etc/ca.pem&connect_timeout=3",
    )
    .unwrap();

    assert_eq!(url.host, Host::Name("db.example".to_owned()));
    assert_eq!(url.port, 5433);
    assert_eq!(url.user, "ann");
    assert_eq!(password(&url), Some("s@fe"));
    assert_eq!(url.database, "team");
    assert_eq!(url.schema(), "work");
    assert_eq!(url.tls, TlsMode::VerifyFull);
    assert_eq!(url.roots.as_deref(), Some(Path::new("/etc/ca.pem")));
    assert_eq!(url.connect_timeout, Duration::from_secs(3));
}

#[test]
fn what_is_left_out_has_its_usual_meaning() {
    let url = read("postgresql://ann@db").unwrap();

    assert_eq!(url.port, 5432);
    assert_eq!(url.database, "ann");
    assert_eq!(url.schema(), "ikigai");
    assert_eq!(url.tls, TlsMode::Prefer);
    assert_eq!(url.roots, None);
    assert!(url.password.is_none());
}

#[test]
fn sockets_and_numbers_are_hosts_too() {
    let hosts = [
        (
            "postgres://a@/d?host=/run/pg",
            Host::Socket("/run/pg".into()),
        ),
        ("postgres://a@%2Frun%2Fpg/d", Host::Socket("/run/pg".into())),
        ("postgres://a@[::1]:99/d", Host::Name("::1".to_owned())),
        ("postgres://a@10.0.0.7/d", Host::Name("10.0.0.7".to_owned())),
    ];

    for (text, host) in hosts {
        assert_eq!(read(text).unwrap().host, host, "{text}");
    }
    assert_eq!(read("postgres://a@[::1]:99/d").unwrap().port, 99);
}

#[test]
fn several_servers_are_tried_in_their_order() {
    let places = |text: &str| {
        let url = read(text).unwrap();
        let addresses = url.addresses().into_iter();
        let places: Vec<_> = addresses
            .map(|address| match address.host {
                Host::Name(host) => format!("{host} {}", address.port),
                Host::Socket(path) => format!("{} {}", path.display(), address.port),
            })
            .collect();
        (places.join(", "), url.to_string())
    };

    for (text, expected, shown) in [
        ("postgres://a@h:1,i:2/d", "h 1, i 2", "a@h:1,i:2/d"),
        ("postgres://a@h,i:2/d", "h 5432, i 2", "a@h:5432,i:2/d"),
        (
            "postgres://a@h,[::1]:2/d",
            "h 5432, ::1 2",
            "a@h:5432,[::1]:2/d",
        ),
        ("postgres://a@h,i/d?port=7", "h 7, i 7", "a@h:7,i:7/d"),
        (
            "postgres://a@/d?host=/run/a,/run/b&port=1,2",
            "/run/a 1, /run/b 2",
            "a@/run/a:1,/run/b:2/d",
        ),
    ] {
        assert_eq!(
            places(text),
            (expected.to_owned(), shown.to_owned()),
            "{text}"
        );
    }
    let wanted = |word: &str| read(&format!("postgres://a@h,i/d?target_session_attrs={word}"));
    assert_eq!(wanted("read-write").unwrap().wanted, WantedServer::Primary);
    assert_eq!(wanted("standby").unwrap().wanted, WantedServer::Standby);
    assert_eq!(
        read("postgres://a@h,i/d").unwrap().wanted,
        WantedServer::Any
    );
    assert!(!read("postgres://a@localhost,db/d").unwrap().is_local());
    assert!(
        read("postgres://a@localhost,127.0.0.1/d")
            .unwrap()
            .is_local()
    );
}

#[test]
fn bad_addresses_are_refused_with_a_reason() {
    let long = format!("postgres://a@h/{}", "d".repeat(5000));
    let bad = [
        ("/home/ann/log.db", BadUrl::Scheme),
        (&long, BadUrl::TooLong),
        ("postgres://a:%zz@h/d", BadUrl::Percent("password")),
        ("postgres://a:%00@h/d", BadUrl::Percent("password")),
        ("postgres://a:%ff@h/d", BadUrl::Percent("password")),
        ("postgres://a@h,i:0/d", BadUrl::Port),
        (
            "postgres://a@h,i,j/d?port=1,2",
            BadUrl::Ports { hosts: 3, ports: 2 },
        ),
        ("postgres://a@h:0/d", BadUrl::Port),
        ("postgres://a@h:65536/d", BadUrl::Port),
        ("postgres://h/d", BadUrl::NoUser),
        (
            "postgres://a@h/d?shcema=x",
            BadUrl::Parameter("shcema".to_owned()),
        ),
    ];

    for (text, expected) in bad {
        assert_eq!(read(text).unwrap_err(), expected, "{text}");
    }
    for value in [
        "schema=Work",
        "schema=pg_x",
        "schema=a-b",
        "schema=",
        "schema=1a",
    ] {
        let refused = read(&format!("postgres://a@h/d?{value}")).unwrap_err();
        assert!(
            matches!(refused, BadUrl::Value { name: "schema", .. }),
            "{value}"
        );
    }
    for value in [
        "sslmode=on",
        "connect_timeout=0",
        "connect_timeout=x",
        "target_session_attrs=rw",
    ] {
        let refused = read(&format!("postgres://a@h/d?{value}")).unwrap_err();
        assert!(matches!(refused, BadUrl::Value { .. }), "{value}");
    }
}

#[test]
fn a_password_is_shown_nowhere() {
    let url = read("postgres://ann:geheim@h/d").unwrap();
    let refused = read("postgres://ann:geheim@h:x/d").unwrap_err();

    for shown in [
        url.to_string(),
        format!("{url:?}"),
        format!("{refused:?} {refused}"),
    ] {
        assert!(!shown.contains("geheim"), "{shown}");
    }
    assert_eq!(url.to_string(), "ann@h:5432/d");
}

/// Makes a password file of one line.
fn passwords(line: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("passwords");
    fs::write(&path, format!("# ours\nother:*:*:*:wrong\n{line}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    (directory, path)
}

fn with_file(text: &str, path: &Path) -> Result<Url, BadUrl> {
    Url::read(text, |name| {
        (name == "PGPASSFILE").then(|| path.to_str().unwrap().to_owned())
    })
}

#[test]
fn the_password_comes_from_the_address_the_environment_or_the_file() {
    let (_directory, path) = passwords(r"db:5432:team:ann:a\:b\\c:d", 0o600);
    let environment = |name: &str| match name {
        "PGPASSWORD" => Some("of the environment".to_owned()),
        "PGPASSFILE" => Some(path.to_str().unwrap().to_owned()),
        _ => None,
    };

    let first = Url::read("postgres://ann:own@db/team", environment).unwrap();
    let second = Url::read("postgres://ann@db/team", environment).unwrap();
    let third = with_file("postgres://ann@db/team", &path).unwrap();
    let none = with_file("postgres://ann@db/other", &path).unwrap();

    assert_eq!(password(&first), Some("own"));
    assert_eq!(password(&second), Some("of the environment"));
    assert_eq!(password(&third), Some(r"a:b\c:d"));
    assert_eq!(password(&none), None);
}

#[test]
fn a_file_of_passwords_that_others_read_is_refused_only_if_it_matters() {
    let (_directory, path) = passwords("localhost:*:*:ann:secret", 0o644);

    let socket = "postgres://ann@/team?host=/var/run/postgresql";
    assert_eq!(
        with_file(socket, &path).unwrap_err(),
        BadUrl::Exposed(path.clone())
    );
    assert_eq!(
        password(&with_file("postgres://ann@db/team", &path).unwrap()),
        None
    );
}

#[test]
fn a_missing_file_of_passwords_is_none() {
    let url = with_file("postgres://ann@db/team", Path::new("/nowhere/at/all")).unwrap();

    assert_eq!(password(&url), None);
}
