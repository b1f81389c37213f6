//! A directory to work in, and calls in it.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use ikigai_tools::process::ChildEnvironment;
use ikigai_tools::tool_names::current_name;
use ikigai_tools::{
    BadArguments, CallContext, CallInputs, Confinement, Output, Place, Prepared, Run, Tool, builtin,
};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Working directory, with a directory for hidden files next to it.
pub(crate) struct Desk {
    _directory: TempDir,
    pub(crate) place: Place,
    pub(crate) inputs: CallInputs,
    pub(crate) stop: CancellationToken,
}

impl Desk {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        fs::create_dir(base.join("work")).unwrap();
        fs::create_dir(base.join("secret")).unwrap();
        fs::write(base.join("secret/key"), "sk-1234\n").unwrap();
        let place = Place {
            workdir: base.join("work"),
            hidden: Arc::from([base.join("secret")]),
        };
        Self {
            _directory: directory,
            place,
            inputs: CallInputs::default(),
            stop: CancellationToken::new(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.workdir.join(name)
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Makes the present content of a file known, as if the agent had read it.
    pub(crate) fn know(&mut self, name: &str) {
        let content = fs::read(self.path(name)).unwrap();
        let hash = Sha256::digest(content);
        let digits: Vec<String> = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        self.inputs.file = Some(digits.concat());
    }

    pub(crate) fn get(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn prepare(&self, tool: &str, arguments: &Value) -> Result<Prepared, BadArguments> {
        tool_named(tool).prepare(&arguments.to_string(), &self.place)
    }

    /// Runs a call, which may be refused at once.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Output {
        match self.prepare(tool, arguments) {
            Ok(prepared) => self.run(prepared),
            Err(BadArguments(reason)) => Output::failed(reason),
        }
    }

    pub(crate) fn run(&self, prepared: Prepared) -> Output {
        let Run::Blocking(run) = prepared.run else {
            panic!("tools for files block");
        };
        run(&CallContext {
            place: self.place.clone(),
            stop: self.stop.clone(),
            inputs: self.inputs.clone(),
            progress: Arc::new(|_| {}),
            output: Arc::new(|_| {}),
            cookie: String::new(),
            confinement: Confinement::None,
            temporary: None,
        })
    }

    /// Returns the text of a call that succeeds.
    pub(crate) fn done(&self, tool: &str, arguments: &Value) -> String {
        let output = self.call(tool, arguments);
        let text = text(&output);
        assert!(output.success, "{text}");
        text
    }

    /// Returns the text of a call that fails.
    pub(crate) fn failed(&self, tool: &str, arguments: &Value) -> String {
        let output = self.call(tool, arguments);
        let text = text(&output);
        assert!(!output.success, "{text}");
        text
    }
}

pub(crate) fn tool_named(name: &str) -> Arc<dyn Tool> {
    let name = current_name(name);
    let mut tools = builtin::all(ChildEnvironment::default()).into_iter();
    tools.find(|tool| tool.spec().name == name).unwrap()
}

pub(crate) fn text(output: &Output) -> String {
    String::from_utf8(output.body.clone()).unwrap()
}
