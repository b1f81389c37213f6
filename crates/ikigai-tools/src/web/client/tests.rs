use ikigai_testkit::server::{Script, Server};

use super::super::address::system;
use super::*;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

#[test]
fn only_redirections_within_the_host_are_followed() {
    let from = url("https://docs.example/a/b?c");
    let follow = |text: &str| Hop::Follow(url(text));
    let elsewhere = |text: &str| Hop::OtherHost(url(text));
    let table = [
        ("/x", follow("https://docs.example/x")),
        ("y?z#w", follow("https://docs.example/a/y?z")),
        (
            "https://www.docs.example/x",
            follow("https://www.docs.example/x"),
        ),
        (
            "https://evil.example/x",
            elsewhere("https://evil.example/x"),
        ),
        ("//evil.example/x", elsewhere("https://evil.example/x")),
        (
            "https://docs.example.evil/x",
            elsewhere("https://docs.example.evil/x"),
        ),
        (
            "https://docs.example:8443/x",
            elsewhere("https://docs.example:8443/x"),
        ),
        (
            "https://u@docs.example/x",
            elsewhere("https://u@docs.example/x"),
        ),
        ("http://docs.example/x", elsewhere("http://docs.example/x")),
        (
            "http://169.254.169.254/",
            elsewhere("http://169.254.169.254/"),
        ),
        ("file:///etc/passwd", Hop::Stay),
        ("gopher://docs.example/", Hop::Stay),
        ("https://", Hop::Stay),
    ];

    for (location, wanted) in table {
        assert_eq!(hop_to(&from, location), wanted, "{location}");
    }
    let plain = url("http://docs.example/");
    assert_eq!(
        hop_to(&plain, "https://docs.example/"),
        follow("https://docs.example/")
    );
}

#[tokio::test]
async fn redirections_end_after_five() {
    let script = || Script::answer(302, &[("location", "/again")], "");
    let server = Server::start((0..10).map(|_| script()));
    let client = WebClient::new(NetworkReach::Everything, system());

    let answer = client.get(url(&server.url("/")), &HeaderMap::new()).await;

    let error = answer.err().unwrap();
    assert_eq!(error, FetchError::Circle(url(&server.url("/again"))));
    assert_eq!(server.received().len(), 6);
}

/// Attack: a name that leads `web_fetch` to a private address.
#[tokio::test]
async fn a_name_that_leads_to_a_private_address_is_not_connected_to() {
    let server = Server::start([Script::answer(200, &[], "secret")]);
    let client = WebClient::new(NetworkReach::Public, system());
    let port = server.address().rsplit(':').next().unwrap().to_owned();

    let answer = client
        .get(url(&format!("http://localhost:{port}/")), &HeaderMap::new())
        .await;

    let error = answer.err().unwrap();
    assert!(
        matches!(&error, FetchError::Refused(why) if why.contains("`localhost`")),
        "{error}"
    );
    assert_eq!(server.received(), []);
}

#[tokio::test]
async fn a_body_is_read_up_to_a_limit() {
    let server = Server::start([
        Script::answer(200, &[], "0123456789"),
        Script::answer(200, &[], "01234"),
    ]);
    let client = WebClient::new(NetworkReach::Everything, system());
    let mut found = Vec::new();

    for _ in 0..2 {
        let answer = client.get(url(&server.url("/")), &HeaderMap::new()).await;
        let mut response = answer.ok().unwrap().response;
        found.push(read(&mut response, 5).await.unwrap());
    }

    assert_eq!(
        found,
        [(b"01234".to_vec(), true), (b"01234".to_vec(), false)]
    );
}
