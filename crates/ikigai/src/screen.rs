//! `ikigai`: the screen.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use ikigai_core::{AgentId, Micros, RowRef};
use ikigai_engine::{EngineError, Environment as _, Opening, Status, System, is_agent_here};
use ikigai_tui::app::{Farewell, UiOptions};
use ikigai_tui::control::ControlledScreen;
use ikigai_tui::control::{RequestQueue, RunMode};
use ikigai_tui::drafts::DraftFiles;
use ikigai_tui::driver::{Driver, FirstAgent};
use ikigai_tui::keys::Bindings;
use ikigai_tui::paint::Theme;
use ikigai_tui::plain;
use ikigai_tui::screen::{Screen, ScreenExit};
use ikigai_tui::signs::Symbols;
use ikigai_tui::terminal::{Terminal, TerminalError, enforce_exit_deadline, hold_panics};

use crate::arguments::{ScreenOrder, approve_mode};
use crate::background;
use crate::config::Config;
use crate::context::{ProgramContext, configuration_for};
use crate::control::{Clients, ControlServer, StoreRequests};
use crate::last_agent::LastAgent;
use crate::log::row_named;
use crate::output::{NothingToContinue, print};
use crate::run::key_entry::hold_key_back;
use crate::store_location::{self, Here, StoreLocation};
use crate::trust::{self, TrustPrompt};

const PROGRAM: &str = concat!("ikigai ", env!("CARGO_PKG_VERSION"));

pub(crate) fn screen(db: Option<String>, order: &ScreenOrder) -> Result<ExitCode> {
    hold_key_back(order.prompt.as_deref().unwrap_or_default())?;
    trust::settle(order.trust, TrustPrompt::Ask)?;
    let config = configuration_for(order.no_sandbox)?;
    let manner = ScreenOptions::of(&config)?;
    show(db, order, &config, manner)
}

fn show(
    db: Option<String>,
    order: &ScreenOrder,
    config: &Config,
    manner: ScreenOptions,
) -> Result<ExitCode> {
    let ScreenOptions {
        theme,
        bindings,
        mut around,
    } = manner;
    let store = store_location::database(db, config.store.as_deref())?;
    enforce_exit_deadline().context("cannot start the exit thread")?;
    let program = ProgramContext::open_at(&store, config)?;
    if is_plain(order) {
        if order.at.is_some() {
            bail!("--at needs a terminal\nhint: use `ikigai log --around`");
        }
        return plain(&program, &store, order);
    }
    around.secrets = program.registry.secret_variables();
    hold_panics();
    // Opened before anything is read, so that input typed meanwhile is not lost.
    let terminal = Terminal::open(config.mouse.unwrap_or(true)).map_err(|error| match error {
        TerminalError::None(_) => anyhow!(
            "stdin is not a terminal\nhint: use `ikigai run \"PROMPT\"`, or `ikigai --plain`"
        ),
        other => other.into(),
    })?;
    let left = program.block_on(Box::pin(async {
        let (whom, row) = whom(&program, order).await?;
        let size = terminal.size();
        let mut driver = Driver::open(program.engine.clone(), whom, around, bindings, size).await?;
        if let Some(row) = row {
            driver.go_to(row).await;
        }
        let (sender, orders) = RequestQueue::new(theme, RunMode::Screen);
        // The screen works without a socket, too.
        let _requests = StoreRequests::start(sender.clone(), program.engine.clone());
        let server = ControlServer::start(sender, program.engine.clone());
        if let Err(error) = &server {
            driver.app.warn(&format!("{error:#}"));
        }
        driver.set_neighbours(Arc::new(Clients::here(program.engine.clone())?));
        if let Some(directory) = store_location::drafts(&store) {
            driver.set_drafts(DraftFiles::at(directory));
        }
        let stage = ControlledScreen::new(driver, orders);
        let screen = Screen::new(stage, terminal, theme, config.on_hangup())?;
        let screen = screen
            .with_notify(config.notify())
            .with_status_reports(config.program_status());
        let left = Box::pin(screen.run(order.prompt.clone())).await?;
        if let Ok(server) = server {
            server.end().await;
        }
        anyhow::Ok(left)
    }));
    let ScreenExit { farewell, handed } = left?;
    drop(program);
    background::hand_over(&store, order.no_sandbox, &handed)
        .context("cannot continue in the background; the agents are paused")?;
    let Farewell { answer, line } = farewell;
    if !answer.is_empty() {
        print(&format!("{answer}\n\n"))?;
    }
    print(&format!("{line}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Theme, key bindings and options of the screen, from the configuration.
pub(crate) struct ScreenOptions {
    pub(crate) theme: Theme,
    pub(crate) bindings: Bindings,
    pub(crate) around: UiOptions,
}

impl ScreenOptions {
    pub(crate) fn of(config: &Config) -> Result<Self> {
        Ok(Self {
            theme: theme(config)?,
            bindings: bindings(config)?,
            around: surroundings(config)?,
        })
    }
}

/// Returns true if lines are only appended: on request, or because of the terminal.
fn is_plain(order: &ScreenOrder) -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
    let is_piped = io::stdin().is_terminal() && !io::stdout().is_terminal();
    order.plain || is_dumb || is_piped
}

fn plain(program: &ProgramContext, store: &StoreLocation, order: &ScreenOrder) -> Result<ExitCode> {
    let talk = async {
        let (whom, _) = whom(program, order).await?;
        let (engine, prompt) = (program.engine.clone(), order.prompt.clone());
        let drafts = store_location::drafts(store).map(DraftFiles::at);
        let talk = plain::run(engine, whom, prompt, PROGRAM, drafts, io::stdout());
        anyhow::Ok(Box::pin(talk).await?)
    };
    program.block_on(talk)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the first agent to show, and a row if not the end.
pub(crate) async fn whom(
    program: &ProgramContext,
    order: &ScreenOrder,
) -> Result<(FirstAgent, Option<RowRef>)> {
    let choice = order.model.as_deref();
    let choice = choice.map(|name| program.registry.choose(name));
    let model = choice.transpose().map_err(EngineError::from)?;
    let approve = approve_mode(order.approve.as_deref());
    let whom = named_agent(program, order).await?;
    if model.is_some() || approve.is_some() {
        let agent = match whom {
            FirstAgent::Agent(agent) => Some(agent),
            FirstAgent::New { .. } => None,
        };
        program.engine.set_opening(Opening {
            agent,
            model,
            approve,
        });
    }
    let Some(typed) = &order.at else {
        return Ok((whom, None));
    };
    let own = match whom {
        FirstAgent::Agent(agent) => Some(agent),
        FirstAgent::New { .. } => None,
    };
    let row = row_named(&program.engine, own, typed).await?;
    Ok((FirstAgent::Agent(row.agent), Some(row)))
}

async fn named_agent(program: &ProgramContext, order: &ScreenOrder) -> Result<FirstAgent> {
    let Here { session, workdir } = Here::find()?;
    let last = LastAgent::of(&program.place, &session);
    if let Some(name) = &order.agent {
        let agent = program.engine.find(name).await?.id;
        if let Some(last) = &last {
            last.write(agent);
        }
        remember_use(program, last);
        return Ok(FirstAgent::Agent(agent));
    }
    let found = if order.new {
        None
    } else {
        used_last(program, last.as_ref(), &session).await?
    };
    remember_use(program, last);
    match found {
        Some(agent) => Ok(FirstAgent::Agent(agent)),
        None if order.continues => Err(NothingToContinue { directory: session }.into()),
        None => Ok(FirstAgent::New { session, workdir }),
    }
}

/// Returns the agent that the user last used here, children included.
///
/// If it does not run any more, returns the root last used.
async fn used_last(
    program: &ProgramContext,
    last: Option<&LastAgent>,
    session: &str,
) -> Result<Option<AgentId>> {
    if let Some(agent) = last.and_then(LastAgent::read)
        && let Some(record) = program.engine.reader().agent(agent).await?
        && record.status == Status::Running
        && is_agent_here(&program.engine, &record).await?
    {
        return Ok(Some(agent));
    }
    let root = program.engine.latest(session).await?;
    Ok(root.map(|root| root.id))
}

fn remember_use(program: &ProgramContext, last: Option<LastAgent>) {
    if let Some(last) = last {
        let observer = move |agent: AgentId| last.write(agent);
        program.engine.observe_use(Arc::new(observer));
    }
}

fn theme(config: &Config) -> Result<Theme> {
    if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
        return Ok(Theme::Mono);
    }
    let Some(name) = &config.theme else {
        return Ok(Theme::default());
    };
    Theme::from_name(name).with_context(|| {
        format!("unknown theme `{name}`\nhint: use terminal, dark, light, daltonized or mono")
    })
}

fn bindings(config: &Config) -> Result<Bindings> {
    let bound: Vec<_> = config.keys.clone().into_iter().collect();
    Bindings::with(&bound).context("config [keys]\nhint: docs/keys.md lists keys and actions")
}

fn surroundings(config: &Config) -> Result<UiOptions> {
    let symbols = match config.symbols.as_deref() {
        Some("unicode") => Symbols::Utf8,
        Some("ascii") => Symbols::Ascii,
        Some(other) => bail!("invalid `symbols`: `{other}`\nhint: use unicode or ascii"),
        None if speaks_utf8() => Symbols::Utf8,
        None => Symbols::Ascii,
    };
    let home = std::env::home_dir().map(|home| home.to_string_lossy().into_owned());
    Ok(UiOptions {
        symbols,
        home,
        time_of_day,
        now: || System.now(),
        program: PROGRAM,
        is_confined: true,
        secrets: Vec::new(),
        local_server: None,
    })
}

/// Returns true if the locale uses UTF-8, by the first variable that is set.
fn speaks_utf8() -> bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    let values = names.iter().filter_map(|name| std::env::var(name).ok());
    let said = values.into_iter().find(|value| !value.is_empty());
    said.is_some_and(|value| {
        let value = value.to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

fn time_of_day(at: Micros) -> String {
    let time = jiff::Timestamp::from_microsecond(at.0).unwrap_or_default();
    let local = time.to_zoned(jiff::tz::TimeZone::system());
    local.strftime("%H:%M").to_string()
}

#[cfg(test)]
mod tests;
