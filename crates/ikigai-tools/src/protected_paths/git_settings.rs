//! Settings of git that run programs.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use ikigai_core::word_list::WordList;

/// Settings without a subsection that run a program, or load other settings.
const PLAIN: WordList = WordList(
    "core.alternaterefscommand core.askpass core.editor core.fsmonitor core.gitproxy core.hookspath
     core.pager core.sshcommand credential.helper diff.external gpg.program imap.tunnel
     include.path init.templatedir instaweb.httpd interactive.difffilter man.viewer protocol.allow
     sendemail.sendmailcmd sendemail.smtpserver sendemail.tocmd sendemail.cccmd sendemail.headercmd
     sequence.editor tar.command uploadpack.packobjectshook web.browser",
);

/// Sections in which any setting runs a program.
const SECTIONS: &[&str] = &["alias", "filter", "hook", "pager"];

/// Settings below a subsection that run a program: section and last name.
const BELOW: &[(&str, &str)] = &[
    ("browser", "cmd"),
    ("browser", "path"),
    ("credential", "helper"),
    ("diff", "command"),
    ("diff", "textconv"),
    ("difftool", "cmd"),
    ("difftool", "path"),
    ("gpg", "defaultkeycommand"),
    ("gpg", "program"),
    ("guitool", "cmd"),
    ("includeif", "path"),
    ("lfs", "clean"),
    ("lfs", "path"),
    ("lfs", "smudge"),
    ("man", "cmd"),
    ("man", "path"),
    ("merge", "driver"),
    ("mergetool", "cmd"),
    ("mergetool", "path"),
    ("protocol", "allow"),
    ("remote", "receivepack"),
    ("remote", "uploadpack"),
    ("remote", "vcs"),
    ("sendemail", "sendmailcmd"),
    ("sendemail", "smtpserver"),
    ("submodule", "update"),
    ("tar", "command"),
    ("trailer", "cmd"),
    ("trailer", "command"),
];

/// Returns true if this setting makes git run a program or read more settings.
///
/// `key` is written as `git config --list` prints it: `section.name` or
/// `section.subsection.name`. Section and name count without case.
pub fn runs_program(key: &str) -> bool {
    let key = key.trim();
    let Some((section, rest)) = key.split_once('.') else {
        return false;
    };
    let section = section.to_ascii_lowercase();
    if SECTIONS.contains(&section.as_str()) {
        return true;
    }
    match rest.rsplit_once('.') {
        Some((_, name)) => {
            let name = name.to_ascii_lowercase();
            BELOW.contains(&(section.as_str(), name.as_str()))
        }
        None => PLAIN.contains(&key.to_ascii_lowercase()),
    }
}

/// Extracts the settings of a git configuration file for which [`runs_program`] holds.
///
/// A key maps to its values in the order of the file. Two texts with equal results differ in
/// nothing that runs a program.
pub fn program_settings(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for setting in parse(text) {
        if setting.runs_program() {
            found.entry(setting.key).or_default().push(setting.value);
        }
    }
    found
}

/// Restores the settings that run programs, and keeps all others.
///
/// Returns the new text and the restored keys; none if no such setting changed.
pub fn restore_program_settings(before: &str, after: &str) -> Option<(String, Vec<String>)> {
    let (old, new) = (program_settings(before), program_settings(after));
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let changed: Vec<String> = keys
        .into_iter()
        .filter(|key| old.get(*key) != new.get(*key))
        .cloned()
        .collect();
    if changed.is_empty() {
        return None;
    }
    let mut text = String::with_capacity(after.len());
    let mut kept = 0;
    for setting in parse(after) {
        if setting.runs_program() && changed.contains(&setting.key) {
            text.push_str(&after[kept..setting.span.start]);
            kept = setting.span.end;
        }
    }
    text.push_str(&after[kept..]);
    for key in &changed {
        for value in old.get(key).into_iter().flatten() {
            text.push_str(&spell(key, value));
        }
    }
    Some((text, changed))
}

/// Writes a setting with its own section header.
fn spell(key: &str, value: &str) -> String {
    let quote = |text: &str| {
        let text = text.replace('\\', "\\\\").replace('"', "\\\"");
        text.replace('\n', "\\n").replace('\t', "\\t")
    };
    let (section, rest) = key.split_once('.').unwrap_or((key, ""));
    let value = quote(value);
    match rest.rsplit_once('.') {
        Some((subsection, name)) => {
            let subsection = subsection.replace('\\', "\\\\").replace('"', "\\\"");
            format!("\n[{section} \"{subsection}\"]\n\t{name} = \"{value}\"\n")
        }
        None => format!("\n[{section}]\n\t{rest} = \"{value}\"\n"),
    }
}

/// One setting of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GitSetting {
    /// Written as `git config --list` prints it.
    pub(super) key: String,
    pub(super) value: String,
    /// Byte range from the name to the end of the value, without a line break.
    span: Range<usize>,
}

impl GitSetting {
    /// Returns true if git runs a program because of it.
    ///
    /// `submodule.NAME.update` is a strategy, unless a command follows an exclamation mark.
    fn runs_program(&self) -> bool {
        runs_program(&self.key)
            && (!self.key.starts_with("submodule.") || self.value.starts_with('!'))
    }
}

/// Parses a git configuration file into settings, in file order.
///
/// Follows git character by character: comments do not continue on the next line, values do, and a
/// header may share a line with settings. Git rejects a file with a broken line as a whole; this
/// parser continues after it.
pub(super) fn parse(text: &str) -> Vec<GitSetting> {
    let mut found = Vec::new();
    let mut section = String::new();
    let mut at = if text.starts_with('\u{feff}') { 3 } else { 0 };
    while let Some(c) = text[at..].chars().next() {
        match c {
            '#' | ';' => at = end_of_line(text, at),
            '[' => match parse_header(&text[at + 1..]) {
                Some((name, bytes)) => {
                    section = name;
                    at += 1 + bytes;
                }
                None => at = end_of_line(text, at),
            },
            c if c.is_ascii_alphabetic() => {
                let name_end = text[at..]
                    .find(|c: char| !c.is_ascii_alphanumeric() && c != '-')
                    .map_or(text.len(), |bytes| at + bytes);
                let name = text[at..name_end].to_ascii_lowercase();
                let (value, end) = parse_value(text, name_end);
                found.push(GitSetting {
                    key: format!("{section}.{name}"),
                    value,
                    span: at..end,
                });
                at = end;
            }
            c if c.is_whitespace() => at += c.len_utf8(),
            _ => at = end_of_line(text, at),
        }
    }
    found
}

fn end_of_line(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |bytes| at + bytes)
}

/// Parses the text after a name; returns the value and its end.
fn parse_value(text: &str, name_end: usize) -> (String, usize) {
    let rest = text[name_end..].trim_start_matches([' ', '\t']);
    let Some(rest) = rest.strip_prefix('=') else {
        return (String::new(), end_of_line(text, name_end));
    };
    let start = text.len() - rest.len();
    let mut value = String::new();
    // Length without trailing blanks, which do not count outside of quotes.
    let mut length = 0;
    let (mut is_quoted, mut is_comment) = (false, false);
    let mut characters = text[start..].char_indices().peekable();
    while let Some((offset, c)) = characters.next() {
        match c {
            '\n' => {
                value.truncate(length);
                return (value, start + offset);
            }
            _ if is_comment => {}
            '\r' if characters.peek().is_some_and(|(_, next)| *next == '\n') => {}
            '#' | ';' if !is_quoted => is_comment = true,
            '"' => {
                is_quoted = !is_quoted;
                length = value.len();
            }
            '\\' => {
                if characters.peek().is_some_and(|(_, next)| *next == '\r') {
                    characters.next();
                }
                match characters.next().map(|(_, escaped)| escaped) {
                    Some('\n') | None => continue,
                    Some('t') => value.push('\t'),
                    Some('n') => value.push('\n'),
                    Some('b') => value.push('\u{8}'),
                    Some(escaped) => value.push(escaped),
                }
                length = value.len();
            }
            c if c.is_ascii_whitespace() && !is_quoted => {
                if !value.is_empty() {
                    value.push(c);
                }
            }
            c => {
                value.push(c);
                length = value.len();
            }
        }
    }
    value.truncate(length);
    (value, text.len())
}

/// Splits `section "subsection"]…` into the joined name and the bytes of the header.
fn parse_header(text: &str) -> Option<(String, usize)> {
    let line = &text[..end_of_line(text, 0)];
    let quote = line.find('"');
    let plain_end = line.find(']');
    let Some(quote) = quote.filter(|quote| plain_end.is_none_or(|end| *quote < end)) else {
        // The old spelling `[section.subsection]` counts without case throughout.
        let end = plain_end?;
        return Some((line[..end].trim().to_ascii_lowercase(), end + 1));
    };
    let section = line[..quote].trim().to_ascii_lowercase();
    let mut subsection = String::new();
    let mut characters = line[quote + 1..].char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => subsection.extend(characters.next().map(|(_, c)| c)),
            '"' => {
                let after = quote + 1 + at + 1;
                let rest = line[after..].trim_start();
                let end = line.len() - rest.len();
                return rest
                    .starts_with(']')
                    .then(|| (format!("{section}.{subsection}"), end + 1));
            }
            c => subsection.push(c),
        }
    }
    None
}
