//! TLS: connections that each `sslmode` accepts, on servers with and without TLS.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use ikigai_store::StoreError;
use ikigai_store::postgres::{ConnectionRole, MIGRATIONS, PostgresTarget, Url};
use ikigai_testkit::postgres::PgServer;
use tokio::runtime::Builder;

fn certificates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/postgres/certificates")
}

/// Starts a server on TCP, with TLS on request; returns it with its port.
fn server(has_tls: bool) -> (PgServer, u16) {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let server = PgServer::start();
    let data = server.directory().join("data");
    let user = fs::metadata(&data).unwrap();
    for name in ["server.pem", "server.key"] {
        let file = data.join(name);
        fs::copy(certificates().join(name), &file).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        chown(&file, Some(user.uid()), Some(user.gid())).unwrap();
    }
    server.set("listen_addresses = '127.0.0.1'");
    server.set(&format!("port = {port}"));
    if has_tls {
        server.set("ssl = on");
        server.set("ssl_cert_file = 'server.pem'");
        server.set("ssl_key_file = 'server.key'");
    }
    server.stop();
    server.start_again();
    (server, port)
}

/// Returns true if the connection is encrypted.
fn is_encrypted(host: &str, port: u16, parameters: &str) -> Result<bool, StoreError> {
    let url = format!("postgres://postgres@{host}:{port}/postgres?{parameters}");
    let target = PostgresTarget::new(Url::parse(&url).unwrap(), MIGRATIONS)?;
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let link = target.connect(ConnectionRole::Reading).await;
        let link = link.map_err(|cause| cause.store_error(target.url()))?;
        let question = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        let row = link.client.query_one(question, &[]).await.unwrap();
        Ok(row.get(0))
    })
}

#[test]
fn a_connection_is_as_secure_as_it_was_asked_to_be() {
    let (_server, port) = server(true);
    let ca = certificates().join("ca.pem");
    let ca = format!("sslrootcert={}", ca.display());

    assert!(!is_encrypted("localhost", port, "sslmode=disable").unwrap());
    assert!(is_encrypted("localhost", port, "").unwrap());
    for (host, parameters) in [
        ("127.0.0.1", "sslmode=require".to_owned()),
        ("127.0.0.1", format!("sslmode=verify-ca&{ca}")),
        ("127.0.0.1", format!("sslmode=require&{ca}")),
        ("localhost", format!("sslmode=verify-full&{ca}")),
    ] {
        let found = is_encrypted(host, port, &parameters);
        assert!(found.unwrap(), "{host} {parameters}");
    }
    for (host, parameters) in [
        // No public certificate authority has signed it.
        ("localhost", "sslmode=verify-ca".to_owned()),
        (
            "localhost",
            "sslmode=verify-full&sslrootcert=system".to_owned(),
        ),
        // The certificate is for another name.
        ("127.0.0.1", format!("sslmode=verify-full&{ca}")),
    ] {
        let refused = is_encrypted(host, port, &parameters).unwrap_err();
        assert!(
            refused.to_string().contains("TLS"),
            "{parameters}: {refused}"
        );
        assert!(refused.advice().contains("sslrootcert"), "{refused}");
    }
}

#[test]
fn a_server_without_tls_is_refused_where_it_must_have_it() {
    let (_server, port) = server(false);

    assert!(!is_encrypted("localhost", port, "sslmode=prefer").unwrap());
    let refused = is_encrypted("localhost", port, "sslmode=require").unwrap_err();
    assert!(matches!(refused, StoreError::Server { .. }), "{refused:?}");
    assert!(refused.to_string().contains("TLS"), "{refused}");
}

#[test]
fn certificates_that_cannot_be_read_are_named() {
    let told = |file: &Path| {
        let parameters = format!("sslmode=verify-ca&sslrootcert={}", file.display());
        is_encrypted("localhost", 1, &parameters)
            .unwrap_err()
            .to_string()
    };

    let missing = told(Path::new("/nowhere/ca.pem"));
    assert!(missing.contains("/nowhere/ca.pem"), "{missing}");
    let none = told(&certificates().join("README.md"));
    assert!(none.contains("no certificate found"), "{none}");
}
