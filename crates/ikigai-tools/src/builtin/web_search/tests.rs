use ikigai_testkit::server::{Script, Server};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{CallEnding, CallInputs, Confinement};

const KEY: &str = "sk-very-secret";

fn place() -> Place {
    Place {
        workdir: "/work".into(),
        hidden: [].into(),
    }
}

fn tool(server: &Server) -> WebSearch {
    WebSearch::new(KEY.to_owned().into(), server.url("/search"))
}

async fn searched(server: &Server, arguments: &str, stop: CancellationToken) -> Output {
    let prepared = tool(server).prepare(arguments, &place()).ok().unwrap();
    let Run::Async(run) = prepared.run else {
        panic!("it must not block");
    };
    run(CallContext {
        place: place(),
        stop,
        inputs: CallInputs::default(),
        progress: Arc::new(|_| {}),
        output: Arc::new(|_| {}),
        cookie: String::new(),
        confinement: Confinement::None,
        temporary: None,
    })
    .await
}

async fn found(server: &Server, arguments: &str) -> String {
    let output = searched(server, arguments, CancellationToken::new()).await;
    String::from_utf8(output.body).unwrap()
}

fn results(hosts: &[&str]) -> Script {
    let results: Vec<_> = hosts
        .iter()
        .map(|host| serde_json::json!({"title": host, "url": format!("https://{host}/")}))
        .collect();
    let body = serde_json::json!({"web": {"results": results}, "query": {}});
    Script::answer(200, &[], &body.to_string())
}

#[tokio::test]
async fn results_are_a_numbered_list() {
    let body = serde_json::json!({"web": {"results": [
        {"title": "A &amp; B", "url": "https://a.example/x", "description": "what <strong>it</strong>\nis"},
        {"title": "C", "url": "https://c.example/", "age": "1 day"},
        {"title": "no address"},
    ]}});
    let server = Server::start([Script::answer(200, &[], &body.to_string())]);

    let text = found(&server, r#"{"query":" two words & more ","count":5}"#).await;

    assert_eq!(
        text,
        "1. A & B\n   https://a.example/x\n   what it is\n2. C\n   https://c.example/\n"
    );
    let request = &server.received()[0];
    assert_eq!(request.line, "GET /search?q=two+words+%26+more&count=5");
    assert_eq!(request.header("x-subscription-token"), Some(KEY));
}

#[tokio::test]
async fn domains_are_kept_also_if_the_service_does_not() {
    let hosts = [
        "docs.rs",
        "a.docs.rs",
        "notdocs.rs",
        "docs.rs.evil.example",
        "b.example",
    ];
    let server = Server::start([results(&hosts), results(&hosts), results(&hosts)]);
    let allowed = r#"{"query":"x","allowed_domains":["https://Docs.rs/","b.example"],"blocked_domains":["*.b.example"]}"#;
    let blocked = r#"{"query":"x","blocked_domains":["docs.rs"],"count":2}"#;
    let nothing = r#"{"query":"x","allowed_domains":["c.example"]}"#;

    let allowed = found(&server, allowed).await;
    let blocked = found(&server, blocked).await;
    let nothing = found(&server, nothing).await;

    assert_eq!(
        allowed,
        "1. docs.rs\n   https://docs.rs/\n2. a.docs.rs\n   https://a.docs.rs/\n"
    );
    assert_eq!(
        blocked,
        "1. notdocs.rs\n   https://notdocs.rs/\n2. docs.rs.evil.example\n   https://docs.rs.evil.example/\n"
    );
    assert_eq!(nothing, "nothing was found for `x`");
    assert_eq!(
        server.received()[0].line,
        "GET /search?q=x+site%3Adocs.rs+OR+site%3Ab.example+-site%3Ab.example&count=20"
    );
}

#[tokio::test]
async fn trouble_is_explained_and_never_tells_the_key() {
    let echo = format!("your key {KEY} is wrong");
    let table = [
        (Script::answer(401, &[], &echo), "the key is not accepted"),
        (Script::answer(429, &[], &echo), "too many questions"),
        (Script::answer(422, &[], &echo), "use plain words"),
        (Script::answer(503, &[], &echo), "try again later"),
        (
            Script::answer(302, &[("location", "https://evil.example/")], &echo),
            "(status 302)",
        ),
        (
            Script::answer(200, &[], &echo),
            "did not send a list of results",
        ),
        (Script::new().reset(), "cannot be reached"),
    ];

    for (script, wanted) in table {
        let server = Server::start([script]);
        let output = searched(&server, r#"{"query":"x"}"#, CancellationToken::new()).await;
        let text = String::from_utf8(output.body).unwrap();
        assert!(text.contains(wanted), "{text}");
        assert!(!output.success);
        assert!(!text.contains(KEY) && !output.shown.contains(KEY), "{text}");
    }
}

#[tokio::test]
async fn a_key_that_cannot_be_sent_is_not_told() {
    let server = Server::start([]);
    let tool = WebSearch::new("sk\u{1}secret".to_owned().into(), server.url("/"));
    let arguments = SearchArguments {
        query: "x".to_owned(),
        count: 1,
        allowed: Vec::new(),
        blocked: Vec::new(),
    };

    let error = tool.service.ask(&arguments).await.err().unwrap();

    assert_eq!(error, "the key holds characters that cannot be sent");
}

#[tokio::test]
async fn stopping_ends_it() {
    let server = Server::start([Script::new().await_close()]);
    let stop = CancellationToken::new();
    stop.cancel();

    let output = searched(&server, r#"{"query":"x"}"#, stop).await;

    assert_eq!(output.ending, CallEnding::Stopped);
}

#[test]
fn arguments_that_cannot_work_are_explained() {
    let server = Server::start([]);
    let long = format!(r#"{{"query":"{}"}}"#, "x".repeat(401));
    let table = [
        (r#"{"query":" "}"#, "`query` is empty"),
        (long.as_str(), "`query` is longer than 400 characters"),
        (
            r#"{"query":"x","count":0}"#,
            "`count` is 0; it must be from 1 to 20",
        ),
        (
            r#"{"query":"x","count":21}"#,
            "`count` is 21; it must be from 1 to 20",
        ),
        (r#"{"count":3}"#, "missing field `query`"),
    ];

    for (arguments, wanted) in table {
        let error = tool(&server).prepare(arguments, &place()).err().unwrap();
        assert!(error.to_string().contains(wanted), "{error}");
    }
}

#[tokio::test]
async fn a_searxng_server_is_asked_without_a_key() {
    let body = serde_json::json!({"query": "x", "results": [
        {"title": "A", "url": "https://a.example/", "content": "what it is", "engine": "e"},
        {"title": "B", "url": "https://b.example/", "content": null},
        {"title": "C", "url": "https://c.example/"},
    ]});
    let answers = [
        Script::answer(200, &[], &body.to_string()),
        Script::answer(403, &[], "Forbidden"),
    ];
    let server = Server::start(answers);
    let tool = WebSearch::searxng(&server.url("/"));
    let arguments = SearchArguments {
        query: "two words".to_owned(),
        count: 2,
        allowed: Vec::new(),
        blocked: Vec::new(),
    };

    let found = tool.service.ask(&arguments).await.unwrap();
    let refused = tool.service.ask(&arguments).await.unwrap_err();

    let output = String::from_utf8(result(&arguments, &found).body).unwrap();
    assert_eq!(
        output,
        "1. A\n   https://a.example/\n   what it is\n2. B\n   https://b.example/\n"
    );
    let request = &server.received()[0];
    assert_eq!(request.line, "GET /search?q=two+words&format=json");
    assert_eq!(request.header("x-subscription-token"), None);
    assert_eq!(refused, NO_JSON);
}
