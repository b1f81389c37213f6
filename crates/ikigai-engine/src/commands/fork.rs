//! `/fork`: children of this agent, or of one that another process holds.

use ikigai_core::RowRef;
use ikigai_core::data::ForkContext;
use ikigai_core::names::is_valid_name;
use ikigai_store::{Agent, AgentRecord};

use super::actions::CommandAction;
use super::agents::shorten;
use super::rows::row_of;
use super::time::find_mark;
use super::{Command, CommandOption, Group, Reply, SlashCommand, Takes, Trouble, Typed};
use crate::family::{ChildSeat, ForkRequest, apply_definition, definition};
use crate::input::{UnknownCommand, UserInput};
use crate::invocation::{PromptCommands, expand};
use crate::ledger::{Ledger, Starter};
use crate::message_size::check_message_for;
use crate::turn::CommandContext;
use crate::{Engine, EngineError, EngineReader, Worker, worktrees};

pub(super) const FORK: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[--fresh] [--as AGENT] [--model M[/L]] [--name N] [--at #id|label] [--worktree] [--go] [prompt …]",
        help: "make a child agent; with a prompt it works in parallel, one child per quoted prompt",
        examples: &[
            ("/fork count the tests", "a second agent in parallel"),
            (
                "/fork \"fix the lexer\" --model demo",
                "options can follow the prompt",
            ),
            (
                "/fork --fresh --name docs \"write the README\"",
                "start with an empty context",
            ),
            ("/fork \"fix the lexer\" \"fix the parser\"", "two children"),
            (
                "/fork --as reviewer \"review the last commit\"",
                "with the agent definition reviewer, in an empty context",
            ),
            (
                "/fork --worktree fix the lexer",
                "in a separate git worktree",
            ),
        ],
        takes: Takes::Texts,
        options: &[
            CommandOption::Flag("--fresh"),
            CommandOption::Flag("--go"),
            CommandOption::Flag("--worktree"),
            CommandOption::Value("--as"),
            CommandOption::Value("--model"),
            CommandOption::Value("--name"),
            CommandOption::Value("--at"),
        ],
        reports: Some(ikigai_core::Kind::Fork),
        ..Command::new("fork", Group::Agents)
    },
    handler: |ctx, typed| Box::pin(fork(ctx, typed)),
};

/// Arguments of `/fork`.
struct ForkLine {
    fresh: bool,
    go: bool,
    worktree: bool,
    definition: Option<String>,
    model: Option<String>,
    name: Option<String>,
    at: Option<String>,
    prompts: Vec<String>,
}

impl From<&Typed> for ForkLine {
    fn from(typed: &Typed) -> Self {
        let value = |name| typed.value(name).map(str::to_owned);
        Self {
            fresh: typed.flag("--fresh"),
            go: typed.flag("--go"),
            worktree: typed.flag("--worktree"),
            definition: value("--as"),
            model: value("--model"),
            name: value("--name"),
            at: value("--at"),
            prompts: typed.texts.clone(),
        }
    }
}

async fn fork(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let line = ForkLine::from(typed);
    let (engine, agent) = ctx.reading();
    let requests = requests(engine, agent, &line).await?;
    Ok(Reply::of(CommandAction::Fork(requests, line.go)))
}

/// Children of an agent that another process holds, made by a `/fork` line.
pub(crate) struct LineForks {
    /// Output of the command.
    pub(crate) output: String,
    /// The children, owned by this process.
    pub(crate) children: Vec<Ledger>,
    /// True if they have a prompt to answer.
    pub(crate) have_work: bool,
}

/// Executes a `/fork` line for an agent that another process holds; none for other lines.
///
/// The parent's log gets only the rows of the forks.
pub(crate) async fn fork_held_by_line(
    engine: &Engine,
    held: &AgentRecord,
    input: &UserInput,
    starter: Starter,
) -> Result<Option<LineForks>, EngineError> {
    let UserInput::Command(typed) = input else {
        return Ok(None);
    };
    if *typed.command != FORK.command {
        return Ok(None);
    }
    match fork_typed(engine, held, &typed.arguments, starter).await {
        Ok(forked) => Ok(Some(forked)),
        Err(Trouble::Refused(reason) | Trouble::Stopped(_, reason)) => {
            Err(EngineError::Refused(reason))
        }
        Err(Trouble::Engine(error)) => Err(error),
    }
}

async fn fork_typed(
    engine: &Engine,
    held: &AgentRecord,
    rest: &str,
    starter: Starter,
) -> Result<LineForks, Trouble> {
    let line = ForkLine::from(&Typed::read(&FORK.command, rest)?);
    let mut agent = Agent::restore(engine.reader(), held.id).await?;
    let mut forked = LineForks {
        output: String::new(),
        children: Vec::new(),
        have_work: !line.prompts.is_empty(),
    };
    for request in requests(engine, &mut agent, &line).await? {
        let child = match crate::family::fork_held_ledger(engine, held.id, &request, starter).await
        {
            Ok(child) => child,
            Err(error) => return Err(no_room(error, &forked.output)),
        };
        let name = child.settings().name.clone().unwrap_or_default();
        forked.output.push_str(&fork_line(&name, &request));
        forked.children.push(child);
    }
    Ok(forked)
}

/// Returns the options of the forks in a line, one for each child.
async fn requests(
    engine: &EngineReader,
    agent: &mut Agent,
    line: &ForkLine,
) -> Result<Vec<ForkRequest>, Trouble> {
    if let Some(name) = line.name.as_deref().filter(|name| !is_valid_name(name)) {
        return Err(EngineError::BadName(name.to_owned()).to_string().into());
    }
    let model = match line.model.as_deref() {
        None => None,
        Some(name) => match engine.models().choose(name) {
            Ok(choice) => Some(choice),
            Err(missing) => return Trouble::refused(format!("{missing} · {}", missing.advice)),
        },
    };
    let at = match line.at.as_deref() {
        None => None,
        Some(_) if line.fresh => {
            return Trouble::refused("use --fresh or --at, not both");
        }
        Some(place) => Some(place_of(engine, agent, place).await?),
    };
    let prompts: Vec<Option<String>> = match line.prompts.as_slice() {
        [] => vec![None],
        prompts => prompts.iter().cloned().map(Some).collect(),
    };
    let mut settings = agent.state.settings().clone();
    settings.model = model.clone().or(settings.model);
    for prompt in &line.prompts {
        check_message_for(engine, &settings, prompt)?;
    }
    let definition = match line.definition.as_deref() {
        None => None,
        Some(name) => Some(definition(engine, agent.state.settings(), name).await?),
    };
    let in_worktree = line.worktree || definition.as_ref().is_some_and(|it| it.worktree);
    let worktree = if in_worktree {
        Some(worktrees::plan(engine.safety(), agent.state.settings()).await?)
    } else {
        None
    };
    // A definition describes a fresh start; `--at` asks for a part of this conversation.
    let is_fresh = line.fresh || definition.is_some() && line.at.is_none();
    let request = |prompt| ForkRequest {
        name: line.name.clone(),
        context: if is_fresh {
            ForkContext::Fresh
        } else {
            ForkContext::Inherit
        },
        at,
        model: model.clone(),
        call: None,
        worktree: worktree.clone(),
        seat: ChildSeat::default(),
        prompt,
    };
    let mut requests: Vec<ForkRequest> = prompts.into_iter().map(request).collect();
    if let Some(definition) = &definition {
        for request in &mut requests {
            apply_definition(engine, agent.state.settings(), definition, request).await?;
        }
    }
    Ok(requests)
}

/// Returns the child of a called command or skill that wants one; none for an unknown name.
pub(super) async fn child_of_call(
    worker: &Worker,
    typed: &UnknownCommand,
) -> Result<Option<ForkRequest>, Trouble> {
    let (engine, ledger) = (worker.engine(), worker.ledger());
    let extensions = engine.extensions(&ledger.workdir()).await;
    let Some(text) = extensions.callable(&typed.name) else {
        return Ok(None);
    };
    let is_skill = extensions.is_skill(text);
    let prompt = expand(
        ledger,
        text,
        is_skill,
        &typed.arguments,
        PromptCommands::Run,
    )
    .await?;
    check_message_for(engine, ledger.settings(), &prompt.text)?;
    // Files of other programs name models by nicknames that only these know.
    let model = text.model.as_deref();
    let model = model.and_then(|name| engine.models().choose(name).ok());
    let mut request = ForkRequest {
        name: Some(text.name.replace([':', '_'], "-")),
        prompt: Some(prompt.text),
        context: ForkContext::Fresh,
        at: None,
        model,
        call: None,
        worktree: None,
        seat: ChildSeat::default(),
    };
    let settings = ledger.settings();
    match text.agent.as_deref() {
        Some(name) if name.eq_ignore_ascii_case("explore") => request.seat.explores = true,
        Some(name) if extensions.agent(name).is_some() => {
            let definition = definition(engine, settings, name).await?;
            if definition.worktree {
                request.worktree = Some(worktrees::plan(engine.safety(), settings).await?);
            }
            apply_definition(engine, settings, &definition, &mut request).await?;
        }
        Some(_) | None => {}
    }
    Ok(Some(request))
}

/// Returns the row of a mark's label or `#id`.
async fn place_of(
    engine: &EngineReader,
    agent: &mut Agent,
    place: &str,
) -> Result<RowRef, Trouble> {
    if place.starts_with('#') {
        return Ok(row_of(engine, agent, place).await?.at);
    }
    match find_mark(engine, agent, Some(place)).await? {
        Some(mark) => Ok(mark),
        None => Trouble::refused(format!("no mark \"{place}\" · /mark sets one")),
    }
}

pub(super) fn fork_line(name: &str, request: &ForkRequest) -> String {
    let words = request.prompt.as_deref().unwrap_or("no prompt");
    format!("├ forked {name} · {}\n", shorten(words))
}

/// Builds the error for a fork beyond a limit, after earlier children.
pub(super) fn no_room(error: EngineError, made: &str) -> Trouble {
    match error {
        EngineError::TooDeep(_)
        | EngineError::TooManyChildren(_)
        | EngineError::TooManyAgents(_) => Trouble::Refused(format!("{made}{error}")),
        error => error.into(),
    }
}
