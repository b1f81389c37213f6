//! Tests of the translation of entries and queries to the server's language.

use ikigai_core::find::{Searched, Words};

use super::{LongTexts, entry, in_model, in_text, one_of, tag_agent};

fn text(text: &str) -> Searched {
    Searched {
        text: text.to_owned(),
        ..Searched::default()
    }
}

#[test]
fn an_entry_has_words_with_places_and_tags_without() {
    let searched = Searched {
        model: Some("Opus-4".to_owned()),
        ..text("Señor o'Brien señor")
    };

    let written = entry(&searched, [tag_agent(7)]);

    let mut parts: Vec<_> = written.split_whitespace().collect();
    parts.sort_unstable();
    assert_eq!(
        parts,
        [
            "':a7'",
            "':m4':2",
            "':mopus':1",
            "'brien':3",
            "'o':2",
            "'senor':1,4"
        ]
    );
}

#[test]
fn an_entry_stays_within_what_the_server_takes() {
    let long_word = "x".repeat(5000);
    let many = (0..300_000)
        .map(|n| format!("w{n}"))
        .collect::<Vec<_>>()
        .join(" ");

    let one = entry(&text(&long_word), []);
    let all = entry(&text(&many), []);
    let often = entry(&text(&"y ".repeat(1000)), []);

    assert_eq!(one.trim_end(), format!("'{}':1", "x".repeat(1000)));
    assert!(all.contains("'w0':1 ") && !all.contains("'w299999'"));
    assert!(all.contains("'w20000' ") && !all.contains(":16384"));
    assert_eq!(often.matches(',').count(), 254);
}

#[test]
fn a_question_has_all_terms_and_phrases_in_their_order() {
    let words = Words::parse("fox \"brown bear\" qui*");

    assert_eq!(
        in_text(&words, LongTexts::Somewhere).unwrap(),
        "'fox' & ('brown' <-> 'bear' | 'brown' & 'bear' & ':long') & 'qui':*"
    );
    assert_eq!(in_model(&Words::parse("gpt")).unwrap(), "':mgpt'");
    assert_eq!(
        in_text(&words, LongTexts::Nowhere).unwrap(),
        "'fox' & ('brown' <-> 'bear') & 'qui':*"
    );
    assert_eq!(in_text(&Words::default(), LongTexts::Somewhere), None);
    assert_eq!(
        one_of(&[tag_agent(1), tag_agent(2)]).unwrap(),
        "(':a1' | ':a2')"
    );
    assert_eq!(one_of(&[]), None);
}
