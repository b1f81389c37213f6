use ikigai_testkit::server::{Script, Server};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{CallEnding, CallInputs, Confinement};

const HTML: &[(&str, &str)] = &[("content-type", "text/html; charset=utf-8")];

fn place() -> Place {
    Place {
        workdir: "/work".into(),
        hidden: [].into(),
    }
}

fn context(stop: CancellationToken) -> CallContext {
    CallContext {
        place: place(),
        stop,
        inputs: CallInputs::default(),
        progress: Arc::new(|_| {}),
        output: Arc::new(|_| {}),
        cookie: String::new(),
        confinement: Confinement::None,
        temporary: None,
    }
}

/// Limits that allow this machine, where the test server runs.
fn local() -> WebLimits {
    WebLimits {
        allow_private: true,
        ..WebLimits::default()
    }
}

async fn fetched(limits: WebLimits, arguments: &str) -> Output {
    let tool = WebFetch::new(limits);
    let prepared = tool.prepare(arguments, &place()).ok().unwrap();
    let Run::Async(run) = prepared.run else {
        panic!("it must not block");
    };
    run(context(CancellationToken::new())).await
}

async fn fetched_url(limits: WebLimits, url: &str) -> Output {
    fetched(limits, &serde_json::json!({ "url": url }).to_string()).await
}

/// Waits until the connection is closed, on another thread: the client closes it on this one.
async fn closed(server: Server) {
    let waiting = tokio::task::spawn_blocking(move || server.await_closed());
    waiting.await.unwrap();
}

fn body(output: &Output) -> String {
    String::from_utf8(output.body.clone()).unwrap()
}

#[test]
fn a_call_says_whom_it_would_ask() {
    let table = [
        (
            "https://Docs.RS/serde#x",
            "https://docs.rs/serde",
            "https://docs.rs/*",
        ),
        (
            " http://a.example:8080?q ",
            "http://a.example:8080/?q",
            "http://a.example:8080/*",
        ),
        (
            "https://a.example:443/b/../c",
            "https://a.example/c",
            "https://a.example/*",
        ),
    ];

    for (url, subject, pattern) in table {
        let arguments = serde_json::json!({ "url": url }).to_string();
        let tool = WebFetch::new(WebLimits::default());
        let prepared = tool.prepare(&arguments, &place()).ok().unwrap();
        assert_eq!(prepared.class, EffectClass::Network);
        assert_eq!(
            (prepared.subject.as_str(), prepared.pattern.as_str()),
            (subject, pattern)
        );
    }
}

#[test]
fn arguments_that_cannot_work_are_explained() {
    let table = [
        (
            r#"{"url":"docs.rs/x"}"#,
            "a whole address begins with `https://`",
        ),
        (
            r#"{"url":"file:///etc/passwd"}"#,
            "only `https://` and `http://` can be fetched",
        ),
        (
            r#"{"url":"https://me:secret@a.example/"}"#,
            "must not hold a user's name",
        ),
        (r#"{"url":"https://a.example/","limit":0}"#, "`limit` is 0"),
        (r#"{"page":"x"}"#, "ignored unknown field `page`"),
    ];

    for (arguments, wanted) in table {
        let tool = WebFetch::new(WebLimits::default());
        let error = tool.prepare(arguments, &place()).err().unwrap().to_string();
        assert!(error.contains(wanted), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn a_page_becomes_markdown() {
    let html = "<title>T</title><h1>Hello</h1><p>See <a href='/x'>there</a>.";
    let server = Server::start([Script::answer(200, HTML, html)]);

    let output = fetched_url(local(), &server.url("/page")).await;

    let address = server.url("");
    let wanted = format!("{address}/page\n\nTitle: T\n\n# Hello\n\nSee [there]({address}/x).");
    assert_eq!(body(&output), wanted);
    assert!(output.success);
    let request = &server.received()[0];
    assert_eq!(request.line, "GET /page");
    assert_eq!(request.header("accept-encoding"), Some("identity"));
}

#[tokio::test]
async fn text_stays_as_it_is_and_the_rest_is_named() {
    let json = Script::answer(200, &[("content-type", "application/json")], "{\"a\": 1}");
    let image = Script::answer(200, &[("content-type", "image/png")], "12345");
    let server = Server::start([json, image]);

    let json = fetched_url(local(), &server.url("/")).await;
    let image = fetched_url(local(), &server.url("/")).await;

    let address = server.url("/");
    assert_eq!(body(&json), format!("{address}\n\n{{\"a\": 1}}"));
    assert_eq!(
        body(&image),
        format!("{address} is image/png, 5 bytes: no text that could be shown")
    );
}

#[tokio::test]
async fn long_texts_come_in_parts_of_characters() {
    let text = [("content-type", "text/plain")];
    let server = Server::start((0..3).map(|_| Script::answer(200, &text, "äbcdefghij")));
    let url = server.url("/");
    let part = |offset: usize, limit: usize| {
        let arguments = serde_json::json!({"url": url, "offset": offset, "limit": limit});
        async move { body(&fetched(local(), &arguments.to_string()).await) }
    };

    assert_eq!(
        part(0, 4).await,
        format!("{url}\n\näbcd\n\n[characters 0 to 4 of 10; go on with `offset` 4]")
    );
    assert_eq!(
        part(8, 4).await,
        format!("{url}\n\nij\n\n[characters 8 to 10 of 10]")
    );
    assert_eq!(
        part(10, 4).await,
        format!("{url}\n\n[there are only 10 characters]")
    );
}

#[tokio::test]
async fn only_the_beginning_of_a_huge_page_is_read() {
    // The response never ends, so a tool without a limit would hang.
    let huge = Script::new()
        .head(200, &[("content-type", "text/plain")])
        .send("0123456789")
        .await_close();
    let server = Server::start([huge]);
    let limits = WebLimits {
        most_bytes: 4,
        ..local()
    };

    let output = fetched_url(limits, &server.url("/")).await;

    let url = server.url("/");
    assert_eq!(
        body(&output),
        format!("{url}\n\n0123\n\n[the page is longer than what is read of one]")
    );
    closed(server).await;
}

#[tokio::test]
async fn errors_are_told_with_the_beginning_of_their_page() {
    let script = Script::answer(404, HTML, &format!("<p>No {}", "x".repeat(5000)));
    let server = Server::start([script]);

    let output = fetched_url(local(), &server.url("/")).await;

    let begin = format!("{} answers 404: Not Found\n\nNo xxx", server.url("/"));
    assert!(body(&output).starts_with(&begin), "{}", body(&output));
    assert!(output.body.len() < 3000);
    assert!(!output.success);
}

#[tokio::test]
async fn redirections_within_the_host_are_followed() {
    let moved = Script::answer(301, &[("location", "/new#part")], "");
    let page = Script::answer(200, HTML, "there");
    let server = Server::start([moved, page]);

    let output = fetched_url(local(), &server.url("/old")).await;

    assert_eq!(body(&output), format!("{}\n\nthere", server.url("/new")));
}

/// Attack: redirects of `web_fetch` to other hosts.
#[tokio::test]
async fn a_redirection_elsewhere_is_told_and_nobody_is_asked() {
    let other = Server::start([Script::answer(200, HTML, "secret")]);
    let moved = Script::answer(302, &[("location", &other.url("/x"))], "");
    let server = Server::start([moved]);

    let output = fetched_url(local(), &server.url("/")).await;

    assert!(!output.success);
    let begin = format!(
        "{} leads to {}, which is another host",
        server.url("/"),
        other.url("/x")
    );
    assert!(body(&output).starts_with(&begin), "{}", body(&output));
    assert_eq!(other.received(), []);
}

/// Attack: private addresses by `web_fetch`.
#[tokio::test]
async fn private_addresses_are_refused_unless_allowed() {
    let server = Server::start([Script::answer(200, HTML, "secret")]);
    let port = server.address().rsplit(':').next().unwrap().to_owned();
    let hosts = [
        "127.0.0.1",
        "127.1",
        "localhost",
        "[::ffff:127.0.0.1]",
        "0x7f.0.0.1",
    ];

    for host in hosts {
        let output = fetched_url(WebLimits::default(), &format!("http://{host}:{port}/")).await;
        assert!(!output.success, "{host}");
        assert!(
            body(&output).contains("is a private address"),
            "{}",
            body(&output)
        );
    }
    assert_eq!(server.received(), []);
}

#[tokio::test]
async fn stopping_closes_the_connection() {
    let script = Script::new().head(200, HTML).send("some").await_close();
    let server = Server::start([script]);
    let tool = WebFetch::new(local());
    let arguments = serde_json::json!({ "url": server.url("/") }).to_string();
    let prepared = tool.prepare(&arguments, &place()).ok().unwrap();
    let Run::Async(run) = prepared.run else {
        panic!("it must not block");
    };
    let (told, mut telling) = tokio::sync::mpsc::unbounded_channel();
    let stop = CancellationToken::new();
    let context = CallContext {
        progress: Arc::new(move |line| told.send(line.to_owned()).unwrap()),
        ..context(stop.clone())
    };
    let running = tokio::spawn(run(context));
    let line = telling.recv().await;
    assert_eq!(line, Some(format!("reading {}", server.url("/"))));

    stop.cancel();
    let output = running.await.unwrap();

    assert_eq!(output.ending, CallEnding::Stopped);
    assert!(!output.success);
    closed(server).await;
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    let server = Server::start([Script::new().await_close()]);
    let limits = WebLimits {
        deadline: Duration::from_millis(50),
        ..local()
    };

    let output = fetched_url(limits, &server.url("/")).await;

    assert_eq!(
        body(&output),
        format!("{}: the server did not answer in time", server.url("/"))
    );
}

#[tokio::test]
async fn what_cannot_be_reached_or_read_is_explained() {
    let gone = Server::start([]).url("/");
    let packed = [("content-type", "text/plain"), ("content-encoding", "br")];
    let server = Server::start([Script::answer(200, &packed, "x"), Script::new().reset()]);

    let unreachable = fetched_url(local(), &gone).await;
    let unreadable = fetched_url(local(), &server.url("/")).await;
    let broken = fetched_url(local(), &server.url("/")).await;

    assert!(
        body(&unreachable).contains("cannot be reached: "),
        "{}",
        body(&unreachable)
    );
    assert!(
        body(&unreadable).contains("packed as `br`"),
        "{}",
        body(&unreadable)
    );
    assert!(
        body(&broken).contains("cannot be reached: "),
        "{}",
        body(&broken)
    );
}
