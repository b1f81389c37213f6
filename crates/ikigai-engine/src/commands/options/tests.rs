use super::super::Typed;
use super::super::fork::FORK;

type Read = Result<(Vec<(&'static str, &'static str)>, Vec<&'static str>), &'static str>;

#[test]
fn options_are_read_before_and_after_the_text_and_outside_of_quotes_only() {
    let cases: Vec<(&str, Read)> = vec![
        ("", Ok((vec![], vec![]))),
        ("count the tests", Ok((vec![], vec!["count the tests"]))),
        ("it's \"odd\"", Ok((vec![], vec!["it's \"odd\""]))),
        (
            "\"one two\" 'three'",
            Ok((vec![], vec!["one two", "three"])),
        ),
        (
            "\"prompt\" --model demo",
            Ok((vec![("--model", "demo")], vec!["prompt"])),
        ),
        (
            "--model demo \"prompt\"",
            Ok((vec![("--model", "demo")], vec!["prompt"])),
        ),
        (
            "\"one\" --name=a --fresh \"two\"",
            Ok((vec![("--name", "a"), ("--fresh", "")], vec!["one", "two"])),
        ),
        (
            "count  the\n tests --go",
            Ok((vec![("--go", "")], vec!["count  the\n tests"])),
        ),
        (
            "--at \"before the rewrite\" go on",
            Ok((vec![("--at", "before the rewrite")], vec!["go on"])),
        ),
        ("\"use --release\"", Ok((vec![], vec!["use --release"]))),
        (
            "-- --release is slow",
            Ok((vec![], vec!["--release is slow"])),
        ),
        ("\"unclosed", Ok((vec![], vec!["\"unclosed"]))),
        ("--name", Err("--name needs a value")),
        ("\"x\" --model --go", Err("--model needs a value")),
        ("\"x\" --go=1", Err("--go takes no value")),
        (
            "\"x\" --modle demo",
            Err("/fork has no option --modle (quote text that begins with --)"),
        ),
    ];

    for (rest, expected) in cases {
        let read = Typed::read(&FORK.command, rest).map(|typed| (typed.options, typed.texts));
        let read: Result<(Vec<_>, Vec<_>), _> = match &read {
            Ok((options, texts)) => Ok((
                options
                    .iter()
                    .map(|(name, value)| (*name, &**value))
                    .collect(),
                texts.iter().map(|text| &**text).collect(),
            )),
            Err(reason) => Err(reason.as_str()),
        };
        assert_eq!(read, expected, "{rest}");
    }
}
