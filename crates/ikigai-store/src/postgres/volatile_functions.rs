//! Refusal of acting server functions in queries of the user.
//!
//! A read-only transaction keeps tables unchanged, but functions can still end sessions, take
//! locks, read files of the server or run another query that is given as text. The server marks
//! such functions as volatile, so every volatile function is refused unless it is known to be
//! harmless. A function that its author marked wrongly can still act.

use ikigai_core::word_list::WordList;

/// Name prefixes of acting functions, regardless of the server's catalogue.
const ACTING_PREFIXES: WordList = WordList(
    "binary_upgrade_ crosstab dblink lo_ pg_advisory_ pg_file_ pg_ls_ pg_read_ pg_replication_
     pg_try_advisory_ pg_wal_replay_",
);

/// Names of acting functions.
const ACTING: WordList = WordList(
    "connectby cursor_to_xml cursor_to_xmlschema loread lowrite nextval pg_cancel_backend pg_notify
     pg_promote pg_reload_conf pg_rotate_logfile pg_stat_file pg_switch_wal pg_terminate_backend
     query_to_xml query_to_xml_and_xmlschema query_to_xmlschema set_config setseed setval
     ts_rewrite ts_stat",
);

/// Volatile functions that only return information or wait.
const HARMLESS: WordList = WordList(
    "bernoulli clock_timestamp current_query gen_random_uuid pg_blocking_pids
     pg_current_wal_flush_lsn pg_current_wal_insert_lsn pg_current_wal_lsn pg_database_size
     pg_indexes_size pg_is_in_recovery pg_lock_status pg_relation_size pg_sleep pg_sleep_for
     pg_sleep_until pg_table_size pg_tablespace_size pg_total_relation_size random random_normal
     system timeofday uuidv4 uuidv7",
);

/// Query for the volatile functions among these names, as typed or in lower case.
pub(super) const VOLATILE_NAMES: &str = "SELECT DISTINCT proname::text FROM pg_catalog.pg_proc
     WHERE provolatile = 'v' AND proname = ANY ($1) ORDER BY 1";

/// Returns true if a name is known to be that of an acting function.
pub(super) fn is_acting(name: &str) -> bool {
    let name = name.to_lowercase();
    ACTING.contains(&name) || ACTING_PREFIXES.words().any(|it| name.starts_with(it))
}

/// Returns true if a volatile function is known to be harmless.
pub(super) fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(name)
}

/// Identifiers and keywords of a statement; each unquoted one also in lower case.
///
/// Spellings that hide a name are refused: identifiers with Unicode escapes, and strings with
/// backslash escapes that continue after a line break.
pub(super) fn identifiers(sql: &str) -> Result<Vec<String>, &'static str> {
    let mut scanner = Scanner {
        text: sql.chars().collect(),
        at: 0,
    };
    let mut names = Vec::new();
    while let Some(first) = scanner.peek(0) {
        match first {
            '\'' => scanner.skip_quoted(1, '\''),
            '"' => names.push(scanner.quoted_name()),
            '-' if scanner.peek(1) == Some('-') => scanner.skip_line(),
            '/' if scanner.peek(1) == Some('*') => scanner.skip_comment(),
            '$' => scanner.skip_dollar_quoted(),
            it if is_name_start(it) => scanner.word(&mut names)?,
            // A number ends where its digits end; `1e` is no name that could be called.
            _ => scanner.at += 1,
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}

struct Scanner {
    text: Vec<char>,
    at: usize,
}

impl Scanner {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    /// Skips an opening of `start` characters and all up to the closing quote; a doubled quote
    /// belongs to the text.
    fn skip_quoted(&mut self, start: usize, quote: char) {
        self.at += start;
        while let Some(it) = self.peek(0) {
            self.at += 1;
            if it != quote {
                continue;
            }
            if self.peek(0) != Some(quote) {
                return;
            }
            self.at += 1;
        }
    }

    fn quoted_name(&mut self) -> String {
        let start = self.at + 1;
        self.skip_quoted(1, '"');
        let end = self.at.saturating_sub(1).max(start).min(self.text.len());
        let name: String = self
            .text
            .get(start..end)
            .unwrap_or_default()
            .iter()
            .collect();
        name.replace("\"\"", "\"")
    }

    fn skip_line(&mut self) {
        while self.peek(0).is_some_and(|it| it != '\n' && it != '\r') {
            self.at += 1;
        }
    }

    /// Comments nest.
    fn skip_comment(&mut self) {
        let mut depth = 0_usize;
        while let Some(it) = self.peek(0) {
            match (it, self.peek(1)) {
                ('/', Some('*')) => {
                    depth += 1;
                    self.at += 2;
                }
                ('*', Some('/')) => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return;
                    }
                }
                _ => self.at += 1,
            }
        }
    }

    /// Skips `$tag$…$tag$`; a `$` that opens nothing is skipped alone.
    fn skip_dollar_quoted(&mut self) {
        let mut end = self.at + 1;
        while let Some(it) = self.text.get(end).copied().filter(|it| *it != '$') {
            let is_first = end == self.at + 1;
            if !(is_name_start(it) || !is_first && it.is_ascii_digit()) {
                self.at += 1;
                return;
            }
            end += 1;
        }
        if end >= self.text.len() {
            self.at += 1;
            return;
        }
        let tag: Vec<char> = self.text.get(self.at..=end).unwrap_or_default().to_vec();
        let rest = self.text.get(end + 1..).unwrap_or_default();
        let closing = rest.windows(tag.len()).position(|it| it == tag);
        self.at = closing.map_or(self.text.len(), |it| end + 1 + it + tag.len());
    }

    /// Takes a word. `E'…'`, `B'…'`, `X'…'`, `N'…'` and `U&'…'` are strings.
    fn word(&mut self, names: &mut Vec<String>) -> Result<(), &'static str> {
        let next = self.peek(1);
        match (self.peek(0), next) {
            (Some('e' | 'E'), Some('\'')) => return self.skip_escaped(),
            (Some('b' | 'B' | 'x' | 'X' | 'n' | 'N'), Some('\'')) => {
                self.skip_quoted(2, '\'');
                return Ok(());
            }
            (Some('u' | 'U'), Some('&')) if self.peek(2) == Some('\'') => {
                self.skip_quoted(3, '\'');
                return Ok(());
            }
            (Some('u' | 'U'), Some('&')) if self.peek(2) == Some('"') => {
                return Err("names with Unicode escapes, U&\"…\", are not accepted");
            }
            _ => {}
        }
        let start = self.at;
        while self.peek(0).is_some_and(is_name_part) {
            self.at += 1;
        }
        let word: String = self
            .text
            .get(start..self.at)
            .unwrap_or_default()
            .iter()
            .collect();
        let lower = word.to_lowercase();
        if lower != word {
            names.push(lower);
        }
        names.push(word);
        Ok(())
    }

    /// Skips `E'…'`, in which a backslash takes the next character along.
    fn skip_escaped(&mut self) -> Result<(), &'static str> {
        self.at += 2;
        while let Some(it) = self.peek(0) {
            self.at += 1;
            match it {
                '\\' => self.at += 1,
                '\'' if self.peek(0) == Some('\'') => self.at += 1,
                '\'' => return self.check_string_end(),
                _ => {}
            }
        }
        Ok(())
    }

    /// Refuses a quote after a line break, which would continue the string with its escapes.
    fn check_string_end(&self) -> Result<(), &'static str> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let next = rest.iter().find(|it| !it.is_whitespace());
        let comment = rest.iter().filter(|it| !it.is_whitespace()).take(2);
        if next == Some(&'\'') || comment.collect::<String>() == "--" {
            return Err("a string E'…' that goes on behind a line break is not accepted");
        }
        Ok(())
    }
}

fn is_name_start(it: char) -> bool {
    it.is_ascii_alphabetic() || it == '_' || !it.is_ascii()
}

fn is_name_part(it: char) -> bool {
    is_name_start(it) || it.is_ascii_digit() || it == '$'
}

#[cfg(test)]
mod tests {
    use super::{identifiers, is_acting};

    fn acting(sql: &str) -> Option<String> {
        match identifiers(sql) {
            Ok(names) => names.into_iter().find(|name| is_acting(name)),
            Err(reason) => Some(reason.to_owned()),
        }
    }

    #[test]
    fn acting_functions_are_found_in_every_spelling() {
        for sql in [
            "SELECT pg_terminate_backend(1)",
            "SELECT PG_Terminate_Backend (1)",
            "SELECT pg_catalog.pg_terminate_backend(1)",
            "SELECT pg_catalog . \"pg_terminate_backend\" (1)",
            "SELECT \"pg_catalog\".\"pg_terminate_backend\"(1)",
            "SELECT/**/pg_terminate_backend/* ( */(1)",
            "SELECT U&\"pg_t\\0065rminate_backend\"(1)",
            "SELECT u&\"pg_t!0065rminate_backend\" UESCAPE '!' (1)",
            "SELECT '--', pg_cancel_backend(1)",
            "SELECT '/*', pg_cancel_backend(1) /* */",
            "SELECT E'\\'', pg_cancel_backend(1), '",
            "SELECT E'a\\\\', pg_cancel_backend(1)",
            "SELECT 'a\\', pg_cancel_backend(1)",
            "SELECT e'a'\n'b\\', pg_cancel_backend(1) --'",
            "SELECT $$ ' $$, pg_cancel_backend(1)",
            "SELECT $a$ $$ $a$, pg_cancel_backend(1), $$ $$",
            "SELECT a$b$, pg_cancel_backend(1), c$b$",
            "SELECT $1, pg_cancel_backend(1), $1",
            "SELECT \"a\"\"\", pg_cancel_backend(1), \"b\"",
            "SELECT /* /* */ ' */ pg_cancel_backend(1)",
            "SELECT 1 -- '\n, pg_cancel_backend(1)",
            "SELECT 1 -- '\r, pg_cancel_backend(1)",
            "SELECT x'00', pg_cancel_backend(1)",
            "SELECT lo_export(1, '/tmp/x')",
            "SELECT * FROM dblink('', '')",
            "SELECT pg_read_binary_file('x')",
            "SELECT pg_ls_dir('x')",
            "SELECT query_to_xml('x', true, true, '')",
            "SELECT set_config('a', 'b', false)",
            "SELECT nextval('x')",
        ] {
            assert!(acting(sql).is_some(), "{sql}");
        }
    }

    #[test]
    fn text_and_comments_may_name_them() {
        for sql in [
            "SELECT 'pg_terminate_backend'",
            "SELECT E'it\\'s pg_terminate_backend'",
            "SELECT $q$ pg_terminate_backend $q$",
            "SELECT 1 -- pg_terminate_backend",
            "SELECT 1 /* pg_terminate_backend /* */ lo_import */",
            "SELECT U&'pg_terminate_backend'",
            "SELECT content LIKE '%''lo_import%' FROM messages",
            "SELECT data::json ->> 'model', count(*) FROM messages GROUP BY 1",
        ] {
            assert_eq!(acting(sql), None, "{sql}");
        }
    }
}
