//! `todo`: the agent's to-do list.
//!
//! The list is stored only in the results of its calls: each prints the whole list, even if it
//! fails, and the next call reads it from there. So a rewind restores the list as well.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use ikigai_core::EffectClass;
use ikigai_core::project::{FileChanges, OutputPreview, ReadMode, ToolAction, ToolFacts, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::arguments::{self, Aliases, BadArguments, ToolArguments};
use crate::tool_names::TODO;
use crate::{CallContext, Need, Output, Place, Prepared, Run, Tool, Touches};

/// Name of the tool.
pub(super) const NAME: &str = TODO;

/// Facts about its calls.
pub(super) const FACTS: ToolFacts = ToolFacts {
    changes: FileChanges::None,
    preview: OutputPreview::Long,
    in_read_mode: ReadMode::Runs,
    action: ToolAction::Think,
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
struct TodoArguments {
    /// The whole list, which replaces the one before; without it, the list is only shown.
    #[serde(default)]
    items: Option<Vec<TodoItem>>,
    /// Change of one item, as calls in older logs have it.
    #[serde(default)]
    #[schemars(skip)]
    operation: Option<Operation>,
    /// Text or number of that item.
    #[serde(default)]
    #[schemars(skip)]
    item: Option<Value>,
}

impl ToolArguments for TodoArguments {
    const ALIASES: Aliases = &[
        ("todos", "items"),
        ("plan", "items"),
        ("tasks", "items"),
        ("list", "items"),
        ("operation", "operation"),
        ("item", "item"),
    ];

    fn convert(fields: &mut Map<String, Value>) -> Result<(), String> {
        let Some(Value::Array(items)) = fields.remove("items") else {
            return Ok(());
        };
        let items = (1..).zip(items).map(|(number, item)| {
            // A text alone is an item that is to be done.
            let item = match item {
                Value::String(text) => serde_json::json!({ "text": text }),
                item => item,
            };
            let item: TodoItem =
                arguments::read_item(item).map_err(|reason| format!("item {number}: {reason}"))?;
            serde_json::to_value(item).map_err(|error| error.to_string())
        });
        let items: Vec<Value> = items.collect::<Result<_, String>>()?;
        fields.insert("items".to_owned(), items.into());
        Ok(())
    }
}

/// One item of the list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TodoItem {
    text: String,
    status: Status,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Done,
    Cancelled,
}

impl ToolArguments for TodoItem {
    const ALIASES: Aliases = &[
        ("content", "text"),
        ("step", "text"),
        ("title", "text"),
        ("task", "text"),
        ("state", "status"),
    ];

    fn convert(fields: &mut Map<String, Value>) -> Result<(), String> {
        let status = fields.get("status").and_then(Value::as_str);
        let status = match status.unwrap_or("pending") {
            "completed" | "complete" => "done",
            "todo" | "open" | "not_started" => "pending",
            "active" | "doing" | "in progress" => "in_progress",
            other => other,
        };
        let status = Value::from(status);
        fields.insert("status".to_owned(), status);
        Ok(())
    }
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

pub(super) struct Todo;

impl Tool for Todo {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description:
                "Keeps your to-do list for work of several steps: send the whole list each \
                          time, with one item in_progress. Summaries keep it."
                    .to_owned(),
            parameters: arguments::schema_of::<TodoArguments>(),
            facts: FACTS,
        }
    }

    fn prepare(&self, text: &str, _: &Place) -> Result<Prepared, BadArguments> {
        let call = arguments::read::<TodoArguments>(text)?;
        let change = TodoChange::of(call.values)?;
        let touches = match change {
            TodoChange::Show => Touches::reading([PathBuf::from(PSEUDO_PATH)]),
            _ => Touches::writing([PathBuf::from(PSEUDO_PATH)]),
        };
        Ok(Prepared {
            // It changes nothing but its result.
            class: EffectClass::Read,
            touches,
            shown: call.shown,
            subject: NAME.to_owned(),
            pattern: NAME.to_owned(),
            preview: None,
            deadline: DEADLINE,
            needs: vec![Need::List],
            unconfined: None,
            run: Run::Blocking(Box::new(move |context| run(context, change))),
        }
        .with_remark(call.remark))
    }
}

/// Change of the list.
enum TodoChange {
    Show,
    Replace(Vec<TodoItem>),
    Item(Operation, String),
}

impl TodoChange {
    fn of(arguments: TodoArguments) -> Result<Self, BadArguments> {
        let bad = |reason: &str| Err(BadArguments(reason.to_owned()));
        let item = match arguments.item {
            None => String::new(),
            Some(Value::String(text)) => text,
            Some(Value::Number(number)) => number.to_string(),
            Some(_) => return bad("`item` must be a text or a number"),
        };
        match (arguments.items, arguments.operation) {
            (Some(_), Some(_)) => bad("give either `items` or `operation`, not both"),
            (Some(items), None) => Ok(Self::Replace(items)),
            (None, None | Some(Operation::Show)) => Ok(Self::Show),
            (None, Some(Operation::Clear)) => Ok(Self::Replace(Vec::new())),
            (None, Some(_)) if item.trim().is_empty() => bad("`item` is missing or empty"),
            (None, Some(operation)) => Ok(Self::Item(operation, item)),
        }
    }
}

fn run(context: &CallContext, change: TodoChange) -> Output {
    let mut items = TodoList::read(context.inputs.list.as_deref().unwrap_or_default());
    let changed = match change {
        TodoChange::Show => Ok(()),
        TodoChange::Replace(new) => items.replace(&new),
        TodoChange::Item(operation, item) => items.change(operation, &item),
    };
    match changed {
        Ok(()) => Output::done(items.text(), items.summary()),
        Err(reason) => Output {
            body: format!("{reason}\n{}", items.text()).into_bytes(),
            ..Output::failed(reason)
        },
    }
}

impl Status {
    /// Marks of the list's lines.
    const MARKS: [(char, Self); 4] = [
        (' ', Self::Pending),
        ('>', Self::InProgress),
        ('x', Self::Done),
        ('-', Self::Cancelled),
    ];

    fn mark(self) -> char {
        let mark = Self::MARKS.iter().find(|(_, status)| *status == self);
        mark.map_or(' ', |(mark, _)| *mark)
    }
}

impl TodoItem {
    /// Makes an item from any text: one line, shortened to the limit.
    fn new(status: Status, text: &str) -> Self {
        let line = arguments::one_line(text, MOST_ITEM_BYTES);
        let end = line.floor_char_boundary(MOST_ITEM_BYTES);
        Self {
            status,
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
        let mut letters = mark.chars();
        let letter = letters.next().filter(|_| letters.next().is_none())?;
        let (_, status) = Status::MARKS.iter().find(|(mark, _)| *mark == letter)?;
        Some(Self::new(*status, text)).filter(|item| !item.text.is_empty())
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
            let mark = item.status.mark();
            let _ = writeln!(text, "{number}. [{mark}] {}", item.text);
        }
        text
    }

    fn summary(&self) -> String {
        let done = self.0.iter().filter(|item| item.status == Status::Done);
        let done = done.count();
        let mut summary = match self.0.len() {
            0 => return "empty".to_owned(),
            all => format!("{done} of {all} done\n"),
        };
        summary.push_str(self.text().trim_end());
        summary
    }

    /// Replaces the list; on an error the list stays as it is.
    fn replace(&mut self, items: &[TodoItem]) -> Result<(), String> {
        let items = items
            .iter()
            .map(|item| TodoItem::new(item.status, &item.text));
        let items: Vec<TodoItem> = items.filter(|item| !item.text.is_empty()).collect();
        if items.len() > MOST_ITEMS {
            return Err(format!("a list has at most {MOST_ITEMS} items"));
        }
        self.0 = items;
        Ok(())
    }

    /// Changes one item; on an error the list stays as it is.
    fn change(&mut self, operation: Operation, item: &str) -> Result<(), String> {
        match operation {
            Operation::Add => self.add(item)?,
            Operation::Done => self.find(item)?.status = Status::Done,
            Operation::Undo => self.find(item)?.status = Status::Pending,
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
        let items = text
            .lines()
            .map(|line| TodoItem::new(Status::Pending, line));
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
        let wanted = TodoItem::new(Status::Pending, item).text;
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
