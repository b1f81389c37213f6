//! The tree of agents: `/fork`, `/merge`, `/agents`, `/switch`, `/send`, `/wait`, `/kill`, `/reap`,
//! `/mail`.

use std::fmt::Write as _;
use std::time::Duration;

use ikigai_core::data::{self, ForkContext, KilledBy, Merge, ToolResultData, UserData, UserOrigin};
use ikigai_core::names::is_valid_name;
use ikigai_core::{Event, Kind, RowRef, Seq};
use ikigai_store::{Agent, AgentRecord, Effect, Status};

use super::line::{next_word, words};
use super::reply::Then;
use super::rows::row_of;
use super::{Command, Completes, Group, Next, Reply, Takes, Trouble, Typed};
use crate::agents::{ForkWish, check_mail, tree};
use crate::environment::draw_mail;
use crate::front::Desk;
use crate::{EngineError, Errand, Worker};

/// How long `/wait` takes if nothing is said.
const WAIT: Duration = Duration::from_mins(10);

/// The longest wait: a day.
const LONGEST_WAIT_SECONDS: u64 = 86_400;

/// How many rows are read at a time to find what a child said last.
const PAGE_ROWS: usize = 64;

/// How much of a mail a list shows.
const SHOWN_CHARS: usize = 60;

pub(super) const FORK: Command = Command {
    arguments: "[--fresh] [--model M[/L]] [--name N] [--at #id|label] [--go] [prompt …]",
    help: "make a child; with a prompt it works beside you, several quoted ones make one each",
    examples: &[
        ("/fork count the tests", "a second agent, beside you"),
        (
            "/fork --fresh --name docs \"write the README\"",
            "it knows nothing of this",
        ),
        ("/fork \"fix the lexer\" \"fix the parser\"", "two children"),
    ],
    takes: Takes::WordsThenText(0),
    ..Command::new("fork", Group::Agents, |worker, typed, desk| {
        Box::pin(fork(worker, typed, desk))
    })
};

pub(super) const MERGE: Command = Command {
    arguments: "AGENT …",
    help: "bring what a child said last into this conversation; sends nothing",
    examples: &[("/merge fix-lexer", "/undo takes it back")],
    takes: Takes::Words,
    completes: &[Completes::Agents],
    ..Command::new("merge", Group::Agents, |worker, typed, _| {
        Box::pin(merge(worker, typed))
    })
};

pub(super) const AGENTS: Command = Command {
    help: "the tree of agents",
    ..Command::new("agents", Group::Agents, |worker, _, _| {
        Box::pin(async move { Ok(Reply::says(tree(&worker.engine).await?)) })
    })
};

pub(super) const SWITCH: Command = Command {
    arguments: "AGENT|..",
    help: "go to another agent, or to the parent",
    takes: Takes::Words,
    completes: &[Completes::Agents],
    ..Command::new("switch", Group::Agents, |worker, typed, _| {
        Box::pin(switch(worker, typed))
    })
};

pub(super) const SEND: Command = Command {
    arguments: "[--wake] AGENT text",
    help: "send mail; it goes with the receiver's next turn, and --wake starts one",
    examples: &[(
        "/send docs the parser has changed",
        "docs reads it with its next turn",
    )],
    takes: Takes::WordsThenText(0),
    completes: &[Completes::Agents],
    ..Command::new("send", Group::Agents, |worker, typed, _| {
        Box::pin(send(worker, typed))
    })
};

pub(super) const WAIT_FOR: Command = Command {
    arguments: "[AGENT …] [--for 10m]",
    help: "wait until agents have ended their work; their mail stays where it is",
    examples: &[("/wait fix-lexer --for 90", "at most 90 seconds")],
    takes: Takes::Words,
    completes: &[Completes::Agents],
    during: super::During::AtBreak,
    ..Command::new("wait", Group::Agents, |worker, typed, _| {
        Box::pin(wait(worker, typed))
    })
};

pub(super) const KILL: Command = Command {
    arguments: "[AGENT]",
    help: "end an agent and its descendants at once; a root cannot be killed",
    takes: Takes::Words,
    completes: &[Completes::Agents],
    ..Command::new("kill", Group::Agents, |worker, typed, desk| {
        Box::pin(kill(worker, typed, desk))
    })
};

pub(super) const REAP: Command = Command {
    arguments: "[AGENT]",
    help: "take the dead out of the navigation; their logs stay",
    takes: Takes::Words,
    completes: &[Completes::Agents],
    ..Command::new("reap", Group::Agents, |worker, typed, _| {
        Box::pin(reap(worker, typed))
    })
};

pub(super) const MAIL: Command = Command {
    help: "mail to this agent and what became of it",
    ..Command::new("mail", Group::Agents, |worker, _, _| Box::pin(mail(worker)))
};

/// What a `/fork` line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct ForkLine {
    fresh: bool,
    go: bool,
    model: Option<String>,
    name: Option<String>,
    at: Option<String>,
    prompts: Vec<String>,
}

/// Reads options, then one prompt to the end of the line, or several in quotes.
fn fork_line(rest: &str) -> Result<ForkLine, String> {
    let mut line = ForkLine::default();
    let mut left = rest.trim();
    while left.starts_with("--") {
        let Some((option, after)) = next_word(left)? else {
            break;
        };
        left = after;
        let slot = match option.as_str() {
            "--fresh" => {
                line.fresh = true;
                continue;
            }
            "--go" => {
                line.go = true;
                continue;
            }
            "--model" => &mut line.model,
            "--name" => &mut line.name,
            "--at" => &mut line.at,
            other => return Err(format!("/fork has no option {other}")),
        };
        let Some((value, after)) = next_word(left)? else {
            return Err(format!("{option} needs a value"));
        };
        *slot = Some(value);
        left = after.trim_start();
    }
    let left = left.trim();
    if left.starts_with(['"', '\'']) {
        line.prompts = words(left)?;
    } else if !left.is_empty() {
        line.prompts = vec![left.to_owned()];
    }
    Ok(line)
}

async fn fork(worker: &mut Worker, typed: &Typed, desk: &mut Desk<'_>) -> Result<Reply, Trouble> {
    let line = fork_line(&typed.rest)?;
    if let Some(name) = line.name.as_deref().filter(|name| !is_valid_name(name)) {
        return Err(EngineError::BadName(name.to_owned()).to_string().into());
    }
    let model = match line.model.as_deref() {
        None => None,
        Some(name) => match worker.engine.models.choose(name) {
            Ok(choice) => Some(choice),
            Err(missing) => return Trouble::refused(format!("{missing} · {}", missing.advice)),
        },
    };
    let at = match line.at.as_deref() {
        None => None,
        Some(_) if line.fresh => {
            return Trouble::refused("--fresh remembers nothing, so --at means nothing");
        }
        Some(place) => Some(place_of(worker, place).await?),
    };
    let prompts: Vec<Option<String>> = match line.prompts.as_slice() {
        [] => vec![None],
        prompts => prompts.iter().cloned().map(Some).collect(),
    };
    let mut output = String::new();
    let mut last = None;
    for prompt in prompts {
        let wish = ForkWish {
            name: line.name.clone(),
            context: if line.fresh {
                ForkContext::Fresh
            } else {
                ForkContext::Inherit
            },
            at,
            model: model.clone(),
            call: None,
            prompt,
        };
        let (forked, rows) = match worker.fork(&wish, |_| Vec::new(), None).await {
            Ok(forked) => forked,
            Err(
                error @ (EngineError::TooDeep(_)
                | EngineError::TooManyChildren(_)
                | EngineError::TooManyAgents(_)),
            ) => return Trouble::refused(format!("{output}{error}")),
            Err(error) => return Err(error.into()),
        };
        desk.told(rows);
        let words = wish.prompt.as_deref().unwrap_or("waits for you");
        let _ = writeln!(output, "⑂ {} · {}", forked.name, shortened(words));
        if wish.prompt.is_some() {
            worker.start_child(forked.id).await?;
        }
        last = Some((forked.id, wish.prompt.is_none()));
    }
    let reply = Reply::says(output.trim_end());
    Ok(match last {
        Some((child, idle)) if idle || line.go => reply.then(Then::Front(Next::Switch(child))),
        _ => reply,
    })
}

/// The row that a mark's label or `#id` names.
async fn place_of(worker: &mut Worker, place: &str) -> Result<RowRef, Trouble> {
    if place.starts_with('#') {
        return Ok(row_of(worker, place).await?.at);
    }
    match super::time::find_mark(worker, Some(place)).await? {
        Some(mark) => Ok(mark),
        None => Trouble::refused(format!("there is no mark {place}")),
    }
}

/// The agent that a person names.
async fn named(worker: &Worker, name: &str) -> Result<AgentRecord, Trouble> {
    match worker.engine.find(name).await {
        Ok(agent) => Ok(agent),
        Err(error @ (EngineError::NoSuchAgent(_) | EngineError::Ambiguous { .. })) => {
            Trouble::refused(format!("{error} · /agents lists them"))
        }
        Err(error) => Err(error.into()),
    }
}

async fn switch(worker: &mut Worker, typed: &Typed) -> Result<Reply, Trouble> {
    let target = match typed.one("switch")? {
        None => return Trouble::refused("name an agent, or .. for the parent"),
        Some("..") => {
            let family = worker.family().await?;
            let parents = family.ancestors(worker.agent.state.agent());
            match parents.first() {
                Some(parent) => *parent,
                None => return Trouble::refused("this is a root: it has no parent"),
            }
        }
        Some(name) => named(worker, name).await?.id,
    };
    Ok(Reply::default().then(Then::Front(Next::Switch(target))))
}

async fn send(worker: &mut Worker, typed: &Typed) -> Result<Reply, Trouble> {
    let mut rest = typed.rest.trim();
    let wakes = rest
        .strip_prefix("--wake")
        .filter(|left| left.starts_with(' '));
    let wake = wakes.is_some();
    rest = wakes.unwrap_or(rest).trim();
    let Some((name, text)) = next_word(rest)? else {
        return Trouble::refused("say to whom, and what: /send docs the parser has changed");
    };
    let to = named(worker, &name).await?;
    let text = text.trim();
    if let Err(error) = check_mail(&to, text) {
        return Trouble::refused(error.to_string());
    }
    // From the user, not from the agent in which it was typed.
    let effect = Effect::SendMail {
        mail: draw_mail(&*worker.engine.environment),
        to: to.id,
        from: None,
        text: text.to_owned(),
        at: worker.engine.environment.now(),
    };
    let mut reply = Reply::says(format!("✉ {}: {}", to.name, shortened(text)));
    reply.effects.push(effect);
    if wake {
        reply = reply.then(Then::Later(Box::new(move |worker, _| {
            Box::pin(async move {
                worker.start_other(&to, Errand::Mail).await?;
                Ok(format!("{} reads it", to.name))
            })
        })));
    }
    Ok(reply)
}

async fn wait(worker: &mut Worker, typed: &Typed) -> Result<Reply, Trouble> {
    let mut patience = WAIT;
    let mut of: Vec<AgentRecord> = Vec::new();
    let mut left = typed.words.iter();
    while let Some(word) = left.next() {
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        if word == "--for" || of.is_empty() && is_number {
            let given = if is_number { Some(word) } else { left.next() };
            let parsed = given.and_then(|text| duration_of(text));
            patience = match parsed {
                Some(parsed) => parsed,
                None => return Trouble::refused("--for takes a time: 90, 90s, 10m, 2h"),
            };
        } else {
            of.push(named(worker, word).await?);
        }
    }
    if of.is_empty() {
        of = working_children(worker).await?;
    }
    if of.is_empty() {
        return Trouble::refused("no child of this agent works");
    }
    let names: Vec<_> = of.iter().map(|agent| agent.name.clone()).collect();
    let ids: Vec<_> = of.iter().map(|agent| agent.id).collect();
    let reply = Reply::says(format!("waiting for {}", names.join(", ")));
    Ok(reply.then(Then::Later(Box::new(move |worker, desk| {
        Box::pin(async move { Ok(worker.watch_agents(ids, patience, desk).await?) })
    }))))
}

/// Seconds, or a number with its unit.
fn duration_of(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(['s', 'm', 'h']);
    let number: u64 = digits.parse().ok()?;
    let seconds = match &text[digits.len()..] {
        "" | "s" => number,
        "m" => number.checked_mul(60)?,
        "h" => number.checked_mul(3600)?,
        _ => return None,
    };
    Some(Duration::from_secs(seconds.min(LONGEST_WAIT_SECONDS)))
}

async fn working_children(worker: &Worker) -> Result<Vec<AgentRecord>, EngineError> {
    let own = worker.agent.state.agent();
    let mut working = Vec::new();
    for agent in worker.engine.agents().await? {
        let is_child = agent.parent == Some(own) && agent.status == Status::Running;
        if is_child && worker.engine.works(agent.id).await? {
            working.push(agent);
        }
    }
    Ok(working)
}

async fn kill(worker: &mut Worker, typed: &Typed, desk: &mut Desk<'_>) -> Result<Reply, Trouble> {
    let own = worker.agent.state.agent();
    let target = match typed.one("kill")? {
        Some(name) => named(worker, name).await?,
        None => match worker.engine.store.agent(own).await? {
            Some(agent) => agent,
            None => return Trouble::refused("this agent is not in the store"),
        },
    };
    match worker.kill(&target, KilledBy::User, Vec::new(), None).await {
        Ok((rows, killed)) => {
            desk.told(rows);
            let below = killed.len() - 1;
            let with = match below {
                0 => String::new(),
                1 => " and its child".to_owned(),
                below => format!(" and its {below} descendants"),
            };
            let reply = Reply::says(format!("✗ killed {}{with}", target.name));
            let parent = target.parent.filter(|_| killed.contains(&own));
            Ok(match parent {
                Some(parent) => reply.then(Then::Front(Next::Switch(parent))),
                None => reply,
            })
        }
        Err(error @ (EngineError::KillsRoot(_) | EngineError::Dead(_))) => {
            Trouble::refused(error.to_string())
        }
        Err(error) => Err(error.into()),
    }
}

async fn reap(worker: &mut Worker, typed: &Typed) -> Result<Reply, Trouble> {
    let dead = if let Some(name) = typed.one("reap")? {
        vec![named(worker, name).await?]
    } else {
        let mut agents = worker.engine.agents().await?;
        agents.retain(|agent| agent.status == Status::Dead);
        agents
    };
    if let Some(alive) = dead.iter().find(|agent| agent.status != Status::Dead) {
        return Trouble::refused(format!("{} is {}, not dead", alive.name, alive.status));
    }
    if dead.is_empty() {
        return Trouble::refused("nobody is dead");
    }
    let names: Vec<_> = dead.iter().map(|agent| agent.name.clone()).collect();
    let mut reply = Reply::says(format!("reaped {}", names.join(", ")));
    reply.effects = dead
        .iter()
        .map(|agent| Effect::SetStatus {
            agent: agent.id,
            status: Status::Reaped,
        })
        .collect();
    Ok(reply)
}

async fn mail(worker: &mut Worker) -> Result<Reply, Trouble> {
    let own = worker.agent.state.agent();
    let mail = worker.engine.store.mail(own).await?;
    let mut output = String::new();
    for mail in mail {
        let sender = match mail.from {
            None => "you".to_owned(),
            Some(from) => {
                let agent = worker.engine.store.agent(from).await?;
                agent.map_or_else(|| from.to_string(), |agent| agent.name)
            }
        };
        let by = mail
            .shown_by
            .map_or_else(String::new, |row| format!(" #{}", row.seq));
        let text = shortened(&mail.text);
        let _ = writeln!(output, "{:<10}{by} from {sender}: {text}", mail.state);
    }
    Ok(Reply::says(if output.is_empty() {
        "no mail".to_owned()
    } else {
        output.trim_end().to_owned()
    }))
}

async fn merge(worker: &mut Worker, typed: &Typed) -> Result<Reply, Trouble> {
    if typed.words.is_empty() {
        return Trouble::refused("name a child: /merge fix-lexer");
    }
    let own = worker.agent.state.agent();
    let mut reply = Reply::default();
    for name in &typed.words {
        let child = named(worker, name).await?;
        if child.parent != Some(own) {
            return Trouble::refused(format!("{} is no child of this agent", child.name));
        }
        if worker.engine.works(child.id).await? {
            return Trouble::refused(format!("{} still works · /wait {}", child.name, child.name));
        }
        let result = result_of(worker, &child).await?;
        let Some(result) = result else {
            return Trouble::refused(format!("{} has said nothing", child.name));
        };
        let _ = writeln!(reply.output, "⇐ {} #1–#{}", child.name, child.head);
        let data = UserData {
            origin: Some(UserOrigin::Typed),
            typed: Some(format!("⇐ {} #1–#{}", child.name, child.head)),
            merge: Some(Merge {
                agent: Some(child.id),
                from: Some(Seq(1)),
                to: Some(child.head),
            }),
            ..UserData::default()
        };
        let text = format!("Result of the child agent {}:\n{result}", child.name);
        reply.events.push(Event::User { text, data });
    }
    reply.output = reply.output.trim_end().to_owned();
    Ok(reply)
}

/// What a child said last, and the files that it wrote.
async fn result_of(worker: &Worker, child: &AgentRecord) -> Result<Option<String>, EngineError> {
    let store = worker.engine.store();
    let mut agent = Agent::restore(store, child.id).await?;
    let mut said = None;
    let mut files: Vec<String> = Vec::new();
    let mut seen = 0;
    loop {
        let more = agent.lengthen(store, PAGE_ROWS).await?;
        let entries = agent.view.entries();
        let new = entries.iter().take(entries.len() - seen).rev();
        let own = new.take_while(|entry| entry.at().agent == child.id);
        let mut is_own = 0;
        for entry in own {
            is_own += 1;
            match entry.kind() {
                Some(Kind::Assistant) if said.is_none() => {
                    let text = entry.row.content.clone().unwrap_or_default();
                    said = Some(text).filter(|text| !text.trim().is_empty());
                }
                Some(Kind::ToolResult) => {
                    let result: ToolResultData = data::read(entry.row.data.as_deref());
                    let touched = result.files.unwrap_or_default().into_iter();
                    let wrote = touched.filter(|file| file.wrote == Some(true));
                    files.extend(wrote.filter_map(|file| file.path));
                }
                _ => {}
            }
        }
        let reached_parent = is_own < entries.len() - seen;
        seen = entries.len();
        if !more || reached_parent {
            break;
        }
    }
    files.sort();
    files.dedup();
    Ok(said.map(|said| {
        if files.is_empty() {
            said
        } else {
            format!("{said}\n\nFiles it wrote: {}", files.join(", "))
        }
    }))
}

/// The beginning of a text, on one line.
fn shortened(text: &str) -> String {
    ikigai_tools::arguments::one_line(text, SHOWN_CHARS)
}

#[cfg(test)]
mod tests {
    use super::{ForkLine, duration_of, fork_line};
    use std::time::Duration;

    #[test]
    fn fork_lines_are_read() {
        let line = |prompts: &[&str]| ForkLine {
            prompts: prompts.iter().map(|text| (*text).to_owned()).collect(),
            ..ForkLine::default()
        };
        let cases = [
            ("", Ok(line(&[]))),
            ("count the tests", Ok(line(&["count the tests"]))),
            ("it's \"odd\"", Ok(line(&["it's \"odd\""]))),
            ("\"one two\" 'three'", Ok(line(&["one two", "three"]))),
            (
                "--fresh --name docs --at #12 --go write it",
                Ok(ForkLine {
                    fresh: true,
                    go: true,
                    name: Some("docs".to_owned()),
                    at: Some("#12".to_owned()),
                    ..line(&["write it"])
                }),
            ),
            ("--name", Err("--name needs a value".to_owned())),
            ("--fast x", Err("/fork has no option --fast".to_owned())),
        ];

        for (typed, expected) in cases {
            assert_eq!(fork_line(typed), expected, "{typed}");
        }
    }

    #[test]
    fn times_are_read() {
        let cases = [
            ("90", Some(90)),
            ("90s", Some(90)),
            ("10m", Some(600)),
            ("2h", Some(7200)),
            ("x", None),
            ("10mm", None),
            ("18446744073709551615", Some(86_400)),
        ];

        for (typed, seconds) in cases {
            assert_eq!(
                duration_of(typed),
                seconds.map(Duration::from_secs),
                "{typed}"
            );
        }
    }
}
