//! `ikigai --headless`: the whole program without a terminal, driven through its control socket.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use ikigai_engine::{AgentJob, UserRequest};
use ikigai_tui::app::TerminalAction;
use ikigai_tui::control::ControlledScreen;
use ikigai_tui::control::{RequestQueue, RunMode};
use ikigai_tui::drafts::DraftFiles;
use ikigai_tui::driver::Driver;
use ikigai_tui::terminal::{SignalEvent, Signals, enforce_exit_deadline, is_exiting};

use crate::arguments::ScreenOrder;
use crate::context::{ProgramContext, configuration_for};
use crate::control::{Clients, ControlServer, StoreRequests};
use crate::output::print_exact;
use crate::screen::ScreenOptions;
use crate::store_location;
use crate::trust::{self, TrustPrompt};

pub(crate) fn headless(db: Option<String>, order: &ScreenOrder) -> Result<ExitCode> {
    trust::settle(order.trust, TrustPrompt::Tell)?;
    let config = configuration_for(order.no_sandbox)?;
    let ScreenOptions {
        theme,
        bindings,
        mut around,
    } = ScreenOptions::of(&config)?;
    enforce_exit_deadline().context("cannot start the exit thread")?;
    let store = store_location::database(db, config.store.as_deref())?;
    let program = ProgramContext::open_at(&store, &config)?;
    around.secrets = program.registry.secret_variables();
    let mode = if order.until_idle {
        // The process must outlive the terminal. If a shell started it as a job, it leads a group
        // and this fails.
        let _ = rustix::process::setsid();
        RunMode::Background
    } else {
        RunMode::Headless
    };
    program.block_on(Box::pin(async {
        // Before anything else, so that a signal can end it at any time.
        let signals = Signals::new().context("cannot handle signals")?;
        let (whom, row) = crate::screen::whom(&program, order).await?;
        let engine = program.engine.clone();
        let size = order.size.unwrap_or_default();
        let mut driver = Driver::open(engine, whom, around, bindings, size.0).await?;
        // It has no reader.
        driver.app.set_focused(false);
        if let Some(row) = row {
            driver.go_to(row).await;
        }
        driver.set_neighbours(Arc::new(Clients::here(program.engine.clone())?));
        // A background process has no input and must not take the drafts of a screen.
        if mode == RunMode::Headless
            && let Some(directory) = store_location::drafts(&store)
        {
            driver.set_drafts(DraftFiles::at(directory));
        }
        let (sender, orders) = RequestQueue::new(theme, mode);
        let _requests = StoreRequests::start(sender.clone(), program.engine.clone());
        let server = ControlServer::start(sender, program.engine.clone())?;
        let mut stage = ControlledScreen::new(driver, orders);
        stage.driver.take_back().await;
        stage.driver.start();
        for name in &order.take_over {
            let agent = program.engine.find(name).await?;
            program.engine.take_over(&[agent.id]).await?;
        }
        if let Some(prompt) = &order.prompt {
            stage.driver.app.submit(prompt.clone());
        }
        // The starting process may have closed the pipe.
        let _ = print_exact(&format!("{}\n", server.path().display()));
        go(&mut stage, signals, mode).await;
        stage.leave().await;
        server.end().await;
        anyhow::Ok(())
    }))?;
    Ok(ExitCode::SUCCESS)
}

async fn go(stage: &mut ControlledScreen, mut signals: Signals, mode: RunMode) {
    // A signal may have come before the handlers were installed.
    if is_exiting() {
        return;
    }
    loop {
        for action in stage.execute().await {
            match action {
                TerminalAction::Quit | TerminalAction::QuitToBackground => return,
                TerminalAction::StopProcessesAndQuit => {
                    stage.driver.engine.stop_processes().await;
                    return;
                }
                TerminalAction::Edit(_) => {
                    stage.driver.app.warn("cannot open an editor: no terminal");
                }
                TerminalAction::EditSummary(agent, draft) => {
                    let reason = "cannot open an editor: no terminal".to_owned();
                    let store = AgentJob::StoreSummary(draft, Err(reason));
                    stage
                        .driver
                        .engine
                        .send_request(agent, UserRequest::Do(store));
                }
                TerminalAction::Run { command, .. } => {
                    let app = &mut stage.driver.app;
                    app.warn(&format!("cannot run `{command}`: no terminal"));
                }
                TerminalAction::Suspend => {
                    stage.driver.app.toast("cannot suspend: no terminal");
                }
                // There is no terminal to write to, and no user to notify.
                TerminalAction::SetTheme(_)
                | TerminalAction::SetMouse(_)
                | TerminalAction::Copy(_)
                | TerminalAction::Page(_)
                | TerminalAction::Notify(_)
                | TerminalAction::Redraw => {}
            }
        }
        let is_idle = stage.driver.engine.is_idle() && !stage.is_asked();
        if mode == RunMode::Background && is_idle {
            return;
        }
        tokio::select! {
            signal = signals.next() => {
                if matches!(signal, SignalEvent::Interrupt | SignalEvent::Terminate | SignalEvent::HangUp) {
                    return;
                }
            }
            () = stage.came() => stage.driver.drain().await,
        }
    }
}
