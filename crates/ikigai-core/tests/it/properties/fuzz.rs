//! No bytes of a row cause a panic.

use ikigai_core::load::load;
use ikigai_core::render::render;
use ikigai_core::{AgentState, Budget, Kind, Micros, Row, RowRef, Seq, StoredKind, View, project};
use ikigai_testkit::{IdSource, target};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

use super::config;

/// The keys that some reader looks for.
const KEYS: [&str; 34] = [
    "tool_call_id",
    "name",
    "arguments",
    "output",
    "success",
    "call",
    "agent",
    "seq",
    "id",
    "type",
    "function",
    "tool_name",
    "tool_args",
    "thinking",
    "redacted_thinking",
    "text",
    "opaque",
    "item",
    "provider",
    "model",
    "payload",
    "response",
    "target",
    "via",
    "from",
    "to",
    "undo",
    "omit",
    "set",
    "role",
    "fork_point",
    "settings",
    "sum",
    "blob",
];

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        select(
            &[
                "child",
                "inherit",
                "retry",
                "AAAAAAAAAAAAAAAAAAAAAA",
                "",
                "x"
            ][..]
        )
        .prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        let object = vec((select(&KEYS[..]), inner.clone()), 0..6);
        prop_oneof![
            1 => vec(inner, 0..4).prop_map(Value::from),
            4 => object.prop_map(|fields| {
                let fields = fields.into_iter();
                Value::Object(fields.map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

fn data() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        1 => Just(None),
        3 => vec(any::<u8>(), 0..64)
            .prop_map(|bytes| Some(String::from_utf8_lossy(&bytes).into_owned())),
        8 => json().prop_map(|value| Some(value.to_string())),
        2 => (json(), any::<usize>()).prop_map(|(value, cut)| {
            let mut text = value.to_string();
            text.truncate(text.floor_char_boundary(cut % (text.len() + 1)));
            Some(text)
        }),
        1 => (0..20_000_usize).prop_map(|depth| Some("[".repeat(depth))),
    ]
}

fn kind() -> impl Strategy<Value = String> {
    let known = Kind::ALL.map(Kind::name).to_vec();
    prop_oneof![
        6 => select(known).prop_map(str::to_owned),
        2 => Just("tool".to_owned()),
        1 => any::<String>(),
    ]
}

/// Runs all operations on a row.
fn use_row(row: &Row) {
    let _ = load(row);
    let _ = render(row).to_string();
    let mut state = AgentState::new(row.at.agent);
    let _ = state.apply(row);
    let _ = AgentState::restored(
        row.at.agent,
        row.at.seq,
        row.data
            .as_deref()
            .and_then(ikigai_core::state::ReadSnapshot::read),
        std::slice::from_ref(row),
    );
    let mut view = View::default();
    view.prepend(vec![row.clone(), row.clone()]);
    let _ = view.conversation();
    let _: Vec<_> = view.scrollback().map(|shown| shown.to_string()).collect();
    let _ = view.is_busy(state.path());
    let _ = project(
        &state,
        &view,
        &target("demo", "one"),
        &Budget::new(100, None),
    );
}

fn row(kind: &str, content: Option<String>, data: Option<String>) -> Row {
    Row {
        at: RowRef::new(IdSource::new(1).agent(), Seq(1)),
        kind: StoredKind::of(kind),
        content,
        data,
        created_at: Micros(0),
        author: None,
    }
}

proptest! {
    #![proptest_config(config())]

    /// S2-27
    #[test]
    fn fuzz_tool_data_never_panics(
        kind in select(&["tool_call", "tool_result", "tool"][..]),
        data in data(),
    ) {
        use_row(&row(kind, None, data));
    }

    /// S2-30: a row of any kind with any content and data is loaded, applied, shown and projected.
    #[test]
    fn fuzz_rows_never_panic(
        kind in kind(),
        content in proptest::option::of(any::<String>()),
        data in data(),
    ) {
        use_row(&row(&kind, content, data));
    }
}
