//! Tool of a server, as agents call it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::EffectClass;
use ikigai_core::project::ToolSpec;
use serde_json::{Map, Value};

use super::answer::output_of;
use super::server::{McpServer, OfferedTools};
use super::settings::McpLaunch;
use crate::external::parse_object;
use crate::{
    BadArguments, CallContext, Output, Paths, Place, Prepared, Run, Tool, Touches, arguments,
};

/// Time beyond start and call, so that their own limits are reported.
const MARGIN: Duration = Duration::from_secs(10);

/// Tool of a server.
pub(crate) struct McpTool {
    server: Arc<McpServer>,
    offered: Arc<OfferedTools>,
    index: usize,
}

impl McpTool {
    /// Returns all tools of a list.
    pub(crate) fn all(server: &Arc<McpServer>, offered: &Arc<OfferedTools>) -> Vec<Arc<dyn Tool>> {
        let tools = (0..offered.tools.len()).map(|index| {
            Arc::new(Self {
                server: server.clone(),
                offered: offered.clone(),
                index,
            }) as Arc<dyn Tool>
        });
        tools.collect()
    }

    /// Returns the effects of a call, for permission and order.
    ///
    /// Hints of a server about its tools decide about the order of calls, but never
    /// about permission.
    fn effects(&self) -> (EffectClass, Touches) {
        let is_reading = self.offered.tools[self.index].is_reading;
        match &self.server.settings.launch {
            McpLaunch::Http(_) => (EffectClass::Network, Touches::default()),
            McpLaunch::Process(_) if is_reading => (
                EffectClass::Execute,
                Touches {
                    reads: Paths::All,
                    writes: Paths::None,
                },
            ),
            McpLaunch::Process(_) => (EffectClass::Execute, Touches::everything()),
        }
    }
}

impl Tool for McpTool {
    fn spec(&self) -> ToolSpec {
        self.offered.tools[self.index].spec.clone()
    }

    fn prepare(&self, text: &str, _place: &Place) -> Result<Prepared, BadArguments> {
        let tool = &self.offered.tools[self.index];
        let text = &*without_nulls(text, &tool.spec.parameters);
        let given = parse_object(text, &tool.spec.parameters)?;
        let (class, touches) = self.effects();
        let (server, name) = (self.server.clone(), tool.name.clone());
        let settings = &self.server.settings;
        Ok(Prepared {
            class,
            touches,
            shown: arguments::display_text(text),
            subject: Value::Object(given.clone()).to_string(),
            // A rule for a tool covers all its calls: arguments say little about its effects.
            pattern: "*".to_owned(),
            preview: None,
            deadline: settings.startup_timeout + settings.tool_timeout + MARGIN,
            needs: Vec::new(),
            unconfined: None,
            run: Run::Async(Box::new(move |context| {
                Box::pin(carry_out(server, name, given, context))
            })),
        })
    }
}

/// Leaves out optional arguments that are null: models write that for "not given".
fn without_nulls<'a>(text: &'a str, schema: &Value) -> Cow<'a, str> {
    let Ok(Value::Object(mut given)) = serde_json::from_str(text) else {
        return Cow::Borrowed(text);
    };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.into_iter().flatten().any(|word| word == name);
    let takes_null = |name: &str| {
        let kind = schema.pointer(&format!("/properties/{name}/type"));
        match kind {
            Some(Value::String(kind)) => kind == "null",
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "null"),
            // Without a type it may be anything.
            _ => true,
        }
    };
    let before = given.len();
    given.retain(|name, value| !value.is_null() || is_required(name) || takes_null(name));
    if given.len() == before {
        return Cow::Borrowed(text);
    }
    Cow::Owned(Value::Object(given).to_string())
}

async fn carry_out(
    server: Arc<McpServer>,
    tool: String,
    given: Map<String, Value>,
    context: CallContext,
) -> Output {
    let answer = tokio::select! {
        biased;
        () = context.stop.cancelled() => return Output::stopped(),
        answer = server.call(&tool, given) => answer,
    };
    match answer {
        Ok(answer) => {
            let converted = tokio::task::spawn_blocking(move || output_of(answer)).await;
            converted.unwrap_or_else(|_| Output::failed("the answer cannot be read"))
        }
        Err(reason) => Output::failed(reason),
    }
}

#[cfg(test)]
mod tests;
