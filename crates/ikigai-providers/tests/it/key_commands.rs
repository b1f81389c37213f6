//! Key commands: run when their provider gets a request, and at no other time.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::Request;
use ikigai_core::message::{Message, Role};
use ikigai_core::settings::ModelChoice;
use ikigai_providers::registry::{ProviderConfig, Registry};
use ikigai_providers::transport::{Client, Deadlines};
use ikigai_providers::{FailureKind, Models, ProviderError, ResponseStream};
use ikigai_testkit::server::{Script, Server};
use secrecy::ExposeSecret;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(30);

/// Returns a provider whose key is printed by `command`.
fn registry(server: &Server, command: &str) -> Registry {
    let config = ProviderConfig {
        base_url: Some(server.url("")),
        key_command: Some(command.to_owned()),
        ..ProviderConfig::default()
    };
    let providers = [("anthropic".to_owned(), config)].into_iter().collect();
    let registry = Registry::new(
        Arc::new(|_| None),
        Client::new(Deadlines::DEFAULT),
        Arc::new(|| 7),
    );
    registry.with_configuration(providers, Vec::new())
}

fn ask(registry: &Registry) -> Box<dyn ResponseStream> {
    let choice = ModelChoice {
        provider: Some("anthropic".to_owned()),
        model: Some("claude-opus-5-5".to_owned()),
        level: None,
    };
    let request = Request {
        messages: vec![Message::text(Role::User, "hello")],
        ..Request::default()
    };
    registry.resolve(&choice).unwrap().answer(request, "agent")
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Returns the failure with which an answer begins.
fn failure(answer: &mut dyn ResponseStream) -> ProviderError {
    let next = runtime().block_on(async { timeout(PATIENCE, answer.next()).await });
    next.unwrap().unwrap().unwrap_err()
}

#[test]
fn a_key_command_runs_once_and_only_when_its_provider_is_asked() {
    let directory = tempfile::tempdir().unwrap();
    let runs = directory.path().join("runs");
    let refused = || Script::answer(400, &[], "{}");
    let server = Server::start([refused(), refused()]);
    let command = format!("echo run >> {}; echo sk-secret", runs.display());
    let registry = registry(&server, &command);

    registry.first_choice().unwrap();
    registry.choose("claude-opus-5-5").unwrap();
    registry.offers();
    assert!(registry.is_reachable("anthropic"));
    let unused = ask(&registry);
    drop(unused);
    let before = runs.exists();
    for _ in 0..2 {
        failure(&mut *ask(&registry));
    }

    assert!(!before, "No requests yet");
    assert_eq!(fs::read_to_string(&runs).unwrap(), "run\n");
    for received in server.received() {
        let keys: Vec<_> = received
            .headers
            .iter()
            .filter(|(name, _)| name == "x-api-key")
            .collect();
        assert_eq!(keys.len(), 1, "{:?}", received.headers);
        assert_eq!(keys[0].1, "sk-secret");
    }
    let known = registry.later_keys();
    assert_eq!(known[0].expose_secret(), "sk-secret", "it is blanked");
}

#[test]
fn a_key_command_that_fails_shows_nothing_of_what_it_printed() {
    let server = Server::start([]);
    // The user who runs the tests may have a key; no command gets it.
    let leaks = "test -n \"$ANTHROPIC_API_KEY$OPENAI_API_KEY\" && echo sk-secret";
    for command in ["echo sk-secret; exit 3", "true", leaks] {
        let error = failure(&mut *ask(&registry(&server, command)));

        assert_eq!(error.kind, FailureKind::Unauthorized);
        let message = error.message;
        assert!(
            message.contains("the key command of `anthropic`"),
            "{message}"
        );
        assert!(!message.contains("sk-secret"), "{message}");
    }
    assert!(server.received().is_empty(), "no request without its key");
}

#[test]
fn other_work_goes_on_while_a_key_command_runs() {
    let directory = tempfile::tempdir().unwrap();
    let gate = directory.path().join("gate");
    let runs = directory.path().join("runs");
    let server = Server::start([Script::answer(400, &[], "{}")]);
    let command = format!(
        "echo run >> {}; while ! test -e {}; do sleep 0.01; done; echo sk-secret",
        runs.display(),
        gate.display()
    );
    let mut answer = ask(&registry(&server, &command));

    runtime().block_on(async {
        // Dropping the wait and waiting again does not start the command again.
        for _ in 0..3 {
            let waited = timeout(Duration::from_millis(20), answer.next()).await;
            assert!(waited.is_err(), "the command has not printed the key");
        }
        fs::write(&gate, "").unwrap();
        let next = timeout(PATIENCE, answer.next()).await.unwrap();
        next.unwrap().unwrap_err();
    });

    assert_eq!(fs::read_to_string(&runs).unwrap(), "run\n");
    assert_eq!(server.received().len(), 1);
}

#[test]
fn an_answer_that_is_dropped_ends_its_key_command_and_all_its_processes() {
    let directory = tempfile::tempdir().unwrap();
    let pid = directory.path().join("pid");
    let server = Server::start([]);
    let command = format!("sleep 600 & echo $! > {}; wait", pid.display());
    let mut answer = ask(&registry(&server, &command));

    let is_gone = runtime().block_on(async {
        let started = async {
            while fs::read_to_string(&pid).map_or(true, |text| !text.ends_with('\n')) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            _ = answer.next() => panic!("the command does not end"),
            started = timeout(PATIENCE, started) => started.unwrap(),
        }
        drop(answer);
        let number = fs::read_to_string(&pid).unwrap();
        let ended = async {
            while is_running(number.trim()) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, ended).await.is_ok()
    });

    assert!(is_gone);
}

fn is_running(pid: &str) -> bool {
    let status = fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    // A zombie counts as dead.
    status.is_ok_and(|status| !status.contains(") Z "))
}
