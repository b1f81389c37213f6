//! Processes that try to survive the end of their call.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ikigai_tools::process::{Cause, Errors, OutputListeners, end_cookie, run, run_with};
use tokio_util::sync::CancellationToken;

use crate::support::{Line, text, unique, with_argument, with_cookie};

/// Script that starts two daemons, connected with their run only by descent.
///
/// They have another session, no environment, no open file, and their parents are gone. Their
/// only trace is `$MARK` among their arguments. The script continues when they run.
const DAEMON: &str = r#"
    ready=$(mktemp -u)
    mkfifo "$ready"
    (env -i PATH="$PATH" setsid bash -c '
        daemon() {
            exec -a "$1" bash -c "echo >\"\$1\"; exec <&- >&- 2>&-; exec -a $1 sleep 1000" x "$2"
        }
        (daemon "$0" "$1" &)
        (daemon "$0" "$1" &)
    ' "$MARK" "$ready" >/dev/null 2>&1 &)
    exec 3<>"$ready"
    read -r <&3
    read -r <&3
    exec 3<&-
    rm "$ready"
"#;

fn exited(code: i32) -> Cause {
    Cause::Exited(ExitStatus::from_raw(code << 8))
}

#[tokio::test]
async fn what_is_written_comes_back_in_order() {
    let ended = Line::new("for i in 1 2 3; do echo out $i; echo err $i >&2; done; exit 7")
        .run()
        .await;

    assert_eq!(ended.cause, exited(7));
    assert_eq!(
        text(&ended.output),
        "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n"
    );
    assert_eq!(ended.left_behind, 0);
}

#[tokio::test]
async fn a_process_has_a_session_of_its_own_and_no_terminal() {
    let ended = Line::new(
        r#"read -r _ _ _ _ group session terminal _ < /proc/$$/stat
           [ $group = $$ ] && [ $session = $$ ] && echo own
           echo "terminal $terminal"
           read -r || echo nothing to read
           ls /proc/self/fd | wc -l"#,
    )
    .run()
    .await;

    assert_eq!(text(&ended.output), "own\nterminal 0\nnothing to read\n4\n");
}

#[tokio::test]
async fn a_process_is_told_where_it_starts() {
    let directory = tempfile::tempdir().unwrap();
    let mut line = Line::new("").within(directory.path());
    line.job.program = "printenv".into();
    line.job.arguments = vec!["PWD".into()];

    let ended = line.run().await;

    assert_eq!(
        text(&ended.output).trim_end(),
        directory.path().to_str().unwrap()
    );
}

#[tokio::test]
async fn a_gigabyte_is_read_and_a_part_of_it_kept() {
    let ended = Line::new("yes | head -c 1073741824; echo; echo last words")
        .run()
        .await;

    assert_eq!(ended.cause, exited(0));
    assert!(ended.output.len() < 2 << 20);
    assert!(ended.output.starts_with(b"y\ny\n"));
    assert!(ended.output.ends_with(b"y\n\nlast words\n"));
}

#[tokio::test]
async fn binary_output_is_kept_to_the_byte() {
    let directory = tempfile::tempdir().unwrap();

    let ended = Line::new("head -c 300000 /dev/urandom | tee all")
        .within(directory.path())
        .run()
        .await;

    let written = std::fs::read(directory.path().join("all")).unwrap();
    assert!(ended.output == written);
}

#[tokio::test]
async fn input_and_output_of_any_size_do_not_wait_for_each_other() {
    let mut line = Line::new("tee /dev/stderr");
    line.job.input = Some(b"0123456789abcde\n".repeat(50_000));
    line.job.errors = Errors::Apart;
    let expected = line.job.input.clone().unwrap();

    let ended = line.run().await;

    assert_eq!(ended.cause, exited(0));
    assert!(ended.output == expected);
    assert!(ended.errors == expected);
}

#[tokio::test]
async fn input_that_nobody_reads_is_no_trouble() {
    let mut line = Line::new("exec <&-; echo done");
    line.job.input = Some(vec![b'x'; 1 << 20]);

    let ended = line.run().await;

    assert_eq!(text(&ended.output), "done\n");
}

#[tokio::test]
async fn a_process_that_is_stopped_has_its_last_words() {
    let ended = Line::new("trap 'echo bye; exit 3' TERM; echo ready; while :; do :; done")
        .stopped_at("ready")
        .run()
        .await;

    assert_eq!(ended.cause, Cause::Stopped);
    assert_eq!(text(&ended.output), "ready\nbye\n");
}

#[tokio::test]
async fn a_process_that_ignores_being_asked_is_killed() {
    let mark = unique("stubborn");

    let ended = Line::new(
        r#"trap '' TERM
           (exec -a "$MARK" sleep 1000) &
           setsid bash -c 'exec -a "$MARK" sleep 1000' &
           echo ready
           while :; do sleep 1000; done"#,
    )
    .marked(&mark)
    .stopped_at("ready")
    .run()
    .await;

    assert_eq!(ended.cause, Cause::Stopped);
    assert_eq!(with_argument(&mark), Vec::<String>::new());
}

#[tokio::test]
async fn a_process_that_halted_has_its_last_words_too() {
    let ended = Line::new("trap 'echo bye; exit' TERM; echo ready; kill -STOP $$; sleep 1000")
        .stopped_at("ready")
        .run()
        .await;

    assert_eq!(ended.cause, Cause::Stopped);
    assert_eq!(text(&ended.output), "ready\nbye\n");
}

#[tokio::test]
async fn a_process_that_closes_its_output_is_ended_at_the_deadline() {
    let mut line = Line::new("echo before; exec >&- 2>&-; sleep 1000");
    line.job.deadline = Duration::from_millis(300);

    let ended = line.run().await;

    assert_eq!(ended.cause, Cause::Deadline);
    assert_eq!(text(&ended.output), "before\n");
}

#[tokio::test]
async fn what_holds_the_output_in_the_background_is_ended_and_counted() {
    let ended = Line::new("sleep 1000 & echo done").run().await;

    assert_eq!(ended.cause, exited(0));
    assert_eq!(text(&ended.output), "done\n");
    assert_eq!(ended.left_behind, 1);
}

#[tokio::test]
async fn what_ends_shortly_after_is_waited_for() {
    let ended = Line::new("echo through > >(bash -c cat)").run().await;

    assert_eq!(text(&ended.output), "through\n");
    assert_eq!(ended.left_behind, 0);
}

#[tokio::test]
async fn a_daemon_without_a_trace_is_ended_when_its_run_ends() {
    let mark = unique("daemon");

    let ended = Line::new(&format!("{DAEMON} echo done"))
        .marked(&mark)
        .run()
        .await;

    assert_eq!(text(&ended.output), "done\n");
    assert_eq!(ended.left_behind, 2);
    assert_eq!(with_argument(&mark), Vec::<String>::new());
}

#[tokio::test]
async fn a_daemon_without_a_trace_is_ended_when_its_run_is_stopped() {
    let mark = unique("daemon");

    let ended = Line::new(&format!("{DAEMON} echo ready; sleep 1000"))
        .marked(&mark)
        .stopped_at("ready")
        .run()
        .await;

    assert_eq!(ended.cause, Cause::Stopped);
    assert_eq!(with_argument(&mark), Vec::<String>::new());
}

#[tokio::test]
async fn a_run_ends_its_own_daemons_and_not_those_of_another() {
    let (mine, other) = (unique("mine"), unique("other"));
    let stop = CancellationToken::new();
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let ready = std::sync::Mutex::new(Some(ready));
    let line = Line::new(&format!("{DAEMON} echo ready; sleep 1000")).marked(&other);
    let progress = Arc::new(move |_: &str| {
        if let Some(ready) = ready.lock().unwrap().take() {
            let _ = ready.send(());
        }
    });
    let stopped = stop.clone();
    let running = tokio::spawn(async move { run(line.job, &stopped, progress).await });
    is_ready.await.unwrap();

    let ended = Line::new(DAEMON).marked(&mine).run().await;

    assert_eq!(ended.left_behind, 2);
    assert_eq!(with_argument(&other).len(), 2);
    stop.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(with_argument(&other), Vec::<String>::new());
}

#[tokio::test]
async fn a_storm_of_children_is_ended_to_the_last() {
    let mark = unique("storm");

    let ended = Line::new(
        r#"for i in $(seq 300); do (exec -a "$MARK" sleep 1000) & done
           echo ready; wait"#,
    )
    .marked(&mark)
    .stopped_at("ready")
    .run()
    .await;

    assert_eq!(ended.cause, Cause::Stopped);
    assert_eq!(with_argument(&mark), Vec::<String>::new());
}

#[tokio::test]
async fn a_storm_of_daemons_is_ended_and_counted() {
    let mark = unique("storm");

    let ended = Line::new(
        r#"for i in $(seq 200); do
               env -i setsid bash -c 'exec -a "$0" sleep 1000' "$MARK" >/dev/null 2>&1 &
           done"#,
    )
    .marked(&mark)
    .run()
    .await;

    assert_eq!(ended.left_behind, 200);
    assert_eq!(with_argument(&mark), Vec::<String>::new());
}

#[tokio::test]
async fn children_that_go_on_forking_are_ended() {
    let mark = unique("hydra");

    let ended = Line::new(
        r#"hydra() { trap '' TERM; while :; do setsid bash -c 'exec -a "$MARK" sleep 1000' & sleep 0.002; done; }
           for i in 1 2 3 4; do hydra & done
           echo ready; wait"#,
    )
    .marked(&mark)
    .stopped_at("ready")
    .run()
    .await;

    assert_eq!(ended.cause, Cause::Stopped);
    assert_eq!(with_argument(&mark), Vec::<String>::new());
}

#[tokio::test]
async fn the_dead_that_a_run_left_to_us_are_reaped() {
    let ended = Line::new("(bash -c 'echo $$' &); (bash -c 'echo $$; exec sleep 1000' &)")
        .run()
        .await;

    let left: Vec<_> = text(&ended.output)
        .lines()
        .filter(|pid| std::fs::exists(format!("/proc/{pid}")).unwrap())
        .collect();
    assert_eq!(text(&ended.output).lines().count(), 2);
    assert_eq!(left, Vec::<&str>::new());
}

#[tokio::test]
async fn a_run_that_nobody_waits_for_is_ended() {
    let mark = unique("dropped");
    let line = Line::new(&format!("{DAEMON} echo ready; exec sleep 1000")).marked(&mark);
    let cookie = line.job.cookie.clone();
    let (ready, mut is_ready) = tokio::sync::mpsc::unbounded_channel();
    let stop = CancellationToken::new();
    let progress = Arc::new(move |_: &str| {
        let _ = ready.send(());
    });

    tokio::select! {
        _ = run(line.job, &stop, progress) => panic!("it ended by itself"),
        _ = is_ready.recv() => {}
    }

    assert_eq!(with_argument(&mark), Vec::<String>::new());
    assert_eq!(with_cookie(&cookie), Vec::<String>::new());
}

#[tokio::test]
async fn what_cannot_be_started_says_what_it_was() {
    let mut line = Line::new("");
    line.job.program = "/no/such/program".into();
    let stop = CancellationToken::new();

    let error = run(line.job, &stop, Arc::new(|_: &str| {}))
        .await
        .unwrap_err();

    assert_eq!(
        error.to_string(),
        "cannot start `/no/such/program`: No such file or directory (os error 2)"
    );
}

#[test]
fn a_cookie_finds_processes_of_others() {
    let cookie = unique("found");
    let mut child = Command::new("setsid")
        .args(["bash", "-c", "echo; sleep 1000; true"])
        .env("IKIGAI_RUN", &cookie)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();

    let found = end_cookie(&cookie);

    // The shell, and its sleep if that had been begun.
    assert!((1..=2).contains(&found), "{found}");
    assert_eq!(child.wait().unwrap().signal(), Some(15));
    assert_eq!(with_cookie(&cookie), Vec::<String>::new());
    assert_eq!(end_cookie(&cookie), 0);
}

/// Plays an ikigai that dies while a call runs. Only `what_a_killed_ikigai_left_is_found` runs it.
#[tokio::test]
#[ignore = "is killed; run by another test"]
async fn ikigai_that_is_killed() {
    let mut line = Line::new(&format!("{DAEMON} echo ready; sleep 1000"));
    line.job.cookie = std::env::var("TEST_COOKIE").unwrap();
    let line = line.marked(&std::env::var("TEST_MARK").unwrap());
    let stop = CancellationToken::new();
    let progress = Arc::new(|_: &str| {
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    });

    run(line.job, &stop, progress).await.unwrap();
}

#[test]
fn what_a_killed_ikigai_left_is_found() {
    let (cookie, mark) = (unique("crash"), unique("left"));
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::ikigai_that_is_killed", "--ignored"])
        .env("TEST_COOKIE", &cookie)
        .env("TEST_MARK", &mark)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.signal(), Some(9));
    assert_eq!(with_argument(&mark).len(), 2);

    let found = end_cookie(&cookie);

    // The shell, perhaps its sleep, and the two daemons.
    assert!((3..=4).contains(&found), "{found}");
    assert_eq!(with_argument(&mark), Vec::<String>::new());
    assert_eq!(with_cookie(&cookie), Vec::<String>::new());
}
#[tokio::test]
async fn a_file_that_ikigai_was_handed_is_not_handed_on() {
    use std::os::fd::AsFd;
    let directory = tempfile::tempdir().unwrap();
    let handed = std::fs::File::create(directory.path().join("handed")).unwrap();
    rustix::io::fcntl_setfd(handed.as_fd(), rustix::io::FdFlags::empty()).unwrap();

    let ended = Line::new("ls -l /proc/self/fd | grep -c handed")
        .run()
        .await;

    assert_eq!(text(&ended.output), "0\n");
}

/// Runs a line and stops it when its output has a text; returns the output.
async fn output_until(mut line: Line, errors: Errors, text: &str) -> String {
    line.job.errors = errors;
    let seen = Arc::new(std::sync::Mutex::new(String::new()));
    let stop = CancellationToken::new();
    let (stopper, all, wanted) = (stop.clone(), seen.clone(), text.to_owned());
    let listeners = OutputListeners {
        line: Arc::new(|_| {}),
        output: Arc::new(move |lines| {
            let mut all = all.lock().unwrap();
            all.push_str(lines);
            if all.contains(&wanted) {
                stopper.cancel();
            }
        }),
    };

    run_with(line.job, &stop, listeners).await.unwrap();

    let seen = seen.lock().unwrap();
    seen.clone()
}

#[tokio::test]
async fn whole_lines_are_reported_while_a_process_runs() {
    let line = Line::new(r"printf 'one\n\033[31mtwo\033[0m\n\nhalf'; sleep 1000");

    let seen = output_until(line, Errors::Together, "two\n\n").await;

    assert_eq!(seen, "one\ntwo\n\n");
}

#[tokio::test]
async fn of_a_program_that_answers_only_its_errors_are_reported() {
    let line = Line::new(r"echo '{}'; echo working >&2; sleep 1000");

    let seen = output_until(line, Errors::Apart, "working\n").await;

    assert_eq!(seen, "working\n");
}
