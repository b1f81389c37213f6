//! Keepers: processes that outlive the program that started them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ikigai_tools::Confinement;
use ikigai_tools::process::keeper::{
    self, KeeperProgram, KeptJob, KeptState, OutputFollower, OutputNews, ProcessEnd, StopCause,
    read_output,
};
use ikigai_tools::process::{ChildEnvironment, end_cookie};
use ikigai_tools::sandbox;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::support::{PATIENCE, unique, with_argument, with_cookie};

/// Keeps a process. Only the other tests start it.
#[test]
#[ignore = "a keeper that other tests start"]
fn keeper_process() {
    keeper::keep().unwrap();
}

/// Returns this test program as a keeper.
pub(crate) fn program() -> KeeperProgram {
    let arguments = [
        "--exact",
        "keeper::keeper_process",
        "--ignored",
        "--nocapture",
    ];
    KeeperProgram::this(arguments.map(Into::into)).unwrap()
}

/// A process with its keeper; its directory goes with it.
struct Kept {
    home: tempfile::TempDir,
    cookie: String,
}

impl Kept {
    fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            cookie: unique("kept"),
        }
    }

    fn directory(&self) -> PathBuf {
        // Longer than the address of a socket.
        self.home.path().join("d".repeat(200)).join("1")
    }

    fn job(&self, line: &str) -> KeptJob {
        KeptJob {
            program: "bash".into(),
            arguments: vec!["-c".into(), line.into()],
            workdir: PathBuf::from("/"),
            variables: ChildEnvironment::default().variables(),
            time_limit: PATIENCE,
            cookie: self.cookie.clone(),
            confinement: Confinement::None,
            has_temporary: true,
            is_foreground: false,
            recording: None,
        }
    }

    async fn start(line: &str) -> Self {
        let kept = Self::new();
        let job = kept.job(line);
        kept.run(job).await.unwrap();
        kept
    }

    async fn run(&self, job: KeptJob) -> Result<(), String> {
        keeper::start(&program(), &self.directory(), job).await
    }

    /// Waits until the output has this text.
    async fn printed(&self, text: &str) -> String {
        let mut follower = OutputFollower::new(&self.directory()).await;
        loop {
            let output = self.output();
            if output.contains(text) {
                return output;
            }
            let news = follower.next().await;
            let is_last = matches!(news, OutputNews::Over(_)) && !self.output().contains(text);
            assert!(!is_last, "`{text}` is not in {}", self.output());
        }
    }

    fn output(&self) -> String {
        let part = read_output(&self.directory(), 0, usize::MAX).unwrap();
        String::from_utf8(part.bytes).unwrap()
    }

    async fn ended(&self) -> KeptState {
        let mut follower = OutputFollower::new(&self.directory()).await;
        loop {
            if let OutputNews::Over(state) = follower.next().await {
                return state;
            }
        }
    }

    async fn end(&self) -> ProcessEnd {
        match self.ended().await {
            KeptState::Ended(end) => end,
            other => panic!("{other:?}"),
        }
    }

    fn processes(&self) -> Vec<String> {
        with_cookie(&self.cookie)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        end_cookie(&self.cookie);
    }
}

#[tokio::test]
async fn output_and_exit_status_are_kept() {
    let kept = Kept::start("echo out; echo err >&2; exit 7").await;

    let end = kept.end().await;

    assert_eq!((end.exit, end.signal, end.stopped), (Some(7), None, None));
    assert_eq!(end.describe(), "exit 7");
    assert_eq!(kept.output(), "out\nerr\n");
    assert_eq!(end.printed, 8);
    assert_eq!(keeper::look(&kept.directory()).await, KeptState::Ended(end));
    let mode = fs::metadata(kept.directory()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[tokio::test]
async fn input_is_held_open_until_it_is_closed() {
    let kept = Kept::start("while read -r line; do echo \"got $line\"; done; echo closed").await;
    assert_eq!(keeper::look(&kept.directory()).await, KeptState::Running);

    keeper::send(&kept.directory(), "one\n".to_owned(), false)
        .await
        .unwrap();
    kept.printed("got one\n").await;
    keeper::send(&kept.directory(), "two\n".to_owned(), true)
        .await
        .unwrap();

    assert_eq!(kept.end().await.exit, Some(0));
    assert_eq!(kept.output(), "got one\ngot two\nclosed\n");
    let late = keeper::send(&kept.directory(), "three\n".to_owned(), false).await;
    assert_eq!(late, Err("the process has ended".to_owned()));
}

/// A pipe or a lock of the program that started ikigai ends with ikigai.
#[tokio::test]
async fn a_keeper_holds_no_inherited_descriptors() {
    let (reader, writer) = std::io::pipe().unwrap();
    rustix::io::fcntl_setfd(&writer, rustix::io::FdFlags::empty()).unwrap();

    let kept = Kept::start("echo ready; sleep 1000").await;
    kept.printed("ready").await;
    drop(writer);

    let mut ends = [PollFd::new(&reader, PollFlags::IN)];
    let wait = Timespec::try_from(PATIENCE / 4).unwrap();
    assert_eq!(
        poll(&mut ends, Some(&wait)),
        Ok(1),
        "the pipe is still open"
    );
    assert!(ends[0].revents().contains(PollFlags::HUP));
}

#[tokio::test]
async fn a_stop_ends_the_whole_tree() {
    let mark = unique("tree");
    let kept = Kept::start(&format!(
        "setsid bash -c 'trap \"\" TERM; sleep 1000' {mark} & echo ready; sleep 1000"
    ))
    .await;
    kept.printed("ready").await;

    let stopped = keeper::stop(&kept.directory(), StopCause::Request).await;

    let KeptState::Ended(end) = stopped else {
        panic!("{stopped:?}");
    };
    assert_eq!(end.stopped, Some(StopCause::Request));
    assert_eq!(with_argument(&mark), Vec::<String>::new());
    assert_eq!(kept.processes(), Vec::<String>::new());
    let again = keeper::stop(&kept.directory(), StopCause::Request).await;
    assert_eq!(again, KeptState::Ended(end));
}

#[tokio::test]
async fn what_a_process_leaves_behind_ends_with_it() {
    let mark = unique("daemon");
    let kept = Kept::start(&format!(
        "setsid bash -c 'sleep 1000; :' {mark} & echo done"
    ))
    .await;

    assert_eq!(kept.end().await.exit, Some(0));
    assert_eq!(with_argument(&mark), Vec::<String>::new());
}

#[tokio::test]
async fn a_process_is_stopped_at_its_time_limit() {
    let kept = Kept::new();
    let job = KeptJob {
        time_limit: Duration::from_millis(1),
        ..kept.job("sleep 1000")
    };
    kept.run(job).await.unwrap();

    assert_eq!(kept.end().await.stopped, Some(StopCause::Deadline));
    assert_eq!(kept.processes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_command_that_cannot_start_says_why() {
    let kept = Kept::new();
    let job = KeptJob {
        program: "/does/not/exist".into(),
        ..kept.job("")
    };

    let refused = kept.run(job).await.unwrap_err();

    assert!(refused.contains("No such file"), "{refused}");
    assert_eq!(kept.end().await.failure, Some(refused));
}

#[tokio::test]
async fn the_sandbox_and_a_private_directory_come_along() {
    let kept = Kept::new();
    let work = tempfile::tempdir_in("/var/tmp").unwrap();
    let outside = Path::new("/usr/ikigai-keeper-test");
    let line = format!(
        "echo \"$TMPDIR\"; touch \"$TMPDIR/in\" ok && echo wrote; touch {} || echo refused; env",
        outside.display()
    );
    let job = KeptJob {
        workdir: work.path().to_owned(),
        confinement: sandbox::usual(work.path(), false, [].into()),
        ..kept.job(&line)
    };
    kept.run(job).await.unwrap();

    let end = kept.end().await;

    let output = kept.output();
    assert_eq!(end.exit, Some(0), "{output}");
    assert!(output.contains("wrote\n"), "{output}");
    assert!(output.contains("refused\n"), "{output}");
    assert!(!outside.exists());
    let cookie = format!("IKIGAI_RUN={}\n", kept.cookie);
    assert!(output.contains(&cookie), "{output}");
    let temporary = Path::new(output.lines().next().unwrap());
    assert!(temporary.is_absolute());
    assert!(!temporary.exists(), "it goes with the process");
}

/// A keeper that was killed leaves no exit status; its processes are found by their cookie.
#[tokio::test]
async fn a_killed_keeper_is_noticed() {
    let kept = Kept::start("echo ready; sleep 1000").await;
    kept.printed("ready").await;
    let keeper = keeper_of(&kept.processes()[0]);
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(keeper).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();

    assert_eq!(kept.ended().await, KeptState::Gone);
    assert_eq!(keeper::look(&kept.directory()).await, KeptState::Gone);
    assert!(end_cookie(&kept.cookie) >= 1);
    assert_eq!(kept.processes(), Vec::<String>::new());
}

/// A keeper without a job, because the program that started it died, starts nothing.
#[tokio::test]
async fn nothing_runs_before_the_job_is_complete() {
    let kept = Kept::new();

    assert_eq!(keeper::look(&kept.directory()).await, KeptState::Gone);
    assert_eq!(kept.processes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_flood_of_output_is_bounded() {
    let kept = Kept::start("head -c 40000000 /dev/zero | tr '\\0' x; echo; echo end").await;

    let end = kept.end().await;

    assert_eq!(end.printed, 40_000_005);
    let part = read_output(&kept.directory(), 0, usize::MAX).unwrap();
    assert_eq!((part.to, part.size), (end.printed, end.printed));
    assert!(part.bytes.ends_with(b"x\nend\n"));
    assert!(part.bytes.len() < 9_000_000, "{}", part.bytes.len());
}

/// Returns the parent of a process that is no process of the run: its keeper.
fn keeper_of(pid: &str) -> i32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let parent = status
        .lines()
        .find_map(|line| line.strip_prefix("PPid:"))
        .unwrap();
    parent.trim().parse().unwrap()
}
