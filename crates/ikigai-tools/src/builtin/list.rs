//! `list`: the agent's to-do list.
//!
//! The list is stored only in the results of its calls: each prints the whole list, even if it
//! fails, and the next call reads it from there. So a rewind restores the list as well.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use ikigai_core::EffectClass;
use ikigai_core::project::{FileChanges, OutputPreview, ToolFacts, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{self, BadArguments, ToolArguments};
use crate::{CallContext, Need, Output, Place, Prepared, Run, Tool, Touches};

/// Name of the tool.
pub const NAME: &str = "list";

/// Facts about its calls.
pub(super) const FACTS: ToolFacts = ToolFacts {
    changes: FileChanges::None,
    preview: OutputPreview::Long,
};

/// Most items of a list.
///
/// With [`MOST_ITEM_BYTES`] this keeps the text below the limit of a result, so that no list is
/// ever cut.
const MOST_ITEMS: usize = 100;

/// Longest item in bytes.
const MOST_ITEM_BYTES: usize = 250;

/// Time limit; the call does no I/O.
const DEADLINE: Duration = Duration::from_secs(10);

/// Path that no file can have.
///
/// Calls that change the list declare it as written, so that the calls of one response run in
/// sequence.
const PSEUDO_PATH: &str = "/dev/null/list";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    /// `add` appends an item, `done` ticks it off, `undo` unticks it, `remove` deletes it, `clear`
    /// deletes all, `show` changes nothing.
    operation: Operation,
    /// For `add` the text, one item a line; for `done`, `undo` and `remove` the item's number or
    /// its exact text.
    #[serde(default, deserialize_with = "text_or_number")]
    item: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Operation {
    Add,
    Done,
    Undo,
    Remove,
    Clear,
    Show,
}

/// Reads a string or a number, because models write an item's number as either.
fn text_or_number<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Option<String>, D::Error> {
    match Value::deserialize(input)? {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        Value::Number(number) => Ok(Some(number.to_string())),
        _ => Err(serde::de::Error::custom(
            "`item` must be a text or a number",
        )),
    }
}

impl ToolArguments for ListArguments {}

pub(super) struct List;

impl Tool for List {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Keeps your own to-do list. Every answer shows the whole list.".to_owned(),
            parameters: arguments::schema_of::<ListArguments>(),
            facts: FACTS,
        }
    }

    fn prepare(&self, text: &str, _: &Place) -> Result<Prepared, BadArguments> {
        let call = arguments::read(text)?;
        let ListArguments { operation, item } = call.values;
        let item = item.unwrap_or_default();
        let needs_item = !matches!(operation, Operation::Clear | Operation::Show);
        if needs_item && item.trim().is_empty() {
            return Err(BadArguments("`item` is missing or empty".to_owned()));
        }
        let touches = match operation {
            Operation::Show => Touches::reading([PathBuf::from(PSEUDO_PATH)]),
            _ => Touches::writing([PathBuf::from(PSEUDO_PATH)]),
        };
        Ok(Prepared {
            // It changes nothing but its result.
            class: EffectClass::Read,
            touches,
            shown: call.shown,
            subject: "list".to_owned(),
            pattern: "list".to_owned(),
            preview: None,
            deadline: DEADLINE,
            needs: vec![Need::List],
            unconfined: None,
            run: Run::Blocking(Box::new(move |context| run(context, operation, &item))),
        }
        .with_remark(call.remark))
    }
}

fn run(context: &CallContext, operation: Operation, item: &str) -> Output {
    let mut items = TodoList::read(context.given.list.as_deref().unwrap_or_default());
    match items.change(operation, item) {
        Ok(()) => Output::done(items.text(), items.summary()),
        Err(reason) => Output {
            body: format!("{reason}\n{}", items.text()).into_bytes(),
            ..Output::failed(reason)
        },
    }
}

/// One item of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TodoItem {
    done: bool,
    text: String,
}

impl TodoItem {
    /// Makes an item from any text: one line, shortened to the limit.
    fn new(done: bool, text: &str) -> Self {
        let line = arguments::one_line(text, MOST_ITEM_BYTES);
        let end = line.floor_char_boundary(MOST_ITEM_BYTES);
        Self {
            done,
            text: line[..end].trim().to_owned(),
        }
    }

    /// Reads a line such as `2. [x] text`.
    fn read(line: &str) -> Option<Self> {
        let (number, rest) = line.split_once(". [")?;
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let (mark, text) = rest.split_once("] ")?;
        let done = match mark {
            "x" => true,
            " " => false,
            _ => return None,
        };
        Some(Self::new(done, text)).filter(|item| !item.text.is_empty())
    }
}

#[derive(Debug, PartialEq, Eq)]
struct TodoList(Vec<TodoItem>);

impl TodoList {
    /// Reads the text that [`Self::text`] wrote; skips other lines.
    fn read(text: &str) -> Self {
        Self(
            text.lines()
                .filter_map(TodoItem::read)
                .take(MOST_ITEMS)
                .collect(),
        )
    }

    fn text(&self) -> String {
        if self.0.is_empty() {
            return "the list is empty\n".to_owned();
        }
        let mut text = String::new();
        for (number, item) in (1..).zip(&self.0) {
            let mark = if item.done { 'x' } else { ' ' };
            let _ = writeln!(text, "{number}. [{mark}] {}", item.text);
        }
        text
    }

    fn summary(&self) -> String {
        let done = self.0.iter().filter(|item| item.done).count();
        let mut summary = match self.0.len() {
            0 => return "empty".to_owned(),
            all => format!("{done} of {all} done\n"),
        };
        summary.push_str(self.text().trim_end());
        summary
    }

    /// Changes the list; on an error the list stays as it is.
    fn change(&mut self, operation: Operation, item: &str) -> Result<(), String> {
        match operation {
            Operation::Add => self.add(item)?,
            Operation::Done => self.find(item)?.done = true,
            Operation::Undo => self.find(item)?.done = false,
            Operation::Remove => {
                let at = self.place(item)?;
                self.0.remove(at);
            }
            Operation::Clear => self.0.clear(),
            Operation::Show => {}
        }
        Ok(())
    }

    fn add(&mut self, text: &str) -> Result<(), String> {
        let items = text.lines().map(|line| TodoItem::new(false, line));
        let items: Vec<TodoItem> = items.filter(|item| !item.text.is_empty()).collect();
        if items.is_empty() {
            return Err("there is no text in this item".to_owned());
        }
        if self.0.len() + items.len() > MOST_ITEMS {
            return Err(format!(
                "the list would have more than {MOST_ITEMS} items; remove some that are done first"
            ));
        }
        self.0.extend(items);
        Ok(())
    }

    fn find(&mut self, item: &str) -> Result<&mut TodoItem, String> {
        let at = self.place(item)?;
        self.0.get_mut(at).ok_or_else(|| unknown(item))
    }

    /// Returns the index of an item, by its number or else its text.
    fn place(&self, item: &str) -> Result<usize, String> {
        let wanted = TodoItem::new(false, item).text;
        let by_text = self.0.iter().position(|item| item.text == wanted);
        let number = wanted.trim_end_matches('.').parse::<usize>().ok();
        let by_number = number
            .and_then(|number| number.checked_sub(1))
            .filter(|at| *at < self.0.len());
        by_number.or(by_text).ok_or_else(|| unknown(item))
    }
}

fn unknown(item: &str) -> String {
    let item = arguments::one_line(item, 100);
    format!("there is no item `{item}`; name one by its number")
}
