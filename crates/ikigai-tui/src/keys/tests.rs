use std::collections::HashSet;

use super::{Action, BindError, Bindings, Meaning, Mode, NoSuchKey, entries, page, parsed};
use crate::input::Edit;
use crate::key::{Code, Key};

fn bound(pairs: &[(&str, &str)]) -> Result<Bindings, BindError> {
    let owned = |(keys, action): &(&str, &str)| ((*keys).to_owned(), (*action).to_owned());
    Bindings::with(&pairs.iter().map(owned).collect::<Vec<_>>())
}

fn meaning(bindings: &Bindings, modes: &[Mode], keys: &str) -> Meaning {
    bindings.meaning(modes, &parsed(keys).unwrap())
}

#[test]
fn names_of_keys_are_read_and_written() {
    let cases = [
        ("ctrl-x", Key::ctrl('x')),
        ("alt-enter", Key::alt(Code::Enter)),
        ("shift-tab", Key::shift(Code::Tab)),
        ("f1", Key::of(Code::F(1))),
        ("?", Key::of(Code::Char('?'))),
        ("-", Key::of(Code::Char('-'))),
        ("ctrl--", Key::ctrl('-')),
        ("G", Key::of(Code::Char('G'))),
        ("f", Key::of(Code::Char('f'))),
        ("space", Key::of(Code::Char(' '))),
        ("page-up", Key::of(Code::PageUp)),
    ];

    for (name, key) in cases {
        assert_eq!(name.parse(), Ok(key), "{name}");
        assert_eq!(key.to_string(), name);
    }
    for name in [
        "", "ctrl-", "f0", "f99", "pageup", "ctrl-ab", "Ctrl-x", " ", "\u{1b}",
    ] {
        assert_eq!(name.parse::<Key>(), Err(NoSuchKey(name.to_owned())));
    }
}

#[test]
fn a_letter_tells_itself_that_shift_was_held() {
    let shifted = Key::shift(Code::Char('g'));
    let both = Key {
        shift: true,
        ..Key::ctrl('A')
    };

    assert_eq!("shift-g".parse(), Ok(Key::of(Code::Char('G'))));
    assert_eq!(shifted.plain(), Key::of(Code::Char('G')));
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
                let parsed = parsed(key).unwrap();
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
    let empty = &[Mode::Empty, Mode::Input][..];
    let asked = &[Mode::Others, Mode::Input][..];
    let cases = [
        (&[Mode::Input][..], "left", Does(Action::Edit(Edit::Left))),
        (empty, "left", Does(Action::Board)),
        (empty, "right", Does(Action::Edit(Edit::Right))),
        (empty, "?", Does(Action::Help)),
        (&[Mode::Input], "?", Nothing),
        (&[Mode::Input], "alt-y", Does(Action::Edit(Edit::YankPop))),
        (asked, "alt-y", Does(Action::OtherGo)),
        (&[Mode::Browse], "y", Does(Action::BrowseCopy)),
        (&[Mode::Browse], "Y", Does(Action::BrowseCopyMarkdown)),
        (&[Mode::Browse], "ctrl-c", Does(Action::Interrupt)),
        (&[Mode::Browse], "esc", Does(Action::BrowseLeave)),
        (&[Mode::Input], "esc", Does(Action::Escape)),
        (&[Mode::Input], "ctrl-x", Prefix),
        (&[Mode::Question], "ctrl-x a", Does(Action::Board)),
        (&[Mode::Input], "ctrl-x 3", Does(Action::Agent(3))),
        (&[Mode::Input], "ctrl-x z", Nothing),
        (&[Mode::Question], "enter", Nothing),
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
    let input = &[Mode::Input][..];

    let does = |modes, keys| meaning(&bindings, modes, keys);
    assert_eq!(does(input, "ctrl-o"), Meaning::Action(Action::Board));
    assert_eq!(does(input, "ctrl-a"), Meaning::Prefix);
    assert_eq!(
        does(input, "ctrl-a b"),
        Meaning::Action(Action::Edit(Edit::Newline))
    );
    assert_eq!(does(input, "ctrl-x"), Meaning::Action(Action::Redraw));
    assert_eq!(does(input, "ctrl-x a"), Meaning::Nothing);
    assert_eq!(
        does(&[Mode::Browse], "j"),
        Meaning::Action(Action::BrowseUp)
    );
    assert_eq!(
        does(&[Mode::Board], "j"),
        Meaning::Action(Action::BoardDown)
    );
    assert_eq!(
        does(&[Mode::Others, Mode::Input], "alt-n"),
        Meaning::Nothing
    );
    let keys = bindings.keys_of(Mode::Always, Action::Board);
    assert_eq!(keys, ["ctrl-o", "ctrl-k"]);
    let empty = &[Mode::Empty, Mode::Input][..];
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
        (("crtl-a", "board"), "`crtl-a`: there is no key `crtl-a`"),
        (("ctrl-x zz", "board"), "`ctrl-x zz`: there is no key `zz`"),
        (("ctrl-o", "bord"), "`ctrl-o`: there is no action `bord`"),
        (
            ("", "board"),
            "``: give one key, or two with a space between them",
        ),
        (
            ("a b c", "board"),
            "`a b c`: give one key, or two with a space between them",
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
    assert_eq!(help.len(), Mode::ALL.len());
}

/// `docs/keys.md` is made from the table.
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
