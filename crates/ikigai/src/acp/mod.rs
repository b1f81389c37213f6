//! `ikigai acp`: an agent for editors, by the Agent Client Protocol (version 1) on standard input and output.
//!
//! A front end like the screen: `UserRequest`s in, `UiEvent`s out, shown as `Live` computes them.

mod calls;
mod child_calls;
mod diffs;
mod foreign_sessions;
mod methods;
mod replay;
mod row_updates;
mod server;
mod session;
mod stdio;
mod stored_sessions;
mod updates;
mod wire;

use std::process::ExitCode;

use anyhow::{Context, Result};
use ikigai_engine::{EngineError, Opening};
use ikigai_tui::terminal::{SignalEvent, Signals, begin_exit, enforce_exit_deadline, is_exiting};
use tokio::time::sleep_until;

use self::server::AcpServer;
use self::stdio::{MessageWriter, incoming};
use crate::arguments::{AcpOrder, approve_mode, exit};
use crate::context::{ProgramContext, configuration_for};

pub(crate) fn acp(db: Option<String>, order: &AcpOrder) -> Result<ExitCode> {
    enforce_exit_deadline().context("cannot start the exit thread")?;
    let program = ProgramContext::open_with(db, &configuration_for(order.no_sandbox)?)?;
    let model = order.model.as_deref();
    let model = model.map(|name| program.registry.choose(name));
    let opening = Opening {
        agent: None,
        model: model.transpose().map_err(EngineError::from)?,
        approve: approve_mode(order.approve.as_deref()),
    };
    program.block_on(Box::pin(serve(&program, opening)))?;
    Ok(ExitCode::SUCCESS)
}

/// Serves one client until it closes our input, or a signal comes.
async fn serve(program: &ProgramContext, opening: Opening) -> Result<()> {
    let mut signals = Signals::new().context("cannot handle signals")?;
    let mut messages = incoming().context("cannot read standard input")?;
    let writer = MessageWriter::start().context("cannot write standard output")?;
    let (mut server, mut news) = AcpServer::new(program.engine.clone(), writer, opening);
    let mut activity = program.engine.subscribe();
    let events = server.events.clone();
    // A signal may have come before the handlers were installed.
    while !is_exiting() {
        server.advance().await;
        let due = server.output_due();
        let at = due.unwrap_or_else(std::time::Instant::now);
        tokio::select! {
            message = messages.recv() => match message {
                Some(message) => server.handle(message).await,
                None => break,
            },
            () = events.came() => {}
            Some(news) = news.recv() => server.show_foreign(news).await,
            _ = activity.changed() => {}
            () = sleep_until(at.into()), if due.is_some() => {}
            signal = signals.next() => {
                if matches!(signal, SignalEvent::Interrupt | SignalEvent::Terminate | SignalEvent::HangUp) {
                    break;
                }
            }
        }
    }
    begin_exit(exit::INTERRUPTED);
    server.leave().await;
    server.writer.finish();
    Ok(())
}
