//! Tests of the proxy: which hosts it reaches, and what hostile clients get.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::request_head::parse;
use super::*;

fn hosts(names: &[&str]) -> Arc<[AllowedHost]> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

fn target(authority: &str) -> RequestTarget {
    RequestTarget::parse(authority, None).unwrap()
}

/// Attack: names like a listed one, other ports, mapped addresses.
#[test]
fn listed_hosts_are_names_parents_and_addresses_with_ports() {
    let list = hosts(&[
        "GitHub.com.",
        "*.example.com",
        "git.example.org:22",
        "10.0.0.5:8080",
        "[2001:db8::1]",
    ]);
    let cases = [
        ("github.com:443", true),
        ("GITHUB.COM.:80", true),
        ("github.com:22", false),
        ("evilgithub.com:443", false),
        ("github.com.evil.org:443", false),
        ("static.example.com:443", true),
        ("a.b.example.com:443", true),
        ("example.com:443", false),
        ("evilexample.com:443", false),
        ("git.example.org:22", true),
        ("git.example.org:443", false),
        ("10.0.0.5:8080", true),
        ("10.0.0.5:80", false),
        ("[::ffff:10.0.0.5]:8080", true),
        ("[2001:db8::1]:443", true),
        ("[2001:db8:0:0::1]:80", true),
        ("[2001:db8::2]:443", false),
    ];

    for (name, is_allowed) in cases {
        let found = list.iter().any(|host| host.includes(&target(name)));
        assert_eq!(found, is_allowed, "{name}");
    }
    let shown: Vec<_> = list.iter().map(ToString::to_string).collect();
    let again: Vec<AllowedHost> = shown.iter().map(|text| text.parse().unwrap()).collect();
    assert_eq!(again, list.to_vec());
}

#[test]
fn a_narrower_list_is_covered_by_a_wider_one() {
    let covers = |ours: &str, theirs: &str| hosts(&[ours])[0].covers(&hosts(&[theirs])[0]);

    assert!(covers("*.example.com", "static.example.com"));
    assert!(covers("*.example.com", "*.eu.example.com"));
    assert!(covers("example.com", "example.com:443"));
    assert!(!covers("example.com:443", "example.com"));
    assert!(!covers("example.com", "example.com:22"));
    assert!(!covers("*.example.com", "example.com"));
    assert!(!covers("static.example.com", "*.example.com"));
    assert!(!covers("*.example.com", "*.io"));
}

#[test]
fn texts_that_are_no_hosts_are_refused() {
    let long = format!("{}.com", "a".repeat(64));
    for text in [
        "",
        "*",
        "*.",
        "a*.com",
        "https://github.com",
        "github.com/path",
        "me@github.com",
        "github.com:",
        "github.com:0",
        "github.com:65536",
        "github.com:+80",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "example.0x7f",
        "a..b",
        "[::1",
        "::1",
        "a b",
        "a\0b",
        "é.com",
        &long,
    ] {
        assert!(text.parse::<AllowedHost>().is_err(), "{text}");
        assert_eq!(RequestTarget::parse(text, Some(80)), None, "{text}");
    }
}

/// Attack: requests that name two hosts, smuggled and folded heads.
#[test]
fn heads_that_could_mean_two_things_are_refused() {
    let refused: &[&[u8]] = &[
        b"",
        b"GET / HTTP/1.1",
        b"GET https://github.com/ HTTP/1.1",
        b"CONNECT github.com HTTP/1.1",
        b"CONNECT github.com:443@evil.com HTTP/1.1",
        b"CONNECT github.com:443@evil.com:443 HTTP/1.1",
        b"CONNECT evil.com:443\tgithub.com:443 HTTP/1.1",
        b"CONNECT github.com:443 evil.com:443 HTTP/1.1",
        b"CONNECT github.com:443/evil.com HTTP/1.1",
        b"CONNECT github.com\0.evil.com:443 HTTP/1.1",
        b"CONNECT github.com:443 HTTP/2",
        b"connect github.com:443 HTTP/1.1",
        b"GET http://github.com@evil.com/ HTTP/1.1",
        b"GET http://me:key@github.com/ HTTP/1.1",
        b"GET http://evil.com\\github.com/ HTTP/1.1",
        b"GET http:///evil.com HTTP/1.1",
        b"GET http://github.com/ HTTP/1.1\r\nA: b\nHost: evil.com",
        b"GET http://github.com/ HTTP/1.1\r\n folded: line",
        b"GET http://github.com/ HTTP/1.1\r\nno colon",
        b"GET http://github.com/ HTTP/1.1\r\nHost : evil.com",
        b"POST http://github.com/ HTTP/1.1\r\nTransfer-Encoding: chunked",
        b"POST http://github.com/ HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6",
        b"POST http://github.com/ HTTP/1.1\r\nContent-Length: +5",
        b"GET http://github.com/\xff HTTP/1.1",
    ];

    for head in refused {
        let shown = String::from_utf8_lossy(head).into_owned();
        assert!(parse(head).is_err(), "{shown}");
    }
}

/// Attack: a false `Host` behind a listed host.
#[test]
fn a_forwarded_head_names_the_judged_host_only() {
    let head = b"POST http://github.com/a?b HTTP/1.1\r\nHost: evil.com\r\nAccept: */*\r\n\
        Proxy-Authorization: x\r\nConnection: keep-alive\r\nContent-Length: 3";

    let ProxyRequest::Forward {
        target: found,
        head,
        body_bytes,
    } = parse(head).unwrap()
    else {
        panic!("no request to forward");
    };

    assert_eq!((found, body_bytes), (target("github.com:80"), 3));
    let expected = "POST /a?b HTTP/1.1\r\nHost: github.com\r\nAccept: */*\r\n\
        Content-Length: 3\r\nConnection: close\r\n\r\n";
    assert_eq!(String::from_utf8(head).unwrap(), expected);
}

/// A server that answers each connection with the bytes that it got.
async fn server() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let mut bytes = vec![0; 1024];
                while let Ok(read @ 1..) = client.read(&mut bytes).await {
                    client.write_all(&bytes[..read]).await.unwrap();
                    if bytes[..read].ends_with(b"end") {
                        return;
                    }
                }
            });
        }
    });
    (address, count)
}

/// Starts a proxy for which every name leads to this address.
fn proxy(names: &[&str], address: SocketAddr) -> (HostProxy, RefusalLog) {
    let log = RefusalLog::default();
    let lookup: Lookup = Arc::new(move |_| Box::pin(async move { Ok(vec![address]) }));
    let proxy = HostProxy::with_lookup(hosts(names), log.clone(), lookup).unwrap();
    (proxy, log)
}

async fn exchange(proxy: &HostProxy, request: &[u8]) -> String {
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    client.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    let _ = client.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

fn refused(log: &RefusalLog) -> Vec<String> {
    let names = log.all().into_iter();
    names.filter_map(|refusal| refusal.name).collect()
}

#[tokio::test]
async fn a_listed_address_is_reached_by_tunnel_and_by_request() {
    let (address, count) = server().await;
    let (proxy, log) = proxy(&[&address.to_string()], address);

    let connect = format!("CONNECT {address} HTTP/1.1\r\n\r\nhello end");
    let tunnel = exchange(&proxy, connect.as_bytes()).await;
    let request = format!(
        "POST http://{address}/ HTTP/1.1\r\nContent-Length: 3\r\n\r\nendPOST http://evil.com/ HTTP/1.1\r\n\r\n"
    );
    let forwarded = exchange(&proxy, request.as_bytes()).await;

    assert_eq!(
        tunnel,
        "HTTP/1.1 200 Connection established\r\n\r\nhello end"
    );
    assert!(forwarded.starts_with("POST / HTTP/1.1\r\n"), "{forwarded}");
    assert!(forwarded.ends_with("\r\n\r\nend"), "{forwarded}");
    assert_eq!(count.load(Ordering::SeqCst), 2);
    assert_eq!(refused(&log), Vec::<String>::new());
}

/// A listed name that leads to this machine or to the local network does not reach it.
///
/// Attack: a listed name that leads to a private address (DNS).
#[tokio::test]
async fn names_that_lead_to_private_addresses_are_refused() {
    let (listening, count) = server().await;
    for address in [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "0.0.0.0",
        "::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "fe80::1",
    ] {
        let address = SocketAddr::new(address.parse().unwrap(), listening.port());
        let name = format!("example.com:{}", listening.port());
        let (proxy, log) = proxy(&[&name], address);

        let answer = exchange(
            &proxy,
            format!("CONNECT {name} HTTP/1.1\r\n\r\n").as_bytes(),
        )
        .await;

        assert!(answer.starts_with("HTTP/1.1 403 "), "{address}: {answer}");
        assert_eq!(refused(&log), [name], "{address}");
    }
    assert_eq!(count.load(Ordering::SeqCst), 0);
}

/// An address that is not listed is refused however it is written, also one that the lookup would
/// read as loopback; the lookup is not even asked.
///
/// Attack: IP literals and odd spellings of loopback through the proxy.
#[tokio::test]
async fn odd_spellings_of_addresses_reach_nothing() {
    let (address, count) = server().await;
    let looked = Arc::new(AtomicUsize::new(0));
    let counted = looked.clone();
    let lookup: Lookup = Arc::new(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { Ok(vec![address]) })
    });
    let list = hosts(&["example.com", "*.example.com", "192.0.2.1"]);
    let proxy = HostProxy::with_lookup(list, RefusalLog::default(), lookup).unwrap();
    let port = address.port();
    for host in [
        "127.0.0.1",
        "127.1",
        "0",
        "0.0.0.0",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "017700000001",
        "localhost",
        "LOCALHOST.",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[0:0:0:0:0:ffff:7f00:1]",
        "[64:ff9b::127.0.0.1]",
        "[fe80::1%25lo]",
        "192.0.2.01",
        "192.0.513",
        "example.com.evil.org",
        "evil.org#example.com",
        "evil.org%00.example.com",
        "evil.org\u{ff0e}example.com",
    ] {
        for port in [80, 443, port] {
            let connect = format!("CONNECT {host}:{port} HTTP/1.1\r\n\r\n");
            let fetch = format!("GET http://{host}:{port}/ HTTP/1.1\r\n\r\n");
            for request in [connect, fetch] {
                let answer = exchange(&proxy, request.as_bytes()).await;
                let is_refused = ["HTTP/1.1 403 ", "HTTP/1.1 400 "]
                    .iter()
                    .any(|head| answer.starts_with(head));
                assert!(is_refused, "{request}: {answer}");
            }
        }
    }

    assert_eq!(count.load(Ordering::SeqCst), 0);
    assert_eq!(looked.load(Ordering::SeqCst), 0);
}

/// Attack: endless heads, plain requests and other ports at the proxy.
#[tokio::test]
async fn other_hosts_and_bad_heads_reach_nothing() {
    let (address, count) = server().await;
    let (proxy, log) = proxy(&["example.com"], address);
    let endless = format!(
        "CONNECT example.com:443 HTTP/1.1\r\nA: {}\r\n\r\n",
        "a".repeat(2 * MOST_HEAD_BYTES)
    );
    let cases = [
        ("CONNECT evil.com:443 HTTP/1.1\r\n\r\n", "403"),
        ("CONNECT example.com:22 HTTP/1.1\r\n\r\n", "403"),
        ("CONNECT 127.0.0.1:443 HTTP/1.1\r\n\r\n", "403"),
        ("CONNECT [::ffff:127.0.0.1]:443 HTTP/1.1\r\n\r\n", "403"),
        ("CONNECT example.com:443@evil.com HTTP/1.1\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", "400"),
        (endless.as_str(), "400"),
    ];

    for (request, status) in cases {
        let answer = exchange(&proxy, request.as_bytes()).await;
        let is_refused = answer.starts_with(&format!("HTTP/1.1 {status} "));
        // The rest of a long head is unread, which can reset the connection.
        assert!(
            is_refused || answer.is_empty() && request.len() > 1_000,
            "{answer}"
        );
    }

    assert_eq!(count.load(Ordering::SeqCst), 0);
    let expected = [
        "evil.com:443",
        "example.com:22",
        "127.0.0.1:443",
        "127.0.0.1:443",
    ];
    assert_eq!(refused(&log), expected[..3]);
}
