//! `file_edit`: replaces one text in a file.

use std::sync::Arc;

use ikigai_core::project::{ToolFacts, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use super::change::{self, ChangeRefusal};
use super::text_suggestion;
use crate::arguments::{self, Aliases, BadArguments, ToolArguments};
use crate::files::{self, FileSnapshot};
use crate::{Place, Prepared, Tool};

/// Name of the tool.
pub(super) const NAME: &str = "file_edit";

/// Facts about its calls.
pub(super) const FACTS: ToolFacts = ToolFacts::WRITING;

/// Most occurrences that the error for an ambiguous text lists.
const MOST_PLACES: usize = 10;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileEditArguments {
    /// The file; relative paths start in the working directory.
    file_path: String,
    /// The text to replace, exactly as it is in the file, without line numbers. It must occur once,
    /// unless `replace_all` is set. Empty: the file must be missing or empty.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replaces every occurrence; if not given, only one is allowed.
    #[serde(default)]
    replace_all: Option<bool>,
}

impl ToolArguments for FileEditArguments {
    const ALIASES: Aliases = &[
        ("path", "file_path"),
        ("file", "file_path"),
        ("filename", "file_path"),
        ("filepath", "file_path"),
        ("old_str", "old_string"),
        ("old_text", "old_string"),
        ("new_str", "new_string"),
        ("new_text", "new_string"),
    ];
}

pub(super) struct FileEdit;

impl Tool for FileEdit {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Replaces an exact text in a file by another. Line endings of the file \
                          are kept: write \\n. Refuses a file that somebody else changed since \
                          you last read or wrote it."
                .to_owned(),
            parameters: arguments::schema_of::<FileEditArguments>(),
            facts: FACTS,
        }
    }

    fn prepare(&self, text: &str, place: &Place) -> Result<Prepared, BadArguments> {
        let call = arguments::read::<FileEditArguments>(text)?;
        let arguments = call.values;
        if arguments.old_string == arguments.new_string {
            return Err(BadArguments(
                "`old_string` and `new_string` are the same: there is nothing to change".to_owned(),
            ));
        }
        let edit = Edit {
            old: arguments.old_string,
            new: arguments.new_string,
            all: arguments.replace_all.unwrap_or_default(),
        };
        let change = move |found: &_| edit.of_file(found);
        let prepared = change::prepare(place, &arguments.file_path, Arc::new(change))?;
        Ok(prepared.with_remark(call.remark))
    }
}

/// Replacement of one text by another.
pub(super) struct Edit {
    old: String,
    new: String,
    all: bool,
}

impl Edit {
    fn of_file(&self, found: &FileSnapshot) -> Result<Vec<u8>, ChangeRefusal> {
        match found {
            FileSnapshot::Nothing if self.old.is_empty() => Ok(self.new.clone().into_bytes()),
            FileSnapshot::Nothing => Err(ChangeRefusal::Missing),
            FileSnapshot::Whole { bytes, .. } => {
                self.of_bytes(bytes).map_err(ChangeRefusal::Because)
            }
            FileSnapshot::Large { bytes, .. } => Err(ChangeRefusal::Because(format!(
                "has {}: too large to be edited; `sed` with bash can do it",
                files::size(*bytes)
            ))),
        }
    }

    /// Applies the edit to the bytes of a file.
    ///
    /// Models write `\n`. If all lines of the file end with `\r\n`, the texts are matched and
    /// written with `\r\n`. In a file with both endings the texts are tried verbatim first, then
    /// with `\r\n`.
    fn of_bytes(&self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        if self.old.is_empty() {
            if bytes.is_empty() {
                return Ok(self.new.clone().into_bytes());
            }
            return Err(
                "is not empty, so `old_string` must not be empty either: give the text \
                        next to which to insert, or use file_write to replace the whole file"
                    .to_owned(),
            );
        }
        if all_crlf(bytes) {
            let edit = Self {
                old: self.old.replace("\r\n", "\n"),
                new: self.new.replace("\r\n", "\n"),
                all: self.all,
            };
            let edited = edit.of_text(&replaced(bytes, "\r\n", "\n"))?;
            return Ok(replaced(&edited, "\n", "\r\n"));
        }
        if self.old.contains('\n') && places(bytes, &self.old).is_empty() {
            let crlf = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
            let edit = Self {
                old: crlf(&self.old),
                new: crlf(&self.new),
                all: self.all,
            };
            if !places(bytes, &edit.old).is_empty() {
                return edit.of_text(bytes);
            }
        }
        self.of_text(bytes)
    }

    fn of_text(&self, text: &[u8]) -> Result<Vec<u8>, String> {
        let places = places(text, &self.old);
        match places.len() {
            0 => Err(text_suggestion::advice(text, self.old.as_bytes())),
            1 => Ok(replaced(text, &self.old, &self.new)),
            _ if self.all => Ok(replaced(text, &self.old, &self.new)),
            _ => Err(ambiguous(text, &places)),
        }
    }
}

fn ambiguous(text: &[u8], places: &[usize]) -> String {
    let (count, more) = match places.len() {
        count if count > MOST_PLACES => (format!("more than {MOST_PLACES}"), ", …"),
        count => (count.to_string(), ""),
    };
    let lines: Vec<String> = places
        .iter()
        .take(MOST_PLACES)
        .map(|place| text_suggestion::line_of(text, *place).to_string())
        .collect();
    format!(
        "holds `old_string` {count} times, at lines {}{more}; add lines around it until it is \
         unique, or set replace_all",
        lines.join(", ")
    )
}

/// Returns the first few offsets of `wanted`, overlapping ones included.
///
/// A text that could mean two overlapping places is ambiguous.
fn places(text: &[u8], wanted: &str) -> Vec<usize> {
    let mut places = Vec::new();
    let mut before = 0;
    for chunk in text.utf8_chunks() {
        let valid = chunk.valid();
        let mut from = 0;
        while let Some(found) = valid[from..].find(wanted)
            && places.len() <= MOST_PLACES
        {
            places.push(before + from + found);
            from = valid.ceil_char_boundary(from + found + 1);
        }
        before += valid.len() + chunk.invalid().len();
    }
    places
}

/// Replaces `old` by `new` in any bytes; a match never includes invalid UTF-8.
fn replaced(text: &[u8], old: &str, new: &str) -> Vec<u8> {
    let mut result = Vec::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        result.extend_from_slice(chunk.valid().replace(old, new).as_bytes());
        result.extend_from_slice(chunk.invalid());
    }
    result
}

/// Returns true if there is a line ending and all of them are `\r\n`.
fn all_crlf(bytes: &[u8]) -> bool {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    bytes.contains(&b'\n') && lines.all(|line| !line.ends_with(b"\n") || line.ends_with(b"\r\n"))
}
