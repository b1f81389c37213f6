use super::{HistorySearch, InputHistory, MOST_BYTES, MOST_ENTRIES};
use crate::input::{EditCommand, Editor};

fn history(sent: &[&str]) -> InputHistory {
    InputHistory::new(sent.iter().map(|text| (*text).to_owned()))
}

fn typed(text: &str) -> Editor {
    let mut editor = Editor::default();
    editor.insert(text);
    editor
}

/// All texts shown by going back.
fn all(history: &mut InputHistory) -> Vec<String> {
    let mut editor = Editor::default();
    let mut seen = Vec::new();
    while history.previous(&mut editor) {
        seen.push(editor.text());
    }
    seen
}

#[test]
fn going_back_and_forth_keeps_what_was_typed() {
    let mut history = history(&["one", "two", "two", " ", "three"]);
    let mut editor = typed("dra");
    editor.paste(&"x\n".repeat(20)).unwrap();
    let draft = editor.shown().to_owned();
    let mut seen = Vec::new();

    while history.previous(&mut editor) {
        seen.push(editor.text());
    }
    assert!(history.is_at_oldest());
    while history.next(&mut editor) {
        seen.push(editor.shown().to_owned());
    }

    assert_eq!(seen, ["three", "two", "one", "two", "three", &draft]);
    assert!(editor.apply(EditCommand::Undo) && editor.apply(EditCommand::Undo));
    assert!(editor.is_empty());
}

#[test]
fn changes_to_an_older_text_stay_until_something_is_sent() {
    let mut history = history(&["one", "two"]);
    let mut editor = Editor::default();

    history.previous(&mut editor);
    editor.insert("!");
    history.previous(&mut editor);
    history.next(&mut editor);
    assert_eq!(editor.text(), "two!");
    history.sent(editor.take());

    assert_eq!(all(&mut history), ["two!", "two", "one"]);
}

#[test]
fn a_text_of_several_lines_is_left_at_its_first() {
    let mut history = history(&["one", "a\nb\nc"]);
    let mut editor = Editor::default();
    editor.layout(20, 5);

    history.previous(&mut editor);
    assert_eq!(editor.cursor(), 1);
    assert!(
        !editor.apply(EditCommand::Up)
            && editor.apply(EditCommand::Down)
            && editor.apply(EditCommand::Up)
    );
    history.previous(&mut editor);
    history.next(&mut editor);

    assert_eq!(editor.cursor(), 5);
    assert!(!editor.apply(EditCommand::Down));
}

#[test]
fn older_texts_can_come_later() {
    let mut history = history(&["three"]);
    let mut editor = typed("x");
    history.previous(&mut editor);

    history.older(vec!["one".to_owned(), "two".to_owned(), "three".to_owned()]);

    assert!(history.previous(&mut editor));
    assert_eq!(editor.text(), "two");
    assert!(!history.is_at_oldest());
}

#[test]
fn what_is_kept_is_bounded() {
    let mut many = InputHistory::new((0..2 * MOST_ENTRIES).map(|n| n.to_string()));
    let mut large = InputHistory::new(["a", "b", "c"].map(|text| text.repeat(MOST_BYTES / 2)));
    large.older(vec!["d".repeat(MOST_BYTES)]);

    assert_eq!(all(&mut many).len(), MOST_ENTRIES);
    assert_eq!(all(&mut large).len(), 2);
    large.sent("e".repeat(2 * MOST_BYTES));
    assert_eq!(all(&mut large).len(), 1);
}

#[test]
fn a_search_narrows_and_goes_through_each_text_once() {
    let history = history(&["cargo test", "Cargo fmt", "ls", "cargo test", "git log"]);
    let mut search = HistorySearch::new(&history);
    assert_eq!(search.place(), Some((1, 4)));

    search.insert("car", &history);

    assert_eq!(search.found(&history), Some(("cargo test", 0..3)));
    assert!(search.older() && !search.older());
    assert_eq!(search.found(&history), Some(("Cargo fmt", 0..3)));
    assert_eq!(search.place(), Some((2, 2)));
    assert!(search.newer() && !search.newer());
    search.apply(EditCommand::KillToStart, &history);
    search.insert("Ca", &history);
    assert_eq!(search.found(&history), Some(("Cargo fmt", 0..2)));
    search.insert("x", &history);
    assert_eq!((search.found(&history), search.place()), (None, None));
    search.apply(EditCommand::Backspace, &history);
    assert_eq!(search.place(), Some((1, 1)));
}

#[test]
fn letters_are_found_where_they_are_in_the_text() {
    let history = history(&["İß Überall"]);
    let mut search = HistorySearch::new(&history);

    search.insert("üb", &history);

    let (text, at) = search.found(&history).unwrap();
    assert_eq!(&text[at], "Üb");
}
