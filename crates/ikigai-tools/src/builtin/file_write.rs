//! `file_write`: creates or replaces a whole file.

use std::sync::Arc;

use ikigai_core::project::{ToolFacts, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use super::change::{self, Extent, NewContent};
use crate::arguments::{self, Aliases, BadArguments, ToolArguments};
use crate::{Place, Prepared, Tool};

/// Name of the tool.
pub(super) const NAME: &str = "file_write";

/// Facts about its calls.
pub(super) const FACTS: ToolFacts = ToolFacts::WRITING;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileWriteArguments {
    /// The file; relative paths start in the working directory.
    file_path: String,
    /// The whole content of the file, with its line endings.
    content: String,
}

impl ToolArguments for FileWriteArguments {
    const ALIASES: Aliases = &[
        ("path", "file_path"),
        ("file", "file_path"),
        ("filename", "file_path"),
        ("filepath", "file_path"),
        ("contents", "content"),
        ("file_text", "content"),
        ("text", "content"),
    ];
}

pub(super) struct FileWrite;

impl Tool for FileWrite {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Writes a whole file, and the directories above it. To change a part of \
                          a file use file_edit. Refuses an existing file that you have not read, \
                          or that was changed since you last read or wrote it."
                .to_owned(),
            parameters: arguments::schema_of::<FileWriteArguments>(),
            facts: FACTS,
        }
    }

    fn prepare(&self, text: &str, place: &Place) -> Result<Prepared, BadArguments> {
        let call = arguments::read(text)?;
        let FileWriteArguments { file_path, content } = call.values;
        let change = move |_: &_| Ok(NewContent::exact(content.clone()));
        let prepared = change::prepare(place, &file_path, Extent::Whole, Arc::new(change))?;
        Ok(prepared.with_remark(call.remark))
    }
}
