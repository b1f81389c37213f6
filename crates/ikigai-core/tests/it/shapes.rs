//! Stored shape of each kind, which must stay readable forever.

use ikigai_core::kind::StoredKind;
use ikigai_core::load::load;
use ikigai_core::project::assemble;
use ikigai_core::{AgentId, Budget, Event, Kind, Micros, Row};
use ikigai_testkit::{IdSource, TestLog, target};
use serde_json::{Value, json};

use crate::table::{A, B, all, at, id};

fn stored(event: Event) -> Row {
    let new = event.into_row(id(A), Micros(5));
    Row {
        at: at(A, 9),
        kind: StoredKind::Known(new.kind),
        content: new.content,
        data: new.data,
        created_at: new.created_at,
        author: None,
    }
}

/// E7a: rows are written exactly as the table says.
///
/// Loading ignores unknown keys and requires only the fields that sections 2, 3 and 8 require.
#[test]
fn stored_shapes_match_the_table() {
    let shapes = all();
    for kind in Kind::ALL {
        assert!(shapes.iter().any(|(event, ..)| event.kind() == kind));
    }
    for (event, content, data) in shapes {
        let kind = event.kind();
        let row = event.into_row(id(A), Micros(5));

        let written: Option<Value> = row.data.as_deref().map(|text| text.parse().unwrap());
        assert_eq!(
            (row.content.as_deref(), &written),
            (content, &data),
            "{kind}"
        );
        assert_eq!(
            (row.agent, row.kind, row.created_at),
            (id(A), kind, Micros(5))
        );
        assert_eq!(row.check(), Ok(()), "{kind}");
    }

    for (event, ..) in all() {
        let plain = stored(event);
        let Some(text) = &plain.data else { continue };
        let mut object: Value = text.parse().unwrap();
        object["a key of tomorrow"] = json!({"x": [1]});
        let newer = Row {
            data: Some(object.to_string()),
            ..plain.clone()
        };
        assert_eq!(load(&newer), load(&plain), "{}", plain.kind);
    }

    let kinds = Kind::ALL.into_iter();
    for kind in kinds.filter(|kind| !matches!(kind, Kind::ToolCall | Kind::ToolResult)) {
        for data in [
            None,
            Some(""),
            Some("{}"),
            Some("[3]"),
            Some("{\"set\":1}"),
            Some("nonsense"),
        ] {
            let row = Row {
                at: at(A, 9),
                kind: StoredKind::Known(kind),
                content: Some("text".to_owned()),
                data: data.map(str::to_owned),
                created_at: Micros(0),
                author: None,
            };
            assert!(load(&row).is_ok(), "{kind} {data:?}");
        }
    }
}

/// E7a: the stored data of a row decides if it is a control row.
#[test]
fn control_rows_are_those_that_bend_or_set_something() {
    let controls = |event: &Event| {
        let data = event.clone().into_row(id(A), Micros(0)).data;
        let data: Value = data.map_or(Value::Null, |text| text.parse().unwrap());
        match event.kind() {
            Kind::Clear | Kind::Rewind | Kind::Mark | Kind::Summary | Kind::System => true,
            Kind::Fork => data["role"] == "child",
            Kind::Command => !data["set"].is_null(),
            Kind::Error => !data["omit"].is_null(),
            Kind::User
            | Kind::Assistant
            | Kind::ToolCall
            | Kind::ToolResult
            | Kind::AgentKilled
            | Kind::Usage
            | Kind::Interrupted
            | Kind::Process
            | Kind::Files => false,
        }
    };

    for (event, ..) in all() {
        let expected = controls(&event);
        assert_eq!(event.into_row(id(A), Micros(0)).control, expected);
    }
}

/// E8a: agent ids are version 4 UUIDs, written as 22 base64url characters.
///
/// The first character is a letter or digit; data holds only such ids.
#[test]
fn agent_ids_are_22_characters() {
    let ids = IdSource::new(7);
    for _ in 0..1000 {
        let agent = ids.agent();
        let text = agent.to_string();

        assert_eq!(text.len(), 22);
        assert!(text.starts_with(|c: char| c.is_ascii_alphanumeric()));
        assert!(
            text.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        );
        assert_eq!(text.parse(), Ok(agent));
        assert_eq!(json!(agent), json!(text));
        assert_eq!(
            serde_json::from_value::<AgentId>(json!(text)).ok(),
            Some(agent)
        );
    }
    // The same 16 bytes as base64url without padding, computed elsewhere.
    let known = 0x6e78_89c6_6eee_4fb7_b131_72a0_68c8_2c34_u128;
    assert_eq!(AgentId::from_random(known.to_be_bytes()), Some(id(A)));
    // 0xf8… would begin with `-`, 0xfc… with `_`: the caller draws again.
    for first in [0xf8, 0xfb, 0xfc, 0xff] {
        assert_eq!(AgentId::from_random([first; 16]), None);
    }
    let bad = [
        "",
        "bniJxm7uT7exMXKgaMgsN",
        "bniJxm7uT7exMXKgaMgsNAA",
        "-niJxm7uT7exMXKgaMgsNA",
        "_niJxm7uT7exMXKgaMgsNA",
        "bniJxm7uT7exMXKgaMgsN=",
        "bniJxm7uT7exMXKgaMgs+A",
        " niJxm7uT7exMXKgaMgsNA",
        // The two last bits of the last character are padding.
        "bniJxm7uT7exMXKgaMgsNB",
        // Version 1, and a variant of before RFC 4122.
        "bniJxm7uH7exMXKgaMgsNA",
        "bniJxm7uT7cxMXKgaMgsNA",
        "6e7889c6-6eee-4fb7-b131-72a068c82c34",
        "6e7889c66eee4fb7b13172",
        "ééééééééééé",
    ];
    for text in bad {
        assert!(text.parse::<AgentId>().is_err(), "{text}");
    }

    let mut found = Vec::new();
    for (event, ..) in all() {
        let data = stored(event).data.unwrap_or_default();
        find_ids(&data.parse().unwrap_or_default(), &mut found);
    }
    assert!(found.len() > 10);
    for text in found {
        assert!([A, B].contains(&text.as_str()), "{text}");
    }
}

/// Collects the values of id keys, and all texts that look like ids.
fn find_ids(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let holds_id =
                    ["agent", "child_uuid", "parent_uuid", "killed"].contains(&key.as_str());
                match value.as_str() {
                    Some(text)
                        if holds_id
                            || text.len() > 20 && text.is_ascii() && !text.contains('{') =>
                    {
                        found.push(text.to_owned());
                    }
                    _ => find_ids(value, found),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| find_ids(value, found)),
        _ => {}
    }
}

/// S1-18 E7a: written events replay to equal blocks at once, for every kind and shape.
#[test]
fn write_then_replay_round_trip() {
    for (event, content, data) in all() {
        let mut log = TestLog::default();
        let agent = log.root();
        log.append(agent, Event::user("first"));
        log.append(agent, Event::tool_call(1, "c", "ls", "{}"));

        let row = log.append(agent, event);

        let (live, replayed) = (log.live(agent), log.replayed(agent));
        assert_eq!(replayed, live);
        assert_eq!(replayed.view.conversation(), live.view.conversation());
        let budget = Budget::new(u64::MAX, None);
        assert_eq!(
            assemble(&live.state, &live.view, &target("p", "m"), &budget),
            Ok(log.assembled(agent, &target("p", "m")))
        );
        let row = log.row(row);
        let read: Option<Value> = row.data.as_deref().map(|text| text.parse().unwrap());
        assert_eq!((row.content.as_deref(), read), (content, data));
    }
}
