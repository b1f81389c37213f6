use super::without_password;

#[test]
fn an_address_is_listed_without_its_password() {
    let cases = [
        ("/home/x/ikigai.db", "/home/x/ikigai.db"),
        ("sqlite:/a:b@c", "sqlite:/a:b@c"),
        ("postgres://me@host/db", "postgres://me@host/db"),
        (
            "postgres://me:pa:ss@host:1/db",
            "postgres://me:[secret]@host:1/db",
        ),
        (
            "postgres://me:p@ss@host/db",
            "postgres://me:[secret]@host/db",
        ),
        (
            "postgres://host/db?user=me&password=pass&sslmode=require",
            "postgres://host/db?user=me&password=[secret]&sslmode=require",
        ),
        (
            "postgres://host/db?password=pass",
            "postgres://host/db?password=[secret]",
        ),
    ];

    for (address, listed) in cases {
        assert_eq!(without_password(address), listed);
    }
}
