//! `file_edit`: replaces texts in a file, all or none.

use std::sync::Arc;

use ikigai_core::project::{ToolFacts, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::change::{self, ChangeRefusal, Extent, NewContent};
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
    #[serde(default)]
    old_string: Option<String>,
    /// The text to put in its place.
    #[serde(default)]
    new_string: Option<String>,
    /// Replaces every occurrence; if not given, only one is allowed.
    #[serde(default)]
    replace_all: Option<bool>,
    /// Several replacements in order instead of one; each sees the result of those before.
    #[serde(default)]
    edits: Option<Vec<Replacement>>,
}

/// Replacement of one text by another.
#[derive(Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Replacement {
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: Option<bool>,
}

impl ToolArguments for Replacement {
    const ALIASES: Aliases = &[
        ("old_str", "old_string"),
        ("old_text", "old_string"),
        ("new_str", "new_string"),
        ("new_text", "new_string"),
    ];
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
        ("replacements", "edits"),
    ];

    fn convert(fields: &mut Map<String, Value>) -> Result<(), String> {
        let Some(Value::Array(edits)) = fields.remove("edits") else {
            return Ok(());
        };
        let edits = edits.into_iter().enumerate().map(|(index, mut edit)| {
            check_file(&mut edit, fields)
                .map_err(|reason| format!("edit {}: {reason}", index + 1))?;
            let edit: Replacement = arguments::read_item(edit)
                .map_err(|reason| format!("edit {}: {reason}", index + 1))?;
            serde_json::to_value(edit).map_err(|error| error.to_string())
        });
        let edits: Vec<Value> = edits.collect::<Result<_, String>>()?;
        fields.insert("edits".to_owned(), edits.into());
        Ok(())
    }
}

/// Removes the file of one edit, which must be the file of all.
fn check_file(edit: &mut Value, fields: &Map<String, Value>) -> Result<(), String> {
    let Value::Object(edit) = edit else {
        return Ok(());
    };
    for name in ["file_path", "filePath", "path"] {
        let file = edit.remove(name);
        if file.is_some() && file.as_ref() != fields.get("file_path") {
            return Err("all edits of a call change one file, that of `file_path`".to_owned());
        }
    }
    Ok(())
}

pub(super) struct FileEdit;

impl Tool for FileEdit {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Replaces exact texts in a file: give `old_string` and `new_string`, or \
                          `edits` for several at once, all or none. Line endings of the file are \
                          kept: write \\n. Refuses a file that was changed since you last read or \
                          wrote it. Returns the changed lines, which you need not read again."
                .to_owned(),
            parameters: arguments::schema_of::<FileEditArguments>(),
            facts: FACTS,
        }
    }

    fn prepare(&self, text: &str, place: &Place) -> Result<Prepared, BadArguments> {
        let call = arguments::read::<FileEditArguments>(text)?;
        let arguments = call.values;
        let edits = Edits(replacements(
            arguments.edits,
            (arguments.old_string, arguments.new_string),
            arguments.replace_all,
        )?);
        let change = move |found: &_| edits.of_file(found);
        let file_path = &arguments.file_path;
        let prepared = change::prepare(place, file_path, Extent::Part, Arc::new(change))?;
        Ok(prepared.with_remark(call.remark))
    }
}

/// Returns the replacements of a call, at least one.
fn replacements(
    edits: Option<Vec<Replacement>>,
    texts: (Option<String>, Option<String>),
    all: Option<bool>,
) -> Result<Vec<Edit>, BadArguments> {
    let bad = |reason: &str| Err(BadArguments(reason.to_owned()));
    let edits = match (edits, texts) {
        (Some(edits), (None, None)) if !edits.is_empty() => edits,
        (Some(edits), (None, None)) if edits.is_empty() => return bad("`edits` is empty"),
        (None, (Some(old_string), Some(new_string))) => vec![Replacement {
            old_string,
            new_string,
            replace_all: all,
        }],
        (Some(_), _) => {
            return bad("give either `edits` or `old_string` and `new_string`, not both");
        }
        (None, (None, _)) => return bad("`old_string` is missing"),
        (None, (Some(_), None)) => return bad("`new_string` is missing"),
    };
    let is_same = |edit: &Replacement| edit.old_string == edit.new_string;
    if edits.iter().any(is_same) {
        return bad("`old_string` and `new_string` are the same: there is nothing to change");
    }
    let edit = |edit: Replacement| Edit {
        old: edit.old_string,
        new: edit.new_string,
        all: edit.replace_all.unwrap_or_default(),
    };
    Ok(edits.into_iter().map(edit).collect())
}

/// Replacements that are applied in order, all or none.
struct Edits(Vec<Edit>);

impl Edits {
    fn of_file(&self, found: &FileSnapshot) -> Result<NewContent, ChangeRefusal> {
        let mut content = match found {
            FileSnapshot::Nothing => None,
            FileSnapshot::Whole { bytes, .. } => Some(bytes.clone()),
            FileSnapshot::Large { bytes, .. } => {
                return Err(ChangeRefusal::Because(format!(
                    "has {}: too large to be edited; `sed` with bash can do it",
                    files::size(*bytes)
                )));
            }
        };
        let mut is_exact = true;
        for (number, edit) in (1..).zip(&self.0) {
            let edited = match &content {
                None if edit.old.is_empty() => Ok(NewContent::exact(edit.new.clone())),
                None => return Err(ChangeRefusal::Missing),
                Some(bytes) => edit.of_bytes(bytes),
            };
            let edited = edited.map_err(|reason| {
                ChangeRefusal::Because(match self.0.len() {
                    1 => reason,
                    count => format!("{reason}\n(edit {number} of {count}; none was made)"),
                })
            })?;
            is_exact &= edited.is_exact;
            content = Some(edited.bytes);
        }
        Ok(NewContent {
            bytes: content.unwrap_or_default(),
            is_exact,
        })
    }
}

/// Replacement of one text by another.
pub(super) struct Edit {
    old: String,
    new: String,
    all: bool,
}

impl Edit {
    /// Applies the edit to the bytes of a file.
    ///
    /// Models write `\n`. If all lines of the file end with `\r\n`, the texts are matched and
    /// written with `\r\n`. In a file with both endings the texts are tried verbatim first, then
    /// with `\r\n`.
    fn of_bytes(&self, bytes: &[u8]) -> Result<NewContent, String> {
        if self.old.is_empty() {
            if bytes.is_empty() {
                return Ok(NewContent::exact(self.new.clone()));
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
            let edited = edit.of_text(&replace_text(bytes, "\r\n", "\n"))?;
            return Ok(NewContent::exact(replace_text(&edited, "\n", "\r\n")));
        }
        if self.old.contains('\n') && places(bytes, &self.old).is_empty() {
            let crlf = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
            let edit = Self {
                old: crlf(&self.old),
                new: crlf(&self.new),
                all: self.all,
            };
            if !places(bytes, &edit.old).is_empty() {
                return Ok(NewContent {
                    bytes: edit.of_text(bytes)?,
                    is_exact: false,
                });
            }
        }
        Ok(NewContent::exact(self.of_text(bytes)?))
    }

    fn of_text(&self, text: &[u8]) -> Result<Vec<u8>, String> {
        let places = places(text, &self.old);
        match places.len() {
            0 => Err(text_suggestion::advice(text, self.old.as_bytes())),
            1 => Ok(replace_text(text, &self.old, &self.new)),
            _ if self.all => Ok(replace_text(text, &self.old, &self.new)),
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
fn replace_text(text: &[u8], old: &str, new: &str) -> Vec<u8> {
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
