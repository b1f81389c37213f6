//! Marks of how far people have read.

use super::connect::Link;
use super::pipeline::OwnedParam;
use super::statements::clean;
use super::values::{Result, number, parse_column};
use crate::error::CommitError;
use crate::records::SeenMark;
use crate::sql_common::to_stored;
use crate::transaction::RowKeys;
use ikigai_core::Seq;

const MARK: &str = "INSERT INTO seen AS s (agent, person, read_to, dismissed_to)
     VALUES ($1, $2, $3, $4)
     ON CONFLICT (agent, person) DO UPDATE SET
         read_to = greatest(s.read_to, excluded.read_to),
         dismissed_to = greatest(s.dismissed_to, excluded.dismissed_to)";

/// Returns the marks of a person on running agents; the empty name stands for everyone.
pub(super) async fn marks(link: &Link, person: &str) -> Result<Vec<SeenMark>> {
    let sql = "SELECT a.uuid, max(s.read_to), max(s.dismissed_to)
         FROM agents a JOIN seen s ON s.agent = a.id
         WHERE a.status = 'running' AND s.person IN ('', $1) GROUP BY a.id ORDER BY a.id";
    link.all(sql, &[&clean(person)], |row| {
        Ok(SeenMark {
            agent: parse_column(row, 0)?,
            read: Seq(number(row, 1)?),
            dismissed: Seq(number(row, 2)?),
        })
    })
    .await
}

/// Builds the statement that inserts or raises a mark.
pub(super) fn statement(
    keys: &RowKeys,
    person: &str,
    mark: SeenMark,
) -> std::result::Result<(&'static str, Vec<OwnedParam>), CommitError> {
    let values: Vec<OwnedParam> = vec![
        Box::new(keys.agent(mark.agent)?),
        Box::new(clean(person)),
        Box::new(to_stored(mark.read.0)),
        Box::new(to_stored(mark.dismissed.0)),
    ];
    Ok((MARK, values))
}
