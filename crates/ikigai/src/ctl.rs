//! `ikigai ctl`: requests to a running ikigai.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use ikigai_tui::protocol::{ApprovalWord, ControlAnswer, ControlOutput, ControlRequest};

use crate::arguments::{CtlOrder, CtlVerb, exit};
use crate::control::{ControlClient, check, directory, instances, socket_of};
use crate::output::{print, print_json, print_stderr, visible};
use crate::runtime::runtime;

pub(crate) fn ctl(order: &CtlOrder) -> Result<ExitCode> {
    let socket = match socket(order)? {
        Ok(socket) => socket,
        Err(reason) => {
            print_stderr(&format!("error: {reason}"));
            return Ok(exit::AGENT.into());
        }
    };
    let request = request(&order.verb);
    runtime()?.block_on(async {
        let mut client = ControlClient::ask(&socket, &request).await?;
        if matches!(request, ControlRequest::Events { .. }) {
            while let Some(line) = client.line().await? {
                print_json(&line)?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        let line = client.line().await?.context("no answer")?;
        let answer = serde_json::from_str(&line).context("invalid answer")?;
        show(&order.verb, &line, answer)
    })
}

/// Returns the socket to ask, or the reason why it is unknown.
fn socket(order: &CtlOrder) -> Result<Result<PathBuf, String>> {
    if let Some(socket) = &order.socket {
        return Ok(Ok(socket.clone()));
    }
    let directory = directory()?;
    // A program of another user must not be taken for ours.
    if directory.exists() {
        check(&directory)?;
    }
    if let Some(pid) = order.pid {
        return Ok(Ok(socket_of(&directory, pid)));
    }
    let mut running = instances(&directory);
    Ok(match (running.pop(), running.is_empty()) {
        (Some((_, socket)), true) => Ok(socket),
        (None, _) => Err(format!(
            "no running ikigai found in `{}`\nhint: start one with `ikigai --headless &`",
            directory.display()
        )),
        (Some((last, _)), false) => {
            let pids = running.iter().map(|(pid, _)| *pid).chain([last]);
            let pids: Vec<_> = pids.map(|pid| pid.to_string()).collect();
            Err(format!(
                "several ikigai processes are running\nhint: choose one with --pid: {}",
                pids.join(", ")
            ))
        }
    })
}

fn request(verb: &CtlVerb) -> ControlRequest {
    match verb.clone() {
        CtlVerb::ReadFramebuffer { .. } => ControlRequest::ReadFramebuffer,
        CtlVerb::SendKeys { keys } => ControlRequest::SendKeys { keys },
        CtlVerb::WaitIdle { timeout_ms } => ControlRequest::WaitIdle { timeout_ms },
        CtlVerb::ReadTokenCache => ControlRequest::ReadTokenCache,
        CtlVerb::Submit { text, agent } => ControlRequest::Submit { text, agent },
        CtlVerb::Agents => ControlRequest::Agents,
        CtlVerb::Events {
            agent,
            after,
            follow,
        } => ControlRequest::Events {
            agent,
            after,
            follow,
        },
        CtlVerb::Approve {
            answer,
            agent,
            call,
            pattern,
            reason,
        } => ControlRequest::Approve {
            answer: match answer.as_str() {
                "always" => ApprovalWord::Always,
                "no" => ApprovalWord::No,
                _ => ApprovalWord::Once,
            },
            agent,
            call,
            pattern,
            reason,
        },
        CtlVerb::Interrupt { agent } => ControlRequest::Interrupt { agent },
        CtlVerb::Release { agent } => ControlRequest::Release { agent },
        CtlVerb::Version => ControlRequest::Version,
    }
}

fn show(verb: &CtlVerb, line: &str, answer: ControlAnswer) -> Result<ExitCode> {
    match (verb, answer) {
        (_, ControlAnswer::Error { error }) => {
            print_stderr(&format!("error: {}", visible(&error)));
            Ok(exit::FAILED.into())
        }
        (
            CtlVerb::ReadFramebuffer { text: true },
            ControlAnswer::Said(ControlOutput::Framebuffer(seen)),
        ) => {
            print(&seen.text())?;
            Ok(ExitCode::SUCCESS)
        }
        (_, answer) => {
            print_json(&line)?;
            let is_over = answer == ControlAnswer::Said(ControlOutput::Timeout);
            Ok(if is_over {
                exit::FAILED.into()
            } else {
                ExitCode::SUCCESS
            })
        }
    }
}
