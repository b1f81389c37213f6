use std::collections::HashSet;

use super::{
    Action, BindError, Bindings, KeyMode, Meaning, NoSuchKey, entries, label, page, parse_keys,
};
use crate::input::EditCommand;
use crate::key::{KeyCode, KeyPress};

fn bound(pairs: &[(&str, &str)]) -> Result<Bindings, BindError> {
    let owned = |(keys, action): &(&str, &str)| ((*keys).to_owned(), (*action).to_owned());
    Bindings::with(&pairs.iter().map(owned).collect::<Vec<_>>())
}

fn meaning(bindings: &Bindings, modes: &[KeyMode], keys: &str) -> Meaning {
    bindings.meaning(modes, &parse_keys(keys).unwrap())
}

#[test]
fn names_of_keys_are_read_and_written() {
    let cases = [
        ("ctrl-x", KeyPress::ctrl('x')),
        ("alt-enter", KeyPress::alt(KeyCode::Enter)),
        ("shift-tab", KeyPress::shift(KeyCode::Tab)),
        ("f1", KeyPress::of(KeyCode::F(1))),
        ("?", KeyPress::of(KeyCode::Char('?'))),
        ("-", KeyPress::of(KeyCode::Char('-'))),
        ("ctrl--", KeyPress::ctrl('-')),
        ("G", KeyPress::of(KeyCode::Char('G'))),
        ("f", KeyPress::of(KeyCode::Char('f'))),
        ("space", KeyPress::of(KeyCode::Char(' '))),
        ("page-up", KeyPress::of(KeyCode::PageUp)),
    ];

    for (name, key) in cases {
        assert_eq!(name.parse(), Ok(key), "{name}");
        assert_eq!(key.to_string(), name);
    }
    for name in [
        "", "ctrl-", "f0", "f99", "pageup", "ctrl-ab", "Ctrl-x", " ", "\u{1b}",
    ] {
        assert_eq!(name.parse::<KeyPress>(), Err(NoSuchKey(name.to_owned())));
    }
}

#[test]
fn a_letter_tells_itself_that_shift_was_held() {
    let shifted = KeyPress::shift(KeyCode::Char('g'));
    let both = KeyPress {
        shift: true,
        ..KeyPress::ctrl('A')
    };

    assert_eq!("shift-g".parse(), Ok(KeyPress::of(KeyCode::Char('G'))));
    assert_eq!(shifted.plain(), KeyPress::of(KeyCode::Char('G')));
    assert_eq!(both.plain().to_string(), "ctrl-shift-a");
}

#[test]
fn every_action_has_one_name_and_keys_that_no_other_has() {
    let mut taken = HashSet::new();
    let mut named = HashSet::new();
    for entry in entries() {
        assert!(named.insert(entry.name), "{} twice", entry.name);
        let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(entry.name.chars().all(kebab), "{}", entry.name);
        for (mode, keys) in entry.keys {
            for key in *keys {
                let parsed = parse_keys(key).unwrap();
                assert_eq!(super::names(&parsed), *key);
                assert!(taken.insert((*mode, parsed)), "{key} twice in {mode:?}");
            }
        }
    }
}

#[test]
fn the_first_mode_that_knows_a_key_decides() {
    use Meaning::{Action as Does, Nothing, Prefix};
    let bindings = Bindings::default();
    let empty = &[KeyMode::Empty, KeyMode::Input][..];
    let asked = &[KeyMode::Others, KeyMode::Input][..];
    let cases = [
        (
            &[KeyMode::Input][..],
            "left",
            Does(Action::Edit(EditCommand::Left)),
        ),
        (empty, "left", Does(Action::Board)),
        (empty, "right", Does(Action::Edit(EditCommand::Right))),
        (empty, "?", Does(Action::Help)),
        (&[KeyMode::Input], "?", Nothing),
        (
            &[KeyMode::Input],
            "alt-y",
            Does(Action::Edit(EditCommand::YankPop)),
        ),
        (asked, "alt-y", Does(Action::OtherGo)),
        (&[KeyMode::Browse], "y", Does(Action::BrowseCopy)),
        (&[KeyMode::Browse], "Y", Does(Action::BrowseCopyMarkdown)),
        (&[KeyMode::Browse], "ctrl-c", Does(Action::Interrupt)),
        (&[KeyMode::Browse], "esc", Does(Action::BrowseLeave)),
        (&[KeyMode::Input], "esc", Does(Action::Escape)),
        (&[KeyMode::Input], "ctrl-x", Prefix),
        (&[KeyMode::Question], "ctrl-x a", Does(Action::Board)),
        (&[KeyMode::Input], "ctrl-x 3", Does(Action::Agent(3))),
        (&[KeyMode::Input], "ctrl-x z", Nothing),
        (&[KeyMode::Question], "enter", Nothing),
    ];

    for (modes, keys, expected) in cases {
        assert_eq!(
            meaning(&bindings, modes, keys),
            expected,
            "{modes:?} {keys}"
        );
    }
}

#[test]
fn the_configuration_binds_keys_to_actions() {
    let bindings = bound(&[
        ("ctrl-o", "board"),
        ("ctrl-a b", "newline"),
        ("ctrl-x", "redraw"),
        ("j", "browse-up"),
        ("alt-n", "none"),
        ("ctrl-k", "board"),
        ("alt-up", "history-previous"),
    ])
    .unwrap();
    let input = &[KeyMode::Input][..];

    let does = |modes, keys| meaning(&bindings, modes, keys);
    assert_eq!(does(input, "ctrl-o"), Meaning::Action(Action::Board));
    assert_eq!(does(input, "ctrl-a"), Meaning::Prefix);
    assert_eq!(
        does(input, "ctrl-a b"),
        Meaning::Action(Action::Edit(EditCommand::Newline))
    );
    assert_eq!(does(input, "ctrl-x"), Meaning::Action(Action::Redraw));
    assert_eq!(does(input, "ctrl-x a"), Meaning::Nothing);
    assert_eq!(
        does(&[KeyMode::Browse], "j"),
        Meaning::Action(Action::BrowseUp)
    );
    assert_eq!(
        does(&[KeyMode::Board], "j"),
        Meaning::Action(Action::BoardDown)
    );
    assert_eq!(
        does(&[KeyMode::Others, KeyMode::Input], "alt-n"),
        Meaning::Nothing
    );
    let keys = bindings.keys_of(KeyMode::Always, Action::Board);
    assert_eq!(keys, ["ctrl-o", "ctrl-k"]);
    let empty = &[KeyMode::Empty, KeyMode::Input][..];
    assert_eq!(does(input, "ctrl-k"), Meaning::Action(Action::Board));
    assert_eq!(does(empty, "left"), Meaning::Action(Action::Board));
    assert_eq!(
        does(empty, "alt-up"),
        Meaning::Action(Action::HistoryPrevious)
    );
}

#[test]
fn what_cannot_be_bound_is_named() {
    let cases = [
        (("crtl-a", "board"), "`crtl-a`: unknown key `crtl-a`"),
        (("ctrl-x zz", "board"), "`ctrl-x zz`: unknown key `zz`"),
        (("ctrl-o", "bord"), "unknown action `bord` for ctrl-o"),
        (
            ("", "board"),
            "``: use one key, or two separated by a space",
        ),
        (
            ("a b c", "board"),
            "`a b c`: use one key, or two separated by a space",
        ),
    ];

    for (pair, expected) in cases {
        assert_eq!(bound(&[pair]).unwrap_err().to_string(), expected);
    }
}

#[test]
fn help_shows_the_keys_that_hold() {
    let bindings = bound(&[("ctrl-k", "none"), ("ctrl-o", "newline")]).unwrap();

    let help = bindings.help();

    let input = &help[0];
    let keys_of = |name| input.rows.iter().find(|(_, entry)| entry.name == name);
    assert_eq!(input.heading, "Input");
    assert!(keys_of("kill-to-end").is_none());
    let newline = ["alt-enter", "shift-enter", "ctrl-j", "ctrl-o"];
    assert_eq!(keys_of("newline").unwrap().0, newline);
    assert_eq!(help.len(), KeyMode::ALL.len());
}

#[test]
fn a_label_is_what_a_keyboard_says() {
    let cases = [
        ("ctrl-x a", "Ctrl-X a"),
        ("page-up", "PgUp"),
        ("alt-enter", "Alt-Enter"),
        ("ctrl-x up", "Ctrl-X ↑"),
        ("space", "Space"),
        ("G", "G"),
        ("f1", "F1"),
    ];

    for (names, expected) in cases {
        assert_eq!(label(names), expected);
    }
}

#[test]
fn the_essential_keys_are_twenty_that_are_bound() {
    let all = Bindings::default().essential_help();
    let fewer = bound(&[("ctrl-g", "none")]).unwrap().essential_help();

    assert_eq!(all.rows.len(), 20);
    assert_eq!(fewer.rows.len(), 19);
}

#[test]
fn the_next_keys_of_a_prefix_are_those_that_hold() {
    let bindings = bound(&[("ctrl-x q", "none"), ("ctrl-x b", "board")]).unwrap();
    let next = bindings.next_keys(&[KeyMode::Input], &parse_keys("ctrl-x").unwrap());

    let keys: Vec<_> = next.iter().map(|(key, _)| key.label()).collect();

    assert!(keys.contains(&"b".to_owned()), "{keys:?}");
    assert!(!keys.contains(&"q".to_owned()), "{keys:?}");
    assert_eq!(bindings.next_keys(&[], &parse_keys("ctrl-t").unwrap()), []);
}

/// `docs/keys.md` is generated from the table.
#[test]
fn keys_page_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/keys.md");
    if std::env::var_os("IKIGAI_WRITE_DOCS").is_some() {
        std::fs::write(path, page()).unwrap();
    }

    let stored = std::fs::read_to_string(path).unwrap_or_default();

    assert!(
        stored == page(),
        "docs/keys.md is not current: IKIGAI_WRITE_DOCS=1 cargo test -p ikigai-tui keys_page"
    );
}
