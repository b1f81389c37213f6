use serde_json::json;

use super::*;

#[test]
fn null_stands_for_an_optional_argument_that_is_not_given() {
    let schema = json!({
        "type": "object",
        "properties": {
            "must": {"type": "string"},
            "may": {"type": "boolean"},
            "null": {"type": ["string", "null"]},
            "any": {},
        },
        "required": ["must"],
    });
    let cases = [
        (r#"{"must":"a","may":null}"#, r#"{"must":"a"}"#),
        (r#"{"must":null}"#, r#"{"must":null}"#),
        (
            r#"{"null":null,"any":null,"other":null}"#,
            r#"{"null":null,"any":null,"other":null}"#,
        ),
        ("[null]", "[null]"),
        ("", ""),
    ];

    for (text, expected) in cases {
        assert_eq!(without_nulls(text, &schema), expected);
    }
}
