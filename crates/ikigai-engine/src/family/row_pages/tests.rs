//! Tests of pages.

use ikigai_core::project::estimate_tokens;
use ikigai_tools::output::OutputLimit;

use super::pages_of;

#[test]
fn pages_are_bounded_in_bytes_and_tokens_and_lose_nothing() {
    let limit = OutputLimit {
        bytes: 4_096,
        tokens: 600,
    };
    for line in ["a line of text\n", "строка текста\n", "一行文字\n", "漢é x"] {
        for repeated in [0, 1, 100, 2_000] {
            let text = line.repeat(repeated);

            let pages = pages_of(&text, limit);

            assert_eq!(pages.concat(), text, "{line}");
            for page in pages {
                assert!(page.len() <= limit.bytes, "{line}");
                assert!(estimate_tokens(page) <= limit.tokens, "{line}");
            }
        }
    }
}
