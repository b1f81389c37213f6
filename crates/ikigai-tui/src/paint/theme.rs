//! Which colours roles have. How they are set off is the same in all themes, so nothing is said by
//! colour alone.

use crate::look::{Look, Role};

/// A choice of colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// The terminal's own 16 colours on its own background.
    #[default]
    Terminal,
    /// For dark backgrounds.
    Dark,
    /// For light backgrounds.
    Light,
    /// Without red and green.
    Daltonized,
    /// Without colours.
    Mono,
}

/// A colour of text or of what is behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colour {
    /// The terminal's own.
    #[default]
    Default,
    /// One of the 16 that the user of the terminal chose, or a fixed one from 16 on.
    Indexed(u8),
}

/// How a role looks in a theme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// The colour of the text.
    pub fg: Colour,
    /// The colour behind it.
    pub bg: Colour,
    /// How it is set off, as a sum of the constants of [`Look`].
    pub set_off: u8,
}

/// What a theme chooses colours for.
#[derive(Clone, Copy)]
enum Hue {
    None,
    /// The user's own messages: the terminal's foreground, which is readable on any background.
    Own,
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
}

impl Theme {
    /// The names that a configuration may give.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("terminal", Self::Terminal),
        ("dark", Self::Dark),
        ("light", Self::Light),
        ("daltonized", Self::Daltonized),
        ("mono", Self::Mono),
    ];

    /// The theme of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES
            .into_iter()
            .find_map(|(known, theme)| (known == name).then_some(theme))
    }

    /// How something looks.
    pub fn style(self, look: Look) -> Style {
        let (set_off, hue) = character(look.role);
        Style {
            fg: self.colour(hue),
            bg: Colour::Default,
            set_off: set_off | look.set_off,
        }
    }

    fn colour(self, hue: Hue) -> Colour {
        // Columns: terminal, dark, light, daltonized. Blue against orange can be told apart by
        // nearly everybody. The dark red and blue of the classic palettes cannot be read on black.
        let choice: [u8; 4] = match hue {
            Hue::None => return Colour::Default,
            Hue::Own if self == Self::Terminal => return Colour::Default,
            Hue::Own => [7, 75, 25, 68],
            Hue::Red => [9, 203, 124, 166],
            Hue::Green => [2, 114, 28, 32],
            Hue::Yellow => [3, 221, 94, 178],
            Hue::Blue => [12, 75, 25, 68],
            Hue::Magenta => [5, 176, 90, 133],
            Hue::Cyan => [6, 80, 30, 37],
        };
        let [terminal, dark, light, daltonized] = choice;
        Colour::Indexed(match self {
            Self::Mono => return Colour::Default,
            Self::Terminal => terminal,
            Self::Dark => dark,
            Self::Light => light,
            Self::Daltonized => daltonized,
        })
    }
}

impl Style {
    /// Whether it is set off in this way.
    pub const fn has(self, set_off: u8) -> bool {
        self.set_off & set_off != 0
    }

    /// What of it can be seen where there is no text.
    pub(super) fn on_blank(self) -> Self {
        let lines = self.set_off & (Look::UNDERLINE | Look::STRIKE | Look::REVERSE);
        Self {
            fg: if lines == 0 { Colour::Default } else { self.fg },
            bg: self.bg,
            set_off: lines,
        }
    }
}

/// How a role is set off in each theme, and in which hue.
fn character(role: Role) -> (u8, Hue) {
    match role {
        Role::Text => (0, Hue::None),
        Role::Faint | Role::Rule | Role::Status => (Look::DIM, Hue::None),
        Role::Thinking | Role::Quote => (Look::DIM | Look::ITALIC, Hue::None),
        Role::Comment => (Look::ITALIC, Hue::None),
        Role::Heading => (Look::BOLD, Hue::None),
        Role::User => (Look::BOLD, Hue::Own),
        Role::Command => (Look::BOLD, Hue::Cyan),
        Role::Assistant | Role::Good | Role::Added | Role::Literal => (0, Hue::Green),
        Role::Tool | Role::Code | Role::Busy => (0, Hue::Cyan),
        Role::Agent | Role::Keyword => (0, Hue::Magenta),
        Role::Number | Role::Warning => (0, Hue::Yellow),
        Role::Name => (0, Hue::Blue),
        Role::Removed => (0, Hue::Red),
        Role::Error => (Look::BOLD, Hue::Red),
        Role::Question => (Look::BOLD, Hue::Yellow),
        Role::Alert => (Look::BOLD | Look::REVERSE, Hue::Yellow),
        Role::Link => (Look::UNDERLINE, Hue::Blue),
        Role::Marked | Role::Selected => (Look::REVERSE, Hue::None),
        Role::Match => (Look::BOLD | Look::UNDERLINE, Hue::Yellow),
    }
}

#[cfg(test)]
mod tests;
