//! Windows that servers state, with a server of each kind on this machine.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::Request;
use ikigai_core::message::{Message, Role};
use ikigai_core::settings::ModelChoice;
use ikigai_providers::catalogue::ModelSpec;
use ikigai_providers::dialects;
use ikigai_providers::registry::{ProviderConfig, Registry};
use ikigai_providers::transport::{Client, Deadlines};
use ikigai_providers::{Models, WindowSource};
use ikigai_testkit::mock::Mock;
use ikigai_testkit::server::{Script, Server};
use serde::Deserialize;
use serde_json::{Value, json};

const MODEL: &str = "family/some-model";

/// Tokens that are kept for an answer of unknown length.
const RESERVE: u64 = 4_096;

fn chosen(provider: &str, model: &str) -> ModelChoice {
    ModelChoice {
        provider: Some(provider.to_owned()),
        model: Some(model.to_owned()),
        level: None,
    }
}

fn configured(name: &str, base: &str, dialect: Option<&str>, models: Vec<ModelSpec>) -> Registry {
    let config = ProviderConfig {
        base_url: Some(base.to_owned()),
        dialect: dialect.map(str::to_owned),
        key_env: Some("SOME_KEY".to_owned()),
        headers: BTreeMap::from([("x-team".to_owned(), "parsers".to_owned())]),
        ..ProviderConfig::default()
    };
    let variables = |name: &str| (name == "SOME_KEY").then(|| "sk-secret".to_owned());
    let client = Client::new(Deadlines::DEFAULT);
    let registry = Registry::new(Arc::new(variables), client, Arc::new(|| 7));
    registry.with_configuration(BTreeMap::from([(name.to_owned(), config)]), models)
}

/// Asks for the window; returns it with its source.
async fn learned(registry: &Registry, choice: &ModelChoice) -> (u64, WindowSource) {
    registry.learn_window(choice).await;
    let described = registry.describe(choice);
    let window = described.context_tokens.unwrap();
    let room = window.saturating_sub(RESERVE).max(window / 2);
    assert_eq!(registry.window_tokens(choice), room);
    let model = registry.resolve(choice).unwrap();
    assert_eq!(model.window_tokens(), room);
    (window, described.window_source)
}

fn lines(mock: &Mock) -> Vec<String> {
    let requests = mock.looked_up().into_iter();
    requests.map(|request| request.line).collect()
}

/// A kind of server: its address, its documents, and the window that they state.
#[derive(Deserialize)]
struct ServedModel {
    provider: String,
    dialect: Option<String>,
    path: String,
    documents: BTreeMap<String, Value>,
    window: u64,
}

fn listed(entry: &Value) -> Value {
    json!({"object": "list", "data": [{"id": "another", "object": "model"}, entry]})
}

#[tokio::test]
async fn the_window_of_an_unknown_model_is_what_its_server_states() {
    let kinds: Vec<ServedModel> =
        serde_json::from_str(include_str!("served_windows.json")).unwrap();
    for kind in kinds {
        let ServedModel {
            provider,
            dialect,
            path,
            documents,
            window,
        } = kind;
        let mock = Mock::start();
        for (line, document) in &documents {
            mock.will_serve(line, 200, &document.to_string());
        }
        let base = format!("{}{path}", mock.url());
        let registry = configured(&provider, &base, dialect.as_deref(), Vec::new());
        let choice = chosen(&provider, MODEL);
        let before = registry.describe(&choice);
        assert_eq!(before.window_source, WindowSource::Assumed);
        assert_eq!(before.context_tokens, Some(128_000));

        let stated = learned(&registry, &choice).await;

        assert_eq!(stated, (window, WindowSource::Served), "{documents:?}");
        for request in mock.looked_up() {
            let key = request
                .headers
                .iter()
                .any(|(_, value)| value.contains("sk-secret"));
            assert!(key, "{request:?}");
            assert_eq!(request.header("x-team"), Some("parsers"));
        }
    }
}

/// Missing and implausible window sizes give the assumed 128k tokens.
#[tokio::test]
async fn without_a_plausible_answer_128k_are_assumed() {
    let list = |number: Value| listed(&json!({"id": MODEL, "context_length": number})).to_string();
    let long = format!("{{\"data\":[{}\"\"]}}", "\"word\",".repeat(1 << 20));
    let cases = [
        (
            200,
            listed(&json!({"id": MODEL, "object": "model", "owned_by": "openai"})).to_string(),
        ),
        (200, list(json!(0))),
        (200, list(json!(-1))),
        (200, list(json!("8192"))),
        (200, list(json!(u64::MAX))),
        (200, list(json!({"a": 1}))),
        (200, "[".repeat(100_000)),
        (200, "<html>8192</html>".to_owned()),
        (200, String::new()),
        (200, "null".to_owned()),
        (200, long),
        (404, String::new()),
        (401, String::new()),
        (500, "8192".to_owned()),
        (302, String::new()),
    ];

    for (status, document) in cases {
        let mock = Mock::start();
        mock.will_serve("GET /v1/models", status, &document);
        let registry = configured("mine", &mock.url(), None, Vec::new());

        let stated = learned(&registry, &chosen("mine", MODEL)).await;

        let start = document.get(..40).unwrap_or(&document);
        assert_eq!(stated, (128_000, WindowSource::Assumed), "{status} {start}");
        let asked = lines(&mock);
        assert!(!asked.contains(&"POST /api/show".to_owned()), "{asked:?}");
    }
}

#[tokio::test]
async fn a_model_is_asked_for_once_and_a_known_one_never() {
    let mock = Mock::start();
    let list = listed(&json!({"id": MODEL, "max_model_len": 32_768}));
    mock.will_serve("GET /v1/models", 200, &list.to_string());
    let known = ModelSpec {
        context_window: Some(64_000),
        ..ModelSpec::unknown("mine".to_owned(), "known".to_owned())
    };
    let registry = configured("mine", &mock.url(), None, vec![known]);

    let both = [chosen("mine", MODEL), chosen("mine", MODEL)];
    let [first, second] = &both;
    // Side by side, as agents ask.
    tokio::join!(registry.learn_window(first), registry.learn_window(second));
    registry.learn_window(first).await;
    registry.learn_window(&chosen("mine", "known")).await;
    registry.learn_window(&chosen("demo", "demo")).await;

    assert_eq!(lines(&mock), ["GET /v1/models"]);
    let described = registry.describe(&chosen("mine", "known"));
    assert_eq!(described.window_source, WindowSource::Known);
    assert_eq!(described.context_tokens, Some(64_000));
}

/// The window of a model that is not loaded yet is queried again later.
///
/// Ollama and LM Studio load a model at its first request, with less than its largest window.
#[tokio::test]
async fn the_window_of_a_model_that_is_not_loaded_is_asked_for_again() {
    let mock = Mock::start();
    let info = json!({"general.architecture": "a", "a.context_length": 262_144});
    let shown = json!({"model_info": info}).to_string();
    mock.will_serve("POST /api/show", 200, &shown);
    mock.will_serve("GET /api/ps", 200, "{\"models\":[]}");
    let registry = configured("ollama", &mock.url(), None, Vec::new());
    let choice = chosen("ollama", MODEL);

    let first = learned(&registry, &choice).await;
    let loaded = json!({"models": [{"name": MODEL, "model": MODEL, "context_length": 4_096}]});
    mock.will_serve("GET /api/ps", 200, &loaded.to_string());
    let second = learned(&registry, &choice).await;
    let asked = mock.looked_up().len();
    registry.learn_window(&choice).await;

    assert_eq!(first, (262_144, WindowSource::Served));
    assert_eq!(second, (4_096, WindowSource::Served));
    assert_eq!(mock.looked_up().len(), asked, "then it is settled");
    let show = mock
        .looked_up()
        .into_iter()
        .find(|it| it.line == "POST /api/show");
    let body: Value = serde_json::from_slice(&show.unwrap().body).unwrap();
    assert_eq!(body, json!({"model": MODEL}));
}

#[tokio::test]
async fn a_server_that_starts_is_asked_again_but_not_for_ever() {
    let mock = Mock::start();
    let loading =
        "{\"error\":{\"code\":503,\"message\":\"Loading model\",\"type\":\"unavailable_error\"}}";
    mock.will_serve("GET /v1/models", 503, loading);
    let registry = configured("mine", &mock.url(), None, Vec::new());
    let choice = chosen("mine", MODEL);

    for _ in 0..10 {
        assert_eq!(learned(&registry, &choice).await.1, WindowSource::Assumed);
    }

    assert_eq!(lines(&mock), ["GET /v1/models"; 3]);
}

/// A server that accepts and never answers delays one request, by a short time.
#[tokio::test]
async fn a_silent_server_is_given_up_soon_and_for_good() {
    let server = Server::start([Script::new().await_close()]);
    let registry = configured("mine", &server.url(""), None, Vec::new());
    let choice = chosen("mine", MODEL);

    let within = tokio::time::timeout(Duration::from_secs(20), learned(&registry, &choice));
    let stated = within.await.expect("the lookup has a deadline");
    registry.learn_window(&choice).await;

    assert_eq!(stated, (128_000, WindowSource::Assumed));
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_no_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let registry = configured("mine", &format!("http://{address}"), None, Vec::new());

    let stated = learned(&registry, &chosen("mine", MODEL)).await;

    assert_eq!(stated, (128_000, WindowSource::Assumed));
}

/// A redirect would carry the key to a host that the user did not choose.
#[tokio::test]
async fn no_key_follows_a_redirect() {
    let other = Mock::start();
    let elsewhere = format!("{}/v1/models", other.url());
    let redirect = || Script::answer(307, &[("location", elsewhere.as_str())], "");
    let server = Server::start([redirect(), redirect(), redirect(), redirect(), redirect()]);
    let registry = configured("mine", &server.url(""), None, Vec::new());

    let stated = learned(&registry, &chosen("mine", MODEL)).await;

    assert_eq!(stated, (128_000, WindowSource::Assumed));
    assert!(other.looked_up().is_empty());
    assert!(!server.received().is_empty());
}

fn spelled(registry: &Registry, choice: &ModelChoice, dialect: &str) -> Value {
    let request = Request {
        messages: vec![Message::text(Role::User, "hello")],
        ..Request::default()
    };
    registry.preview(choice, &request, "c", dialects::by_name(dialect).unwrap())
}

/// A limit of answers is sent where the dialect requires one or the user wants one.
#[test]
fn answers_are_as_long_as_the_server_allows_unless_the_user_limits_them() {
    let limits = |body: &Value| {
        let places = [
            "/max_tokens",
            "/max_completion_tokens",
            "/max_output_tokens",
            "/generationConfig/maxOutputTokens",
        ];
        let found: Vec<_> = places
            .iter()
            .filter_map(|place| body.pointer(place))
            .collect();
        found.into_iter().cloned().collect::<Vec<_>>()
    };
    let wanted = ModelSpec {
        context_window: Some(100_000),
        max_output: Some(40_000),
        output_limit: Some(40_000),
        ..ModelSpec::unknown("mine".to_owned(), "limited".to_owned())
    };
    let registry = configured("mine", "http://127.0.0.1:9", None, vec![wanted]);
    let nothing: [u64; 0] = [];
    let cases = [
        ("mine", "unknown", "chat", &nothing[..]),
        ("mine", "unknown", "responses", &nothing),
        ("mine", "unknown", "gemini", &nothing),
        ("mine", "unknown", "messages", &[4_096]),
        ("mine", "limited", "chat", &[40_000]),
        ("mine", "limited", "responses", &[40_000]),
        ("mine", "limited", "gemini", &[40_000]),
        ("mine", "limited", "messages", &[40_000]),
        ("openai", "gpt-5", "responses", &nothing),
        ("google", "gemini-3.5-flash", "gemini", &nothing),
        ("anthropic", "claude-opus-5-5", "messages", &[32_000]),
        // Their servers would cut answers at a few thousand tokens.
        ("deepseek", "deepseek-v4-pro", "chat", &[32_000]),
    ];

    for (provider, model, dialect, expected) in cases {
        let body = spelled(&registry, &chosen(provider, model), dialect);
        assert_eq!(limits(&body), expected, "{provider}:{model} in {dialect}");
    }
    // The answer's tokens are reserved nevertheless.
    assert_eq!(
        registry.window_tokens(&chosen("mine", "unknown")),
        128_000 - 4_096
    );
    assert_eq!(registry.window_tokens(&chosen("mine", "limited")), 60_000);
    assert_eq!(
        registry.window_tokens(&chosen("openai", "gpt-5")),
        400_000 - 32_000
    );
}
