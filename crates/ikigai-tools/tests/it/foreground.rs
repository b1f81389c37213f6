//! Commands under a keeper: results as without one, and at the deadline they go on.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ikigai_tools::background::{ForegroundKeeper, LeftCommand};
use ikigai_tools::builtin::bash::Bash;
use ikigai_tools::process::end_cookie;
use ikigai_tools::process::keeper::{self, KeptState, OutputFollower, OutputNews};
use ikigai_tools::{
    CallContext, CallEnding, CallInputs, Confinement, Output, Place, Run, Tool, sandbox,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::keeper::program;
use crate::support::{PATIENCE, unique, with_cookie};

/// A call whose command has a keeper.
struct Call {
    home: tempfile::TempDir,
    cookie: String,
    stop: CancellationToken,
    confinement: Confinement,
    /// Text at which the call is stopped.
    stop_at: Option<&'static str>,
    lines: Arc<Mutex<String>>,
}

impl Call {
    fn new() -> Self {
        Self {
            home: tempfile::tempdir_in("/var/tmp").unwrap(),
            cookie: unique("foreground"),
            stop: CancellationToken::new(),
            confinement: Confinement::None,
            stop_at: None,
            lines: Arc::default(),
        }
    }

    fn work(&self) -> PathBuf {
        self.home.path().join("work")
    }

    fn directory(&self) -> PathBuf {
        self.home.path().join("process")
    }

    fn context(&self) -> CallContext {
        let (stop, stop_at) = (self.stop.clone(), self.stop_at);
        let lines = self.lines.clone();
        CallContext {
            place: Place {
                workdir: self.work(),
                hidden: Arc::from([]),
            },
            stop: self.stop.clone(),
            inputs: CallInputs {
                keeper: Some(ForegroundKeeper {
                    directory: self.directory(),
                    keeper: program(),
                    time_limit: PATIENCE,
                }),
                ..CallInputs::default()
            },
            progress: Arc::new(move |line| {
                if Some(line) == stop_at {
                    stop.cancel();
                }
            }),
            output: Arc::new(move |text| lines.lock().unwrap().push_str(text)),
            cookie: self.cookie.clone(),
            confinement: self.confinement.clone(),
            temporary: Some(Arc::default()),
        }
    }

    async fn run(&self, arguments: &Value) -> Output {
        fs::create_dir_all(self.work()).unwrap();
        let context = self.context();
        let prepared = Bash::default()
            .prepare(&arguments.to_string(), &context.place)
            .unwrap();
        match prepared.run {
            Run::Async(run) => run(context).await,
            Run::Blocking(_) => panic!("bash does not block"),
        }
    }

    /// Waits until nothing of the call runs, its keeper included.
    async fn all_gone(&self) {
        let gone = async {
            while !with_cookie(&self.cookie).is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, gone).await.unwrap();
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        end_cookie(&self.cookie);
    }
}

fn body(output: &Output) -> &str {
    std::str::from_utf8(&output.body).unwrap()
}

/// Status, signal and standard error come as they would without a keeper; no file is left.
#[tokio::test]
async fn a_result_is_the_same_under_a_keeper() {
    let cases = [
        ("echo one; echo two >&2", "one\ntwo\n[exit 0, ", true),
        ("printf no; exit 3", "no\n[exit 3, ", false),
        ("kill -9 $$", "[killed by signal 9, ", false),
        ("cat; echo end", "end\n[exit 0, ", true),
    ];
    for (command, start, success) in cases {
        let call = Call::new();

        let output = call.run(&json!({"command": command})).await;

        assert!(body(&output).starts_with(start), "{}", body(&output));
        assert_eq!((output.success, output.ending), (success, CallEnding::Ran));
        assert_eq!(output.process, None);
        assert!(!call.directory().exists(), "{command}");
    }
}

/// More output than pipes and segments hold: a whole head and tail, and the process waits.
#[tokio::test]
async fn a_flood_keeps_its_head_and_tail() {
    let call = Call::new();

    let output = call.run(&json!({"command": "seq 4000000"})).await;

    let text = body(&output);
    assert!(text.starts_with("1\n2\n3\n"));
    assert!(text.contains("\n3999999\n4000000\n[exit 0, "));
    assert!(call.lines.lock().unwrap().starts_with("1\n2\n3\n"));
}

/// Processes left behind and refusals of the sandbox are reported.
#[tokio::test]
async fn what_the_sandbox_refused_is_reported() {
    let mut call = Call::new();
    call.confinement = sandbox::usual(&call.work(), false, [].into());
    let command = "sleep 1000 & (echo > /dev/tcp/192.0.2.1/80) 2>/dev/null; touch mine; exit 1";

    let output = call.run(&json!({"command": command})).await;

    let text = body(&output);
    assert!(
        text.contains("1 process left in the background was ended"),
        "{text}"
    );
    assert_eq!(output.refused.len(), 1, "{text}");
    assert!(call.work().join("mine").exists());
    assert_eq!(with_cookie(&call.cookie), Vec::<String>::new());
}

#[tokio::test]
async fn a_stop_ends_all_processes_and_keeps_the_output() {
    let mut call = Call::new();
    call.stop_at = Some("up");

    let output = call
        .run(&json!({"command": "sleep 1000 & echo up; sleep 1000"}))
        .await;

    assert!(
        body(&output).starts_with("up\n[stopped after "),
        "{output:?}"
    );
    assert_eq!(output.ending, CallEnding::Stopped);
    assert_eq!(with_cookie(&call.cookie), Vec::<String>::new());
    assert!(!call.directory().exists());
}

/// A dropped call ends its command.
#[tokio::test]
async fn a_dropped_call_ends_its_command() {
    let call = Call::new();
    let up = call.work().join("up");
    let arguments = json!({"command": "touch up; sleep 1000"});
    {
        let run = call.run(&arguments);
        let started = async {
            while !up.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            output = run => panic!("{output:?}"),
            () = started => {}
        }
    }

    call.all_gone().await;
}

/// At its deadline a command goes on under its keeper, and later output is kept there.
#[tokio::test]
async fn a_command_goes_on_at_its_deadline() {
    let call = Call::new();
    let command = "echo up; until [ -e go ]; do sleep 0.01; done; echo after; exit 4";

    let output = call.run(&json!({"command": command, "timeout": 1})).await;

    let text = body(&output);
    assert_eq!(text, "up\n[still running after 1 s]\n");
    assert_eq!((output.success, output.ending), (true, CallEnding::Ran));
    let report = output.process.unwrap();
    assert_eq!((report.read_to, report.end), (Some(3), None));
    let LeftCommand { order, directory } = report.left.unwrap();
    assert_eq!(
        (order.command.as_str(), order.workdir),
        (command, call.work())
    );
    assert_eq!(keeper::look(&directory).await, KeptState::Running);
    fs::write(call.work().join("go"), "").unwrap();
    let KeptState::Ended(end) = ended(&directory).await else {
        panic!("its keeper is dead");
    };
    assert_eq!((end.exit, end.stopped), (Some(4), None));
    let rest = keeper::read_output(&directory, 3, usize::MAX).unwrap();
    assert_eq!(rest.bytes, b"after\n");
}

/// A keeper that cannot start costs nothing: the command runs without one, and ends in time.
#[tokio::test]
async fn a_command_without_a_keeper_is_stopped_at_its_deadline() {
    let call = Call::new();
    // The directory of the process cannot be made below a file.
    fs::write(call.directory(), "").unwrap();

    let output = call
        .run(&json!({"command": "echo up; sleep 1000", "timeout": 1}))
        .await;

    let text = body(&output);
    assert!(text.starts_with("up\n[stopped after 1 s; "), "{text}");
    assert_eq!(with_cookie(&call.cookie), Vec::<String>::new());
}

/// A command that only reads is stopped.
#[tokio::test]
async fn a_reading_command_is_stopped_at_its_deadline() {
    let mut call = Call::new();
    call.confinement = sandbox::reading([].into());

    let output = call
        .run(&json!({"command": "echo up; sleep 1000", "timeout": 1}))
        .await;

    let text = body(&output);
    assert!(text.starts_with("up\n[stopped after 1 s; "), "{text}");
}

/// A killed keeper takes its processes along, and the call says so.
#[tokio::test]
async fn a_killed_keeper_ends_the_call() {
    let call = Call::new();
    let command = "kill -9 $PPID; sleep 1000";

    let output = call.run(&json!({"command": command})).await;

    assert!(!output.success);
    // It may die before it could say that the command started.
    let text = body(&output);
    assert!(
        text.contains("was killed") || text.contains("died"),
        "{text}"
    );
    call.all_gone().await;
}

async fn ended(directory: &Path) -> KeptState {
    let mut follower = OutputFollower::new(directory).await;
    loop {
        if let OutputNews::Over(state) = follower.next().await {
            return state;
        }
    }
}
