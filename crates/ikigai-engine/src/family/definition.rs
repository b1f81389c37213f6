//! Children with an agent definition: system prompt, tools and model of a file.

use ikigai_core::Settings;
use ikigai_tools::extensions::AgentDefinition;

use super::ForkRequest;
use crate::EngineReader;
use crate::ledger::Ledger;

/// Tools that every child keeps: to remember, and to ask its parent.
const KEPT_TOOLS: [&str; 3] = ["recall", "send", "wait"];

/// Applies the definition that a call of `fork` names, if any, to its request.
///
/// Returns a remark, and true if the child works in a worktree. The error is for the model.
pub(super) async fn take_definition(
    ledger: &Ledger,
    name: Option<String>,
    request: &mut ForkRequest,
) -> Result<(String, bool), String> {
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok((String::new(), false));
    };
    let (engine, settings) = (&ledger.engine, ledger.settings());
    let definition = definition(engine, settings, &name).await?;
    let remark = apply_definition(engine, settings, &definition, request).await?;
    Ok((remark, definition.worktree))
}

/// Returns the agent definition of a name in the working directory of an agent.
pub(crate) async fn definition(
    engine: &EngineReader,
    settings: &Settings,
    name: &str,
) -> Result<AgentDefinition, String> {
    let workdir = settings.workdir.as_deref().unwrap_or("/");
    let extensions = engine.extensions(workdir.as_ref()).await;
    if let Some(found) = extensions.agent(name) {
        return Ok(found.clone());
    }
    let names: Vec<_> = extensions
        .agents
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    Err(if names.is_empty() {
        format!("there is no agent definition `{name}`, and no other; leave `agent` out")
    } else {
        format!(
            "there is no agent definition `{name}`. There are: {}",
            names.join(", ")
        )
    })
}

/// Gives a new child the system prompt, tools and model of a definition.
///
/// The child never has more tools than its parent. Returns a remark, possibly empty; the error says
/// why there can be no such child.
pub(crate) async fn apply_definition(
    engine: &EngineReader,
    parent: &Settings,
    definition: &AgentDefinition,
    request: &mut ForkRequest,
) -> Result<String, String> {
    request.seat.system = Some(definition.body.clone());
    let specs = engine.toolset(parent).await.specs();
    let own: Vec<String> = specs.into_iter().map(|spec| spec.name).collect();
    let base = request.seat.tools.take().unwrap_or_else(|| own.clone());
    let is_wanted = |name: &String| {
        let is_kept = KEPT_TOOLS.contains(&name.as_str());
        let named = definition.tools.as_ref();
        let is_named = named.is_none_or(|tools| is_kept || tools.contains(name));
        is_named && !definition.refused_tools.contains(name)
    };
    let tools: Vec<String> = base.into_iter().filter(is_wanted).collect();
    if tools.is_empty() {
        return Err(format!(
            "you have none of the tools of the agent definition `{}`",
            definition.name
        ));
    }
    request.seat.tools = Some(tools).filter(|tools| *tools != own);
    let Some(model) = definition
        .model
        .as_deref()
        .filter(|_| request.model.is_none())
    else {
        return Ok(String::new());
    };
    match engine.models().choose(model) {
        Ok(choice) => {
            request.model = Some(choice);
            Ok(String::new())
        }
        // Files of other programs name models by nicknames that only these know.
        Err(_) => Ok(format!(
            "; its definition names the model `{model}`, which is not configured, so it has yours"
        )),
    }
}
