//! Sockets with paths in a sandbox without network: own servers work, and no path leads to another
//! program.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ikigai_tools::Confinement;
use ikigai_tools::sandbox::{reading, usual};
use tempfile::TempDir;

use crate::support::{ORDINARY_USER, python_line, run_again, text};

/// Directories of an attack, and a program that is none of the command's.
///
/// ```text
/// work/                may be written
/// outside/             may be read
/// shared/foreign       socket of another program, in a directory that may be written
/// hidden/              hidden
/// ```
struct SocketSite {
    _directory: TempDir,
    base: PathBuf,
    foreign: UnixListener,
}

impl SocketSite {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        for name in ["work", "outside", "shared", "hidden"] {
            fs::create_dir(base.join(name)).unwrap();
        }
        // An ordinary user writes there, as in `/tmp`.
        for name in ["", "work", "shared"] {
            let open = fs::Permissions::from_mode(0o777);
            fs::set_permissions(base.join(name), open).unwrap();
        }
        let foreign = UnixListener::bind(base.join("shared/foreign")).unwrap();
        foreign.set_nonblocking(true).unwrap();
        Self {
            _directory: directory,
            base,
            foreign,
        }
    }

    fn confinement(&self) -> Confinement {
        Confinement::Sandbox {
            write: vec![self.base.join("work"), self.base.join("shared")],
            network: false,
            hosts: Arc::default(),
            loopback: Arc::default(),
            hidden: Arc::from([self.base.join("hidden")]),
            guarded: Vec::new(),
        }
    }

    async fn python(&self, script: &str) -> String {
        let work = self.base.join("work");
        let line = python_line(&work, script, self.confinement());
        text(&line.run().await.output).to_owned()
    }

    /// Checks that no command has reached the other program.
    fn assert_unreached(&self) {
        assert!(
            self.foreign.accept().is_err(),
            "the other program was reached"
        );
    }
}

#[tokio::test]
async fn a_command_talks_to_its_own_socket() {
    let site = SocketSite::new();
    let script = "
os.umask(0o027)
for path in ['socket', os.getcwd() + '/second', '../shared/third']:
    server = unix()
    server.bind(path)
    server.listen()
    print(server.getsockname() == path, oct(os.stat(path).st_mode))
    def serve():
        client, _ = server.accept()
        client.sendall(client.recv(5).upper())
    threading.Thread(target=serve).start()
    os.symlink(path, 'link')
    client = unix()
    client.connect('link')
    os.remove('link')
    client.sendall(b'hello')
    print(client.recv(5).decode(), client.getpeername() == path)
    attempt(lambda: unix().bind(path))
    server.close()
    attempt(lambda: unix().connect(path))
";

    let output = site.python(script).await;

    let one = "True 0o140750\nHELLO True\nEADDRINUSE\nECONNREFUSED\n";
    assert_eq!(output, one.repeat(3));
}

/// Sockets of tmux, X11, key agents and D-Bus are in directories that commands may write.
///
/// Attack: a Unix socket of another program, through links, renames and `/proc`.
#[tokio::test]
async fn a_socket_of_another_program_is_reached_by_no_path() {
    let site = SocketSite::new();
    let script = "
foreign = os.path.abspath('../shared/foreign')
connect = lambda path: attempt(lambda: unix().connect(path))
connect(foreign)
connect('../shared/foreign')
os.symlink(foreign, 'symbolic')
connect('symbolic')
os.symlink('../shared', 'directory')
connect('directory/foreign')
connect('/proc/self/cwd/../shared/foreign')
connect(f'/proc/{os.getpid()}/root{foreign}')
held = os.open(foreign, os.O_PATH)
connect(f'/proc/self/fd/{held}')
connect(f'/proc/{os.getpid()}/fd/{held}')
os.link(foreign, 'hard')
connect('hard')
os.rename(foreign, 'renamed')
connect('renamed')
server = unix()
server.bind('own')
server.listen()
connect('own')
os.rename('renamed', 'own')
connect('own')
os.rename('own', foreign)
one, other = socket.socketpair()
attempt(lambda: one.connect(foreign))
";

    let output = site.python(script).await;

    let lines: Vec<_> = output.lines().collect();
    let [before @ .., own, after, pair] = lines.as_slice() else {
        panic!("{output}");
    };
    // A path of the command's own `/proc` may lead nowhere for ikigai.
    let refused = |line: &&str| ["EACCES", "ENOENT", "ECONNREFUSED"].contains(line);
    assert!(before.iter().all(refused), "{output}");
    assert_eq!(before.len(), 10, "{output}");
    assert_eq!(
        (*own, *after, *pair),
        ("ok", "EACCES", "EACCES"),
        "{output}"
    );
    site.assert_unreached();
}

/// Attack: abstract names, datagrams and other kinds of Unix sockets.
#[tokio::test]
async fn names_without_a_file_and_other_kinds_of_sockets_are_refused() {
    let site = SocketSite::new();
    let script = "
attempt(lambda: unix().bind('\\0abstract'))
attempt(lambda: unix().connect('\\0abstract'))
attempt(lambda: unix().bind(''))
attempt(lambda: unix().listen())
attempt(lambda: unix(socket.SOCK_DGRAM))
attempt(lambda: unix(socket.SOCK_SEQPACKET))
attempt(lambda: unix(socket.SOCK_RAW))
attempt(lambda: unix().sendto(b'x', '../shared/foreign'))
attempt(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 6))
named = unix()
named.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
attempt(lambda: named.connect('../shared/foreign'))
attempt(lambda: named.listen())
";

    let output = site.python(script).await;

    let expected = [
        "EPERM",
        "EPERM",
        "EPERM",
        "EINVAL",
        "EPERM",
        "EPERM",
        "EPERM",
        "ENOTSUP",
        "EPROTONOSUPPORT",
        "EACCES",
        "EINVAL",
    ];
    assert_eq!(output.lines().collect::<Vec<_>>(), expected);
    site.assert_unreached();
}

/// Attack: a socket where no file may be made.
#[tokio::test]
async fn a_socket_is_made_only_where_files_may_be_made() {
    let site = SocketSite::new();
    symlink(site.base.join("outside"), site.base.join("work/link")).unwrap();
    let script = "
bind = lambda path: attempt(lambda: unix().bind(path))
for directory in ['../outside', 'link', '../hidden', os.path.abspath('../outside'), '/run', '/',
                  f'/proc/{os.getpid()}/cwd/../outside', '/proc/self/root/run']:
    bind(directory + '/made')
";

    let output = site.python(script).await;

    let refused = |line: &str| ["EACCES", "EPERM", "ENOENT", "EROFS"].contains(&line);
    assert_eq!(output.lines().count(), 8, "{output}");
    assert!(output.lines().all(refused), "{output}");
    for directory in ["outside", "hidden"] {
        assert_eq!(fs::read_dir(site.base.join(directory)).unwrap().count(), 0);
    }
    assert!(!Path::new("/run/made").exists());
    assert!(!Path::new("/made").exists());
}

/// Paths and the memory of an address change while a call is judged.
///
/// Attack: a path that changes while its call is judged.
#[tokio::test]
async fn a_path_that_changes_meanwhile_leads_nowhere_else() {
    let site = SocketSite::new();
    let script = "
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
sys.setswitchinterval(1e-6)
os.mkdir('inside')
server = unix()
server.bind('own')
server.listen(1024)
os.symlink('own', 'swapped')
os.symlink('inside', 'where')
def swap():
    turn = 0
    while True:
        turn = 1 - turn
        os.symlink(['own', '../shared/foreign'][turn], 'next')
        os.rename('next', 'swapped')
        os.symlink(['inside', '../outside'][turn], 'next')
        os.rename('next', 'where')
threading.Thread(target=swap, daemon=True).start()
names = [b'\\1\\0own'.ljust(30, b'\\0'), b'\\1\\0../shared/foreign'.ljust(30, b'\\0')]
address = ctypes.create_string_buffer(names[0], 30)
def rewrite():
    turn = 0
    while True:
        turn = 1 - turn
        ctypes.memmove(address, names[turn], 30)
threading.Thread(target=rewrite, daemon=True).start()
made = 0
for number in range(150):
    try:
        unix().connect('swapped')
    except OSError:
        pass
    client = unix()
    libc.connect(client.fileno(), address, 30)
    try:
        unix().bind(f'where/{number}')
        made += 1
    except OSError:
        pass
print('held', made > 0)
";

    assert_eq!(site.python(script).await, "held True\n");
    assert_eq!(fs::read_dir(site.base.join("outside")).unwrap().count(), 0);
    site.assert_unreached();
}

/// A command reaches no socket of another command.
///
/// Attack: sockets of other commands.
#[tokio::test]
async fn commands_do_not_reach_each_others_sockets() {
    let site = SocketSite::new();
    let work = site.base.join("work");
    let serve = "
server = unix()
server.bind('server')
server.listen()
open('listens', 'w').close()
import time
while not os.path.exists('done'):
    time.sleep(0.01)
";
    let second = site.base.join("shared");
    let connect = "
while not os.path.exists('../work/listens'):
    pass
attempt(lambda: unix().connect('../work/server'))
open('../work/done', 'w').close()
";
    let server = python_line(&work, serve, site.confinement());
    let client = python_line(&second, connect, site.confinement());

    let (_, client) = tokio::join!(server.run(), client.run());

    assert_eq!(text(&client.output), "EACCES\n");
}

#[tokio::test]
async fn commands_with_network_or_without_write_access_have_no_paths() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    let script = "attempt(unix)\n";
    for confinement in [usual(&path, true, [].into()), reading([].into())] {
        let line = python_line(&path, script, confinement);
        assert_eq!(text(&line.run().await.output), "EPERM\n");
    }
}

#[test]
fn all_of_it_holds_for_an_ordinary_user_and_without_namespaces() {
    let all = [
        "a_command_talks_to_its_own_socket",
        "a_socket_of_another_program_is_reached_by_no_path",
        "names_without_a_file_and_other_kinds_of_sockets_are_refused",
        "a_socket_is_made_only_where_files_may_be_made",
        "a_path_that_changes_meanwhile_leads_nowhere_else",
    ];
    let all = all.map(|name| format!("unix_sockets::{name}"));
    let all = all.each_ref().map(String::as_str);
    run_again(&all, ORDINARY_USER, &[]);
    run_again(&all, &[], &[("IKIGAI_TEST_NO_USERNS", "1")]);
}
