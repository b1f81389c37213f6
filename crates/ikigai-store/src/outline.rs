//! Outlines of agents for lists: records, with the row that says what each agent does.

use ikigai_core::{Kind, Row};

use crate::records::AgentRecord;

/// Newest rows of a parent among which merges of its children are looked for.
pub(crate) const MERGE_ROWS: usize = 4096;

/// An agent as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentOutline {
    /// Its record.
    pub agent: AgentRecord,
    /// The holder of its lease lives.
    pub is_held: bool,
    /// Newest row that may say whether a turn runs; none if the agent does not run.
    pub turn_row: Option<TurnRow>,
}

/// A row that may begin, continue or end a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnRow {
    /// Its kind.
    pub kind: Kind,
    /// Its data, unless its kind says enough.
    pub data: Option<String>,
    /// A call is among the two rows before it, perhaps of the same response. Only looked up for agents
    /// with an owner.
    pub follows_call: bool,
}

/// Selects rows `c` that may begin, continue or end a turn.
///
/// The conditions on data only leave out rows that certainly do not; readers parse the rest.
macro_rules! turn_rows_sql {
    () => {
        "c.kind IN ('user', 'assistant', 'tool_call', 'tool_result', 'interrupted', 'clear', \
                    'rewind', 'error', 'command', 'fork') \
         AND (c.kind <> 'command' OR c.data LIKE '%\"resume\"%') \
         AND (c.kind <> 'fork' OR c.data LIKE '%\"child\"%')"
    };
}
pub(crate) use turn_rows_sql;

/// Selects the data of a row `c` whose kind does not say enough.
macro_rules! turn_data_sql {
    () => {
        "CASE WHEN c.kind IN ('user', 'interrupted', 'error', 'command', 'fork') THEN c.data END"
    };
}
pub(crate) use turn_data_sql;

/// Checks whether a call is among the two rows before a row `c`, if its agent has an owner.
macro_rules! follows_call_sql {
    () => {
        "h.owner IS NOT NULL AND EXISTS (
             SELECT 1 FROM messages q WHERE q.agent = c.agent
                AND q.seq BETWEEN c.seq - 2 AND c.seq - 1 AND q.kind = 'tool_call')"
    };
}
pub(crate) use follows_call_sql;

impl TurnRow {
    /// Returns true if a call may be open after this row.
    pub fn may_be_call(&self) -> bool {
        // Results of some calls of a response leave the others open.
        self.follows_call || matches!(self.kind, Kind::ToolCall | Kind::ToolResult)
    }

    /// Finds it among the rows of an agent, newest first.
    pub(crate) fn newest_of(agent: &AgentRecord, rows: &[Row]) -> Option<Self> {
        let is_call = |row: &Row| row.kind.read_as() == Some(Kind::ToolCall);
        let mut found = rows.iter().enumerate().filter_map(|(place, row)| {
            let data = row.data.as_deref().unwrap_or_default();
            let kind = row.kind.read_as()?;
            let (may_decide, has_data) = match kind {
                Kind::User | Kind::Interrupted | Kind::Error => (true, true),
                Kind::Assistant
                | Kind::ToolCall
                | Kind::ToolResult
                | Kind::Clear
                | Kind::Rewind => (true, false),
                Kind::Command => (data.contains("\"resume\""), true),
                Kind::Fork => (data.contains("\"child\""), true),
                Kind::System
                | Kind::Mark
                | Kind::AgentKilled
                | Kind::Usage
                | Kind::Summary
                | Kind::Process
                | Kind::Files => (false, false),
            };
            let data = row.data.clone().filter(|_| has_data);
            let mut before = rows.iter().skip(place + 1).take(2);
            may_decide.then_some(Self {
                kind,
                data,
                follows_call: agent.owner.is_some() && before.any(is_call),
            })
        });
        found.next()
    }
}

/// Returns true for a row of a parent that merges a child, or may change what is merged.
pub(crate) fn may_change_merges(row: &Row) -> bool {
    match row.kind.read_as() {
        Some(Kind::Rewind | Kind::Clear) => true,
        Some(Kind::User) => row
            .data
            .as_deref()
            .is_some_and(|data| data.contains("\"merge\"")),
        _ => false,
    }
}
