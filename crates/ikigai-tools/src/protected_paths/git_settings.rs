//! Settings of git that run programs.

use std::collections::BTreeMap;

/// Settings without a subsection that run a program, or load other settings.
const PLAIN: &[&str] = &[
    "core.alternaterefscommand",
    "core.askpass",
    "core.editor",
    "core.fsmonitor",
    "core.gitproxy",
    "core.hookspath",
    "core.pager",
    "core.sshcommand",
    "credential.helper",
    "diff.external",
    "gpg.program",
    "imap.tunnel",
    "include.path",
    "init.templatedir",
    "instaweb.httpd",
    "interactive.difffilter",
    "man.viewer",
    "protocol.allow",
    "sendemail.sendmailcmd",
    "sendemail.smtpserver",
    "sendemail.tocmd",
    "sendemail.cccmd",
    "sendemail.headercmd",
    "sequence.editor",
    "tar.command",
    "uploadpack.packobjectshook",
    "web.browser",
];

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

/// Reports whether git runs a program, or reads more settings, because of this setting.
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
        None => PLAIN.contains(&key.to_ascii_lowercase().as_str()),
    }
}

/// Extracts the settings of a git configuration file for which [`runs_program`] holds.
///
/// A key maps to its values in the order of the file. Two texts with equal results differ in
/// nothing that runs a program. A line that git would reject is skipped.
pub fn program_settings(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (key, value) in settings(text) {
        if runs_program(&key) && !names_update_strategy(&key, &value) {
            found.entry(key).or_default().push(value);
        }
    }
    found
}

/// `submodule.NAME.update` is a strategy, unless a command follows an exclamation mark.
fn names_update_strategy(key: &str, value: &str) -> bool {
    let is_submodule = key.starts_with("submodule.");
    is_submodule && !value.trim_matches('"').starts_with('!')
}

/// Parses a git configuration file into keys and values, in the order of the file.
pub(super) fn settings(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut section = String::new();
    for line in logical_lines(text) {
        let mut rest = line.trim_start_matches('\u{feff}').trim();
        if let Some(header) = rest.strip_prefix('[') {
            let Some((name, after)) = parse_header(header) else {
                continue;
            };
            section = name;
            rest = after.trim();
        }
        if rest.is_empty() || rest.starts_with(['#', ';']) {
            continue;
        }
        let (name, value) = rest.split_once('=').unwrap_or((rest, ""));
        let key = format!("{section}.{}", name.trim().to_ascii_lowercase());
        found.push((key, value.trim().to_owned()));
    }
    found
}

/// Joins lines that end with a backslash to the line after them.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut continues = false;
    for line in text.lines() {
        let backslashes = line.len() - line.trim_end_matches('\\').len();
        let is_continued = backslashes % 2 == 1;
        let kept = if is_continued {
            &line[..line.len() - 1]
        } else {
            line
        };
        match lines.last_mut() {
            Some(last) if continues => last.push_str(kept),
            _ => lines.push(kept.to_owned()),
        }
        continues = is_continued;
    }
    lines
}

/// Splits `section "subsection"] rest` into the joined name and the rest of the line.
fn parse_header(text: &str) -> Option<(String, &str)> {
    let quote = text.find('"');
    let plain_end = text.find(']')?;
    let Some(quote) = quote.filter(|quote| *quote < plain_end) else {
        // The old spelling `[section.subsection]` counts without case throughout.
        let name = text[..plain_end].trim().to_ascii_lowercase();
        return Some((name, &text[plain_end + 1..]));
    };
    let section = text[..quote].trim().to_ascii_lowercase();
    let mut subsection = String::new();
    let mut characters = text[quote + 1..].char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => subsection.extend(characters.next().map(|(_, c)| c)),
            '"' => {
                let after = &text[quote + 1 + at + 1..];
                let after = after.trim_start().strip_prefix(']')?;
                return Some((format!("{section}.{subsection}"), after));
            }
            c => subsection.push(c),
        }
    }
    None
}
