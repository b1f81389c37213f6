//! Data of tool calls and results: written, loaded and refused shapes.

use ikigai_core::load::{LoadError, Loaded, load};
use ikigai_core::message::{Payload, arguments_object};
use ikigai_core::render::Shown;
use ikigai_core::{Block, Budget, Event, Message, Micros, Role, RowRef, Seq, project};
use ikigai_testkit::{IdSource, TestLog, cases, check_request, target};
use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::{Map, Value, json};

use crate::loading::row;

/// Loads the message of a row with this kind and data.
fn loaded(kind: &str, data: &str) -> Result<Message, LoadError> {
    match load(&row(kind, Some("shown"), Some(data)))? {
        Loaded::Message(part) => Ok(part.message),
        Loaded::Nothing => panic!("`{kind}` is conversation"),
    }
}

/// Returns the data that an event's row is written with.
fn written(event: Event) -> Value {
    let row = event.into_row(IdSource::new(1).agent(), Micros(0));
    row.data.unwrap().parse().unwrap()
}

fn call(id: &str, name: &str, arguments: &str) -> Event {
    Event::tool_call(1, id, name, arguments)
}

/// D1a S2-20: the neutral shape has three strings and the response number.
#[test]
fn tool_call_written_in_neutral_shape() {
    let cases = [
        ("c1", "ls", "{}"),
        ("", "", ""),
        ("a\"b", "n\u{0}", "[1, 2"),
    ];
    for (id, name, arguments) in cases {
        let data = written(call(id, name, arguments));

        let expected =
            json!({"tool_call_id": id, "name": name, "arguments": arguments, "response": 1});
        assert_eq!(data, expected);
        assert_eq!(
            loaded("tool_call", &data.to_string()),
            Ok(Message::tool_call(id, name, arguments))
        );
    }
}

/// S2-4: arguments are kept byte for byte, in the row and in the request.
///
/// A provider that requires an object always gets one.
#[test]
fn tool_arguments_kept_verbatim() {
    let object = |value: Value| value.as_object().unwrap().clone();
    let cases = [
        ("{}", Map::new()),
        (
            " { \"b\": 1.0,\n\t\"a\" : 1e2 , \"a\":\"\\u00e9\\/\"} ",
            object(json!({"b": 1.0, "a": "é/"})),
        ),
        ("", Map::new()),
        ("   ", Map::new()),
        ("{\"path\": \"", Map::new()),
        ("null", Map::new()),
        ("[1]", Map::new()),
        ("\"{}\"", Map::new()),
        ("rm -rf /\0\u{feff}🖤", Map::new()),
        ("{\"a\":\"\\ud800\"}", Map::new()),
    ];
    for (arguments, as_object) in cases {
        let mut log = TestLog::default();
        let agent = log.root();
        log.append(agent, Event::user("go"));
        let at = log.append(agent, call("c1", "sh", arguments));

        let request = log.request(agent, &target("p", "m")).unwrap();

        let data: Value = log.row(at).data.unwrap().parse().unwrap();
        assert_eq!(data["arguments"], arguments);
        assert_eq!(
            request.messages[1],
            Message::tool_call("c1", "sh", arguments)
        );
        assert_eq!(arguments_object(arguments), as_object);
    }
}

/// D1b S1-7: the neutral shape of a result, with a reference to its call.
#[test]
fn tool_result_written_in_neutral_shape() {
    let at = RowRef::new(IdSource::new(3).agent(), Seq(4));
    for (output, success) in [("", false), ("a\0b", true), ("{\"x\":1}", true)] {
        let data = written(Event::tool_result(at, "c1", "ls", output, success));

        let expected = json!({
            "tool_call_id": "c1", "name": "ls", "output": output, "success": success,
            "call": {"agent": at.agent, "seq": 4}
        });
        assert_eq!(data, expected);
        let message = Message::tool_result("c1", output, !success);
        assert_eq!(loaded("tool_result", &data.to_string()), Ok(message));
    }
}

/// D1c S1-5: the older function shape loads to the same block as the neutral one.
#[test]
fn load_function_shaped_tool_call() {
    let cases = [
        r#"{"id":"c1","type":"function","function":{"name":"ls","arguments":"{\"a\":1}"}}"#,
        r#"{"function":{"arguments":"{\"a\":1}","name":"ls"},"id":"c1"}"#,
        r#"{"id":"c1","type":7,"function":{"name":"ls","arguments":"{\"a\":1}","x":0},"name":3}"#,
        r#"{"id":"c1","tool_call_id":null,"function":{"name":"ls","arguments":"{\"a\":1}"}}"#,
    ];
    for data in cases {
        let neutral = r#"{"tool_call_id":"c1","name":"ls","arguments":"{\"a\":1}"}"#;
        assert_eq!(loaded("tool_call", data), loaded("tool_call", neutral));
    }
    // Missing fields of an older shape are not guessed; the error names the neutral shape's field.
    let broken = [
        r#"{"id":"c1","function":{"name":"ls"}}"#,
        r#"{"id":1,"function":{"name":"ls","arguments":"{}"}}"#,
        r#"{"id":"c1","function":{"name":"ls","arguments":{}}}"#,
        r#"{"id":"c1","function":"ls"}"#,
    ];
    for data in broken {
        let error = Err(LoadError::Field("tool_call_id"));
        assert_eq!(loaded("tool_call", data), error, "{data}");
    }
}

/// D1c D1d E7a: the neutral shape takes precedence over keys of older shapes.
#[test]
fn neutral_shape_wins_over_the_older_ones() {
    let data = r#"{"tool_call_id":"c1","name":"ls","arguments":"{}","id":"no",
        "function":{"name":"no","arguments":"no"},"tool_name":"no","tool_args":"no",
        "thinking":"no"}"#;

    assert_eq!(
        loaded("tool_call", data),
        Ok(Message::tool_call("c1", "ls", "{}"))
    );
}

/// D1d: the other older shape loads too, with its thinking as blocks before the call.
///
/// These blocks are never sent, because their provider is unknown.
#[test]
fn load_tool_name_args_shape_with_thinking() {
    let thinking = |text: &str| Block::Thinking {
        text: text.to_owned(),
        payload: None,
    };
    let cases = [
        ("", vec![]),
        (r#","thinking":null,"redacted_thinking":null"#, vec![]),
        (r#","thinking":"hm""#, vec![thinking("hm")]),
        (
            r#","thinking":{"thinking":"hm","signature":"s"}"#,
            vec![thinking("hm")],
        ),
        (
            r#","thinking":{"text":"hm","signature":"s"}"#,
            vec![thinking("hm")],
        ),
        (r#","redacted_thinking":"ZW5j""#, vec![thinking("")]),
        (
            r#","redacted_thinking":{"data":"ZW5j"},"thinking":{"text":"hm"}"#,
            vec![thinking("hm"), thinking("")],
        ),
        (r#","thinking":[1,{}]"#, vec![thinking("")]),
    ];
    for (more, before) in cases {
        let data = format!(r#"{{"tool_call_id":"c1","tool_name":"ls","tool_args":"{{}}"{more}}}"#);
        let mut expected = Message::tool_call("c1", "ls", "{}");
        expected.blocks.splice(0..0, before);
        let mut log = TestLog::default();
        let agent = log.root();
        log.append(agent, Event::user("go"));
        log.inject(agent, "tool_call", None, Some(&data), false);

        let request = log.request(agent, &target("", "")).unwrap();

        assert_eq!(loaded("tool_call", &data), Ok(expected), "{data}");
        assert_eq!(request.messages[1], Message::tool_call("c1", "ls", "{}"));
    }
}

/// S2-21: a result needs a string `tool_call_id` and a string `output`.
#[test]
fn tool_result_requires_id_and_output() {
    let cases = [
        (r#"{"output":"o","success":true}"#, "tool_call_id"),
        (r#"{"tool_call_id":7,"output":"o"}"#, "tool_call_id"),
        (r#"{"tool_call_id":null,"output":"o"}"#, "tool_call_id"),
        (r#"{"tool_call_id":"c","success":true}"#, "output"),
        (r#"{"tool_call_id":"c","output":null}"#, "output"),
        (r#"{"tool_call_id":"c","output":{"a":1}}"#, "output"),
        (r#"{"tool_call_id":"c","output":["o"]}"#, "output"),
    ];
    for (data, field) in cases {
        assert_eq!(loaded("tool_result", data), Err(LoadError::Field(field)));
    }
}

/// S2-22 S2-23: `name` and an older `summary` may be absent, null or anything; `summary` is
/// ignored and never written.
#[test]
fn tool_result_optional_fields() {
    for name in ["", r#","name":null"#, r#","name":"ls""#, r#","name":[1]"#] {
        for summary in [
            "",
            r#","summary":null"#,
            r#","summary":"s""#,
            r#","summary":{}"#,
        ] {
            let data =
                format!(r#"{{"tool_call_id":"c","output":"o","success":true{name}{summary}}}"#);
            let expected = Ok(Message::tool_result("c", "o", false));
            assert_eq!(loaded("tool_result", &data), expected, "{data}");
        }
    }
    let at = RowRef::new(IdSource::new(3).agent(), Seq(4));
    let data = written(Event::tool_result(at, "c", "ls", "o", true));
    assert_eq!(data.get("summary"), None);
}

/// S2-18 S2-24 D5: `is_error` is the negation of `success`; any value but `true` is a failure.
#[test]
fn missing_success_counts_as_failure() {
    let cases = [
        (r#","success":true"#, false),
        (r#","success":false"#, true),
        ("", true),
        (r#","success":null"#, true),
        (r#","success":"true""#, true),
        (r#","success":1"#, true),
        (r#","success":[true]"#, true),
        (r#","Success":true"#, true),
    ];
    for (success, is_error) in cases {
        let data = format!(r#"{{"tool_call_id":"c","output":"o"{success}}}"#);
        let expected = Ok(Message::tool_result("c", "o", is_error));
        assert_eq!(loaded("tool_result", &data), expected, "{data}");
    }
}

/// S2-19: the model gets the stored output, complete and unchanged.
///
/// If the window forces a cut, a note says so.
#[test]
fn tool_result_content_is_output() {
    let many_lines = "line\n".repeat(200_000);
    let outputs = [
        "",
        " \n",
        "{\"output\":\"x\"}",
        "a\0b",
        "é🖤\r\n",
        many_lines.as_str(),
    ];
    for output in outputs {
        let mut log = TestLog::default();
        let agent = log.root();
        log.append(agent, Event::user("go"));
        let at = log.append(agent, call("c1", "ls", "{}"));
        log.append(agent, Event::tool_result(at, "c1", "ls", output, true));

        let request = log.request(agent, &target("p", "m")).unwrap();

        let expected = Message::tool_result("c1", output, false);
        assert_eq!(request.messages[2], expected);
    }

    let mut log = TestLog::default();
    let agent = log.root();
    log.append(agent, Event::user("go"));
    let at = log.append(agent, call("c1", "ls", "{}"));
    log.append(agent, Event::tool_result(at, "c1", "ls", &many_lines, true));
    let agent = log.replayed(agent);
    let budget = Budget::new(10_000, None);
    let request = project(&agent.state, &agent.view, &target("p", "m"), &budget).unwrap();
    let [Block::ToolResult { content, .. }] = request.messages[2].blocks.as_slice() else {
        panic!("the result is sent");
    };
    let (head, rest) = content.split_once("\n[").unwrap();
    let (note, tail) = rest.split_once("]\n").unwrap();
    assert!(many_lines.starts_with(head) && many_lines.ends_with(tail));
    let missing = many_lines.len() - head.len() - tail.len();
    assert_eq!(
        note,
        format!("{missing} bytes are left out to fit the window")
    );
}

/// S2-25 S2-44c: invalid JSON and JSON that is no object are distinct errors.
#[test]
fn bad_json_and_non_object_are_named() {
    let not_json = [
        "{",
        "}",
        "{\"a\":}",
        "tool",
        "{} {}",
        "\u{feff}{}",
        "'a'",
        " ",
        "{\"a\":\"\\ud800\"}",
        "\0",
    ];
    let not_object = ["[]", "[{}]", "null", "true", "3", "\"{}\"", " \n1.5e3 "];
    for kind in ["tool_call", "tool_result", "tool"] {
        for data in not_json {
            assert_eq!(loaded(kind, data), Err(LoadError::NotJson), "{data}");
        }
        for data in not_object {
            assert_eq!(loaded(kind, data), Err(LoadError::NotObject), "{data}");
        }
    }
    assert_eq!(LoadError::NotJson.to_string(), "the data is not valid JSON");
    let text = LoadError::NotObject.to_string();
    assert_eq!(text, "the data is not a JSON object");
}

/// S2-26 S2-44d: the error names the required field.
///
/// Data that fits no accepted shape is checked against the neutral one.
#[test]
fn load_error_names_the_field() {
    let whole = json!({"tool_call_id": "c", "name": "ls", "arguments": "{}"});
    for field in ["tool_call_id", "name", "arguments"] {
        for bad in [
            None,
            Some(json!(null)),
            Some(json!(1)),
            Some(json!({})),
            Some(json!(["c"])),
        ] {
            let mut data = whole.clone();
            match bad {
                None => drop(data.as_object_mut().unwrap().remove(field)),
                Some(value) => data[field] = value,
            }
            let error = loaded("tool_call", &data.to_string()).unwrap_err();
            assert_eq!(error, LoadError::Field(field), "{data}");
            assert!(error.to_string().contains(&format!("`{field}`")));
        }
    }
    let mixed = [
        ("{}", "tool_call_id"),
        (r#"{"tool_call_id":"c","tool_name":"ls"}"#, "name"),
        (
            r#"{"tool_call_id":"c","tool_name":"ls","tool_args":{}}"#,
            "name",
        ),
        (
            r#"{"tool_call_id":"c","name":"ls","tool_args":"{}"}"#,
            "arguments",
        ),
        (r#"{"id":"c","name":"ls","arguments":"{}"}"#, "tool_call_id"),
    ];
    for (data, field) in mixed {
        assert_eq!(loaded("tool_call", data), Err(LoadError::Field(field)));
    }
}

/// S1-15: a bad tool row is reported and skipped, and the rest is restored.
#[test]
fn malformed_tool_row_skipped_rest_restored() {
    let cases = [
        None,
        Some(""),
        Some("{"),
        Some("[]"),
        Some("{}"),
        Some("\u{0}"),
    ];
    for kind in ["tool_call", "tool_result", "tool"] {
        for data in cases {
            let mut log = TestLog::default();
            let agent = log.root();
            log.append(agent, Event::user("one"));
            log.inject(agent, kind, Some("shown"), data, false);
            let at = log.append(agent, call("c1", "ls", "{}"));
            log.inject(agent, kind, None, data, false);
            log.append(agent, Event::tool_result(at, "c1", "ls", "out", true));

            let request = log.request(agent, &target("p", "m")).unwrap();

            let expected = [
                Message::text(Role::User, "one"),
                Message::tool_call("c1", "ls", "{}"),
                Message::tool_result("c1", "out", false),
            ];
            assert_eq!(request.messages, expected);
            for living in [log.live(agent), log.replayed(agent)] {
                let shown: Vec<_> = living.view.scrollback().collect();
                assert_eq!(living.view.conversation().messages(), expected);
                for (index, seq) in [(1, 2), (3, 4)] {
                    let begin = format!("event #{agent}.{seq} of kind `{kind}` is skipped: ");
                    let Shown::Warning(line) = &shown[index] else {
                        panic!("{:?}", shown[index]);
                    };
                    assert!(line.starts_with(&begin), "{line}");
                }
            }
        }
    }
}

/// JSON in which known keys, odd values and deep nests meet.
fn tool_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<i64>().prop_map(|value| value.to_string()),
        Just("1e999".to_owned()),
        any::<String>().prop_map(|text| json!(text).to_string()),
        (1_usize..3000).prop_map(|deep| "[".repeat(deep)),
        (1_usize..300).prop_map(|deep| "[".repeat(deep) + &"]".repeat(deep)),
    ];
    let keys = [
        "tool_call_id",
        "name",
        "arguments",
        "output",
        "success",
        "call",
        "response",
        "opaque",
        "id",
        "function",
        "tool_name",
        "tool_args",
        "thinking",
        "redacted_thinking",
        "item",
        "agent",
        "seq",
    ];
    leaf.prop_recursive(3, 24, 6, move |inner| {
        let pair = (proptest::sample::select(keys.to_vec()), inner);
        proptest::collection::vec(pair, 0..6).prop_map(|pairs| {
            let pairs: Vec<_> = pairs
                .iter()
                .map(|(key, value)| format!("\"{key}\":{value}"))
                .collect();
            format!("{{{}}}", pairs.join(","))
        })
    })
}

proptest! {
    #![proptest_config(Config {
        cases: cases(500, 20_000),
        failure_persistence: None,
        ..Config::default()
    })]

    /// S2-27: no tool data makes the loader panic or hang; loaded rows can be shown and sent.
    #[test]
    fn fuzz_tool_data_never_panics(
        data in prop_oneof![3 => tool_json(), 1 => any::<String>()],
        kind in proptest::sample::select(vec!["tool_call", "tool_result", "tool"]),
    ) {
        let mut log = TestLog::default();
        let agent = log.root();
        log.append(agent, Event::user("go"));

        log.inject(agent, kind, None, Some(&data), false);

        let loaded = load(&row(kind, None, Some(&data)));
        let replayed = log.replayed(agent);
        prop_assert_eq!(&replayed.view.entries()[1].loaded, &loaded);
        let is_warning = matches!(replayed.view.scrollback().nth(1), Some(Shown::Warning(_)));
        prop_assert_eq!(is_warning, loaded.is_err());
        let request = log.request(agent, &target("p", "m")).unwrap();
        prop_assert_eq!(check_request(&request, &target("p", "m")), Ok(()));
    }
}

/// S2-27: huge and deeply nested data ends too.
#[test]
fn huge_tool_data_is_loaded_or_refused() {
    let deep = "[".repeat(1 << 20);
    let cases = [
        (deep.clone(), Err(LoadError::NotJson)),
        (format!("{{\"a\":{deep}"), Err(LoadError::NotJson)),
        (
            format!(
                r#"{{"tool_call_id":"c","name":"n","arguments":"{}"}}"#,
                "x".repeat(1 << 24)
            ),
            Ok(Message::tool_call("c", "n", "x".repeat(1 << 24))),
        ),
    ];
    for (data, expected) in cases {
        assert!(loaded("tool_call", &data) == expected);
    }
}

/// N1e D9c: a payload in tool data is kept with its tag.
#[test]
fn call_keeps_its_thinking_and_item() {
    let data = r#"{"tool_call_id":"c","name":"n","arguments":"{}","opaque":{
        "thinking":[{"text":"hm","provider":"p","model":"m","payload":"{\"s\": 1}"}],
        "item":{"provider":"p","model":"m","payload":"[1]"}}}"#;

    let message = loaded("tool_call", data).unwrap();

    let payload = |text: &str| Payload {
        provider: "p".to_owned(),
        model: "m".to_owned(),
        payload: text.to_owned(),
    };
    let thinking = Block::Thinking {
        text: "hm".to_owned(),
        payload: Some(payload("{\"s\": 1}")),
    };
    let mut expected = Message::tool_call("c", "n", "{}");
    expected.blocks.insert(0, thinking);
    expected.metadata.push(ikigai_core::message::BlockItem {
        block: 1,
        item: payload("[1]"),
    });
    assert_eq!(message, expected);
}
