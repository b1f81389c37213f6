//! Themes: colours of roles. Attributes are the same in all themes, so that no information is in
//! colour alone.

use crate::look::{Look, Tone};

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

/// Colour of text or background.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colour {
    /// The terminal's own.
    #[default]
    Default,
    /// Palette index: below 16 chosen by the terminal's user, otherwise fixed.
    Indexed(u8),
}

/// Style of a role in a theme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CellStyle {
    /// The colour of the text.
    pub fg: Colour,
    /// Background colour.
    pub bg: Colour,
    /// Attributes, as a sum of the constants of [`Look`].
    pub set_off: u8,
}

/// Colour class of roles, mapped to a colour by each theme.
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

    /// Returns the theme by its name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES
            .into_iter()
            .find_map(|(known, theme)| (known == name).then_some(theme))
    }

    /// Returns the style of a look in this theme.
    pub fn style(self, look: Look) -> CellStyle {
        let (set_off, hue) = character(look.role);
        CellStyle {
            fg: self.colour(hue),
            bg: Colour::Default,
            set_off: set_off | look.set_off,
        }
    }

    fn colour(self, hue: Hue) -> Colour {
        // Columns: terminal, dark, light, daltonized. Nearly everyone can distinguish blue from
        // orange. The dark red and blue of the classic palettes cannot be read on black.
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

impl CellStyle {
    /// Returns true if it has this attribute.
    pub const fn has(self, set_off: u8) -> bool {
        self.set_off & set_off != 0
    }

    /// Returns the part of the style that is visible on a blank.
    pub(super) fn on_blank(self) -> Self {
        let lines = self.set_off & (Look::UNDERLINE | Look::STRIKE | Look::REVERSE);
        Self {
            fg: if lines == 0 { Colour::Default } else { self.fg },
            bg: self.bg,
            set_off: lines,
        }
    }
}

/// Returns the attributes and colour class of a role.
fn character(role: Tone) -> (u8, Hue) {
    match role {
        Tone::Text => (0, Hue::None),
        Tone::Faint | Tone::Rule | Tone::Status => (Look::DIM, Hue::None),
        Tone::Thinking | Tone::Quote => (Look::DIM | Look::ITALIC, Hue::None),
        Tone::Comment => (Look::ITALIC, Hue::None),
        Tone::Heading => (Look::BOLD, Hue::None),
        Tone::User => (Look::BOLD, Hue::Own),
        Tone::Command => (Look::BOLD, Hue::Cyan),
        Tone::Assistant | Tone::Good | Tone::Added | Tone::Literal => (0, Hue::Green),
        Tone::Tool | Tone::Code | Tone::Busy => (0, Hue::Cyan),
        Tone::Agent | Tone::Keyword => (0, Hue::Magenta),
        Tone::Number | Tone::Warning => (0, Hue::Yellow),
        Tone::Name => (0, Hue::Blue),
        Tone::Removed => (0, Hue::Red),
        Tone::Error => (Look::BOLD, Hue::Red),
        Tone::Question => (Look::BOLD, Hue::Yellow),
        Tone::Alert => (Look::BOLD | Look::REVERSE, Hue::Yellow),
        Tone::Link => (Look::UNDERLINE, Hue::Blue),
        Tone::Marked | Tone::Selected => (Look::REVERSE, Hue::None),
        Tone::Match => (Look::BOLD | Look::UNDERLINE, Hue::Yellow),
    }
}

#[cfg(test)]
mod tests;
