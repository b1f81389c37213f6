//! `/merge`: what children came to, in this conversation.

use ikigai_core::data::CommandData;
use ikigai_core::{AgentId, Event};
use ikigai_store::{AgentRecord, Status};

use super::agents::named;
use super::{Command, Completes, Group, Reply, Takes, Trouble, Typed};
use crate::agents::{MergeOf, MergePreview};
use crate::front::Desk;
use crate::{EngineError, Worker};

pub(super) const MERGE: Command = Command {
    arguments: "[AGENT …] [--summary] [--done]",
    help: "bring what children said last into this conversation; sends nothing",
    examples: &[
        ("/merge fix-lexer", "/undo takes it back"),
        (
            "/merge fix-lexer --summary",
            "all that was said in its own turns",
        ),
        (
            "/merge --done",
            "all children that are done and not merged yet",
        ),
    ],
    takes: Takes::Words,
    completes: &[Completes::Agents],
    ..Command::new("merge", Group::Agents, |worker, typed, _| {
        Box::pin(merge(worker, typed))
    })
};

async fn merge(worker: &mut Worker, typed: &Typed) -> Result<Reply, Trouble> {
    let mut what = MergeOf::LastAnswer;
    let mut all_done = false;
    let mut children = Vec::new();
    for word in &typed.words {
        match word.as_str() {
            "--summary" => what = MergeOf::Turns,
            "--done" => all_done = true,
            option if option.starts_with("--") => {
                return Trouble::refused(format!("/merge has no option {option}"));
            }
            name => {
                let child = named(worker, name).await?;
                check(worker, &child).await?;
                if !children.contains(&child) {
                    children.push(child);
                }
            }
        }
    }
    let is_named = !children.is_empty();
    if all_done || !is_named {
        for child in worker.done_children().await? {
            if !children.contains(&child) {
                children.push(child);
            }
        }
    }
    let mut previews = Vec::new();
    for child in children {
        match worker.engine.merge_preview(&child, what).await? {
            Some(preview) => previews.push(preview),
            None if is_named && !all_done => {
                return Trouble::refused(format!("{} has said nothing new", child.name));
            }
            None => {}
        }
    }
    match previews.as_slice() {
        [] => return Trouble::refused("no child is done and not merged yet"),
        [_] => {}
        several if !is_named && !all_done => {
            let names: Vec<_> = several.iter().map(|one| one.child.name.as_str()).collect();
            return Trouble::refused(format!(
                "several are done: {} · name one, or /merge --done",
                names.join(", ")
            ));
        }
        _ => {}
    }
    let lines: Vec<_> = previews.iter().map(MergePreview::line).collect();
    Ok(Reply {
        events: previews.iter().map(|one| one.event(&one.text)).collect(),
        ..Reply::says(lines.join("\n"))
    })
}

/// Says why an agent cannot be merged here, if it cannot.
async fn check(worker: &Worker, child: &AgentRecord) -> Result<(), Trouble> {
    if child.parent != Some(worker.agent.state.agent()) {
        return Trouble::refused(format!("{} is no child of this agent", child.name));
    }
    if worker.engine.works(child.id).await? {
        return Trouble::refused(format!("{} still works · /wait {}", child.name, child.name));
    }
    Ok(())
}

impl Worker {
    /// The children that are not at work and have said something since they were merged.
    async fn done_children(&self) -> Result<Vec<AgentRecord>, EngineError> {
        let own = self.agent.state.agent();
        let mut done = Vec::new();
        for agent in self.engine.agents().await? {
            let is_child = agent.parent == Some(own) && agent.status == Status::Running;
            if is_child && !self.engine.works(agent.id).await? {
                done.push(agent);
            }
        }
        Ok(done)
    }

    /// Brings what a preview shows into this conversation, in words that somebody may have changed:
    /// the same rows as of the command.
    pub async fn merge(
        &mut self,
        preview: &MergePreview,
        text: &str,
        desk: &mut Desk<'_>,
    ) -> Result<(), EngineError> {
        let own: AgentId = self.agent.state.agent();
        if preview.child.parent != Some(own) {
            let name = &preview.child.name;
            let reason = format!("{name} is no child of this agent");
            return Err(EngineError::Refused(reason));
        }
        let name = preview.child.name.clone();
        let data = CommandData {
            command: Some(MERGE.name.to_owned()),
            echo: Some(format!("/{} {name}", MERGE.name)),
            args: Some(name),
            ..CommandData::default()
        };
        let output = Some(preview.line());
        let events = vec![preview.event(text), Event::Command { output, data }];
        let rows = self.commit(events, Vec::new()).await?;
        desk.told(rows);
        Ok(())
    }
}
