//! `ikigai ctl`: asks something of a running ikigai.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use ikigai_tui::protocol::{Answer, Request, Said, Word};

use crate::arguments::{CtlOrder, CtlVerb, exit};
use crate::control::{Client, check, directory, instances, socket_of};
use crate::output::{print, print_json, tell, visible};
use crate::world::runtime;

pub(crate) fn ctl(order: &CtlOrder) -> Result<ExitCode> {
    let socket = match socket(order)? {
        Ok(socket) => socket,
        Err(reason) => {
            tell(&format!("error: {reason}"));
            return Ok(exit::AGENT.into());
        }
    };
    let request = request(&order.verb);
    runtime()?.block_on(async {
        let mut client = Client::ask(&socket, &request).await?;
        if matches!(request, Request::Events { .. }) {
            while let Some(line) = client.line().await? {
                print_json(&line)?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        let line = client.line().await?.context("there was no answer")?;
        let answer = serde_json::from_str(&line).context("the answer is not understood")?;
        show(&order.verb, &line, answer)
    })
}

/// Where to ask, or why that is not known.
fn socket(order: &CtlOrder) -> Result<Result<PathBuf, String>> {
    if let Some(socket) = &order.socket {
        return Ok(Ok(socket.clone()));
    }
    let directory = directory()?;
    // Another user's program must not be taken for ours.
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
            "no ikigai listens in `{}`\nhint: ikigai --headless &",
            directory.display()
        )),
        (Some((last, _)), false) => {
            let pids = running.iter().map(|(pid, _)| *pid).chain([last]);
            let pids: Vec<_> = pids.map(|pid| pid.to_string()).collect();
            Err(format!(
                "several ikigai run\nhint: choose with --pid: {}",
                pids.join(", ")
            ))
        }
    })
}

fn request(verb: &CtlVerb) -> Request {
    match verb.clone() {
        CtlVerb::ReadFramebuffer { .. } => Request::ReadFramebuffer,
        CtlVerb::SendKeys { keys } => Request::SendKeys { keys },
        CtlVerb::WaitIdle { timeout_ms } => Request::WaitIdle { timeout_ms },
        CtlVerb::ReadTokenCache => Request::ReadTokenCache,
        CtlVerb::Submit { text, agent } => Request::Submit { text, agent },
        CtlVerb::Agents => Request::Agents,
        CtlVerb::Events {
            agent,
            after,
            follow,
        } => Request::Events {
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
        } => Request::Approve {
            answer: match answer.as_str() {
                "always" => Word::Always,
                "no" => Word::No,
                _ => Word::Once,
            },
            agent,
            call,
            pattern,
            reason,
        },
        CtlVerb::Interrupt { agent } => Request::Interrupt { agent },
        CtlVerb::Release { agent } => Request::Release { agent },
        CtlVerb::Version => Request::Version,
    }
}

fn show(verb: &CtlVerb, line: &str, answer: Answer) -> Result<ExitCode> {
    match (verb, answer) {
        (_, Answer::Error { error }) => {
            tell(&format!("error: {}", visible(&error)));
            Ok(exit::FAILED.into())
        }
        (CtlVerb::ReadFramebuffer { text: true }, Answer::Said(Said::Framebuffer(seen))) => {
            print(&seen.text())?;
            Ok(ExitCode::SUCCESS)
        }
        (_, answer) => {
            print_json(&line)?;
            let is_over = answer == Answer::Said(Said::Timeout);
            Ok(if is_over {
                exit::FAILED.into()
            } else {
                ExitCode::SUCCESS
            })
        }
    }
}
