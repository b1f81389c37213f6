//! Reader of a dump: each line becomes column values in table order.

use std::io::BufRead;

use ikigai_core::{AgentId, EffectClass, Kind, MachineId, PersonName, SessionId};
use serde_json::{Map, Value};

use super::{
    HEADER_NAME, MOST_LINE_BYTES, OLDEST_VERSION, RestoreError, RestoreMode, Restored, VERSION,
    from_hex, take_bytes,
};
use crate::records::{BlobHash, MailOrigin, MailState, MailTopic, Status};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ColumnValue {
    Nothing,
    Integer(i64),
    Text(String),
    Blob(Vec<u8>),
}

impl ColumnValue {
    /// Returns the size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Blob(bytes) => bytes.len(),
            Self::Nothing | Self::Integer(_) => size_of::<Self>(),
        }
    }
}

/// Kind of a line, with the order of its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// uuid, created at, name, directory, machine, host
    Session,
    /// uuid, session, parent, agent and seq of the fork point, created at, status, name, epoch
    Agent,
    /// hash, part, bytes
    Blob,
    /// agent, seq, kind, control, created at, content, data, author
    Row,
    /// uuid, receiver, sender, sent at, state, agent and seq of the row that shows it, text, origin, about, process,
    /// author
    Mail,
    /// uuid, agent, seq, class, started, deadline, ended
    Run,
    /// agent, part, at, text
    Draft,
}

impl EntryKind {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "session" => Self::Session,
            "agent" => Self::Agent,
            "blob" => Self::Blob,
            "row" => Self::Row,
            "mail" => Self::Mail,
            "run" => Self::Run,
            "draft" => Self::Draft,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Agent => "agent",
            Self::Blob => "blob",
            Self::Row => "row",
            Self::Mail => "mail",
            Self::Run => "run",
            Self::Draft => "draft",
        }
    }
}

/// One line of a dump.
#[derive(Clone, Debug)]
pub(crate) struct DumpEntry {
    line: u64,
    pub(crate) what: EntryKind,
    pub(crate) cells: Vec<ColumnValue>,
    /// Its name, for error messages.
    name: Option<String>,
}

impl DumpEntry {
    /// Makes an error about this line.
    pub(crate) fn wrong(&self, reason: impl Into<String>) -> RestoreError {
        RestoreError::Line {
            line: self.line,
            reason: reason.into(),
        }
    }

    /// Makes the error for a line that the store already has.
    pub(crate) fn twice(&self) -> RestoreError {
        let named = self.name.as_ref();
        let named = named
            .map(|name| format!(" `{name:.64}`"))
            .unwrap_or_default();
        let what = self.what.name();
        self.wrong(format!(
            "the database has this {what}{named} already, or another one of this name"
        ))
    }

    /// Makes the error for a line whose owner is not in the file.
    pub(crate) fn lost(&self) -> RestoreError {
        let what = self.what.name();
        self.wrong(format!(
            "the {what} refers to something that is not in the file"
        ))
    }
}

/// Reads a dump line by line.
pub(crate) struct DumpReader<R> {
    from: R,
    mode: RestoreMode,
    line: u64,
    buffer: Vec<u8>,
    restored: Restored,
}

impl<R: BufRead> DumpReader<R> {
    pub(crate) fn new(from: R, mode: RestoreMode) -> Self {
        Self {
            from,
            mode,
            line: 0,
            buffer: Vec::new(),
            restored: Restored::default(),
        }
    }

    /// Returns the summary of all lines read.
    pub(crate) fn restored(self) -> Restored {
        self.restored
    }

    /// Returns the next entry; none after the last line of a complete log.
    pub(crate) fn next(&mut self) -> Result<Option<DumpEntry>, RestoreError> {
        if self.line == 0 {
            let header = self.object()?;
            let version = header.get(HEADER_NAME).and_then(Value::as_u64);
            match version {
                Some(OLDEST_VERSION..=VERSION) => {}
                Some(newer) if newer > VERSION => {
                    return Err(self.wrong(format!(
                        "the file has version {newer}; this ikigai reads up to version {VERSION}"
                    )));
                }
                _ => return Err(self.wrong("not an ikigai export")),
            }
        }
        let Some((name, Value::Object(fields))) = self.object()?.into_iter().next() else {
            return Err(self.wrong("the line has no entry"));
        };
        if name == "end" {
            let rows = fields.get("rows").and_then(Value::as_u64);
            if rows == Some(self.restored.rows) {
                return Ok(None);
            }
            return Err(self.wrong("the file is incomplete: events are missing"));
        }
        let what = EntryKind::from_name(&name);
        let what = what.ok_or_else(|| self.wrong("unknown kind of entry"))?;
        let cells = Fields(&fields).cells(what);
        let mut cells = cells.map_err(|reason| self.wrong(reason))?;
        match what {
            EntryKind::Agent => {
                let agent = Fields(&fields).id("uuid");
                let agent = agent.map_err(|reason| self.wrong(reason))?;
                self.restored.agents.push(agent);
            }
            EntryKind::Row => {
                self.restored.rows += 1;
                if self.mode == RestoreMode::Merge {
                    drop_grant(&mut cells);
                }
            }
            _ => {}
        }
        let name = fields.get("name").and_then(Value::as_str);
        Ok(Some(DumpEntry {
            line: self.line,
            what,
            cells,
            name: name.map(str::to_owned),
        }))
    }

    fn object(&mut self) -> Result<Map<String, Value>, RestoreError> {
        self.buffer.clear();
        self.line += 1;
        let most = u64::try_from(MOST_LINE_BYTES).unwrap_or(u64::MAX);
        let mut line = std::io::Read::take(&mut self.from, most);
        let read = line.read_until(b'\n', &mut self.buffer);
        if read.map_err(RestoreError::Read)? == 0 {
            return Err(RestoreError::Cut);
        }
        serde_json::from_slice(&self.buffer)
            .map_err(|error| self.wrong(format!("not a JSON object: {error}")))
    }

    fn wrong(&self, reason: impl Into<String>) -> RestoreError {
        RestoreError::Line {
            line: self.line,
            reason: reason.into(),
        }
    }
}

/// Removes the tag of a row with a grant: a file cannot grant mode and rules.
///
/// A copy of a whole store keeps its tags, which are valid on a machine with their key.
fn drop_grant(cells: &mut [ColumnValue]) {
    let [
        _,
        _,
        ColumnValue::Text(kind),
        _,
        _,
        _,
        ColumnValue::Text(data),
        _,
    ] = cells
    else {
        return;
    };
    if !matches!(kind.parse(), Ok(Kind::Command | Kind::Fork)) {
        return;
    }
    let Ok(mut object) = serde_json::from_str::<Map<String, Value>>(data) else {
        return;
    };
    if object.remove("grant").is_some() {
        *data = Value::Object(object).to_string();
    }
}

/// Fields of one line; errors name the field.
struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn cells(&self, what: EntryKind) -> Result<Vec<ColumnValue>, String> {
        Ok(match what {
            EntryKind::Session => {
                self.id::<SessionId>("uuid")?;
                vec![
                    self.cell("uuid")?,
                    self.number("created_at")?,
                    self.cell("name")?,
                    self.cell("directory")?,
                    self.machine()?,
                    self.optional("host"),
                ]
            }
            EntryKind::Agent => {
                self.id::<AgentId>("uuid")?;
                self.word::<Status>("status")?;
                vec![
                    self.cell("uuid")?,
                    self.cell("session")?,
                    self.optional("parent"),
                    self.optional("fork_agent"),
                    self.optional("fork_seq"),
                    self.number("created_at")?,
                    self.cell("status")?,
                    self.cell("name")?,
                    self.number("epoch")?,
                ]
            }
            EntryKind::Blob => {
                let hash = self.text("hash")?.parse::<BlobHash>();
                let hash = hash.map_err(|_| "`hash` is not a hash".to_owned())?;
                let bytes = take_bytes(self.0).ok_or("`bytes` is missing")?;
                vec![
                    ColumnValue::Blob(hash.0.to_vec()),
                    self.number("part")?,
                    ColumnValue::Blob(bytes),
                ]
            }
            EntryKind::Row => vec![
                self.cell("agent")?,
                self.number("seq")?,
                self.cell("kind")?,
                self.number("control")?,
                self.number("created_at")?,
                self.optional("content"),
                self.optional("data"),
                self.author()?,
            ],
            EntryKind::Mail => {
                self.word::<MailState>("state")?;
                vec![
                    self.wide("uuid")?,
                    self.cell("receiver")?,
                    self.optional("sender"),
                    self.number("sent_at")?,
                    self.cell("state")?,
                    self.optional("shown_agent"),
                    self.optional("shown_seq"),
                    self.cell("text")?,
                    self.mail_origin()?,
                    self.mail_topic()?,
                    self.optional("process"),
                    self.author()?,
                ]
            }
            EntryKind::Run => {
                self.word::<EffectClass>("class")?;
                vec![
                    self.wide("uuid")?,
                    self.cell("agent")?,
                    self.number("seq")?,
                    self.cell("class")?,
                    self.number("started")?,
                    self.number("deadline")?,
                    self.optional("ended"),
                ]
            }
            EntryKind::Draft => vec![
                self.cell("agent")?,
                self.number("part")?,
                self.number("at")?,
                self.cell("text")?,
            ],
        })
    }

    fn text(&self, name: &str) -> Result<&str, String> {
        let value = self.0.get(name).and_then(Value::as_str);
        value.ok_or_else(|| format!("`{name}` is missing or not a text"))
    }

    fn cell(&self, name: &str) -> Result<ColumnValue, String> {
        self.text(name)
            .map(|text| ColumnValue::Text(text.to_owned()))
    }

    fn number(&self, name: &str) -> Result<ColumnValue, String> {
        let value = self.0.get(name).and_then(Value::as_i64);
        let value = value.ok_or_else(|| format!("`{name}` is missing or not a number"))?;
        Ok(ColumnValue::Integer(value))
    }

    /// Returns an optional column value; databases refuse wrong types.
    fn optional(&self, name: &str) -> ColumnValue {
        match self.0.get(name) {
            Some(Value::String(text)) => ColumnValue::Text(text.clone()),
            Some(Value::Number(number)) => number
                .as_i64()
                .map_or(ColumnValue::Nothing, ColumnValue::Integer),
            _ => ColumnValue::Nothing,
        }
    }

    fn id<T: std::str::FromStr<Err: std::fmt::Display>>(&self, name: &str) -> Result<T, String> {
        let id = self.text(name)?.parse::<T>();
        id.map_err(|error| error.to_string())
    }

    fn word<T: std::str::FromStr>(&self, name: &str) -> Result<T, String> {
        let word = self.text(name)?;
        let known = word.parse();
        known.map_err(|_| format!("`{name}` has the unknown value `{word:.64}`"))
    }

    /// Returns the origin of mail, which older files lack.
    fn mail_origin(&self) -> Result<ColumnValue, String> {
        if self.0.contains_key("origin") {
            self.word::<MailOrigin>("origin")?;
            return self.cell("origin");
        }
        let origin = match self.0.get("sender") {
            Some(Value::String(_)) => MailOrigin::Agent,
            _ => MailOrigin::User,
        };
        Ok(ColumnValue::Text(origin.word().to_owned()))
    }

    /// Returns the topic of mail, which older files lack.
    fn mail_topic(&self) -> Result<ColumnValue, String> {
        if self.0.contains_key("about") {
            self.word::<MailTopic>("about")?;
            return self.cell("about");
        }
        Ok(ColumnValue::Text(MailTopic::Message.word().to_owned()))
    }

    /// Returns the author, which older files lack.
    fn author(&self) -> Result<ColumnValue, String> {
        if !self.0.contains_key("author") {
            return Ok(ColumnValue::Nothing);
        }
        let person = self.text("author")?.parse::<PersonName>();
        person.map_err(|error| format!("`author` is no person's name: {error}"))?;
        self.cell("author")
    }

    /// Returns the machine of a session, which older files lack.
    fn machine(&self) -> Result<ColumnValue, String> {
        if !self.0.contains_key("machine") {
            return Ok(ColumnValue::Nothing);
        }
        self.id::<MachineId>("machine")?;
        self.cell("machine")
    }

    fn wide(&self, name: &str) -> Result<ColumnValue, String> {
        let bytes = from_hex(self.text(name)?).filter(|bytes| bytes.len() == 16);
        let bytes = bytes.ok_or_else(|| format!("`{name}` is not an id"))?;
        Ok(ColumnValue::Blob(bytes))
    }
}
