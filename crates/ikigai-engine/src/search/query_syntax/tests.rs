//! Tests of the query parser.

use ikigai_core::find::Words;
use ikigai_core::{Kind, Micros};
use jiff::tz::TimeZone;

use super::{Filters, Moments, read};

const NOW: i64 = 1_790_000_000_000_000;

fn typed(text: &str) -> Result<(Words, Filters), String> {
    let moments = Moments {
        now: Micros(NOW),
        zone: TimeZone::fixed(jiff::tz::offset(2)),
    };
    read(text, &moments)
}

#[test]
fn filters_are_taken_out_and_the_rest_are_words() {
    let (words, filters) =
        typed("agent:docs one kind:user,tool \"agent: two\" model:opus-4 path:\"/a b\" x:y")
            .unwrap();

    assert_eq!(words, Words::parse("one \"agent: two\" x:y"));
    assert_eq!(
        filters,
        Filters {
            agent: Some("docs".to_owned()),
            kinds: vec![Kind::User, Kind::ToolCall, Kind::ToolResult],
            model: Some(Words::parse("\"opus-4\"")),
            path: Some("/a b".to_owned()),
            ..Filters::default()
        }
    );
}

#[test]
fn times_are_days_of_the_user_or_how_long_ago() {
    let after = |text: &str| typed(&format!("after:{text}")).map(|(_, filters)| filters.after);

    assert_eq!(after("1970-01-02"), Ok(Some(Micros(22 * 3_600_000_000))));
    assert_eq!(after("1970-01-01T02:01"), Ok(Some(Micros(60_000_000))));
    assert_eq!(after("90m"), Ok(Some(Micros(NOW - 5_400_000_000))));
    assert_eq!(after("2w"), Ok(Some(Micros(NOW - 1_209_600_000_000))));
    for wrong in ["soon", "2026-13-01", "d", "9999999999999999999w", "é", "-"] {
        assert!(after(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn what_makes_no_sense_is_told() {
    let reason = |text: &str| typed(text).unwrap_err();

    assert!(reason("").starts_with("type words to search for"));
    assert!(reason("-- ! \"\"").starts_with("type words to search for"));
    assert!(reason("kind:dream").starts_with("unknown kind dream"));
    assert!(reason("agent: x").starts_with("agent: needs a value"));
    assert!(reason(&"x".repeat(5000)).contains("at most"));
    assert!(typed("agent").is_ok() && typed("kind:clear").is_ok());
}
