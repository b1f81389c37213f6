//! Single edits; the random ones are in `tests/it/input.rs`.

use super::{EditCommand, Editor, LIMIT_BYTES, TooLarge};

/// An editor with this text; `|` is the cursor.
fn editor(text: &str) -> Editor {
    let at = text.find('|').unwrap();
    let mut editor = Editor::default();
    editor.set(&text.replace('|', ""));
    editor.move_to(at);
    editor
}

/// Text with folds as labels, with `|` at the cursor.
fn state(editor: &Editor) -> String {
    let mut text = editor.shown().to_owned();
    text.insert(editor.cursor(), '|');
    text
}

fn rows(editor: &mut Editor, width: u16) -> Vec<String> {
    let layout = editor.layout(width, u16::MAX);
    layout
        .rows
        .iter()
        .map(crate::line::TextLine::text)
        .collect()
}

#[test]
fn keys_move_and_change_by_graphemes_words_and_lines() {
    use EditCommand::{
        Backspace, DeleteForward, KillToEnd, KillToStart, KillWordBack, KillWordForward, Left,
        LineEnd, LineStart, Newline, Right, TextEnd, TextStart, WordLeft, WordRight,
    };
    let cases = [
        (Newline, "a|b", "a\n|b"),
        (Backspace, "ab|c", "a|c"),
        (Backspace, "x👩\u{200d}👩\u{200d}👧|", "x|"),
        (Backspace, "e\u{301}|", "|"),
        (Backspace, "|a", "|a"),
        (DeleteForward, "|e\u{301}x", "|x"),
        (DeleteForward, "a|", "a|"),
        (DeleteForward, "e|x\u{301}", "e|"),
        (Left, "a🇩🇪|🇫🇷", "a|🇩🇪🇫🇷"),
        (Right, "|🇩🇪🇫🇷", "🇩🇪|🇫🇷"),
        (WordLeft, "one two, |", "one |two, "),
        (WordLeft, "one\ntwo|", "one\n|two"),
        (WordRight, "one| two, x", "one two|, x"),
        (LineStart, "a\nbc|d", "a\n|bcd"),
        (LineEnd, "a\n|bcd\ne", "a\nbcd|\ne"),
        (TextStart, "a\nb|", "|a\nb"),
        (TextEnd, "|a\nb", "a\nb|"),
        (KillToEnd, "a|bc\nd", "a|\nd"),
        (KillToEnd, "a|\nd", "a|d"),
        (KillToStart, "a\nbc|d", "a\n|d"),
        (KillToStart, "a\n|d", "a|d"),
        (KillWordBack, "one two |", "one |"),
        (KillWordForward, "one| two x", "one| x"),
    ];

    for (edit, before, after) in cases {
        let mut editor = editor(before);
        let told = editor.apply(edit);
        assert_eq!(state(&editor), after, "{edit:?} of {before:?}");
        assert_eq!(told, before != after, "{edit:?} of {before:?}");
    }
}

#[test]
fn kills_in_a_row_come_back_as_one_and_older_ones_after_them() {
    let mut editor = editor("one two three| four");
    editor.apply(EditCommand::KillWordBack);
    editor.apply(EditCommand::KillWordBack);
    editor.apply(EditCommand::KillToEnd);
    editor.apply(EditCommand::TextStart);
    editor.apply(EditCommand::KillWordForward);
    assert_eq!(state(&editor), "| ");

    editor.apply(EditCommand::Yank);
    assert_eq!(state(&editor), "one| ");
    editor.apply(EditCommand::YankPop);
    assert_eq!(state(&editor), "two three four| ");
    editor.apply(EditCommand::YankPop);
    assert_eq!(state(&editor), "one| ");
    editor.apply(EditCommand::Left);
    assert!(!editor.apply(EditCommand::YankPop));
}

#[test]
fn what_is_cleared_can_be_brought_back() {
    let mut editor = editor("a thou|ght");

    editor.clear();

    assert!(editor.is_empty());
    assert!(editor.apply(EditCommand::Yank));
    assert_eq!(state(&editor), "a thought|");
    assert!(editor.apply(EditCommand::Undo) && editor.apply(EditCommand::Undo));
    assert_eq!(state(&editor), "a thou|ght");
}

#[test]
fn typed_words_are_undone_one_by_one() {
    let mut editor = Editor::default();
    for letter in "hello big  world".chars() {
        editor.insert(&letter.to_string());
    }
    for _ in 0..7 {
        editor.apply(EditCommand::Backspace);
    }
    assert_eq!(editor.text(), "hello big");

    let mut seen = Vec::new();
    while editor.apply(EditCommand::Undo) {
        seen.push(editor.text());
    }
    while editor.apply(EditCommand::Redo) {
        seen.push(editor.text());
    }

    let expected = [
        "hello big  world",
        "hello big  ",
        "hello ",
        "",
        "hello ",
        "hello big  ",
        "hello big  world",
        "hello big",
    ];
    assert_eq!(seen, expected);
    editor.apply(EditCommand::Undo);
    editor.insert("!");
    assert!(!editor.apply(EditCommand::Redo));
}

#[test]
fn a_large_paste_is_one_grapheme_until_it_is_sent() {
    let pasted = "line\r\n".repeat(10_000);
    let mut editor = editor("see |!");

    editor.paste(&pasted).unwrap();

    assert_eq!(state(&editor), "see [paste: 10,000 lines]|!");
    let whole = format!("see {}!", "line\n".repeat(10_000));
    assert_eq!(editor.text(), whole);
    editor.apply(EditCommand::Left);
    assert_eq!(state(&editor), "see |[paste: 10,000 lines]!");
    editor.insert("\u{301}");
    editor.apply(EditCommand::WordRight);
    assert_eq!(state(&editor), "see \u{301}[paste: 10,000 lines]|!");
    editor.insert("\u{301}");
    assert_eq!(state(&editor), "see \u{301}[paste: 10,000 lines]\u{301}|!");
    editor.apply(EditCommand::Backspace);
    editor.apply(EditCommand::KillWordBack);
    assert_eq!(state(&editor), "see \u{301}|!");
    editor.apply(EditCommand::Yank);
    assert_eq!(editor.text(), whole.replacen(' ', " \u{301}", 1));
    editor.move_to(10);
    assert_eq!(state(&editor), "see \u{301}[paste: 10,000 lines]|!");
    assert!(editor.replace(8..9, "it"));
    assert_eq!(state(&editor), "see \u{301}it|!");
    assert_eq!(editor.take(), "see \u{301}it!");
    assert!(editor.is_empty() && !editor.apply(EditCommand::Undo));
}

#[test]
fn what_is_folded_and_what_is_not() {
    let cases = [
        (
            "a\rb\r\nc\u{1b}[0m".to_owned(),
            "a\nb\nc\u{1b}[0m".to_owned(),
        ),
        ("x\n".repeat(8), "x\n".repeat(8)),
        ("x\n".repeat(9), "[paste: 9 lines]".to_owned()),
        ("ä".repeat(1_000), "ä".repeat(1_000)),
        ("ä".repeat(1_001), "[paste: 1,001 characters]".to_owned()),
    ];

    for (pasted, shown) in cases {
        let mut editor = Editor::default();
        editor.paste(&pasted).unwrap();
        assert_eq!(editor.shown(), shown);
    }
}

#[test]
fn more_than_the_input_takes_is_refused() {
    let mut editor = Editor::default();
    let half = "x".repeat(LIMIT_BYTES / 2);

    assert_eq!(editor.paste(&half), Ok(()));
    assert_eq!(editor.paste(&half), Ok(()));
    assert_eq!(editor.paste("x"), Err(TooLarge));
    assert!(!editor.insert("x") && !editor.apply(EditCommand::Newline));
    assert!(editor.apply(EditCommand::KillWordBack));
    assert!(editor.apply(EditCommand::Yank) && !editor.apply(EditCommand::Yank));
    assert_eq!(editor.text().len(), LIMIT_BYTES);
}

#[test]
fn a_backslash_before_the_cursor_becomes_a_newline() {
    let mut with = editor("one\\|");
    let mut without = editor("\\one|");

    assert!(with.ends_with_backslash() && with.continue_line());
    assert!(!without.ends_with_backslash() && !without.continue_line());

    assert_eq!(state(&with), "one\n|");
    assert_eq!(state(&without), "\\one|");
}

#[test]
fn rows_are_wrapped_by_cells() {
    let cases: [(&str, u16, &[&str]); 9] = [
        ("|", 4, &[""]),
        ("abcdef|", 4, &["abcd", "ef"]),
        ("abcd|", 4, &["abcd", ""]),
        ("ab\n\ncd|", 4, &["ab", "", "cd"]),
        ("abc中|", 4, &["abc", "中"]),
        ("a\tb|", 8, &["a   b"]),
        ("abc\t\td|", 6, &["abc   ", "d"]),
        ("a\u{1b}\u{202e}|", 20, &["a␛⟨U+202E⟩"]),
        ("a中|", 1, &["a", "\u{fffd}", ""]),
    ];

    for (text, width, expected) in cases {
        assert_eq!(rows(&mut editor(text), width), expected, "{text:?}");
    }
}

#[test]
fn up_and_down_keep_the_column_and_tell_the_edges() {
    let mut editor = editor("abcdefgh\nx\nabcd|efgh");
    editor.layout(5, 10);
    let mut seen = Vec::new();

    while editor.apply(EditCommand::Up) {
        seen.push(state(&editor).replace('\n', "/"));
    }
    assert!(!editor.apply(EditCommand::Up));
    while editor.apply(EditCommand::Down) {}

    let expected = [
        "abcdefgh/x|/abcdefgh",
        "abcdefgh|/x/abcdefgh",
        "abcd|efgh/x/abcdefgh",
    ];
    assert_eq!(seen, expected);
    assert_eq!(state(&editor), "abcdefgh\nx\nabcdefgh|");
}

#[test]
fn up_and_down_go_through_a_fold_that_has_several_rows() {
    let mut editor = editor("|z");
    editor.paste(&"x\n".repeat(9)).unwrap();
    editor.layout(5, 10);
    editor.apply(EditCommand::Left);

    assert!(editor.apply(EditCommand::Down));
    assert_eq!(state(&editor), "[paste: 9 lines]|z");
    assert!(!editor.apply(EditCommand::Down));
    assert!(editor.apply(EditCommand::Up));
    assert_eq!(state(&editor), "|[paste: 9 lines]z");
}

#[test]
fn rows_scroll_no_further_than_the_cursor_needs() {
    let mut editor = editor("a\nb\nc\nd\ne|");
    let first = |editor: &mut Editor| {
        let layout = editor.layout(10, 3);
        (layout.first_row, layout.cursor.0, layout.total_rows)
    };

    assert_eq!(first(&mut editor), (2, 2, 5));
    editor.apply(EditCommand::Up);
    assert_eq!(first(&mut editor), (2, 1, 5));
    editor.apply(EditCommand::TextStart);
    assert_eq!(first(&mut editor), (0, 0, 5));
    editor.click(2, 7);
    assert_eq!(state(&editor), "a\nb\nc|\nd\ne");
    editor.clear();
    assert_eq!(first(&mut editor), (0, 0, 1));
}

#[test]
fn a_line_of_megabytes_is_edited_at_both_ends() {
    let mut editor = Editor::default();
    editor.set(&"word ".repeat(1024 * 1024));
    editor.layout(80, 10);

    for edit in [EditCommand::TextEnd, EditCommand::TextStart] {
        editor.apply(edit);
        for _ in 0..3 {
            editor.insert("x");
            editor.layout(80, 10);
            editor.apply(EditCommand::WordLeft);
            editor.apply(EditCommand::DeleteForward);
        }
    }

    assert_eq!(editor.layout(80, 10).total_rows, 65_537);
}

#[test]
fn one_row_shows_what_stands_before_the_cursor() {
    let mut editor = Editor::default();
    editor.insert("a中bcdef");

    let mut at = |width| {
        let (line, column) = editor.one_row(width);
        (line.text(), column)
    };
    assert_eq!(at(20), ("a中bcdef".to_owned(), 8));
    assert_eq!(at(9), ("a中bcdef".to_owned(), 8));
    assert_eq!(at(8), ("中bcdef".to_owned(), 7));
    assert_eq!(at(7), ("bcdef".to_owned(), 5));
    assert_eq!(at(1), (String::new(), 0));
    editor.move_to(0);
    assert_eq!(editor.one_row(3).1, 0);
}
