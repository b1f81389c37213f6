use super::*;

/// All roles.
const ROLES: [Role; 30] = [
    Role::Text,
    Role::Faint,
    Role::User,
    Role::Assistant,
    Role::Thinking,
    Role::Tool,
    Role::Command,
    Role::Agent,
    Role::Good,
    Role::Warning,
    Role::Error,
    Role::Added,
    Role::Removed,
    Role::Heading,
    Role::Code,
    Role::Keyword,
    Role::Literal,
    Role::Number,
    Role::Comment,
    Role::Name,
    Role::Link,
    Role::Quote,
    Role::Rule,
    Role::Busy,
    Role::Question,
    Role::Status,
    Role::Alert,
    Role::Marked,
    Role::Match,
    Role::Selected,
];

#[test]
fn what_has_no_sign_of_its_own_is_told_without_colours() {
    let signless = [
        Role::Marked,
        Role::Selected,
        Role::Match,
        Role::Alert,
        Role::Error,
        Role::Question,
        Role::Link,
        Role::Heading,
    ];

    for (name, theme) in Theme::NAMES {
        for role in signless {
            assert_ne!(theme.style(role.into()).set_off, 0, "{role:?} in {name}");
        }
    }
}

#[test]
fn a_theme_without_colours_has_none() {
    for role in ROLES {
        let style = Theme::Mono.style(role.into());

        assert_eq!((style.fg, style.bg), (Colour::Default, Colour::Default));
    }
}

#[test]
fn the_default_theme_has_the_colours_of_the_terminal_only() {
    for role in ROLES {
        let style = Theme::default().style(role.into());

        assert!(matches!(style.fg, Colour::Default | Colour::Indexed(0..16)));
    }
}

#[test]
fn colours_for_all_do_not_tell_by_red_and_green() {
    let style = |role: Role| Theme::Daltonized.style(role.into()).fg;

    assert_eq!(style(Role::Added), Colour::Indexed(32));
    assert_eq!(style(Role::Removed), Colour::Indexed(166));
}

#[test]
fn themes_are_found_by_name() {
    assert_eq!(Theme::named("light"), Some(Theme::Light));
    assert_eq!(Theme::named("Light"), None);
}
