//! Tests of word splitting, comparison and snippets.

use super::{Searched, Snippet, Words, ends, searchable_text, tokens};
use crate::data::{BlobRef, CommandData, MarkData, ToolCallData, ToolResultData};
use crate::event::{Event, Row};
use crate::ids::{AgentId, Micros, RowRef, Seq};
use crate::kind::StoredKind;

fn words(text: &str) -> Vec<String> {
    tokens(text).map(|token| token.folded).collect()
}

fn row(event: Event) -> Row {
    let agent = AgentId::from_random([1; 16]).unwrap();
    let new = event.into_row(agent, Micros(0));
    Row {
        at: RowRef::new(agent, Seq(1)),
        kind: StoredKind::Known(new.kind),
        content: new.content,
        data: new.data,
        created_at: new.created_at,
        author: None,
    }
}

#[test]
fn words_are_letters_and_digits_without_case_and_accents() {
    assert_eq!(
        words("Über_die Brücke: naïve x86-64, CAFE\u{301}!"),
        ["uber", "die", "brucke", "naive", "x86", "64", "cafe"]
    );
    assert_eq!(words("日本語 и Ещё"), ["日", "本", "語", "и", "ещё"]);
    assert_eq!(
        words("Rust言語のコード"),
        ["rust", "言", "語", "の", "コ", "ー", "ド"]
    );
    assert_eq!(words("한국어 텍스트"), ["한국어", "텍스트"]);
    assert_eq!(words(" \u{301}--\0"), [""; 0]);
}

#[test]
fn what_is_parted_is_split_at_spaces_as_words_are() {
    for text in [
        "Rust言語のコード",
        "x・y、ﾃｽﾄ",
        "か\u{301}き 々",
        "plain words",
    ] {
        let by_spaces = super::split_words(text);
        let by_spaces = by_spaces.split_whitespace().flat_map(words);
        assert_eq!(by_spaces.collect::<Vec<_>>(), words(text), "{text}");
    }
}

#[test]
fn what_is_typed_is_words_phrases_and_beginnings_and_nothing_else() {
    let parsed = |typed| {
        let parsed = Words::parse(typed);
        let terms = parsed.terms().iter();
        terms
            .map(|term| (term.text.clone(), term.is_prefix))
            .collect::<Vec<_>>()
    };
    let term = |text: &str, is_prefix| (text.to_owned(), is_prefix);

    assert_eq!(
        parsed("a \"b c\" d*"),
        [term("a", false), term("b c", false), term("d*", true)]
    );
    assert_eq!(parsed("\"open end"), [term("open end", false)]);
    assert_eq!(parsed("\"b c\"* x"), [term("b c", true), term("x", false)]);
    assert_eq!(
        parsed("a OR NOT(b) ^c {d}: -- * \"\" ;"),
        [
            term("a", false),
            term("OR", false),
            term("NOT(b)", false),
            term("^c", false),
            term("{d}:", false)
        ]
    );
    assert_eq!(Words::parse(&"w ".repeat(1000)).terms().len(), 32);
}

#[test]
fn all_terms_must_be_there_and_those_of_a_phrase_in_a_row() {
    let found = |typed, text| Words::parse(typed).are_in(text);

    assert!(found("fox brown", "The quick brown FOX."));
    assert!(!found("fox wolf", "The quick brown FOX."));
    assert!(found("\"brown fox\"", "the brown, fox"));
    assert!(!found("\"fox brown\"", "the brown fox"));
    assert!(found("bro*", "brown") && !found("bro", "brown"));
    assert!(found("\"quick bro\"*", "quick brown"));
    assert!(found("src/main.rs", "in src/main.rs:3"));
    assert!(found("解析器", "修复解析器的错误") && found("错误", "修复解析器的错误"));
    assert!(!found("析解", "修复解析器的错误"));
}

#[test]
fn a_snippet_is_one_line_around_most_of_the_words_with_marks() {
    let text = format!(
        "alpha {} alpha\n\n  beta\tgamma {}",
        "x ".repeat(80),
        "y ".repeat(80)
    );

    let snippet = Snippet::of(&text, &Words::parse("alpha beta"), 40);

    let marked: Vec<_> = snippet
        .marks
        .iter()
        .map(|mark| &snippet.text[mark.clone()])
        .collect();
    assert_eq!(marked, ["alpha", "beta"]);
    assert!(snippet.text.starts_with("…x"), "{snippet:?}");
    assert!(snippet.text.contains("alpha beta gamma"), "{snippet:?}");
    assert!(snippet.text.ends_with('…') && snippet.text.chars().count() <= 42);
}

#[test]
fn a_snippet_of_anything_is_a_line() {
    let hostile = "\u{1b}[31m\0\u{9b}é\u{301}\r\n日本語 wide\u{202e}";
    let snippet = Snippet::of(hostile, &Words::parse("e wide 本語"), 200);

    assert!(!snippet.text.contains(char::is_control), "{snippet:?}");
    let marked: Vec<_> = snippet
        .marks
        .iter()
        .map(|mark| &snippet.text[mark.clone()])
        .collect();
    assert_eq!(marked, ["é\u{301}", "本語", "wide"]);
    assert_eq!(Snippet::of("", &Words::parse("x"), 10), Snippet::default());
    let nothing = Snippet::of("one two", &Words::parse("three"), 3);
    assert_eq!((nothing.text.as_str(), nothing.has_mark()), ("one…", false));
}

#[test]
fn overlapping_terms_are_one_mark() {
    let snippet = Snippet::of("a b c d", &Words::parse("\"a b\" \"b c\" d"), 20);

    assert_eq!(snippet.marks, [0..5, 6..7]);
}

#[test]
fn a_tool_result_is_searched_by_its_output_or_its_blob() {
    let result = |blob| {
        row(Event::ToolResult {
            shown: Some("12 lines".to_owned()),
            data: ToolResultData {
                tool_call_id: Some("c".to_owned()),
                name: Some("bash".to_owned()),
                output: Some("the needle".to_owned()),
                success: Some(true),
                blob,
                ..ToolResultData::default()
            },
        })
    };
    let blob = BlobRef {
        hash: Some("abc".to_owned()),
        bytes: Some(9),
    };

    assert_eq!(
        searchable_text(&result(None)).text,
        "bash\nthe needle\n12 lines"
    );
    assert_eq!(
        searchable_text(&result(Some(blob))),
        Searched {
            text: "bash\n12 lines".to_owned(),
            blob: Some("abc".to_owned()),
            model: None,
        }
    );
}

#[test]
fn calls_commands_and_marks_are_searched_by_what_a_person_sees() {
    let call = row(Event::ToolCall {
        shown: None,
        data: ToolCallData {
            tool_call_id: Some("c".to_owned()),
            name: Some("bash".to_owned()),
            arguments: Some(r#"{"command":"echo \u00fcber\n","n":[7,true]}"#.to_owned()),
            ..ToolCallData::default()
        },
    });
    let command = row(Event::Command {
        output: Some("done".to_owned()),
        data: CommandData {
            echo: Some("/name x".to_owned()),
            ..CommandData::default()
        },
    });
    let mark = row(Event::Mark(MarkData {
        label: Some("here".to_owned()),
    }));

    assert_eq!(searchable_text(&call).text, "bash\necho über\n\n7");
    assert_eq!(searchable_text(&command).text, "/name x\ndone");
    assert_eq!(searchable_text(&mark).text, "here");
}

#[test]
fn of_a_long_text_both_ends_are_searched() {
    let text = format!("{}middle{}", "é".repeat(10), "ü".repeat(10));

    assert_eq!(ends(&text, 11), "éé\n…\nüü");
    assert_eq!(ends("short", 11), "short");
}
