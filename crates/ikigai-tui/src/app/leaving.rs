//! Leaving, which is asked about while agents work.

use super::{App, Mode, Wish};
use crate::key::{Code, Key};

impl App {
    /// Leaves, or asks whether to.
    pub(super) fn leave(&mut self) {
        match self.roster.working() {
            0 => match self.leaving_pending() {
                None => self.wishes.push(Wish::Quit),
                Some(text) => {
                    self.said = Some((text, None));
                    self.mode = Mode::Leaving;
                }
            },
            working => {
                let agents = if working == 1 {
                    "1 agent is".to_owned()
                } else {
                    format!("{working} agents are")
                };
                let text = format!(
                    "{agents} working:  q quit, they pause · b leave them working · Esc stay"
                );
                self.said = Some((text, None));
                self.mode = Mode::Leaving;
            }
        }
    }

    /// Does what a key means while it is asked whether to leave.
    pub(super) fn press_leaving(&mut self, key: Key) {
        match key.code {
            Code::Char('q') => self.wishes.push(Wish::Quit),
            Code::Char('b') => self.wishes.push(Wish::Background),
            Code::Char('d' | 'c') if key.ctrl => self.wishes.push(Wish::Quit),
            Code::Escape => {
                self.said = None;
                self.mode = Mode::Input;
            }
            _ => {}
        }
    }
}
