//! Tests of formatting and parsing figures.

use ikigai_core::data::Amounts;

use super::{amounts, dollars, read_dollars, read_tokens, tokens};

#[test]
fn tokens_are_rounded_down() {
    let cases = [
        (0, "0"),
        (999, "999"),
        (1000, "1.0k"),
        (9999, "9.9k"),
        (48_900, "48k"),
        (1_250_000, "1.2M"),
    ];
    for (number, shown) in cases {
        assert_eq!(tokens(number), shown);
    }
}

/// A positive cost never appears as zero.
#[test]
fn money_has_cents_and_small_sums_more() {
    let cases = [
        (0, "$0.00"),
        (1, "$0.0001"),
        (1_234_567, "$0.0013"),
        (9_999_999, "$0.0100"),
        (10_000_000, "$0.01"),
        (5_019_999_999, "$5.01"),
    ];
    for (nano, shown) in cases {
        assert_eq!(dollars(nano), shown);
    }
}

#[test]
fn an_unknown_price_is_said_to_be_one() {
    let known = Amounts {
        input: Some(12_000),
        cache_read: Some(36_000),
        output: Some(2100),
        cost_nano_usd: Some(40_000_000),
        ..Amounts::default()
    };
    assert_eq!(
        amounts(&known),
        "48k tokens in (36k cached) · 2.1k out · $0.04"
    );
    let unknown = Amounts::default();
    assert_eq!(amounts(&unknown), "0 tokens in · 0 out · price unknown");
}

#[test]
fn amounts_are_read_exactly_or_not_at_all() {
    let cases = [
        ("4096", Some(4096)),
        ("200k", Some(200_000)),
        ("200K", Some(200_000)),
        ("1.5M", Some(1_500_000)),
        ("0.0005k", None),
        ("1.5", None),
        ("", None),
        (".5k", None),
        ("5.k", None),
        ("-5", None),
        ("k", None),
        ("99999999999999999999", None),
        ("99999999999999999M", None),
    ];
    for (typed, read) in cases {
        assert_eq!(read_tokens(typed), read, "{typed}");
    }
    let cases = [
        ("$5", Some(5_000_000_000)),
        ("$0.50", Some(500_000_000)),
        ("$0.000000001", Some(1)),
        ("$0.0000000001", None),
        ("5", None),
        ("$", None),
        ("$é", None),
    ];
    for (typed, read) in cases {
        assert_eq!(read_dollars(typed), read, "{typed}");
    }
}
