use ikigai_core::project::ContextLimits;

use super::super::Config;

fn read(text: &str) -> Config {
    toml::from_str(text).unwrap()
}

fn limits(text: &str) -> ContextLimits {
    read(text).context_limits().unwrap()
}

fn refusal(text: &str) -> String {
    read(text).context_limits().unwrap_err().to_string()
}

#[test]
fn limits_are_the_usual_ones_without_keys() {
    assert_eq!(limits(""), ContextLimits::default());
}

#[test]
fn every_key_sets_its_limit() {
    let text = "compact_at = 66\n[context]\nshorten_at = 60\nshorten_to = 44\nkeep_outputs = 33\n\
                keep_messages = 11\nkeep_messages_tokens = 5000\nresult_percent = 10\nresult_kb = 8\n";

    let expected = ContextLimits {
        elide_above: 60,
        elide_to: 44,
        summarise_above: Some(66),
        newest_outputs: 33,
        verbatim: 11,
        verbatim_tokens: 5000,
        results: 10,
        result_bytes: 8192,
    };
    assert_eq!(limits(text), expected);
}

#[test]
fn defaults_give_way_to_a_lower_share_that_is_set() {
    let shares = |text| {
        let found = limits(text);
        (found.elide_above, found.elide_to, found.newest_outputs)
    };

    assert_eq!(shares("compact_at = 35"), (35, 25, 20));
    assert_eq!(shares("compact_at = 0"), (70, 50, 40));
    assert_eq!(shares("compact_at = 100"), (70, 50, 40));
    assert_eq!(shares("context.shorten_at = 14"), (14, 10, 8));
    assert_eq!(shares("context.shorten_to = 5"), (70, 5, 4));
    assert_eq!(limits("compact_at = 0").summarise_above, None);
}

#[test]
fn shares_out_of_order_are_refused_by_name() {
    let cases = [
        (
            "context.shorten_at = 81",
            "`context.shorten_at` (81) must not exceed `compact_at` (80)",
        ),
        (
            "context.shorten_to = 66",
            "`context.shorten_to` (66) must be at least 5 below `context.shorten_at` (70)",
        ),
        (
            "compact_at = 40\ncontext.shorten_to = 50",
            "`context.shorten_to` (50) must be at least 5 below `context.shorten_at` (40)",
        ),
        (
            "context.keep_outputs = 51",
            "`context.keep_outputs` (51) must not exceed `context.shorten_to` (50)",
        ),
    ];
    for (text, expected) in cases {
        let refused = refusal(text);
        assert!(refused.starts_with(expected), "{text}: {refused}");
    }
    limits("compact_at = 0\ncontext.shorten_at = 95");
}

#[test]
fn numbers_out_of_range_are_refused_with_their_range() {
    let cases = [
        ("shorten_at = 0", "expected 1 to 95"),
        ("shorten_at = 96", "expected 1 to 95"),
        ("keep_messages = 51", "expected 0 to 50"),
        ("keep_messages_tokens = -1", "u64"),
        ("result_percent = 0", "expected 1 to 50"),
        ("result_kb = 1025", "expected 1 to 1024"),
        ("shorten = 50", "unknown field `shorten`"),
    ];
    for (key, expected) in cases {
        let error = toml::from_str::<Config>(&format!("[context]\n{key}\n"));
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expected), "{key}: {error}");
    }
}
