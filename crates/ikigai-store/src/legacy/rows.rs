//! Dump lines of the imported rows.

use std::fmt::Write as _;

use ikigai_core::data::{
    AgentKilledData, CommandData, ForkContext, ForkData, ForkRole, KilledBy, RewindData, Via,
};
use ikigai_core::load::load;
use ikigai_core::{Event, Kind, Micros, NewRow, Row, RowRef, Seq, Settings, StoredKind};
use serde_json::{Map, Value, json};

use super::plan::{ImportPlan, PlannedAgent, digest, kind_of};
use super::{Home, ImportReport, LegacyError, OldMail, OldRow};
use crate::portable::{HEADER_NAME, VERSION};
use crate::records::{MailState, Status};

/// Receives one line; returns whether to continue.
pub(super) type LegacyLineSink<'a> = &'a mut dyn FnMut(String) -> bool;

/// Writes the lines.
pub(super) struct LineWriter<'a> {
    pub(super) plan: ImportPlan,
    pub(super) home: &'a Home<'a>,
    pub(super) report: ImportReport,
    sink: LegacyLineSink<'a>,
    rows: u64,
}

impl<'a> LineWriter<'a> {
    pub(super) fn new(
        plan: ImportPlan,
        home: &'a Home<'a>,
        report: ImportReport,
        sink: LegacyLineSink<'a>,
    ) -> Self {
        Self {
            plan,
            home,
            report,
            sink,
            rows: 0,
        }
    }

    fn write_line(&mut self, line: &Value) -> Result<(), LegacyError> {
        if (self.sink)(format!("{line}\n")) {
            Ok(())
        } else {
            Err(LegacyError::Unheard)
        }
    }

    /// Writes all lines before the rows, and first rows of children whose fork lacks one.
    pub(super) fn begin(&mut self) -> Result<(), LegacyError> {
        let home = self.home;
        self.write_line(&json!({ HEADER_NAME: VERSION }))?;
        self.write_line(&json!({ "session": {
            "uuid": home.session,
            "created_at": home.at,
            "name": home.name,
            "directory": home.directory,
        } }))?;
        for index in 0..self.plan.agents.len() {
            let agent = &self.plan.agents[index];
            let parent = agent.parent.map(|parent| self.plan.agents[parent].id);
            let status = if agent.is_dead {
                Status::Dead
            } else {
                Status::Running
            };
            let line = json!({ "agent": {
                "uuid": agent.id,
                "session": home.session,
                "parent": parent,
                "fork_agent": agent.fork_point.map(|point| point.agent),
                "fork_seq": agent.fork_point.map(|point| point.seq),
                "created_at": agent.created_at,
                "status": status.word(),
                "name": agent.name,
                "epoch": 0,
            } });
            self.write_line(&line)?;
        }
        for index in 0..self.plan.agents.len() {
            let agent = &self.plan.agents[index];
            if agent.lacks_fork {
                let at = RowRef::new(agent.id, Seq(1));
                let row = self
                    .fork_of(agent)
                    .into_row(agent.id, Micros(agent.created_at));
                self.tell_row(at, &row)?;
            }
        }
        Ok(())
    }

    /// Writes the settings of roots, which have no fork row for them.
    pub(super) fn settle(&mut self) -> Result<(), LegacyError> {
        for index in 0..self.plan.agents.len() {
            let agent = &self.plan.agents[index];
            if agent.parent.is_none() {
                let at = RowRef::new(agent.id, agent.head().next());
                let set = Event::set("import", self.settings_of(agent).as_set());
                let row = set.into_row(agent.id, self.home.at);
                self.tell_row(at, &row)?;
            }
        }
        Ok(())
    }

    pub(super) fn end(mut self) -> Result<ImportReport, LegacyError> {
        let rows = self.rows;
        self.write_line(&json!({ "end": { "rows": rows } }))?;
        Ok(self.report)
    }

    fn settings_of(&self, agent: &PlannedAgent) -> Settings {
        Settings {
            name: Some(agent.name.clone()),
            workdir: Some(self.home.workdir.clone()),
            model: Some(agent.model.clone()),
            ..Settings::default()
        }
    }

    /// Makes the first row of a child.
    fn fork_of(&self, agent: &PlannedAgent) -> Event {
        let parent = agent.parent.map(|parent| &self.plan.agents[parent]);
        let name = parent.map_or("", |parent| parent.name.as_str());
        let id = parent.map(|parent| parent.id);
        let data = ForkData {
            role: Some(ForkRole::Child),
            parent_uuid: id,
            fork_message_id: agent.fork_point.map(|point| point.seq),
            fork_point: agent.fork_point,
            context: Some(ForkContext::Inherit),
            parent_name: Some(name.to_owned()),
            settings: Some(self.settings_of(agent)),
            system: agent.system,
            ..ForkData::default()
        };
        let id = id.map(|id| id.to_string()).unwrap_or_default();
        Event::Fork {
            text: format!("Forked from {id} ({name})"),
            data: Box::new(data),
        }
    }

    fn tell_row(&mut self, at: RowRef, row: &NewRow) -> Result<(), LegacyError> {
        self.rows += 1;
        self.write_line(&json!({ "row": {
            "agent": at.agent,
            "seq": at.seq,
            "kind": row.kind.name(),
            "control": i64::from(row.control),
            "created_at": row.created_at,
            "content": row.content,
            "data": row.data,
        } }))
    }

    /// Writes a row, if it has a position.
    pub(super) fn row(&mut self, old: OldRow) -> Result<(), LegacyError> {
        let place = self.plan.place_of(old.id);
        let (Some((owner, at)), Some(kind)) = (place, kind_of(&old.kind)) else {
            return Ok(());
        };
        let created_at = Micros(old.created_at.unwrap_or(self.home.at.0));
        let number = old.id;
        let row = match kind {
            Kind::Fork if at.seq == Seq(1) && self.plan.agents[owner].parent.is_some() => {
                let fork = self.fork_of(&self.plan.agents[owner]);
                fork.into_row(at.agent, created_at)
            }
            Kind::Fork => self.parents_fork(&old).into_row(at.agent, created_at),
            Kind::Rewind => {
                let rewind = self.rewind(owner, at, &old);
                Event::Rewind(rewind).into_row(at.agent, created_at)
            }
            Kind::AgentKilled => self.killed(&old).into_row(at.agent, created_at),
            Kind::Command => command(old).into_row(at.agent, created_at),
            Kind::System
            | Kind::User
            | Kind::Assistant
            | Kind::ToolCall
            | Kind::ToolResult
            | Kind::Clear
            | Kind::Mark
            | Kind::Usage
            | Kind::Interrupted
            | Kind::Error
            | Kind::Summary
            | Kind::Process
            | Kind::Files => NewRow {
                agent: at.agent,
                kind,
                control: matches!(kind, Kind::System | Kind::Clear | Kind::Mark),
                content: old.content,
                data: old.data,
                created_at,
                author: None,
            },
        };
        let stored = Row {
            at,
            kind: StoredKind::Known(kind),
            created_at,
            content: row.content.clone(),
            data: row.data.clone(),
            author: None,
        };
        if let Err(error) = load(&stored) {
            let name = &self.plan.agents[owner].name;
            self.report.remark(format!(
                "event {number}, now #{} of {name}, is imported but unreadable: {error}",
                at.seq
            ));
        }
        self.tell_row(at, &row)
    }

    fn parents_fork(&self, old: &OldRow) -> Event {
        let fields = fields_of(old.data.as_deref());
        let child = fields.get("child_uuid").and_then(Value::as_str);
        let child = child.and_then(|uuid| self.plan.agent(uuid));
        let point = child.and_then(|child| child.fork_point);
        let data = ForkData {
            role: child.map(|_| ForkRole::Parent),
            child_uuid: child.map(|child| child.id),
            fork_message_id: point.map(|point| point.seq),
            fork_point: point,
            ..ForkData::default()
        };
        let content = old.content.clone();
        let text = content.unwrap_or_else(|| match child {
            Some(child) => format!("Forked child {} ({})", child.id, child.name),
            None => "Forked a child".to_owned(),
        });
        Event::Fork {
            text,
            data: Box::new(data),
        }
    }

    fn rewind(&mut self, owner: usize, at: RowRef, old: &OldRow) -> RewindData {
        let fields = fields_of(old.data.as_deref());
        let number = fields.get("target_message_id").and_then(Value::as_i64);
        let target = number.and_then(|number| self.plan.place_of(number));
        let target = target.map(|(_, target)| target);
        let target = target.filter(|target| self.plan.holds(owner, at, *target));
        if target.is_none() {
            let name = &self.plan.agents[owner].name;
            self.report.remark(format!(
                "event {}, now #{} of {name}, rewinds to an unknown event: it has no effect",
                old.id, at.seq
            ));
        }
        RewindData {
            target,
            from: Some(RowRef::new(at.agent, at.seq.before())),
            via: Some(Via::Rewind),
            ..RewindData::default()
        }
    }

    fn killed(&self, old: &OldRow) -> Event {
        let fields = fields_of(old.data.as_deref());
        let target = fields.get("target").and_then(Value::as_str);
        let target = target.and_then(|uuid| self.plan.agent(uuid));
        let target = target.map(|target| target.id);
        let by = fields.get("killed_by").and_then(Value::as_str);
        Event::AgentKilled(AgentKilledData {
            target,
            killed: target.map(|target| vec![target]),
            by: Some(match by {
                Some("user") | None => KilledBy::User,
                Some(_) => KilledBy::Model,
            }),
        })
    }

    /// Writes a mail, if its receiver was imported.
    pub(super) fn mail(&mut self, old: &OldMail) -> Result<(), LegacyError> {
        let to = old.to.as_deref().and_then(|uuid| self.plan.agent(uuid));
        let Some(to) = to else {
            let number = old.id;
            self.report
                .remark(format!("mail {number} has no receiver here: skipped"));
            return Ok(());
        };
        let from = old.from.as_deref().and_then(|uuid| self.plan.agent(uuid));
        let state = match (old.is_read, to.is_dead) {
            (true, _) => MailState::Delivered,
            (false, true) => MailState::Bounced,
            (false, false) => MailState::Queued,
        };
        let number = old.id.to_string();
        let bytes = digest(&["mail", &to.id.to_string(), &number, &old.text]);
        let mut id = String::with_capacity(32);
        for byte in bytes {
            let _ = write!(id, "{byte:02x}");
        }
        let line = json!({ "mail": {
            "uuid": id,
            "receiver": to.id,
            "sender": from.map(|from| from.id),
            "sent_at": old.at.unwrap_or(self.home.at.0),
            "state": state.word(),
            "text": old.text,
        } });
        self.report.mail += 1;
        self.write_line(&line)
    }
}

fn command(old: OldRow) -> Event {
    let fields = fields_of(old.data.as_deref());
    let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    let (command, args) = (text("command"), text("args"));
    let echo = command.as_deref().map(|command| {
        let line = format!("/{command} {}", args.as_deref().unwrap_or_default());
        line.trim_end().to_owned()
    });
    Event::Command {
        output: old.content,
        data: CommandData {
            command,
            args,
            echo,
            ..CommandData::default()
        },
    }
}

/// Returns the fields of a row's data; none if it is not an object.
pub(super) fn fields_of(data: Option<&str>) -> Map<String, Value> {
    let fields = data.and_then(|data| serde_json::from_str(data).ok());
    fields.unwrap_or_default()
}
