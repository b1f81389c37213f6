//! TCP on loopback in a sandbox without network: own servers work, other programs stay out of reach.

use std::net::TcpListener;
use std::path::Path;

use ikigai_tools::sandbox::{reading, usual};

use crate::support::{Line, ORDINARY_USER, python_line, run_again, text};

/// Runs a Python script in the sandbox and returns its output.
async fn python(script: &str, ports: &[u16]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    let confinement = usual(&path, false, [].into());
    let line = python_line(&path, script, confinement.with_loopback_ports(ports));
    text(&line.run().await.output).to_owned()
}

#[tokio::test]
async fn a_command_talks_to_its_own_server() {
    let script = "
server = tcp()
server.bind(('127.0.0.1', 0))
server.listen()
def serve():
    client, _ = server.accept()
    client.sendall(client.recv(5).upper())
threading.Thread(target=serve).start()
client = socket.create_connection(server.getsockname())
client.sendall(b'hello')
print(client.recv(5).decode())
";

    assert_eq!(python(script, &[]).await, "HELLO\n");
}

#[tokio::test]
async fn a_server_on_all_addresses_listens_on_loopback() {
    let script = "
for family, address in [(socket.AF_INET, '0.0.0.0'), (socket.AF_INET6, '::')]:
    server = tcp(family)
    server.bind((address, 0))
    server.listen()
    print(server.getsockname()[0])
    attempt(lambda: socket.create_connection(('127.0.0.1', server.getsockname()[1])))
unbound = tcp()
unbound.listen()
print(unbound.getsockname()[0])
";

    let output = python(script, &[]).await;

    assert_eq!(output, "127.0.0.1\nok\n::ffff:127.0.0.1\nok\n127.0.0.1\n");
}

/// Attack: servers of other programs on loopback: `0.0.0.0`, mapped IPv6, fast open, a shared port.
#[tokio::test]
async fn servers_of_other_programs_are_reached_only_through_configured_ports() {
    let foreign = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = foreign.local_addr().unwrap().port();
    let script = format!(
        "
attempt(lambda: tcp().connect(('127.0.0.1', {port})))
attempt(lambda: tcp().connect(('0.0.0.0', {port})))
attempt(lambda: tcp(socket.AF_INET6).connect(('::ffff:127.0.0.1', {port})))
attempt(lambda: tcp().sendto(b'x', 0x20000000, ('127.0.0.1', {port})))
own = tcp()
own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
attempt(lambda: own.bind(('127.0.0.1', {port})))
"
    );

    let refused = python(&script, &[]).await;
    let allowed = python(&script, &[port]).await;

    assert_eq!(refused, "EACCES\nEACCES\nEACCES\nEPERM\nEADDRINUSE\n");
    assert_eq!(allowed, "ok\nok\nok\nEPERM\nEADDRINUSE\n");
}

/// Attack: other addresses, IPv6, raw, SCTP, MPTCP and netlink sockets.
#[tokio::test]
async fn nothing_but_tcp_on_loopback_gets_through() {
    let script = "
attempt(lambda: tcp().connect(('192.0.2.1', 80)))
attempt(lambda: tcp(socket.AF_INET6).connect(('2001:db8::1', 80)))
attempt(lambda: tcp().bind(('192.0.2.1', 0)))
attempt(lambda: tcp().connect(('127.0.0.1', 1)))
attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, 132))
attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132))
attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262))
attempt(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
attempt(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
attempt(lambda: socket.socketpair(type=socket.SOCK_SEQPACKET)[0].bind('x'))
";

    let output = python(script, &[]).await;

    let expected = [
        "EACCES",
        "EACCES",
        "EACCES",
        "ECONNREFUSED",
        "EPERM",
        "EPERM",
        "EPERM",
        "EPERM",
        "EPERM",
        "EPERM",
        "EPERM",
        "EPERM",
    ];
    assert_eq!(output.lines().collect::<Vec<_>>(), expected);
}

/// The memory of an address changes while its call is judged: no connection gets out.
///
/// Attack: change an address while its call is judged.
#[tokio::test]
async fn an_address_that_changes_meanwhile_leads_nowhere_else() {
    let foreign = TcpListener::bind("127.0.0.1:0").unwrap();
    foreign.set_nonblocking(true).unwrap();
    let port = foreign.local_addr().unwrap().port();
    let script = format!(
        "
import ctypes, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
sys.setswitchinterval(1e-6)
own = tcp()
own.bind(('127.0.0.1', 0))
own.listen(1024)
ports = [own.getsockname()[1], {port}]
address = ctypes.create_string_buffer(16)
struct.pack_into('=H', address, 0, socket.AF_INET)
struct.pack_into('>H4B', address, 2, ports[0], 127, 0, 0, 1)
def swap():
    turn = 0
    while True:
        turn = 1 - turn
        struct.pack_into('>H', address, 2, ports[turn])
threading.Thread(target=swap, daemon=True).start()
for _ in range(200):
    client = tcp()
    if libc.connect(client.fileno(), address, 16) == 0:
        assert client.getpeername()[1] == ports[0], 'got out'
    client.close()
print('held')
"
    );

    assert_eq!(python(&script, &[]).await, "held\n");
    assert!(foreign.accept().is_err());
}

#[tokio::test]
async fn a_node_server_answers_its_client() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    let script = "
const http = require('http');
const server = http.createServer((request, response) => response.end('hello'));
server.listen(0, () => http.get({port: server.address().port, host: '127.0.0.1'}, response => {
    response.on('data', data => console.log(String(data)));
    response.on('end', () => server.close());
}));
";
    std::fs::write(path.join("main.js"), script).unwrap();
    let mut line = Line::new("node main.js 2>&1").within(&path);
    line.job.confinement = usual(&path, false, [].into());

    assert_eq!(text(&line.run().await.output), "hello\n");
}

/// Attack: any socket of a read-only command.
#[tokio::test]
async fn commands_that_only_read_have_no_sockets() {
    let mut line =
        Line::new("python3 -c 'import socket; socket.socket()' 2>&1 | tail -n 1 | cut -d: -f1")
            .within(Path::new("/"));
    line.job.confinement = reading([].into());

    assert_eq!(text(&line.run().await.output), "PermissionError\n");
}

#[test]
fn all_of_it_holds_for_an_ordinary_user_and_without_namespaces() {
    let all = [
        "a_command_talks_to_its_own_server",
        "a_server_on_all_addresses_listens_on_loopback",
        "servers_of_other_programs_are_reached_only_through_configured_ports",
        "nothing_but_tcp_on_loopback_gets_through",
    ];
    let all = all.map(|name| format!("loopback::{name}"));
    let all = all.each_ref().map(String::as_str);
    run_again(&all, ORDINARY_USER, &[]);
    run_again(&all, &[], &[("IKIGAI_TEST_NO_USERNS", "1")]);
}
