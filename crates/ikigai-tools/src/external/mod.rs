//! External tools: executables that print a schema and answer in JSON.
//!
//! `<name>-tool --schema` prints `{"name", "description", "parameters"}`. A call starts it without
//! arguments, writes the model's arguments as a JSON object to its input, and reads JSON as its
//! answer. `docs/tools.md` is for authors of tools.

mod answer;
mod cache;
mod discovery;
mod fit;

use std::path::PathBuf;
use std::time::Duration;

use ikigai_core::EffectClass;
use ikigai_core::project::ToolSpec;
use serde_json::{Map, Value};

use crate::output::MOST_KEPT_BYTES;
use crate::process::{self, ChildEnvironment, Errors, Job, OutputListeners};
use crate::{BadArguments, CallContext, Output, Place, Prepared, Run, Tool, Touches, arguments};
pub(crate) use cache::Cache;
pub(crate) use discovery::{DiscoveredTools, PROJECT_TOOLS, ToolSearch, look, tool_files};

/// Longest time for a call.
const DEADLINE: Duration = Duration::from_mins(2);

/// Tool that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Broken {
    /// Path of the executable.
    pub path: PathBuf,
    /// Reason for the user.
    pub reason: String,
}

/// Executable that can be called.
#[derive(Clone, Debug)]
pub(crate) struct External {
    path: PathBuf,
    spec: ToolSpec,
    environment: ChildEnvironment,
}

impl External {
    pub(crate) fn new(path: PathBuf, spec: ToolSpec, environment: ChildEnvironment) -> Self {
        Self {
            path,
            spec,
            environment,
        }
    }
}

impl Tool for External {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn prepare(&self, text: &str, place: &Place) -> Result<Prepared, BadArguments> {
        let given = parse_object(text, &self.spec.parameters)?;
        let input = Value::Object(given).to_string();
        let (path, environment) = (self.path.clone(), self.environment.clone());
        let workdir = place.workdir.clone();
        Ok(Prepared {
            class: EffectClass::Execute,
            touches: Touches::everything(),
            shown: arguments::display_text(text),
            subject: input.clone(),
            // A rule for a tool covers all its calls: arguments say little about its effects.
            pattern: "*".to_owned(),
            preview: None,
            deadline: DEADLINE,
            needs: Vec::new(),
            unconfined: None,
            run: Run::Async(Box::new(move |context| {
                Box::pin(carry_out(path, input, workdir, environment, context))
            })),
        })
    }
}

/// Parses the arguments and checks them against the tool's schema.
pub(crate) fn parse_object(text: &str, schema: &Value) -> Result<Map<String, Value>, BadArguments> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    arguments::check_complete(text)?;
    let complaint = match serde_json::from_str(text) {
        Ok(value) => match fit::check(&value, schema) {
            Ok(()) => match value {
                Value::Object(object) => return Ok(object),
                _ => "they are not an object".to_owned(),
            },
            Err(complaint) => complaint,
        },
        Err(error) => error.to_string(),
    };
    Err(BadArguments(format!(
        "the arguments do not fit: {complaint}. They must be a JSON object that fits this schema: {schema}"
    )))
}

async fn carry_out(
    path: PathBuf,
    input: String,
    workdir: PathBuf,
    environment: ChildEnvironment,
    context: CallContext,
) -> Output {
    let mut variables = environment.variables();
    context.set_temporary(&mut variables);
    let job = Job {
        program: path.into(),
        arguments: Vec::new(),
        workdir,
        variables,
        input: Some(input.into_bytes()),
        errors: Errors::Apart,
        most_bytes: MOST_KEPT_BYTES,
        deadline: DEADLINE,
        cookie: context.cookie,
        confinement: context.confinement,
        recording: None,
    };
    let listeners = OutputListeners {
        line: context.progress,
        output: context.output,
    };
    match process::run_with(job, &context.stop, listeners).await {
        Ok(ended) => answer::read(ended, DEADLINE),
        Err(error) => Output::failed(error.to_string()),
    }
}
