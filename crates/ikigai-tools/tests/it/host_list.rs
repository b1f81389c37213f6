//! Listed hosts in a sandbox without network: reached through the proxy and in no other way.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use ikigai_core::data::RefusalKind;
use ikigai_tools::process::Ended;
use ikigai_tools::sandbox::{reading, usual};
use ikigai_tools::{AllowedHost, Confinement};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Line, text};

/// Attempts of a command, each of which prints its outcome.
const PRELUDE: &str = "\
import errno, os, socket
proxy = os.environ.get('HTTPS_PROXY', '')
def attempt(act):
    try:
        print(act(), flush=True)
    except OSError as error:
        print(errno.errorcode[error.errno], flush=True)
def direct(host, port):
    socket.create_connection((host, port)).close()
    return 'ok'
def tunnel(target, word=b'hello'):
    host, port = proxy.removeprefix('http://').split(':')
    with socket.create_connection((host, int(port))) as client:
        client.sendall(f'CONNECT {target} HTTP/1.1\\r\\n\\r\\n'.encode())
        answer = client.recv(1000)
        if b' 200 ' not in answer:
            return answer.split()[1].decode()
        client.sendall(word)
        return client.recv(1000).decode()
";

/// Starts a server on loopback that answers with the same bytes in upper case.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = |mut client: TcpStream| {
        let mut bytes = [0; 100];
        if let Ok(read @ 1..) = client.read(&mut bytes) {
            let _ = client.write_all(&bytes[..read].to_ascii_uppercase());
        }
    };
    thread::spawn(move || listener.incoming().flatten().for_each(answer));
    port
}

async fn python(script: &str, confinement: impl Fn(&Path) -> Confinement) -> Ended {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    std::fs::write(path.join("main.py"), format!("{PRELUDE}{script}")).unwrap();
    let mut line = Line::new("python3 main.py 2>&1").within(&path);
    line.job.confinement = confinement(&path);
    line.run().await
}

fn with_hosts(names: &[String]) -> impl Fn(&Path) -> Confinement {
    let hosts: Arc<[AllowedHost]> = names.iter().map(|name| name.parse().unwrap()).collect();
    move |path| usual(path, false, [].into()).with_hosts(hosts.clone())
}

/// Attack: hosts that are not listed, past the proxy and through it.
#[tokio::test]
async fn a_command_reaches_listed_hosts_through_the_proxy_only() {
    let (listed, other) = (server(), server());
    let script = format!(
        "
attempt(lambda: tunnel('127.0.0.1:{listed}'))
attempt(lambda: direct('127.0.0.1', {listed}))
attempt(lambda: direct('192.0.2.1', 443))
attempt(lambda: tunnel('127.0.0.1:{other}'))
attempt(lambda: tunnel('evil.com:443'))
attempt(lambda: tunnel('127.0.0.1:{listed}@evil.com'))
attempt(lambda: direct('127.0.0.2', int(proxy.split(':')[2])))
own = socket.create_server(('127.0.0.1', 0))
attempt(lambda: direct(*own.getsockname()))
print(os.environ['NO_PROXY'], proxy == os.environ['http_proxy'])
"
    );

    let ended = python(&script, with_hosts(&[format!("127.0.0.1:{listed}")])).await;

    let output = text(&ended.output);
    let expected = [
        "HELLO",
        "EACCES",
        "EACCES",
        "403",
        "403",
        "400",
        "ECONNREFUSED",
        "ok",
        "localhost,127.0.0.1,::1 True",
    ];
    assert_eq!(output.lines().collect::<Vec<_>>(), expected, "{output}");
    let refused = ended.refused.iter();
    let refused: Vec<_> = refused
        .map(|refusal| (refusal.kind.unwrap(), refusal.name.clone().unwrap()))
        .collect();
    let expected = [
        (RefusalKind::Connection, format!("127.0.0.1:{listed}")),
        (RefusalKind::Connection, "192.0.2.1:443".to_owned()),
        (RefusalKind::Host, format!("127.0.0.1:{other}")),
        (RefusalKind::Host, "evil.com:443".to_owned()),
    ];
    assert_eq!(refused, expected);
}

/// Commands without listed hosts, that only read, or with the whole network get no proxy.
#[tokio::test]
async fn other_commands_have_no_proxy() {
    let script = "print(repr(proxy))";
    let names = ["example.com".to_owned()];
    let hosts: Arc<[AllowedHost]> = names.iter().map(|name| name.parse().unwrap()).collect();

    let silent = python(script, with_hosts(&[])).await;
    let reads = python(script, |_| reading([].into()).with_hosts(hosts.clone())).await;
    let open = python(script, |path| {
        usual(path, true, [].into()).with_hosts(hosts.clone())
    });

    for ended in [silent, reads, open.await] {
        assert_eq!(text(&ended.output), "''\n");
    }
}

/// The proxy of a command ends with it, and so do its tunnels.
///
/// Attack: a proxy that outlives its command.
#[tokio::test]
async fn a_proxy_ends_with_its_command() {
    let listed = server();
    let ended = python("print(proxy)", with_hosts(&[format!("127.0.0.1:{listed}")])).await;

    let address = text(&ended.output)
        .trim()
        .trim_start_matches("http://")
        .to_owned();
    // The runtime of this test drops the proxy while it waits here. A connection may still be in the
    // queue of the listener then.
    let Ok(mut client) = tokio::net::TcpStream::connect(&address).await else {
        return;
    };
    let request = format!("CONNECT 127.0.0.1:{listed} HTTP/1.1\r\n\r\n");
    let _ = client.write_all(request.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = client.read_to_end(&mut answer).await;
    assert_eq!(answer, b"");
}
