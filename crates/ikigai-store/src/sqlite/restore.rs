//! Taking in a log that another store told: all of it, or nothing.

use std::io::BufRead;

use ikigai_core::{AgentId, EffectClass, SessionId};
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, Transaction, TransactionBehavior, params_from_iter};
use serde_json::{Map, Value};

use super::SqliteStore;
use super::errors::{is_unique_violation, sql_error};
use crate::error::StoreError;
use crate::portable::{
    HEADER_NAME, MOST_LINE_BYTES, RestoreError, Restored, VERSION, from_hex, take_bytes,
};
use crate::records::{BlobHash, MailState, Status};

type Fields = Map<String, Value>;

impl SqliteStore {
    /// Takes in a log that [`crate::Store::dump`] told. Blocks, and keeps others from writing
    /// meanwhile. Whatever is there already is a reason to take in nothing.
    pub fn restore(&self, lines: impl BufRead) -> Result<Restored, RestoreError> {
        let fail = |error| RestoreError::Store(sql_error(self.path(), error));
        let mut connection = self.target.connect().map_err(fail)?;
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fail)?;
        // An agent refers to rows of another, which refer to agents.
        transaction
            .pragma_update(None, "defer_foreign_keys", true)
            .map_err(fail)?;
        let restored = take_in(&transaction, lines)?;
        if has_gaps(&transaction).map_err(fail)? {
            let reason = "the rows of an agent are not whole".to_owned();
            return Err(StoreError::Value(reason).into());
        }
        settle(&transaction).map_err(fail)?;
        transaction.commit().map_err(|error| {
            if super::errors::is_reference_violation(&error) {
                RestoreError::Store(StoreError::Value(
                    "something in the file refers to what is not in it".to_owned(),
                ))
            } else {
                fail(error)
            }
        })?;
        Ok(restored)
    }
}

fn take_in(
    connection: &Transaction<'_>,
    mut lines: impl BufRead,
) -> Result<Restored, RestoreError> {
    let mut restored = Restored::default();
    let mut number = 0;
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        number += 1;
        let wrong = |reason: String| RestoreError::Line {
            line: number,
            reason,
        };
        let most = u64::try_from(MOST_LINE_BYTES).unwrap_or(u64::MAX);
        let mut line = std::io::Read::take(&mut lines, most);
        let read = line.read_until(b'\n', &mut buffer);
        if read.map_err(RestoreError::Read)? == 0 {
            return Err(RestoreError::Cut);
        }
        let parsed: Fields = serde_json::from_slice(&buffer)
            .map_err(|error| wrong(format!("it is no JSON object: {error}")))?;
        if number == 1 {
            if parsed.get(HEADER_NAME).and_then(Value::as_u64) != Some(VERSION) {
                return Err(wrong(
                    "this is no log of ikigai, or of a newer one".to_owned(),
                ));
            }
            continue;
        }
        let Some((name, Value::Object(fields))) = parsed.into_iter().next() else {
            return Err(wrong("it names nothing".to_owned()));
        };
        if name == "end" {
            let rows = fields.get("rows").and_then(Value::as_u64);
            if rows == Some(restored.rows) {
                return Ok(restored);
            }
            return Err(wrong("the file is not whole: rows are missing".to_owned()));
        }
        let inserted = Line { fields: &fields }
            .insert(connection, &name)
            .map_err(wrong)?;
        match inserted {
            Ok(0) => return Err(wrong(format!("the {name} refers to nobody in the file"))),
            Ok(_) => {}
            Err(error) if is_unique_violation(&error) => {
                let named = fields.get("name").and_then(Value::as_str);
                let named = named
                    .map(|name| format!(" `{name:.64}`"))
                    .unwrap_or_default();
                return Err(wrong(format!(
                    "the store has this {name}{named} already, or one of this name"
                )));
            }
            Err(error) => return Err(wrong(error.to_string())),
        }
        match name.as_str() {
            "agent" => restored.agents += 1,
            "row" => restored.rows += 1,
            _ => {}
        }
    }
}

/// Whether a log that came does not go from 1 on without a gap.
fn has_gaps(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM heads h WHERE h.seq = 0 AND
             (SELECT count(*) FROM messages WHERE agent = h.agent AND seq > 0) <>
             (SELECT coalesce(max(seq), 0) FROM messages WHERE agent = h.agent))",
        [],
        |row| row.get(0),
    )
}

/// Heads follow the rows that came.
fn settle(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "UPDATE heads SET seq =
             (SELECT coalesce(max(seq), 0) FROM messages WHERE agent = heads.agent)
         WHERE seq = 0",
    )
}

struct Line<'a> {
    fields: &'a Fields,
}

/// What inserting did, or what is wrong with the line.
type Inserted = Result<rusqlite::Result<usize>, String>;

impl Line<'_> {
    fn insert(&self, connection: &Connection, name: &str) -> Inserted {
        let (sql, values) = match name {
            "session" => (SESSION, self.session()?),
            "agent" => (AGENT, self.agent()?),
            "blob" => (BLOB, self.blob()?),
            "row" => (ROW, self.row()?),
            "mail" => (MAIL, self.mail()?),
            "run" => (RUN, self.run()?),
            "draft" => (DRAFT, self.draft()?),
            _ => return Err("it names what this program does not know".to_owned()),
        };
        let run = |sql: &str, values: &[Sql]| {
            let mut statement = connection.prepare_cached(sql)?;
            statement.execute(params_from_iter(values))
        };
        let inserted = run(sql, &values);
        if name == "agent" && inserted.is_ok() {
            return Ok(run(HEAD, &[values[0].clone(), self.number("epoch")?]));
        }
        Ok(inserted)
    }

    fn session(&self) -> Result<Vec<Sql>, String> {
        self.text("uuid")?
            .parse::<SessionId>()
            .map_err(|error| error.to_string())?;
        Ok(vec![
            self.sql("uuid")?,
            self.number("created_at")?,
            self.sql("name")?,
            self.sql("directory")?,
        ])
    }

    fn agent(&self) -> Result<Vec<Sql>, String> {
        self.agent_id("uuid")?;
        self.word::<Status>("status")?;
        Ok(vec![
            self.sql("uuid")?,
            self.sql("session")?,
            self.optional("parent"),
            self.optional("fork_agent"),
            self.optional("fork_seq"),
            self.number("created_at")?,
            self.sql("status")?,
            self.sql("name")?,
        ])
    }

    fn blob(&self) -> Result<Vec<Sql>, String> {
        let hash: BlobHash = self
            .text("hash")?
            .parse()
            .map_err(|_| "`hash` is no hash".to_owned())?;
        let bytes = take_bytes(self.fields).ok_or("it has no bytes")?;
        Ok(vec![
            Sql::Blob(hash.0.to_vec()),
            self.number("part")?,
            Sql::Blob(bytes),
        ])
    }

    fn row(&self) -> Result<Vec<Sql>, String> {
        Ok(vec![
            self.sql("agent")?,
            self.number("seq")?,
            self.sql("kind")?,
            self.number("control")?,
            self.number("created_at")?,
            self.optional("content"),
            self.optional("data"),
        ])
    }

    fn mail(&self) -> Result<Vec<Sql>, String> {
        self.word::<MailState>("state")?;
        Ok(vec![
            self.wide("uuid")?,
            self.sql("receiver")?,
            self.optional("sender"),
            self.number("sent_at")?,
            self.sql("state")?,
            self.optional("shown_agent"),
            self.optional("shown_seq"),
            self.sql("text")?,
        ])
    }

    fn run(&self) -> Result<Vec<Sql>, String> {
        self.word::<EffectClass>("class")?;
        Ok(vec![
            self.wide("uuid")?,
            self.sql("agent")?,
            self.number("seq")?,
            self.sql("class")?,
            self.number("started")?,
            self.number("deadline")?,
            self.optional("ended"),
        ])
    }

    fn draft(&self) -> Result<Vec<Sql>, String> {
        Ok(vec![
            self.sql("agent")?,
            self.number("part")?,
            self.number("at")?,
            self.sql("text")?,
        ])
    }

    fn text(&self, name: &str) -> Result<&str, String> {
        let value = self.fields.get(name).and_then(Value::as_str);
        value.ok_or_else(|| format!("`{name}` is missing or no text"))
    }

    fn sql(&self, name: &str) -> Result<Sql, String> {
        self.text(name).map(|text| Sql::Text(text.to_owned()))
    }

    fn number(&self, name: &str) -> Result<Sql, String> {
        let value = self.fields.get(name).and_then(Value::as_i64);
        let value = value.ok_or_else(|| format!("`{name}` is missing or no number"))?;
        Ok(Sql::Integer(value))
    }

    /// What a column takes that may be empty; STRICT tables refuse what is of the wrong type.
    fn optional(&self, name: &str) -> Sql {
        match self.fields.get(name) {
            Some(Value::String(text)) => Sql::Text(text.clone()),
            Some(Value::Number(number)) => number.as_i64().map_or(Sql::Null, Sql::Integer),
            _ => Sql::Null,
        }
    }

    fn agent_id(&self, name: &str) -> Result<AgentId, String> {
        let id = self.text(name)?.parse::<AgentId>();
        id.map_err(|error| error.to_string())
    }

    fn word<T: std::str::FromStr>(&self, name: &str) -> Result<T, String> {
        let word = self.text(name)?;
        let known = word.parse();
        known.map_err(|_| format!("`{name}` is `{word:.64}`, which this program does not know"))
    }

    fn wide(&self, name: &str) -> Result<Sql, String> {
        let bytes = from_hex(self.text(name)?).filter(|bytes| bytes.len() == 16);
        let bytes = bytes.ok_or_else(|| format!("`{name}` is no id"))?;
        Ok(Sql::Blob(bytes))
    }
}

const SESSION: &str =
    "INSERT INTO sessions (uuid, created_at, name, directory) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (uuid) DO UPDATE SET name = name";

const AGENT: &str = "INSERT INTO agents
         (uuid, session, parent, fork_agent, fork_seq, created_at, status, name)
     SELECT ?1, id, (SELECT id FROM agents WHERE uuid = ?3),
            (SELECT id FROM agents WHERE uuid = ?4), ?5, ?6, ?7, ?8
     FROM sessions WHERE uuid = ?2
       AND (?3 IS NULL OR EXISTS (SELECT 1 FROM agents WHERE uuid = ?3))
       AND (?4 IS NULL OR EXISTS (SELECT 1 FROM agents WHERE uuid = ?4))";

const HEAD: &str = "INSERT INTO heads (agent, seq, epoch)
     SELECT id, 0, ?2 FROM agents WHERE uuid = ?1";

const BLOB: &str = "INSERT INTO blobs (hash, part, bytes) VALUES (?1, ?2, ?3)
     ON CONFLICT (hash, part) DO UPDATE SET part = part";

const ROW: &str = "INSERT INTO messages (agent, seq, kind, control, created_at, content, data)
     SELECT id, ?2, ?3, ?4, ?5, ?6, ?7 FROM agents WHERE uuid = ?1";

const MAIL: &str = "INSERT INTO mail
         (uuid, receiver, sender, sent_at, state, shown_agent, shown_seq, text)
     SELECT ?1, id, (SELECT id FROM agents WHERE uuid = ?3), ?4, ?5,
            (SELECT id FROM agents WHERE uuid = ?6), ?7, ?8
     FROM agents WHERE uuid = ?2
       AND (?3 IS NULL OR EXISTS (SELECT 1 FROM agents WHERE uuid = ?3))
       AND (?6 IS NULL OR EXISTS (SELECT 1 FROM agents WHERE uuid = ?6))";

const RUN: &str = "INSERT INTO tool_runs (uuid, agent, seq, class, started, deadline, ended)
     SELECT ?1, id, ?3, ?4, ?5, ?6, ?7 FROM agents WHERE uuid = ?2";

const DRAFT: &str = "INSERT INTO drafts (agent, part, at, text)
     SELECT id, ?2, ?3, ?4 FROM agents WHERE uuid = ?1";
