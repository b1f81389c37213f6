//! `todo`: its state is the text of its newest result.

use ikigai_core::EffectClass;
use ikigai_testkit::cases;
use ikigai_tools::Need;
use ikigai_tools::output::MOST_SENT_BYTES;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::desk::{Desk, text};

/// Runs calls in sequence, each with the previous result; returns the last one.
///
/// Calls with the old name mean the same tool.
fn after(calls: &[Value]) -> String {
    let mut desk = Desk::new();
    for call in calls {
        let tool = if call.get("operation").is_some() {
            "list"
        } else {
            "todo"
        };
        let output = desk.call(tool, call);
        desk.inputs.list = Some(text(&output));
    }
    desk.inputs.list.unwrap_or_default()
}

#[test]
fn a_list_replaces_the_one_before() {
    let items = json!({"items": [
        {"text": "one", "status": "done"},
        {"text": "two", "status": "in_progress"},
        {"text": "three", "status": "pending"},
        {"text": "four", "status": "cancelled"},
    ]});
    let list = "1. [x] one\n2. [>] two\n3. [ ] three\n4. [-] four\n";
    let table = [
        (vec![json!({})], "the list is empty\n"),
        (vec![items.clone()], list),
        (vec![items.clone(), json!({})], list),
        (
            vec![
                json!({"items": [{"text": "old", "status": "done"}]}),
                items.clone(),
            ],
            list,
        ),
        (
            vec![items.clone(), json!({"items": []})],
            "the list is empty\n",
        ),
        (
            vec![items.clone(), json!({"operation": "done", "item": 2})],
            "1. [x] one\n2. [x] two\n3. [ ] three\n4. [-] four\n",
        ),
        (
            vec![json!({"items": ["one", " ", "two\nlines"]})],
            "1. [ ] one\n2. [ ] two lines\n",
        ),
    ];

    for (calls, expected) in table {
        assert_eq!(after(&calls), expected, "{calls:?}");
    }
    let desk = Desk::new();
    let shown = desk.call("todo", &items).shown;
    assert_eq!(shown, format!("1 of 4 done\n{}", list.trim_end()));
}

#[test]
fn a_list_is_carried_from_result_to_result() {
    let add = |item: &str| json!({"operation": "add", "item": item});
    let table = [
        (vec![json!({"operation": "show"})], "the list is empty\n"),
        (vec![add("one"), add("two")], "1. [ ] one\n2. [ ] two\n"),
        (vec![add("one\n\n two ")], "1. [ ] one\n2. [ ] two\n"),
        (
            vec![add("one\ntwo"), json!({"operation": "done", "item": "2"})],
            "1. [ ] one\n2. [x] two\n",
        ),
        (
            vec![add("one\ntwo"), json!({"operation": "done", "item": 1})],
            "1. [x] one\n2. [ ] two\n",
        ),
        (
            vec![
                add("one\ntwo"),
                json!({"operation": "done", "item": "two"}),
                json!({"operation": "undo", "item": "2."}),
            ],
            "1. [ ] one\n2. [ ] two\n",
        ),
        (
            vec![
                add("one\ntwo"),
                json!({"operation": "remove", "item": "one"}),
            ],
            "1. [ ] two\n",
        ),
        (
            vec![add("one"), json!({"operation": "clear"})],
            "the list is empty\n",
        ),
        (
            vec![add("one"), json!({"operation": "done", "item": "7"})],
            "there is no item `7`; name one by its number\n1. [ ] one\n",
        ),
        (
            vec![
                add("one"),
                json!({"operation": "done", "item": "7"}),
                add("two"),
            ],
            "1. [ ] one\n2. [ ] two\n",
        ),
        (vec![add("2. [x] sly")], "1. [ ] 2. [x] sly\n"),
    ];

    for (calls, expected) in table {
        assert_eq!(after(&calls), expected, "{calls:?}");
    }
}

#[test]
fn a_call_only_reads_but_runs_by_itself() {
    let desk = Desk::new();
    let add = json!({"operation": "add", "item": "one"});

    let prepared = desk.prepare("todo", &add).unwrap();
    let other = desk.prepare("todo", &add).unwrap();
    let show = desk.prepare("todo", &json!({"operation": "show"})).unwrap();

    assert_eq!(prepared.class, EffectClass::Read);
    assert_eq!(prepared.needs, [Need::List]);
    assert!(prepared.touches.conflicts_with(&other.touches));
    assert!(prepared.touches.conflicts_with(&show.touches));
    assert!(!show.touches.conflicts_with(&show.touches));
}

#[test]
fn what_is_missing_is_explained() {
    let desk = Desk::new();
    let table = [
        (json!({"operation": "add"}), "`item` is missing or empty"),
        (
            json!({"operation": "done", "item": " "}),
            "`item` is missing or empty",
        ),
        (
            json!({"operation": "add", "item": "\u{1b}[1m"}),
            "there is no text",
        ),
        (
            json!({"operation": "add", "item": ["a"]}),
            "must be a text or a number",
        ),
        (
            json!({"operation": "tick", "item": "1"}),
            "unknown variant `tick`",
        ),
        (
            json!({"items": [{"text": "a", "status": "soon"}]}),
            "item 1: unknown variant `soon`",
        ),
        (
            json!({"items": [{"status": "done"}]}),
            "item 1: missing field `text`",
        ),
        (
            json!({"items": [], "operation": "clear"}),
            "give either `items` or `operation`, not both",
        ),
    ];

    for (arguments, expected) in table {
        let reason = desk.failed("todo", &arguments);
        assert!(reason.contains(expected), "{arguments}: {reason}");
    }
}

#[test]
fn the_longest_list_is_never_cut() {
    let item = "é".repeat(500);
    let add = json!({"operation": "add", "item": format!("{item}\n").repeat(100)});

    let full = after(std::slice::from_ref(&add));
    let fuller = after(&[add, json!({"operation": "add", "item": "one more"})]);

    assert_eq!(full.lines().count(), 100);
    assert!(full.len() < MOST_SENT_BYTES, "{}", full.len());
    assert!(fuller.starts_with("the list would have more than 100 items"));
    assert!(fuller.ends_with(&full));
    let items = json!({"items": vec![json!({"text": item, "status": "in_progress"}); 100]});
    assert!(after(&[items]).len() < MOST_SENT_BYTES);
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases(300, 20_000))
    })]

    #[test]
    fn any_text_is_read_as_some_list(given in "(([0-9]{0,3}\\. )?(\\[.\\] )?\\PC{0,9}\n){0,9}") {
        let mut desk = Desk::new();
        desk.inputs.list = Some(given);
        let once = desk.done("todo", &json!({"operation": "show"}));
        desk.inputs.list = Some(once.clone());
        let twice = desk.done("todo", &json!({"operation": "show"}));

        prop_assert_eq!(once, twice);
    }
}
