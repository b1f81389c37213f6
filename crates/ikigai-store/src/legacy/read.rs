//! Reader of an older database, at one moment and page by page.

use std::collections::HashMap;

use tokio_postgres::{Client, Row};

use super::plan::ImportPlan;
use super::rows::{LineWriter, fields_of};
use super::{Home, ImportReport, LegacyError, OldAgent, OldMail, OldRow};
use crate::error::StoreError;
use crate::postgres::{ConnectionRole, MIGRATIONS, PostgresTarget, ServerError, Url, sql_error};

/// Rows per fetch.
const PAGE: u32 = 500;

/// The schema that the older program used.
const USUAL_SCHEMA: &str = "public";

/// Reads the old database at `url` and sends dump lines to `sink`.
///
/// `sink` returns whether to continue. Blocks.
pub fn read(
    url: Url,
    home: &Home<'_>,
    sink: &mut dyn FnMut(String) -> bool,
) -> Result<ImportReport, LegacyError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| StoreError::Io(Box::new(error)))?;
    let target = PostgresTarget::new(url, MIGRATIONS)?;
    runtime.block_on(async {
        let link = target.connect(ConnectionRole::Slow).await;
        let link = link.map_err(|cause: ServerError| cause.store_error(target.url()))?;
        let read = read_all(&link.client, &target, home, sink).await;
        read.map_err(|error| match error {
            LegacyFailure::Known(error) => error,
            LegacyFailure::Sql(error) => sql_error(target.url(), error).into(),
        })
    })
}

enum LegacyFailure {
    Known(LegacyError),
    Sql(tokio_postgres::Error),
}

impl From<LegacyError> for LegacyFailure {
    fn from(error: LegacyError) -> Self {
        Self::Known(error)
    }
}

impl From<tokio_postgres::Error> for LegacyFailure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Sql(error)
    }
}

async fn read_all(
    client: &Client,
    target: &PostgresTarget,
    home: &Home<'_>,
    sink: &mut dyn FnMut(String) -> bool,
) -> Result<ImportReport, LegacyFailure> {
    client
        .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        .await?;
    let tables = Tables::find(client, target).await?;
    let mut report = ImportReport::default();
    let mut plan = ImportPlan::new(tables.agents(client).await?, home, &mut report);
    let mut pages = CursorPages::begin(client, &tables.index()).await?;
    while let Some(page) = pages.next().await? {
        for row in page {
            let (id, agent, kind) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            let kind: Option<&str> = kind;
            let role = fields_of(row.try_get(3)?).remove("role");
            let is_childs_fork = role.is_some_and(|role| role == "child");
            plan.put(
                id,
                agent,
                kind.unwrap_or_default(),
                is_childs_fork,
                &mut report,
            );
        }
    }
    plan.finish();
    let mut teller = LineWriter::new(plan, home, report, sink);
    teller.begin()?;
    let mut pages = CursorPages::begin(client, &tables.rows()).await?;
    while let Some(page) = pages.next().await? {
        for row in page {
            teller.row(old_row(&row)?)?;
        }
    }
    teller.settle()?;
    if let Some(mail) = tables.mail() {
        let mut pages = CursorPages::begin(client, &mail).await?;
        while let Some(page) = pages.next().await? {
            for row in page {
                teller.mail(&old_mail(&row)?)?;
            }
        }
    }
    Ok(teller.end()?)
}

/// The tables of an older database, whose columns differ a little from version to version.
struct Tables {
    schema: String,
    /// The type of each column, by table and name.
    columns: HashMap<(String, String), String>,
}

impl Tables {
    async fn find(client: &Client, target: &PostgresTarget) -> Result<Self, LegacyFailure> {
        let named = target.url().schema().to_owned();
        let found = client
            .query(
                "SELECT table_schema::text, table_name::text, column_name::text, data_type::text
                 FROM information_schema.columns
                 WHERE table_schema IN ($1, $2)",
                &[&named, &USUAL_SCHEMA],
            )
            .await?;
        let mut schemas: HashMap<String, HashMap<(String, String), String>> = HashMap::new();
        for row in found {
            let columns = schemas.entry(row.try_get(0)?).or_default();
            columns.insert((row.try_get(1)?, row.try_get(2)?), row.try_get(3)?);
        }
        let has = |schema: &str, table: &str, column: &str| {
            let key = (table.to_owned(), column.to_owned());
            schemas
                .get(schema)
                .is_some_and(|columns| columns.contains_key(&key))
        };
        // Only older messages name their session.
        let is_older = |schema: &&str| has(schema, "messages", "session_id");
        let older = [named.as_str(), USUAL_SCHEMA].into_iter().find(is_older);
        let Some(schema) = older.map(str::to_owned) else {
            let whole = target.url().to_string();
            return Err(LegacyFailure::Known(if has(&named, "messages", "seq") {
                LegacyError::Current(whole)
            } else {
                LegacyError::None(whole)
            }));
        };
        let columns = schemas.remove(&schema).unwrap_or_default();
        Ok(Self { schema, columns })
    }

    fn kind(&self, table: &str, column: &str) -> Option<&str> {
        let key = (table.to_owned(), column.to_owned());
        self.columns.get(&key).map(String::as_str)
    }

    /// Makes the SQL of a column as text.
    fn text(&self, table: &str, column: &str) -> String {
        match self.kind(table, column) {
            Some(_) => format!("\"{column}\"::text"),
            None => "NULL::text".to_owned(),
        }
    }

    /// Makes the SQL of a column as a number.
    fn number(&self, table: &str, column: &str) -> String {
        match self.kind(table, column) {
            Some(_) => format!("\"{column}\"::bigint"),
            None => "NULL::bigint".to_owned(),
        }
    }

    /// Makes the SQL of a column as microseconds: of a time, or of seconds.
    fn time(&self, table: &str, column: &str) -> String {
        match self.kind(table, column) {
            Some("bigint" | "integer") => format!("\"{column}\"::bigint * 1000000"),
            Some(kind) if kind.starts_with("timestamp") => {
                format!("(extract(epoch FROM \"{column}\") * 1000000)::bigint")
            }
            _ => "NULL::bigint".to_owned(),
        }
    }

    async fn agents(&self, client: &Client) -> Result<Vec<OldAgent>, LegacyFailure> {
        const AGENTS: &str = "agents";
        if self.kind(AGENTS, "uuid").is_none() {
            return Ok(Vec::new());
        }
        let texts = ["uuid", "name", "parent_uuid", "status"].map(|name| self.text(AGENTS, name));
        let [uuid, name, parent, status] = texts;
        let model = ["provider", "model", "thinking_level"].map(|name| self.text(AGENTS, name));
        let sql = format!(
            "SELECT {uuid}, {name}, {parent}, {status}, {}, {}, {} FROM \"{}\".agents
             ORDER BY 6, 1",
            self.number(AGENTS, "fork_message_id"),
            self.time(AGENTS, "created_at"),
            model.join(", "),
            self.schema,
        );
        let rows = client.query(&sql, &[]).await?;
        let agents = rows.iter().map(old_agent);
        Ok(agents.collect::<Result<_, _>>()?)
    }

    /// Makes the query for the columns that determine a row's position.
    fn index(&self) -> String {
        format!(
            "SELECT id::bigint, {}, kind::text, CASE WHEN kind::text = 'fork' THEN {} END
             FROM \"{}\".messages ORDER BY id",
            self.text("messages", "agent_uuid"),
            self.text("messages", "data"),
            self.schema
        )
    }

    fn rows(&self) -> String {
        format!(
            "SELECT id::bigint, {}, kind::text, {}, {}, {} FROM \"{}\".messages ORDER BY id",
            self.text("messages", "agent_uuid"),
            self.text("messages", "content"),
            self.text("messages", "data"),
            self.time("messages", "created_at"),
            self.schema
        )
    }

    fn mail(&self) -> Option<String> {
        const MAIL: &str = "mail";
        self.kind(MAIL, "body")?;
        Some(format!(
            "SELECT id::bigint, {}, {}, {}, {}, {} FROM \"{}\".mail ORDER BY id",
            self.text(MAIL, "from_uuid"),
            self.text(MAIL, "to_uuid"),
            self.text(MAIL, "body"),
            self.time(MAIL, "timestamp"),
            self.text(MAIL, "read"),
            self.schema
        ))
    }
}

fn old_agent(row: &Row) -> Result<OldAgent, tokio_postgres::Error> {
    let uuid: Option<String> = row.try_get(0)?;
    let status: Option<&str> = row.try_get(3)?;
    Ok(OldAgent {
        uuid: uuid.unwrap_or_default(),
        name: row.try_get(1)?,
        parent: row.try_get(2)?,
        is_dead: status == Some("dead"),
        fork_message_id: row.try_get(4)?,
        created_at: row.try_get(5)?,
        provider: row.try_get(6)?,
        model: row.try_get(7)?,
        level: row.try_get(8)?,
    })
}

fn old_row(row: &Row) -> Result<OldRow, tokio_postgres::Error> {
    let kind: Option<String> = row.try_get(2)?;
    Ok(OldRow {
        id: row.try_get(0)?,
        kind: kind.unwrap_or_default(),
        content: row.try_get(3)?,
        data: row.try_get(4)?,
        created_at: row.try_get(5)?,
    })
}

fn old_mail(row: &Row) -> Result<OldMail, tokio_postgres::Error> {
    let read: Option<&str> = row.try_get(5)?;
    let text: Option<String> = row.try_get(3)?;
    Ok(OldMail {
        id: row.try_get(0)?,
        from: row.try_get(1)?,
        to: row.try_get(2)?,
        text: text.unwrap_or_default(),
        at: row.try_get(4)?,
        is_read: matches!(read, Some("1" | "true")),
    })
}

/// Result of a query, page by page.
struct CursorPages<'a> {
    client: &'a Client,
}

impl<'a> CursorPages<'a> {
    async fn begin(client: &'a Client, sql: &str) -> Result<Self, LegacyFailure> {
        let open = format!("DECLARE pages NO SCROLL CURSOR FOR {sql}");
        client.batch_execute(&open).await?;
        Ok(Self { client })
    }

    async fn next(&mut self) -> Result<Option<Vec<Row>>, LegacyFailure> {
        let fetch = format!("FETCH {PAGE} FROM pages");
        let page = self.client.query(&fetch, &[]).await?;
        if page.is_empty() {
            self.client.batch_execute("CLOSE pages").await?;
            return Ok(None);
        }
        Ok(Some(page))
    }
}
