use super::*;

fn read(text: &str) -> FrontMatter {
    FrontMatter::split(text).0
}

#[test]
fn a_file_is_split_at_its_fences() {
    let cases = [
        ("---\nname: pdf\n---\n\nBody\n", Some("pdf"), "Body\n"),
        (
            "\u{feff}---\r\nname: pdf\r\n---\r\nBody",
            Some("pdf"),
            "Body",
        ),
        ("---\nname: pdf\n---", Some("pdf"), ""),
        ("no front matter", None, "no front matter"),
        (
            "---\nname: never closed\n",
            None,
            "---\nname: never closed\n",
        ),
        (
            "--- title\nname: x\n---\n",
            None,
            "--- title\nname: x\n---\n",
        ),
    ];

    for (text, name, body) in cases {
        let (found, rest) = FrontMatter::split(text);
        assert_eq!(
            (found.text("name").as_deref(), rest),
            (name, body),
            "{text:?}"
        );
    }
}

#[test]
fn values_are_read_in_every_form_that_people_write() {
    let found = read(
        "---\n\
         name: \"pdf # not a comment\"\n\
         plain: Use this: when a form is filled # a comment\n\
         single: 'it''s'\n\
         folded: >-\n  one\n  two\n\n  three\n\
         literal: |\n  a\n    b\n\
         long: begins here\n  and goes on\n\
         tools: Read, Bash(git add:*, git commit:*), \"Grep\"\n\
         flow: [Read, \"Write\"]\n\
         block:\n  - Read\n  - 'Edit'\n\
         flat:\n- one\n- two\n\
         metadata:\n  version: \"1.0\"\n  author: me\n\
         enabled: yes\n\
         this line fits no form\n\
         empty:\n\
         ---\n",
    );

    let text = |key: &str| found.text(key).unwrap_or_default();
    assert_eq!(text("name"), "pdf # not a comment");
    assert_eq!(text("plain"), "Use this: when a form is filled");
    assert_eq!(text("single"), "it's");
    assert_eq!(text("folded"), "one two\nthree");
    assert_eq!(text("literal"), "a\n  b");
    assert_eq!(text("long"), "begins here and goes on");
    let list = |key: &str| found.list(key).unwrap_or_default();
    assert_eq!(
        list("tools"),
        ["Read", "Bash(git add:*, git commit:*)", "Grep"]
    );
    assert_eq!(list("flow"), ["Read", "Write"]);
    assert_eq!(list("block"), ["Read", "Edit"]);
    assert_eq!(list("flat"), ["one", "two"]);
    assert_eq!(text("metadata.version"), "1.0");
    assert_eq!(text("metadata.author"), "me");
    assert_eq!(found.flag("enabled"), Some(true));
    assert_eq!(found.text("empty"), None);
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "(---\n)?[ \\-\\[\\]'\":|>#a-c,\n\r\\\\ä]{0,80}(\n---\n)?") {
        let (found, body) = FrontMatter::split(&text);
        for key in found.keys() {
            let _ = (found.text(key), found.list(key), found.flag(key));
        }
        proptest::prop_assert!(body.len() <= text.len());
    }
}
