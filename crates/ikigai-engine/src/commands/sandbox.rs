//! Command on the sandbox of tools: `/sandbox`.

use std::fmt::Write as _;
use std::path::PathBuf;

use ikigai_core::data::{RefusalKind, SandboxRefusal};
use ikigai_core::spelling::spell_out;
use ikigai_tools::{Confinement, LoopbackServer, Place};

use super::{Command, Group, Reply, Shows, SlashCommand, Trouble};
use crate::recall::newest_result;
use crate::tools::Freedom;
use crate::turn::CommandContext;

/// Tool that runs commands.
const COMMAND_TOOL: &str = "bash";

pub(super) const SANDBOX: SlashCommand = SlashCommand {
    command: Command {
        help: "show what commands may write and reach, and how to allow more",
        shows: Shows::Overlay,
        ..Command::new("sandbox", Group::Tools)
    },
    handler: |ctx, _| Box::pin(sandbox(ctx)),
};

async fn sandbox(ctx: &mut CommandContext<'_>) -> Result<Reply, Trouble> {
    let workdir = ctx.settings().workdir.clone().unwrap_or_default();
    let place = Place {
        workdir: PathBuf::from(workdir),
        hidden: ctx.engine().safety().hidden.clone(),
    };
    let confinement = ctx.engine().confinement(&place, Freedom::Working);
    let is_complete = ctx.engine().confines().await;
    let mut text = describe(&confinement, is_complete);
    if let Some(refused) = last_refusals(ctx).await? {
        text.push('\n');
        text.push_str(&refused);
    }
    Ok(Reply::says(text))
}

/// Describes what the sandbox refused to the newest command, with a way to allow it.
async fn last_refusals(ctx: &CommandContext<'_>) -> Result<Option<String>, Trouble> {
    let newest = newest_result(ctx.engine(), ctx.agent(), |at, result| {
        (result.name.as_deref() == Some(COMMAND_TOOL)).then(|| (at, result.refused.clone()))
    });
    let Some((at, refused)) = newest.await? else {
        return Ok(None);
    };
    let lines = refused.iter().flatten().filter_map(describe_refusal);
    let lines: Vec<_> = lines.collect();
    Ok((!lines.is_empty()).then(|| {
        let lines = lines.join("\n          ");
        format!(
            "refused   {lines}\n          to the last command, #{}",
            at.seq
        )
    }))
}

fn describe_refusal(refusal: &SandboxRefusal) -> Option<String> {
    let name = refusal.name.as_deref()?;
    Some(match refusal.kind? {
        RefusalKind::Connection => format!("connection to {name}"),
        RefusalKind::Host => format!("host {name}: not in `[sandbox] network`"),
        RefusalKind::Output => format!("probably: {}", spell_out(name)),
    })
}

/// Describes a confinement; `is_complete` is false if parts of the sandbox do not work here.
fn describe(confinement: &Confinement, is_complete: bool) -> String {
    let Confinement::Sandbox {
        write,
        network,
        hosts,
        loopback,
        hidden,
        ..
    } = confinement
    else {
        return "Sandbox: off. Commands have all your rights.\n\
                Remove --no-sandbox, or set `[sandbox] enabled = true`."
            .to_owned();
    };
    let state = if is_complete {
        "on"
    } else {
        "not complete on this machine (`ikigai doctor` says why)"
    };
    let paths: Vec<_> = write
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let reached: Vec<_> = hosts.iter().map(ToString::to_string).collect();
    let mut network = match (network, reached.as_slice()) {
        (true, _) => "allowed".to_owned(),
        (false, []) => "none; own servers on 127.0.0.1, ::1 and Unix sockets".to_owned(),
        (false, hosts) => format!(
            "{} through a proxy; own servers on 127.0.0.1, ::1 and Unix sockets",
            hosts.join(", ")
        ),
    };
    let ports = loopback.iter().filter_map(|server| match server {
        LoopbackServer::Port(port) => Some(port.to_string()),
        LoopbackServer::Run(_) => None,
    });
    let ports: Vec<_> = ports.collect();
    if !ports.is_empty() {
        let _ = write!(network, "; ports {} on loopback", ports.join(", "));
    }
    format!(
        "Sandbox: {state}\n\
         writable  {}\n\
         network   {network}\n\
         hidden    {} paths: API keys, credentials, ikigai's own files\n\
         To allow more: `[sandbox] writable`, `loopback_ports` or `network` in the configuration.\n\
         A command that must leave the sandbox asks you (`bash unconfined`).",
        paths.join("\n          "),
        hidden.len(),
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_description_names_paths_network_and_the_way_out() {
        let confinement = |network, ports: &[u16]| Confinement::Sandbox {
            write: vec![PathBuf::from("/work"), PathBuf::from("/tmp")],
            network,
            hosts: Arc::default(),
            loopback: ports.iter().copied().map(LoopbackServer::Port).collect(),
            hidden: [PathBuf::from("/key")].into(),
            guarded: Vec::new(),
        };

        let usual = describe(&confinement(false, &[5432, 6379]), true);
        let open = describe(&confinement(true, &[]), false);
        let off = describe(&Confinement::None, false);

        assert!(
            usual.starts_with("Sandbox: on\nwritable  /work\n          /tmp\n"),
            "{usual}"
        );
        assert!(usual.contains("ports 5432, 6379 on loopback"), "{usual}");
        assert!(usual.contains("hidden    1 paths"), "{usual}");
        assert!(open.contains("not complete on this machine"), "{open}");
        assert!(open.contains("network   allowed"), "{open}");
        assert!(off.starts_with("Sandbox: off."), "{off}");
    }
}
