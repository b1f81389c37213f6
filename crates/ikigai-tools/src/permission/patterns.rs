//! Patterns of rules for command lines, paths and addresses.
//!
//! `*` matches any run of characters, `\` escapes the next character, and everything else is
//! literal, brackets and question marks included.

use std::path::{Component, Path};

use reqwest::Url;

use crate::Place;
use crate::paths::display_path;
use crate::protected_paths::is_guarded_name;

/// Names that a `*` in a path pattern can match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// All names, guarded ones included.
    Everything,
    /// All but guarded names, which must be spelled out.
    ExceptGuarded,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PatternPiece {
    Any,
    One(char),
}

/// Returns the pattern that matches only this text.
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

/// Returns the pattern that *always* adds for a call that touches this file.
///
/// It covers the file's directory and everything below, or the file alone if it is directly in the
/// working directory or in the root.
pub(crate) fn directory_pattern(place: &Place, path: &Path) -> String {
    let alone = || literal(&display_path(place, path));
    match path.parent() {
        Some(parent) if parent == place.workdir || parent.parent().is_none() => alone(),
        Some(parent) => format!("{}/**", literal(&display_path(place, parent))),
        None => alone(),
    }
}

pub(super) fn matches_text(pattern: &str, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    matches_pieces(&pieces(pattern), &text)
}

/// Returns true if a text is the only one that a pattern matches.
pub(super) fn is_exactly(pattern: &str, text: &str) -> bool {
    let wanted = text.chars().map(PatternPiece::One);
    pieces(pattern).into_iter().eq(wanted)
}

/// Returns true if a command matches a pattern. ` *` at the end also matches no words.
pub(super) fn matches_command(pattern: &str, command: &str) -> bool {
    matches_text(pattern, command)
        || pattern
            .strip_suffix(" *")
            .is_some_and(|alone| matches_text(alone, command))
}

/// Returns true if an absolute path matches a pattern.
///
/// A relative pattern starts at `base`. `**` as a whole name matches any number of names, and `*`
/// never matches a slash.
pub(super) fn matches_path(pattern: &str, path: &Path, base: &Path, reach: Reach) -> bool {
    let Some(path) = names(path) else {
        return false;
    };
    let mut wanted: Vec<Vec<PatternPiece>> = Vec::new();
    if !pattern.starts_with('/') {
        let Some(base) = names(base) else {
            return false;
        };
        wanted.extend(
            base.iter()
                .map(|name| name.chars().map(PatternPiece::One).collect()),
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
    let is_star =
        |name: &Vec<PatternPiece>| name.as_slice() == [PatternPiece::Any, PatternPiece::Any];
    stars(
        &wanted,
        &path,
        is_star,
        |name| reach == Reach::Everything || !is_guarded_name(name),
        |wanted, name| {
            let is_spelled = !wanted.contains(&PatternPiece::Any);
            let may = reach == Reach::Everything || is_spelled || !is_guarded_name(name);
            may && matches_pieces(wanted, &name.chars().collect::<Vec<_>>())
        },
    )
}

/// Returns true if an address matches a pattern `scheme://host/path`.
///
/// A `*` in the host matches no part of the path. An address with a user name never matches.
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
    // `example.com.` is the same host.
    let host = url.host_str().unwrap_or_default();
    let mut host = host.strip_suffix('.').unwrap_or(host).to_owned();
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

/// Splits a path into names; none if it is not text or has `..`.
fn names(path: &Path) -> Option<Vec<&str>> {
    path.components()
        .filter(|part| !matches!(part, Component::RootDir))
        .map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect()
}

fn pieces(pattern: &str) -> Vec<PatternPiece> {
    let mut pieces = Vec::new();
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        pieces.push(match c {
            '*' => PatternPiece::Any,
            '\\' => PatternPiece::One(characters.next().unwrap_or('\\')),
            c => PatternPiece::One(c),
        });
    }
    pieces
}

fn matches_pieces(pattern: &[PatternPiece], text: &[char]) -> bool {
    stars(
        pattern,
        text,
        |piece| *piece == PatternPiece::Any,
        |_| true,
        |piece, c| *piece == PatternPiece::One(*c),
    )
}

/// Matches a list against pieces, some of which (stars) match any run.
///
/// A star matches only elements for which `may_stand_for` holds. Only the newest star is ever
/// extended, so the cost is at most the product of both lengths.
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
