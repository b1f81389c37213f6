use super::*;

/// All roles.
const ROLES: [Tone; 30] = [
    Tone::Text,
    Tone::Faint,
    Tone::User,
    Tone::Assistant,
    Tone::Thinking,
    Tone::Tool,
    Tone::Command,
    Tone::Agent,
    Tone::Good,
    Tone::Warning,
    Tone::Error,
    Tone::Added,
    Tone::Removed,
    Tone::Heading,
    Tone::Code,
    Tone::Keyword,
    Tone::Literal,
    Tone::Number,
    Tone::Comment,
    Tone::Name,
    Tone::Link,
    Tone::Quote,
    Tone::Rule,
    Tone::Busy,
    Tone::Question,
    Tone::Status,
    Tone::Alert,
    Tone::Marked,
    Tone::Match,
    Tone::Selected,
];

#[test]
fn what_has_no_sign_of_its_own_is_told_without_colours() {
    let signless = [
        Tone::Marked,
        Tone::Selected,
        Tone::Match,
        Tone::Alert,
        Tone::Error,
        Tone::Question,
        Tone::Link,
        Tone::Heading,
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
    let style = |role: Tone| Theme::Daltonized.style(role.into()).fg;

    assert_eq!(style(Tone::Added), Colour::Indexed(32));
    assert_eq!(style(Tone::Removed), Colour::Indexed(166));
}

#[test]
fn themes_are_found_by_name() {
    assert_eq!(Theme::from_name("light"), Some(Theme::Light));
    assert_eq!(Theme::from_name("Light"), None);
}

/// The 16 colours of VGA and of xterm.
const PALETTES: [[u32; 16]; 2] = [
    [
        0x00_0000, 0xaa_0000, 0x00_aa00, 0xaa_5500, 0x00_00aa, 0xaa_00aa, 0x00_aaaa, 0xaa_aaaa,
        0x55_5555, 0xff_5555, 0x55_ff55, 0xff_ff55, 0x55_55ff, 0xff_55ff, 0x55_ffff, 0xff_ffff,
    ],
    [
        0x00_0000, 0xcd_0000, 0x00_cd00, 0xcd_cd00, 0x00_00ee, 0xcd_00cd, 0x00_cdcd, 0xe5_e5e5,
        0x7f_7f7f, 0xff_0000, 0x00_ff00, 0xff_ff00, 0x5c_5cff, 0xff_00ff, 0x00_ffff, 0xff_ffff,
    ],
];

/// Red, green and blue of a palette colour.
fn components(index: u8, palette: &[u32; 16]) -> [u32; 3] {
    let step = |step: u32| if step == 0 { 0 } else { 55 + 40 * step };
    match index {
        0..16 => {
            let colour = palette[usize::from(index)];
            [colour >> 16, colour >> 8 & 0xff, colour & 0xff]
        }
        16..232 => {
            let index = u32::from(index) - 16;
            [step(index / 36), step(index / 6 % 6), step(index % 6)]
        }
        232.. => [8 + 10 * (u32::from(index) - 232); 3],
    }
}

/// Contrast to black as defined by WCAG.
fn contrast(components: [u32; 3]) -> f64 {
    let linear = components.map(|part| {
        let part = f64::from(part) / 255.0;
        if part <= 0.04045 {
            part / 12.92
        } else {
            ((part + 0.055) / 1.055).powf(2.4)
        }
    });
    let luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    (luminance + 0.05) / 0.05
}

/// 3 is the minimum of WCAG for large or bold text and signs.
#[test]
fn every_role_can_be_read_on_black_with_the_classic_palettes() {
    for (name, theme) in Theme::NAMES {
        // The light theme is for light backgrounds.
        if theme == Theme::Light {
            continue;
        }
        for (role, palette) in ROLES.iter().flat_map(|role| PALETTES.map(|it| (*role, it))) {
            if let Colour::Indexed(index) = theme.style(role.into()).fg {
                let contrast = contrast(components(index, &palette));
                assert!(
                    contrast >= 3.0,
                    "{role:?} in {name}: {index} has {contrast}"
                );
            }
        }
    }
}

#[test]
fn own_messages_have_the_foreground_of_the_terminal() {
    let style = Theme::Terminal.style(Tone::User.into());

    assert_eq!((style.fg, style.set_off), (Colour::Default, Look::BOLD));
}
