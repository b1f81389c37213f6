use super::*;

#[test]
fn only_the_public_internet_is_public() {
    let public = [
        "1.1.1.1",
        "8.8.8.8",
        "93.184.216.34",
        "100.63.255.255",
        "100.128.0.1",
        "172.15.0.1",
        "172.32.0.1",
        "192.167.1.1",
        "2606:4700::1111",
        "2a00:1450:4001::1",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
    ];
    let private = [
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "127.255.255.254",
        "168.63.129.16",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "192.168.1.1",
        "198.18.0.1",
        "203.0.113.1",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:0:10.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "3fff::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ];

    for text in public {
        assert!(is_public(text.parse().unwrap()), "{text}");
    }
    for text in private {
        assert!(!is_public(text.parse().unwrap()), "{text}");
        assert!(
            NetworkReach::Everything.includes(text.parse().unwrap()),
            "{text}"
        );
    }
}

#[test]
fn numbers_in_an_address_are_checked_however_they_are_written() {
    let refused = [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://[::1]:8080/",
        "http://[::ffff:169.254.169.254]/",
        "http://[::ffff:a9fe:a9fe]/",
    ];
    let taken = [
        "http://1.1.1.1/",
        "https://example.com/",
        "http://localhost/",
    ];

    for text in refused {
        let url = Url::parse(text).unwrap();
        assert!(NetworkReach::Public.check(&url).is_err(), "{text}");
        assert!(NetworkReach::Everything.check(&url).is_ok(), "{text}");
    }
    for text in taken {
        assert!(
            NetworkReach::Public
                .check(&Url::parse(text).unwrap())
                .is_ok(),
            "{text}"
        );
    }
}

/// Returns a guard with a lookup that returns these addresses for every name.
fn guard(addresses: &[&str]) -> Guard {
    let addresses: Vec<SocketAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
    Guard {
        reach: NetworkReach::Public,
        lookup: Arc::new(move |_| {
            let addresses = addresses.clone();
            Box::pin(async move { Ok(addresses) })
        }),
    }
}

async fn resolved(guard: &Guard) -> Result<Vec<String>, String> {
    let name = "name.example".parse().unwrap();
    let found = guard
        .resolve(name)
        .await
        .map_err(|error| error.to_string())?;
    Ok(found.map(|address| address.to_string()).collect())
}

#[tokio::test]
async fn a_name_leads_only_to_addresses_that_were_checked() {
    let mixed = guard(&["10.0.0.1:0", "1.1.1.1:0", "[::1]:0"]);
    let private = guard(&["10.0.0.1:0", "[fd00::1]:0"]);

    assert_eq!(resolved(&mixed).await, Ok(vec!["1.1.1.1:0".to_owned()]));
    let error = resolved(&private).await.unwrap_err();
    assert!(
        error.starts_with("`name.example` is a private address"),
        "{error}"
    );
}
