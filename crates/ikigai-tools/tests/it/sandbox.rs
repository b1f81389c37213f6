//! Attempts to get out of the sandbox. Each must fail in it, and succeed without it: only then is
//! it the sandbox that holds.
//!
//! An attempt is made by this very test program, started again as a child (`attempt`), so that it
//! needs no other program that might be missing.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ikigai_tools::Confinement;
use ikigai_tools::process::{Cause, run};
use ikigai_tools::sandbox::{Force, in_force, reading};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::{Line, text, unique};

/// Directories with files that an attempt tries to reach.
///
/// ```text
/// work/               may be written
/// work/below/link     leads to outside/file
/// work/below/to-key   leads to hidden/key
/// outside/file        may be read
/// hidden/key          hidden
/// ```
struct Site {
    _directory: TempDir,
    base: PathBuf,
    stream: TcpListener,
    datagrams: UdpSocket,
    _path: UnixListener,
    _path_datagrams: UnixDatagram,
    _name: UnixListener,
    name: String,
}

impl Site {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        for name in ["work/below", "outside", "hidden"] {
            fs::create_dir_all(base.join(name)).unwrap();
        }
        for name in ["outside/file", "hidden/key", "work/below/file"] {
            fs::write(base.join(name), "content\n").unwrap();
        }
        symlink(base.join("outside/file"), base.join("work/below/link")).unwrap();
        symlink(base.join("hidden/key"), base.join("work/below/to-key")).unwrap();
        let name = unique("abstract");
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        Self {
            stream: TcpListener::bind("127.0.0.1:0").unwrap(),
            datagrams: UdpSocket::bind("127.0.0.1:0").unwrap(),
            _path: UnixListener::bind(base.join("work/socket")).unwrap(),
            _path_datagrams: UnixDatagram::bind(base.join("work/datagrams")).unwrap(),
            _name: UnixListener::bind_addr(&address).unwrap(),
            name,
            base,
            _directory: directory,
        }
    }

    fn sandbox(&self, network: bool) -> Confinement {
        Confinement::Sandbox {
            write: vec![self.base.join("work")],
            network,
            hosts: Arc::default(),
            loopback: Arc::default(),
            hidden: Arc::from([self.base.join("hidden")]),
            guarded: Vec::new(),
        }
    }

    /// Returns true if an attempt succeeds.
    async fn gets_through(&self, attempt: &str, confinement: Confinement) -> bool {
        let mut line = Line::new("");
        line.job.program = std::env::current_exe().unwrap().into();
        line.job.arguments = ["--exact", "sandbox::attempt", "--ignored", "--nocapture"]
            .map(Into::into)
            .to_vec();
        line.job.workdir = self.base.join("work");
        line.job.confinement = confinement;
        for (name, value) in [
            ("ATTEMPT", attempt.to_owned()),
            ("BASE", self.base.display().to_string()),
            ("TCP", self.stream.local_addr().unwrap().to_string()),
            ("UDP", self.datagrams.local_addr().unwrap().to_string()),
            ("NAME", self.name.clone()),
            ("PARENT", std::process::id().to_string()),
        ] {
            line.job.variables.push((name.into(), value.into()));
        }
        let ended = line.run().await;
        let said = String::from_utf8_lossy(&ended.output).into_owned();
        let was_made = said.contains("got through") || said.contains("was kept");
        assert!(was_made, "{attempt} was not made:\n{said}");
        matches!(ended.cause, Cause::Exited(status) if status.success())
    }
}

/// Makes one attempt. Only run by the others.
#[test]
#[ignore = "run by another test, in the sandbox"]
fn attempt() {
    let variable = |name: &str| std::env::var(name).unwrap();
    let base = PathBuf::from(variable("BASE"));
    match attempt_named(&variable("ATTEMPT"), &base, &variable) {
        Ok(()) => io::stdout().write_all(b"got through\n").unwrap(),
        Err(error) => panic!("was kept: {error}"),
    }
}

fn attempt_named(name: &str, base: &Path, variable: &dyn Fn(&str) -> String) -> io::Result<()> {
    let (outside, key) = (base.join("outside/file"), base.join("hidden/key"));
    let parent = variable("PARENT");
    let through_root = |path: &Path| PathBuf::from(format!("/proc/self/root{}", path.display()));
    match name {
        "create" => drop(File::create(base.join("outside/new"))?),
        "append" => File::options()
            .append(true)
            .open(outside)?
            .write_all(b"x")?,
        "empty" => drop(File::options().write(true).truncate(true).open(outside)?),
        "remove" => fs::remove_file(outside)?,
        "directory" => fs::create_dir(base.join("outside/new"))?,
        "link" => fs::write("below/link", "x")?,
        "dots" => fs::write("below/../../outside/new", "x")?,
        "root" => fs::write(through_root(&base.join("outside/new")), "x")?,
        "cwd" => fs::write("/proc/self/cwd/../outside/new", "x")?,
        "hard link" => {
            fs::hard_link(outside, "below/hard")?;
            fs::write("below/hard", "x")?;
        }
        "rename out" => fs::rename("below/file", base.join("outside/new"))?,
        "rename in" => {
            fs::rename(outside, "below/taken")?;
            fs::write("below/taken", "x")?;
        }
        "read key" => drop(fs::read(key)?),
        "read key by link" => drop(fs::read("below/to-key")?),
        "read key by root" => drop(fs::read(through_root(&key))?),
        "rename key" => {
            fs::rename(key, "below/key")?;
            fs::read("below/key")?;
        }
        "link key" => {
            fs::hard_link(key, "below/key")?;
            fs::read("below/key")?;
        }
        "rename hidden" => {
            fs::rename(base.join("hidden"), "below/hidden")?;
            fs::read("below/hidden/key")?;
        }
        "write key" => fs::write(key, "x")?,
        "parent's environment" => drop(fs::read(format!("/proc/{parent}/environ"))?),
        "parent's memory" => drop(File::open(format!("/proc/{parent}/mem"))?),
        "parent's root" => drop(fs::read_dir(format!("/proc/{parent}/root/"))?),
        "parent's files" => drop(fs::read_link(format!("/proc/{parent}/fd/0"))?),
        "terminal" => drop(File::open("/dev/ptmx")?),
        "signal" => {
            let parent = rustix::process::Pid::from_raw(parent.parse().unwrap()).unwrap();
            rustix::process::test_kill_process(parent)?;
        }
        "tcp" => drop(TcpStream::connect(variable("TCP"))?),
        "udp" => {
            UdpSocket::bind("127.0.0.1:0")?.send_to(b"x", variable("UDP"))?;
        }
        "socket" => drop(UnixStream::connect("socket")?),
        "abstract socket" => {
            let address = SocketAddr::from_abstract_name(variable("NAME"))?;
            drop(UnixStream::connect_addr(&address)?);
        }
        "pair of datagram sockets" => {
            UnixDatagram::pair()?.0.send_to(b"x", "datagrams")?;
        }
        "rights of key" => fs::set_permissions(key, fs::Permissions::from_mode(0o644))?,
        "rights of hidden" => {
            fs::set_permissions(base.join("hidden"), fs::Permissions::from_mode(0o777))?;
        }
        "owner of key" => std::os::unix::fs::chown(&key, None, Some(fs::metadata(&key)?.gid()))?,
        "rights" => fs::set_permissions("below/file", fs::Permissions::from_mode(0o777))?,
        "work" => {
            fs::create_dir("new")?;
            fs::write("new/file", "x")?;
            fs::rename("new/file", "below/new")?;
            fs::hard_link("below/new", "new/file")?;
            fs::set_permissions("below/new", fs::Permissions::from_mode(0o755))?;
            fs::remove_file("new/file")?;
            fs::read(outside)?;
            fs::read_dir(base.join("hidden"))?;
            fs::write("/dev/null", "x")?;
            fs::read("/proc/self/environ")?;
            let (mut one, mut other) = UnixStream::pair()?;
            one.write_all(b"x")?;
            other.read_exact(&mut [0])?;
            std::thread::spawn(|| {}).join().unwrap();
        }
        other => panic!("there is no attempt `{other}`"),
    }
    Ok(())
}

async fn must_be_kept(attempts: &[&str], network: bool) {
    for attempt in attempts {
        let site = Site::new();
        let is_out = site.gets_through(attempt, site.sandbox(network)).await;
        assert!(!is_out, "`{attempt}` gets out of the sandbox");

        let site = Site::new();
        let works = site.gets_through(attempt, Confinement::None).await;
        assert!(works, "`{attempt}` does not even work outside");
    }
}

#[tokio::test]
async fn a_writable_directory_that_was_replaced_stays_writable() {
    let directory = tempfile::tempdir().unwrap();
    let work = directory.path().canonicalize().unwrap().join("work");
    for _ in 0..3 {
        fs::create_dir(&work).unwrap();
        let mut line = Line::new("echo new >file && cat file").within(&work);
        line.job.confinement = Confinement::Sandbox {
            write: vec![work.clone()],
            network: false,
            hosts: Arc::default(),
            loopback: Arc::default(),
            hidden: Arc::from([]),
            guarded: Vec::new(),
        };

        let ended = line.run().await;

        assert_eq!(text(&ended.output), "new\n");
        fs::remove_dir_all(&work).unwrap();
    }
}

/// Attack: write outside the writable directories: `..`, links, `/proc/self/root`, hard links, renames.
#[tokio::test]
async fn nothing_is_written_outside() {
    must_be_kept(
        &[
            "create",
            "append",
            "empty",
            "remove",
            "directory",
            "link",
            "dots",
            "root",
            "cwd",
            "hard link",
            "rename out",
            "rename in",
        ],
        true,
    )
    .await;
}

/// Attack: read or change a hidden file: links, `/proc/self/root`, renames, hard links.
#[tokio::test]
async fn nothing_hidden_is_read_or_written() {
    must_be_kept(
        &[
            "read key",
            "read key by link",
            "read key by root",
            "rename key",
            "link key",
            "rename hidden",
            "write key",
        ],
        true,
    )
    .await;
}

/// Attack: change rights and owners of hidden files.
#[tokio::test]
async fn rights_and_owners_of_hidden_files_do_not_change() {
    if std::env::var_os("IKIGAI_TEST_NO_USERNS").is_some() {
        return;
    }
    for attempt in ["rights of key", "rights of hidden", "owner of key"] {
        let site = Site::new();
        let everything = Confinement::Sandbox {
            write: vec![site.base.clone()],
            network: false,
            hosts: Arc::default(),
            loopback: Arc::default(),
            hidden: Arc::from([site.base.join("hidden")]),
            guarded: Vec::new(),
        };

        assert!(
            !site.gets_through(attempt, site.sandbox(true)).await,
            "{attempt}"
        );
        assert!(!site.gets_through(attempt, everything).await, "{attempt}");
    }
}

/// Attack: environment, memory, root, files and signals of ikigai, and its terminal.
#[tokio::test]
async fn nothing_is_seen_of_ikigai_itself() {
    must_be_kept(
        &[
            "parent's environment",
            "parent's memory",
            "parent's root",
            "parent's files",
            "signal",
            "terminal",
        ],
        true,
    )
    .await;
}

/// Attack: TCP and UDP without network.
#[tokio::test]
async fn without_network_there_is_none() {
    must_be_kept(&["tcp", "udp"], false).await;
}

/// Attack: sockets of local daemons, by path and by abstract name.
#[tokio::test]
async fn no_daemon_of_this_machine_is_reached_with_or_without_network() {
    let attempts = ["socket", "abstract socket", "pair of datagram sockets"];

    must_be_kept(&attempts, false).await;
    must_be_kept(&attempts, true).await;
}

#[tokio::test]
async fn with_network_there_is_some() {
    for attempt in ["tcp", "udp"] {
        let site = Site::new();
        assert!(site.gets_through(attempt, site.sandbox(true)).await);
    }
}

#[tokio::test]
async fn work_goes_on_as_usual() {
    let site = Site::new();

    assert!(site.gets_through("work", site.sandbox(false)).await);
}

/// Attack: write with a read-only command, also rights, owners and times.
#[tokio::test]
async fn a_reading_command_changes_nothing_at_all() {
    let site = Site::new();
    let confinement = reading(Arc::from([site.base.join("hidden")]));

    assert!(!site.gets_through("rights", confinement.clone()).await);
    assert!(!site.gets_through("work", confinement).await);
    assert!(site.gets_through("rights", site.sandbox(false)).await);
}

/// Attack: a hidden file below a writable directory.
#[tokio::test]
async fn what_is_hidden_wins_over_what_may_be_written() {
    let site = Site::new();
    let confinement = Confinement::Sandbox {
        write: vec![site.base.clone()],
        network: false,
        hosts: Arc::default(),
        loopback: Arc::default(),
        hidden: Arc::from([site.base.join("hidden")]),
        guarded: Vec::new(),
    };

    for attempt in [
        "read key",
        "write key",
        "rename key",
        "link key",
        "rename hidden",
    ] {
        assert!(!site.gets_through(attempt, confinement.clone()).await);
    }
    assert!(site.gets_through("append", confinement).await);
}

/// Attack: a hidden file that appears while the command runs.
#[tokio::test]
async fn what_is_hidden_stays_so_when_it_is_made_later() {
    let site = Site::new();
    let mut line = Line::new(
        r#"echo ready; until [ -e "$BASE/later/key" ]; do sleep 0.01; done; cat "$BASE/later/key""#,
    );
    let base = site.base.clone();
    line.job
        .variables
        .push(("BASE".into(), base.clone().into()));
    line.job.confinement = reading(Arc::from([base.join("later")]));
    let progress = Arc::new(move |line: &str| {
        if line == "ready" {
            fs::create_dir(base.join("later")).unwrap();
            fs::write(base.join("later/key"), "content\n").unwrap();
        }
    });

    let ended = run(line.job, &CancellationToken::new(), progress)
        .await
        .unwrap();

    assert!(text(&ended.output).contains("Permission denied"));
}

/// Attack: new namespaces, mounts, or another tag.
#[tokio::test]
async fn a_sandbox_has_no_way_to_new_namespaces_mounts_or_another_tag() {
    let directory = tempfile::tempdir().unwrap();
    for command in [
        "unshare --user true",
        "unshare --mount true",
        "unshare --net true",
        "mount -t tmpfs none /mnt",
        "chroot / true",
        "nsenter --target 1 --net true",
        "ulimit -S -x 7",
        "prlimit --locks=7 true",
    ] {
        let mut line = Line::new(command);
        line.job.confinement = Confinement::Sandbox {
            write: vec![directory.path().to_path_buf()],
            network: true,
            hosts: Arc::default(),
            loopback: Arc::default(),
            hidden: Arc::from([]),
            guarded: Vec::new(),
        };
        let ended = line.run().await;
        let said = text(&ended.output).to_lowercase();
        assert!(
            ["not permitted", "permission denied", "cannot modify limit"]
                .iter()
                .any(|refusal| said.contains(refusal)),
            "{command}: {said}"
        );
    }
}

/// Attack: a daemon that outlives its command.
#[tokio::test]
async fn a_daemon_of_a_sandbox_is_ended_too() {
    let mark = unique("confined");
    let mut line = Line::new(
        r#"env -i PATH="$PATH" setsid bash -c 'exec -a "$0" sleep 1000' "$MARK" >/dev/null 2>&1 &"#,
    )
    .marked(&mark);
    line.job.confinement = reading(Arc::from([]));

    let ended = line.run().await;

    assert_eq!(ended.left_behind, 1);
    assert_eq!(crate::support::with_argument(&mark), Vec::<String>::new());
}

#[tokio::test]
async fn git_works_in_the_sandbox() {
    let site = Site::new();
    let mut line = Line::new(
        "git init -q repository && cd repository && echo x > file && git add file &&
         git -c user.name=n -c user.email=e commit -qm message && git log --format=%s && git status --short",
    )
    .within(&site.base.join("work"));
    line.job.confinement = site.sandbox(false);

    let ended = line.run().await;

    assert_eq!(text(&ended.output), "message\n");
}

#[test]
fn this_machine_has_all_of_it() {
    assert_eq!(in_force(), Force::Full);
}

#[tokio::test]
async fn writable_paths_are_written_except_for_hidden_ones_below() {
    let site = Site::new();
    let base = site.base.display();
    let script = format!("touch {base}/outside/new; touch {base}/hidden/new; ls {base}/outside");
    let mut line = Line::new(&script).within(&site.base.join("work"));

    line.job.confinement = site.sandbox(false);
    assert!(!text(&line.run().await.output).contains("new\n"));
    let mut line = Line::new(&script).within(&site.base.join("work"));
    // The directory above all of them, so that a hidden one is below it.
    let more = [site.base.clone()];
    line.job.confinement = site.sandbox(false).with_writable(&more);
    let output = line.run().await.output;

    assert!(text(&output).contains("new\n"), "{}", text(&output));
    assert!(!site.base.join("hidden/new").exists());
}
