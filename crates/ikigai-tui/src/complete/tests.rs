use ikigai_engine::commands::{Candidate, all};

use super::{CompletedText, Completion, MOST_FILES, ROWS};
use crate::line::TextLine;
use crate::look::{Look, Tone};
use crate::width::width;

fn completion() -> Completion {
    let mut completion = Completion::default();
    completion.context.agents = vec![
        Candidate::new("docs", "idle"),
        Candidate::new("fix-lexer", "works"),
    ];
    completion
}

fn open(text: &str) -> Completion {
    let mut completion = completion();
    completion.follow_edit(text, text.len());
    completion
}

fn rows(completion: &mut Completion) -> Vec<String> {
    let lines = completion.lines(60, ROWS);
    lines
        .iter()
        .map(|line| line.text().trim_end().to_owned())
        .collect()
}

#[test]
fn the_list_opens_by_itself_where_something_can_stand() {
    let cases = [
        ("/", true),
        ("/rew", true),
        ("/rewind", false),
        ("/xyz", false),
        ("/switch ", true),
        ("/switch docs", false),
        ("hello", false),
        ("a /", false),
    ];

    for (text, expected) in cases {
        assert_eq!(open(text).is_open(), expected, "{text}");
    }
}

#[test]
fn once_closed_it_stays_so_until_the_word_changes() {
    let mut completion = open("/re");
    assert!(completion.close() && !completion.close());

    completion.follow_edit("/re", 3);
    assert!(!completion.is_open());
    assert!(completion.ask("/re", 3));
    completion.close();
    completion.follow_edit("/ret", 4);
    assert!(completion.is_open());
}

#[test]
fn a_cursor_that_moves_opens_nothing_and_closes_what_it_leaves() {
    let mut completion = completion();
    completion.follow_cursor("/re", 3);
    assert!(!completion.is_open());

    completion.follow_edit("/re", 3);
    completion.follow_cursor("/re", 2);
    assert!(completion.is_open());
    completion.follow_cursor("/re", 0);
    assert!(!completion.is_open());
}

#[test]
fn the_marked_entry_goes_round_and_stays_in_sight() {
    let mut completion = open("/");
    let all = all().map(|command| 1 + command.aliases.len());
    let all: usize = all.sum();
    let place = |completion: &mut Completion| {
        let lines = completion.lines(60, ROWS);
        let marked = lines.iter().position(|line| line.text().starts_with('>'));
        let count = lines[ROWS - 1].text();
        let count = count.split_whitespace().last().map(str::to_owned);
        (lines.len(), marked.unwrap(), count.unwrap())
    };

    assert_eq!(place(&mut completion), (ROWS, 0, format!("1/{all}")));
    completion.mark(-1);
    assert_eq!(place(&mut completion), (ROWS, 7, format!("{all}/{all}")));
    completion.mark(1);
    assert_eq!(place(&mut completion), (ROWS, 0, format!("1/{all}")));
    completion.mark(8);
    assert_eq!(place(&mut completion), (ROWS, 7, format!("9/{all}")));
    completion.mark(-2);
    assert_eq!(place(&mut completion), (ROWS, 5, format!("7/{all}")));
    completion.mark(1_000);
    assert_eq!(place(&mut completion).2, format!("{all}/{all}"));
    assert!(completion.click(2) && !completion.click(8));
    assert_eq!(place(&mut completion).1, 2);
}

#[test]
fn rows_show_what_an_entry_is_and_which_letters_were_typed() {
    let mut completion = open("/switch x");

    assert_eq!(rows(&mut completion), ["> fix-lexer  works"]);
    completion.follow_edit("/switch ", 8);
    assert_eq!(
        rows(&mut completion),
        ["> docs       idle", "  fix-lexer  works"]
    );
    completion.mark(1);
    completion.follow_edit("/switch d", 9);
    completion.follow_edit("/switch ", 8);
    let fits = |line: &TextLine| width(&line.text()) <= 10;
    assert!(completion.lines(10, ROWS).iter().all(fits));
    completion.follow_edit("/re", 3);
    let spans = &completion.lines(60, ROWS)[1].spans;
    assert_eq!(
        (spans[1].text.as_str(), spans[1].look),
        ("re", Look::of(Tone::Match))
    );
}

#[test]
fn enter_runs_a_complete_line_and_takes_an_entry_otherwise() {
    let takes = |text: &str| open(text).takes_enter(text, text.len());

    assert!(takes("/rew"));
    assert!(!takes("/re x"));
    assert!(takes("/mouse "));
    assert!(!takes("/switch "));
    assert!(takes("/switch do"));
    assert!(!takes("/switch docs"));
    assert!(!takes("/kill "));
    let mut chosen = open("/kill ");
    chosen.mark(1);
    assert!(chosen.takes_enter("/kill ", 6));
}

#[test]
fn an_entry_takes_the_place_of_the_word() {
    let taken = |part, text: &str| {
        Some(CompletedText {
            part,
            text: text.to_owned(),
        })
    };

    assert_eq!(open("/rew").take("/rew", 4), taken(1..4, "rewind "));
    assert_eq!(open("/unde").take("/unde", 5), None);
    assert_eq!(open("/clea").take("/clea", 5), taken(1..5, "clear"));
    let mut argument = open("/switch lex");
    assert_eq!(argument.take("/switch lex", 11), taken(8..11, "fix-lexer"));
    argument.follow_edit("/switch fix-lexer", 17);
    assert!(!argument.is_open());
    let mut within = completion();
    within.follow_edit("/rew x", 4);
    assert_eq!(within.take("/rew x", 4), taken(1..4, "rewind"));
}

#[test]
fn files_come_by_directories_as_they_are_wanted() {
    let files = |names: &[&str]| -> Vec<(String, bool)> {
        let file = |name: &&str| (name.trim_end_matches('/').to_owned(), name.ends_with('/'));
        names.iter().map(file).collect()
    };
    let mut completion = completion();
    completion.follow_edit("see @", 5);
    assert_eq!(completion.wants_directory("see @", 5), Some(String::new()));
    assert_eq!(completion.wants_directory("see ", 4), None);

    completion.set_listing("", files(&["src/", ".git/", "a b", "README.md"]));
    completion.follow_edit("see @", 5);

    assert_eq!(completion.wants_directory("see @", 5), None);
    assert_eq!(rows(&mut completion), ["> README.md", "  src/"]);
    completion.follow_edit("see @.g", 7);
    assert_eq!(rows(&mut completion), ["> .git/"]);
    completion.follow_edit("see @s", 6);
    let taken = completion.take("see @s", 6).unwrap();
    assert_eq!((taken.part, taken.text.as_str()), (5..6, "src/"));
    completion.follow_edit("see @src/", 9);
    let wanted = completion.wants_directory("see @src/", 9);
    assert_eq!(wanted.as_deref(), Some("src/"));
    completion.set_listing("src/", files(&["lib.rs", "main.rs"]));
    completion.follow_edit("see @src/m", 10);
    assert_eq!(rows(&mut completion), ["> src/main.rs"]);
    assert!(completion.takes_enter("see @src/m", 10));
    let taken = completion.take("see @src/m", 10).unwrap();
    assert_eq!((taken.part, taken.text.as_str()), (5..10, "src/main.rs "));
}

#[test]
fn a_large_directory_is_bounded() {
    let mut completion = completion();

    completion.set_listing("", (0..).map(|number| (number.to_string(), false)));
    completion.follow_edit("@", 1);

    let lines = completion.lines(40, ROWS);
    let count = format!("1/{MOST_FILES}");
    assert!(lines[ROWS - 1].text().ends_with(&count));
}

#[test]
fn names_from_outside_are_made_harmless() {
    let mut completion = completion();
    completion.context.agents = vec![Candidate::new("do\u{1b}[31mcs", "li\nne\u{202e}")];

    completion.follow_edit("/switch d", 9);

    let line = completion.lines(60, ROWS).remove(0).text();
    assert_eq!(line.trim_end(), "> do␛[31mcs  li ne⟨U+202E⟩");
}
