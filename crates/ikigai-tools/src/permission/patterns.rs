//! Patterns of rules: what a `*` stands for, in lines, paths and addresses.
//!
//! `*` is any run of characters, `\` takes the meaning from the character after it, and everything
//! else is itself, brackets and question marks included.

use std::path::{Component, Path};

use reqwest::Url;

use crate::Place;
use crate::paths::shown;
use crate::protected_paths::is_guarded_name;

/// Reach of a `*` in a pattern for paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// It also matches guarded names.
    Everything,
    /// It does not match guarded names, which must be spelled out.
    ExceptGuarded,
}

/// A piece of a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Piece {
    Any,
    One(char),
}

/// A pattern that means just this text.
pub fn literal(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// Returns the pattern that *always* allows for a call that touches this file.
///
/// It covers the file's directory and everything below, or the file alone if it is directly in the
/// working directory or in the root.
pub(crate) fn directory_pattern(place: &Place, path: &Path) -> String {
    let alone = || literal(&shown(place, path));
    match path.parent() {
        Some(parent) if parent == place.workdir || parent.parent().is_none() => alone(),
        Some(parent) => format!("{}/**", literal(&shown(place, parent))),
        None => alone(),
    }
}

/// Whether a text is what a pattern means.
pub(super) fn matches_text(pattern: &str, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    matches_pieces(&pieces(pattern), &text)
}

/// Whether a text is the only one that a pattern means.
pub(super) fn is_exactly(pattern: &str, text: &str) -> bool {
    let wanted = text.chars().map(Piece::One);
    pieces(pattern).into_iter().eq(wanted)
}

/// Whether a command is what a pattern means. ` *` at the end also stands for no words at all.
pub(super) fn matches_command(pattern: &str, command: &str) -> bool {
    matches_text(pattern, command)
        || pattern
            .strip_suffix(" *")
            .is_some_and(|alone| matches_text(alone, command))
}

/// Whether an absolute path is what a pattern means. A relative pattern counts from `base`; `**`
/// as a whole name stands for any number of names, and `*` for no slash.
pub(super) fn matches_path(pattern: &str, path: &Path, base: &Path, reach: Reach) -> bool {
    let Some(path) = names(path) else {
        return false;
    };
    let mut wanted: Vec<Vec<Piece>> = Vec::new();
    if !pattern.starts_with('/') {
        let Some(base) = names(base) else {
            return false;
        };
        wanted.extend(
            base.iter()
                .map(|name| name.chars().map(Piece::One).collect()),
        );
    }
    for name in pattern.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                wanted.pop();
            }
            name => wanted.push(pieces(name)),
        }
    }
    let is_star = |name: &Vec<Piece>| name.as_slice() == [Piece::Any, Piece::Any];
    stars(
        &wanted,
        &path,
        is_star,
        |name| reach == Reach::Everything || !is_guarded_name(name),
        |wanted, name| {
            let is_spelled = !wanted.contains(&Piece::Any);
            let may = reach == Reach::Everything || is_spelled || !is_guarded_name(name);
            may && matches_pieces(wanted, &name.chars().collect::<Vec<_>>())
        },
    )
}

/// Whether an address is what a pattern `scheme://host/path` means. A `*` in the host stands for
/// nothing of the path, and an address with a user's name in it is never meant.
pub(super) fn matches_address(pattern: &str, address: &str) -> bool {
    let Some((scheme, rest)) = pattern.split_once("://") else {
        return false;
    };
    let Ok(url) = Url::parse(address) else {
        return false;
    };
    if !url.username().is_empty() || url.password().is_some() {
        return false;
    }
    let (host_pattern, path_pattern) = rest.split_once('/').unwrap_or((rest, ""));
    let mut host = url.host_str().unwrap_or_default().to_owned();
    if let Some(port) = url.port() {
        host = format!("{host}:{port}");
    }
    let mut path = url.path().trim_start_matches('/').to_owned();
    if let Some(query) = url.query() {
        path = format!("{path}?{query}");
    }
    scheme.eq_ignore_ascii_case(url.scheme())
        && matches_text(&host_pattern.to_ascii_lowercase(), &host)
        && matches_text(path_pattern, &path)
}

/// The names that a path consists of, or none if it is none that can be written as text.
fn names(path: &Path) -> Option<Vec<&str>> {
    path.components()
        .filter(|part| !matches!(part, Component::RootDir))
        .map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect()
}

fn pieces(pattern: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        pieces.push(match c {
            '*' => Piece::Any,
            '\\' => Piece::One(characters.next().unwrap_or('\\')),
            c => Piece::One(c),
        });
    }
    pieces
}

fn matches_pieces(pattern: &[Piece], text: &[char]) -> bool {
    stars(
        pattern,
        text,
        |piece| *piece == Piece::Any,
        |_| true,
        |piece, c| *piece == Piece::One(*c),
    )
}

/// Matches a list with wanted elements, some of which stand for any run of those that they may.
///
/// Only the newest of these is ever lengthened, so that it takes at most the product of both
/// lengths, whatever the pattern.
fn stars<P, T>(
    wanted: &[P],
    given: &[T],
    is_star: impl Fn(&P) -> bool,
    may_stand_for: impl Fn(&T) -> bool,
    fits: impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut at, mut from) = (0, 0);
    let mut newest: Option<(usize, usize)> = None;
    while let Some(one) = given.get(from) {
        match wanted.get(at) {
            Some(star) if is_star(star) => {
                newest = Some((at, from));
                at += 1;
            }
            Some(piece) if fits(piece, one) => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((star, begun)) = newest else {
                    return false;
                };
                if !given.get(begun).is_some_and(&may_stand_for) {
                    return false;
                }
                newest = Some((star, begun + 1));
                (at, from) = (star + 1, begun + 1);
            }
        }
    }
    wanted
        .get(at..)
        .is_some_and(|rest| rest.iter().all(is_star))
}
