//! Attacks on the sandbox that no other test makes, and the list of all in `docs/permissions.md`.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use ikigai_testkit::docs::table_of;
use ikigai_tools::AllowedHost;
use ikigai_tools::process::ChildEnvironment;
use ikigai_tools::process::keeper::{self, KeptJob, KeptState, OutputFollower, OutputNews};
use ikigai_tools::sandbox::usual;

use crate::keeper::program;
use crate::support::{PATIENCE, python_line, text, unique};

/// Begin of the doc comment line that names the attack of a test.
const MARKER: &str = "/// Attack: ";

/// Attempts of a script, each of which prints its outcome.
const PRELUDE: &str = "\
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def attempt(act):
    try:
        print(act(), flush=True)
    except OSError as error:
        print(errno.errorcode[error.errno], flush=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), 'call')
    return 'done'
";

/// Attack: system calls that leave the sandbox or look into the kernel.
#[tokio::test]
async fn dangerous_system_calls_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    let calls: &[(&str, i64, &str)] = &[
        ("ptrace", libc::SYS_ptrace, "0, 0, 0, 0"),
        ("mount", libc::SYS_mount, "b'/', b'/', 0, 4096, 0"),
        ("chroot", libc::SYS_chroot, "b'/'"),
        ("pivot_root", libc::SYS_pivot_root, "b'/', b'/'"),
        ("unshare", libc::SYS_unshare, "0x10000000"),
        ("setns", libc::SYS_setns, "0, 0"),
        ("io_uring_setup", libc::SYS_io_uring_setup, "1, 0"),
        ("bpf", libc::SYS_bpf, "0, 0, 0"),
        ("keyctl", libc::SYS_keyctl, "0, -3, 1"),
        ("add_key", libc::SYS_add_key, "b'user', b'a', b'b', 1, -3"),
        ("userfaultfd", libc::SYS_userfaultfd, "1"),
        (
            "perf_event_open",
            libc::SYS_perf_event_open,
            "0, 0, -1, -1, 0",
        ),
        ("init_module", libc::SYS_init_module, "0, 0, b''"),
        (
            "open_by_handle_at",
            libc::SYS_open_by_handle_at,
            "-100, 0, 0",
        ),
        (
            "process_vm_readv",
            libc::SYS_process_vm_readv,
            "os.getppid(), 0, 0, 0, 0, 0",
        ),
        ("pidfd_getfd", libc::SYS_pidfd_getfd, "0, 0, 0"),
        ("kexec_load", libc::SYS_kexec_load, "0, 0, 0, 0"),
        ("ioctl TIOCSTI", libc::SYS_ioctl, "0, 0x5412, b'x'"),
        ("ioctl TIOCLINUX", libc::SYS_ioctl, "0, 0x541c, b'x'"),
    ];
    let attempts: Vec<_> = calls
        .iter()
        .map(|(_, number, arguments)| format!("attempt(lambda: call({number}, {arguments}))\n"))
        .collect();
    let script = format!("{PRELUDE}{}", attempts.concat());

    let ended = python_line(&path, &script, usual(&path, true, [].into()))
        .run()
        .await;

    let output = text(&ended.output);
    assert_eq!(output.lines().count(), calls.len(), "{output}");
    for ((name, ..), outcome) in calls.iter().zip(output.lines()) {
        assert!(
            matches!(outcome, "EPERM" | "EACCES" | "ENOSYS"),
            "{name}: {outcome}"
        );
    }
}

/// Starts a web server that redirects every request to `target`; counts the requests.
fn web_server(target: Option<String>) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let answer = move |mut client: TcpStream| {
        counted.fetch_add(1, Ordering::SeqCst);
        let mut lines = BufReader::new(client.try_clone().unwrap()).lines();
        while lines
            .next()
            .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
        {}
        let head = match &target {
            Some(target) => format!("302 Found\r\nLocation: {target}"),
            None => "200 OK".to_owned(),
        };
        let _ = write!(client, "HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n");
        let _ = client.read(&mut [0]);
    };
    thread::spawn(move || listener.incoming().flatten().for_each(answer));
    (port, count)
}

/// Attack: a listed host redirects to a server of this machine.
#[tokio::test]
async fn a_redirect_of_a_listed_host_leads_nowhere_else() {
    let (secret, reached) = web_server(None);
    let (listed, asked) = web_server(Some(format!("http://127.0.0.1:{secret}/")));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    let script = format!(
        "{PRELUDE}
import urllib.request, urllib.error
os.environ['no_proxy'] = os.environ['NO_PROXY'] = ''
def fetch(url):
    try:
        return urllib.request.urlopen(url).status
    except urllib.error.HTTPError as error:
        return error.code
attempt(lambda: fetch('http://127.0.0.1:{listed}/'))
"
    );
    let hosts: Arc<[AllowedHost]> = [format!("127.0.0.1:{listed}").parse().unwrap()].into();
    let confinement = usual(&path, false, [].into()).with_hosts(hosts);

    let ended = python_line(&path, &script, confinement).run().await;

    assert_eq!(text(&ended.output), "403\n");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert_eq!(reached.load(Ordering::SeqCst), 0);
}

/// Attack: names looked up past the proxy, over UDP and TCP.
#[tokio::test]
async fn no_name_is_looked_up_past_the_proxy() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    let script = format!(
        "{PRELUDE}
def look(kind):
    client = socket.socket(socket.AF_INET, kind)
    client.connect(('192.0.2.53', 53))
    client.send(b'secret.example.com')
    return 'sent'
attempt(lambda: look(socket.SOCK_DGRAM))
attempt(lambda: look(socket.SOCK_STREAM))
try:
    socket.getaddrinfo('secret.example.com', 443)
except socket.gaierror:
    print('no answer')
"
    );
    let hosts: Arc<[AllowedHost]> = ["example.com".parse().unwrap()].into();
    let confinement = usual(&path, false, [].into()).with_hosts(hosts);

    let ended = python_line(&path, &script, confinement).run().await;

    assert_eq!(text(&ended.output), "EPERM\nEACCES\nno answer\n");
}

/// Attack: socket, files, memory and life of the command's keeper.
#[tokio::test]
async fn a_command_has_no_power_over_its_keeper() {
    let home = tempfile::tempdir_in("/var/tmp").unwrap();
    let home = home.path().canonicalize().unwrap();
    let (work, state) = (home.join("work"), home.join("state"));
    fs::create_dir(&work).unwrap();
    let script = format!(
        "{PRELUDE}
state, keeper = {state:?}, os.getppid()
def connect():
    socket.socket(socket.AF_UNIX).connect(state + '/socket')
    return 'connected'
attempt(connect)
attempt(lambda: os.kill(keeper, 0))
attempt(lambda: open(f'/proc/{{keeper}}/mem', 'rb'))
attempt(lambda: open(f'/proc/{{keeper}}/environ', 'rb'))
attempt(lambda: os.readlink(f'/proc/{{keeper}}/fd/0'))
attempt(lambda: open(state + '/output.0', 'rb'))
attempt(lambda: open(state + '/exit', 'wb'))
attempt(lambda: os.remove(state + '/socket'))
attempt(lambda: os.rename(state, 'taken'))
attempt(lambda: call({pidfd_open}, keeper, 0) and call({pidfd_getfd}, 3, 0, 0))
",
        state = state.display().to_string(),
        pidfd_open = libc::SYS_pidfd_open,
        pidfd_getfd = libc::SYS_pidfd_getfd,
    );
    fs::write(work.join("attack.py"), script).unwrap();
    let job = KeptJob {
        program: "python3".into(),
        arguments: vec!["attack.py".into()],
        workdir: work.clone(),
        variables: ChildEnvironment::default().variables(),
        time_limit: PATIENCE,
        cookie: unique("attack"),
        confinement: usual(&work, false, Arc::from([state.clone()])),
        has_temporary: true,
        is_foreground: false,
        recording: None,
    };

    keeper::start(&program(), &state, job).await.unwrap();

    let mut follower = OutputFollower::new(&state).await;
    let end = loop {
        match follower.next().await {
            OutputNews::Printed(_) => {}
            OutputNews::Over(KeptState::Ended(end)) => break end,
            OutputNews::Over(other) => panic!("{other:?}"),
        }
    };
    let output = keeper::read_output(&state, 0, usize::MAX).unwrap().bytes;
    let output = text(&output);
    assert_eq!(end.exit, Some(0), "{output}");
    let outcomes: Vec<_> = output.lines().collect();
    assert_eq!(outcomes.len(), 10, "{output}");
    for outcome in outcomes {
        assert!(
            matches!(outcome, "EPERM" | "EACCES" | "EROFS" | "EXDEV"),
            "{output}"
        );
    }
}

/// Every attack of the page has its test, and every test of an attack is on the page.
#[test]
fn the_list_of_attacks_is_the_one_that_is_tested() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    collect(crates, &mut files);
    let tested: BTreeSet<_> = files.iter().flat_map(|file| attacks_of(file)).collect();
    let listed: BTreeSet<_> = table_of("permissions.md", "attacks")
        .into_iter()
        .map(|row| {
            let [attack, name] = row.as_slice() else {
                panic!("a row of other length: {row:?}");
            };
            (attack.clone(), name.trim_matches('`').to_owned())
        })
        .collect();

    let missing: Vec<_> = listed.difference(&tested).collect();
    assert!(
        missing.is_empty(),
        "on the page without a test: {missing:#?}"
    );
    let unlisted: Vec<_> = tested.difference(&listed).collect();
    assert!(
        unlisted.is_empty(),
        "tested, not on the page: {unlisted:#?}"
    );
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|it| it == "rs") {
            files.push(path);
        }
    }
}

/// Returns the attacks of a file with the names of their tests, which must not be ignored.
fn attacks_of(file: &Path) -> Vec<(String, String)> {
    let source = fs::read_to_string(file).unwrap();
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let mut found = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        let Some(attack) = line.strip_prefix(MARKER) else {
            continue;
        };
        let after = lines.iter().skip(place + 1);
        let head: Vec<_> = after
            .take_while(|line| line.starts_with("#[") || line.starts_with("///"))
            .collect();
        let is_test = head
            .iter()
            .any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"));
        let is_ignored = head.iter().any(|line| line.starts_with("#[ignore"));
        assert!(
            is_test && !is_ignored,
            "{}: `{attack}` is no test",
            file.display()
        );
        let function = lines.get(place + 1 + head.len()).unwrap();
        let (_, name) = function.split_once("fn ").unwrap();
        let (name, _) = name.split_once('(').unwrap();
        found.push((attack.trim_end_matches('.').to_owned(), name.to_owned()));
    }
    found
}
