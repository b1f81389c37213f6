//! A key that is typed where nobody sees it: not on the screen, and in no history.

use ikigai_engine::commands::{Line as Parsed, parse};
use ikigai_engine::{TypedKey, looks_like_key};

use super::hints::Hints;
use super::lines::NARROW;
use super::{App, Mode, Wish};
use crate::input::Edit;
use crate::key::{Code, Key};
use crate::keys::{self, Action, Meaning};
use crate::line::{Line, Span};
use crate::look::{Look, Role};
use crate::text::clean;
use crate::width::width;

/// More is no key.
const LONGEST: usize = 4096;

/// A key that is being typed.
pub(super) struct Secret {
    provider: String,
    typed: String,
}

impl App {
    /// Begins to ask for the key of a provider.
    pub(super) fn ask_key(&mut self, provider: &str) {
        self.mode = Mode::Secret(Secret {
            provider: provider.to_owned(),
            typed: String::new(),
        });
    }

    /// Takes a key press for what is typed hidden; says whether it means something there.
    pub(super) fn secret_takes(&mut self, key: Key) -> bool {
        let meaning = self.bindings.meaning(&[keys::Mode::Input], &[key]);
        let Mode::Secret(secret) = &mut self.mode else {
            return false;
        };
        match (meaning, key.code) {
            (Meaning::Action(Action::Send), _) => self.take_secret(),
            (Meaning::Action(Action::Escape | Action::Interrupt), _) => {
                self.mode = Mode::Input;
                self.say("no key was kept");
            }
            (Meaning::Action(Action::Edit(Edit::Backspace)), _) => {
                secret.typed.pop();
            }
            (Meaning::Action(Action::Edit(Edit::KillToStart)), _) => secret.typed.clear(),
            (_, Code::Char(character)) if !key.ctrl && !key.alt => secret.push(character),
            _ => {}
        }
        true
    }

    /// Takes pasted text for what is typed hidden; says whether it is.
    pub(super) fn secret_pastes(&mut self, text: &str) -> bool {
        let Mode::Secret(secret) = &mut self.mode else {
            return false;
        };
        for character in text.trim().chars() {
            secret.push(character);
        }
        true
    }

    fn take_secret(&mut self) {
        let Mode::Secret(secret) = &self.mode else {
            return;
        };
        let Some(key) = TypedKey::new(&secret.typed) else {
            return self.say("that can be no key · Esc leaves it");
        };
        let provider = secret.provider.clone();
        self.mode = Mode::Input;
        self.say(format!("asking {provider} …"));
        self.wishes.push(Wish::TakeKey { provider, key });
    }

    /// What is asked for, in place of the input, and where the cursor is.
    pub(super) fn secret_line(&self) -> Option<(Line, u16)> {
        let Mode::Secret(secret) = &self.mode else {
            return None;
        };
        let provider = clean(&secret.provider);
        let count = secret.typed.chars().count();
        let (label, count) = match count {
            _ if self.columns < NARROW => (format!("{provider} key: "), format!("{count} hidden")),
            0 => (format!("key of {provider}, hidden: "), String::new()),
            1 => (
                format!("key of {provider}, hidden: "),
                "1 character".to_owned(),
            ),
            _ => (
                format!("key of {provider}, hidden: "),
                format!("{count} characters"),
            ),
        };
        let column = width(&label) + width(&count);
        let line = Line::new(vec![
            Span::new(label, Role::Question),
            Span::new(count, Role::Text),
        ]);
        let hints = Hints {
            gap: "  ",
            keys: &["Enter tries and keeps it"],
            way_out: "Esc leaves it",
            look: Look::of(Role::Faint),
        };
        let line = hints.after(&line, self.columns);
        Some((line, u16::try_from(column).unwrap_or(u16::MAX)))
    }

    /// Holds back what looks like a key, unless Enter was pressed again; says whether it does.
    pub(super) fn holds_key_back(&mut self, text: &str) -> bool {
        if !looks_like_key(text) {
            return false;
        }
        if matches!(parse(text), Parsed::Command(command, _) if command.name == "key") {
            self.say("name only the provider: the key is asked for, and not shown");
            return true;
        }
        if self.is_sent_again() {
            return false;
        }
        self.say("looks like an API key: Enter again sends it · Esc keeps it here");
        self.arm_sending();
        true
    }
}

impl Secret {
    fn push(&mut self, character: char) {
        if self.typed.len() < LONGEST && !character.is_control() {
            self.typed.push(character);
        }
    }
}
