//! `ikigai inbox`: everything that waits for the user.

use std::process::ExitCode;

use anyhow::Result;
use ikigai_core::spelling::{clean, clean_line};
use ikigai_engine::{InboxEntry, dismiss_entries, read_inbox};
use serde_json::{Value, json};

use crate::arguments::InboxOrder;
use crate::context::ProgramContext;
use crate::output::{local_time, print, print_json, print_stderr};

pub(crate) fn inbox(db: Option<String>, order: &InboxOrder) -> Result<ExitCode> {
    let program = if order.clear {
        ProgramContext::open(db)?
    } else {
        ProgramContext::open_reading(db)?
    };
    let entries = program.block_on(read_inbox(&program.engine))?;
    if order.clear {
        program.block_on(dismiss_entries(&program.engine, &entries))?;
        return Ok(ExitCode::SUCCESS);
    }
    if entries.is_empty() {
        print_stderr("Nothing waits for you");
    }
    for entry in &entries {
        if order.json {
            print_json(&json_of(entry))?;
        } else {
            print(&line_of(entry))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn line_of(entry: &InboxEntry) -> String {
    let name = clean_line(&entry.agent.name);
    let (sign, word) = (entry.kind.sign(), entry.kind.word());
    let time = local_time(entry.at);
    let text = clean(&entry.text);
    let text = text.trim_end().replace('\n', "\n    ");
    format!("{sign} {name:<24} {time}  {word}: {text}\n")
}

fn json_of(entry: &InboxEntry) -> Value {
    json!({
        "agent": entry.agent.id,
        "name": entry.agent.name,
        "kind": entry.kind.word(),
        "seq": entry.row.seq,
        "at": entry.at,
        "text": entry.text,
    })
}
