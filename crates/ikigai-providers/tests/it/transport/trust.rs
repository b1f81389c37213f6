//! Private certificate authorities: trusted only if configured.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::thread;

use ikigai_providers::retry::Policy;
use ikigai_providers::transport::{Client, send};
use ikigai_providers::{FailureKind, ProviderError};
use ikigai_testkit::tls;
use rustls::{ServerConnection, StreamOwned};

use super::support::{PATIENT, call, read, run, told};

const ONCE: Policy = Policy {
    tries: 1,
    ..Policy::DEFAULT
};

const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
    connection: close\r\n\r\ndata: text Hello\n\ndata: end\n\n";

/// Answers one request over TLS.
fn serve() -> SocketAddr {
    let config = tls::server_config();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let connection = ServerConnection::new(config).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        // A client without trust closes the connection during the handshake.
        let mut seen: Vec<u8> = Vec::new();
        let mut part = [0; 1024];
        while !seen.windows(4).any(|four| four == b"\r\n\r\n") {
            match stream.read(&mut part) {
                Ok(bytes @ 1..) => seen.extend(&part[..bytes]),
                _ => return,
            }
        }
        let _ = stream.write_all(ANSWER.as_bytes());
        stream.conn.send_close_notify();
        let _ = stream.flush();
    });
    address
}

fn ask(trusted: Option<PathBuf>) -> Vec<Result<ikigai_providers::Delta, ProviderError>> {
    let address = serve();
    let client = Client::new(PATIENT).trusting(trusted);
    run(async {
        let mut answer = send(&client, call(format!("https://{address}/v1/tiny")), ONCE, 7);
        read(&mut *answer).await
    })
}

#[test]
fn a_certificate_of_ones_own_is_trusted_when_it_is_named() {
    let deltas = ask(Some(tls::authority_file()));

    assert_eq!(told(&deltas), ["text Hello", "finished Hello"]);
}

#[test]
fn nobody_is_trusted_unasked() {
    let deltas = ask(None);

    let [Err(error)] = deltas.as_slice() else {
        panic!("{:?}", told(&deltas));
    };
    assert_eq!(error.kind, FailureKind::Connection);
    assert!(error.message.contains("UnknownIssuer"), "{error}");
}

#[test]
fn a_file_that_holds_no_certificate_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let empty = directory.path().join("empty.pem");
    fs::write(&empty, "nothing\n").unwrap();
    let broken = directory.path().join("broken.pem");
    let text = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    fs::write(&broken, text).unwrap();
    let absent = directory.path().join("absent.pem");

    for path in [empty, broken, absent, directory.path().to_owned()] {
        let deltas = ask(Some(path.clone()));

        let [Err(error)] = deltas.as_slice() else {
            panic!("{}: {:?}", path.display(), told(&deltas));
        };
        let name = format!("`{}`", path.display());
        assert!(error.message.contains(&name), "{error}");
        assert_eq!(error.attempts, 1);
    }
}
