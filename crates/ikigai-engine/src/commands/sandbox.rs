//! Command on the sandbox of tools: `/sandbox`.

use std::path::PathBuf;

use ikigai_tools::{Confinement, Place};

use super::{Command, Group, Reply, Shows, SlashCommand, Trouble};
use crate::tools::Freedom;
use crate::turn::CommandContext;

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
        hidden: ctx.engine().safety.hidden.clone(),
    };
    let confinement = ctx.engine().confinement(&place, Freedom::Working);
    let is_complete = ctx.engine().confines().await;
    Ok(Reply::says(describe(&confinement, is_complete)))
}

/// Describes a confinement; `is_complete` is false if parts of the sandbox do not work here.
fn describe(confinement: &Confinement, is_complete: bool) -> String {
    let Confinement::Sandbox {
        write,
        network,
        loopback_ports,
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
    let network = match (network, loopback_ports.as_ref()) {
        (true, _) => "allowed".to_owned(),
        (false, []) => "none; own servers on 127.0.0.1 and ::1".to_owned(),
        (false, ports) => {
            let ports: Vec<_> = ports.iter().map(u16::to_string).collect();
            let ports = ports.join(", ");
            format!("none; own servers on 127.0.0.1 and ::1, and ports {ports} there")
        }
    };
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
            loopback_ports: Arc::from(ports),
            hidden: [PathBuf::from("/key")].into(),
            guarded: None,
        };

        let usual = describe(&confinement(false, &[5432, 6379]), true);
        let open = describe(&confinement(true, &[]), false);
        let off = describe(&Confinement::None, false);

        assert!(
            usual.starts_with("Sandbox: on\nwritable  /work\n          /tmp\n"),
            "{usual}"
        );
        assert!(usual.contains("ports 5432, 6379 there"), "{usual}");
        assert!(usual.contains("hidden    1 paths"), "{usual}");
        assert!(open.contains("not complete on this machine"), "{open}");
        assert!(open.contains("network   allowed"), "{open}");
        assert!(off.starts_with("Sandbox: off."), "{off}");
    }
}
