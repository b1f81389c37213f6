//! Agents with real tools that use a model server over HTTP, in any dialect.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ikigai_core::data::{self, ToolResultData};
use ikigai_core::settings::Rule;
use ikigai_core::{AgentId, Kind, Row};
use ikigai_engine::{Safety, Tools, Worker};
use ikigai_providers::catalogue::ModelSpec;
use ikigai_providers::registry::{ProviderConfig, Registry};
use ikigai_providers::transport::{Client, Deadlines};
use ikigai_testkit::mock::{Mock, MockAnswer, MockRequest};
use ikigai_testkit::wire::WireDialect;
use ikigai_testkit::wire::prompt::{Prompt, prompt_parts};
use ikigai_tools::builtin;
use ikigai_tools::process::ChildEnvironment;
use tempfile::TempDir;

use super::summariser::{is_summary_prompt, write_summary};
use crate::support::World;

pub(crate) const DIALECTS: [(WireDialect, &str); 4] = [
    (WireDialect::Chat, "chat"),
    (WireDialect::Responses, "responses"),
    (WireDialect::Messages, "messages"),
    (WireDialect::Gemini, "gemini"),
];

/// Longest answer of the mock's model, in tokens.
pub(crate) const MAX_OUTPUT: u64 = 4_096;

/// One request as it came over the wire.
#[derive(Clone, Debug)]
pub(crate) struct SentRequest {
    pub(crate) prompt: Prompt,
    /// Tokens as the server counts them.
    pub(crate) tokens: u64,
    pub(crate) is_summary: bool,
}

/// Requests of a world, oldest first.
#[derive(Clone, Default)]
pub(crate) struct Sent(Arc<Mutex<Vec<SentRequest>>>);

impl Sent {
    pub(crate) fn all(&self) -> MutexGuard<'_, Vec<SentRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, asked: &MockRequest) -> SentRequest {
        let prompt = Prompt::read(asked.spoken, &asked.body);
        let sent = SentRequest {
            tokens: tokens_of(asked),
            is_summary: is_summary_prompt(&prompt),
            prompt,
        };
        self.all().push(sent.clone());
        sent
    }
}

/// Counts tokens like the server: a quarter of the prompt's bytes.
pub(crate) fn tokens_of(asked: &MockRequest) -> u64 {
    let parts = prompt_parts(asked.spoken, &asked.body);
    parts.iter().map(String::len).sum::<usize>() as u64 / 4
}

/// Engine whose agents use a mock server, and the directory of their commands.
pub(crate) struct Wire {
    pub(crate) world: World,
    pub(crate) mock: Mock,
    directory: TempDir,
}

impl Wire {
    /// Starts a server in one dialect with a window; the script is the model.
    pub(crate) fn new(
        dialect: &str,
        window: u64,
        script: impl FnMut(&MockRequest) -> MockAnswer + Send + 'static,
    ) -> Self {
        let mock = Mock::play(script);
        let models = Arc::new(registry(dialect, &mock.url(), window));
        let tools: Arc<dyn Tools> = Arc::new(builtin::all(ChildEnvironment::default()));
        let world = World::with_models(models).equipped(move |engine| {
            let everything = Rule {
                tool: Some("bash".to_owned()),
                pattern: Some("*".to_owned()),
            };
            let safety = Safety {
                allow: vec![everything],
                ..Safety::default()
            };
            let engine = engine.with_tools(tools.clone(), safety);
            engine.with_context_limits(ikigai_core::project::ContextLimits::default())
        });
        Self {
            world,
            mock,
            directory: tempfile::tempdir().unwrap(),
        }
    }

    /// Starts a server whose script answers requests in order. It writes summaries from the prompt
    /// alone and refuses requests over the window.
    pub(crate) fn scripted(
        dialect: &str,
        window: u64,
        mut answer: impl FnMut(&Prompt) -> MockAnswer + Send + 'static,
    ) -> (Self, Sent) {
        let sent = Sent::default();
        let record = sent.clone();
        let wire = Self::new(dialect, window, move |asked| {
            let request = record.add(asked);
            if request.tokens + MAX_OUTPUT > window {
                return overflow(request.tokens + MAX_OUTPUT, window);
            }
            if request.is_summary {
                say(&write_summary(&request.prompt))
            } else {
                answer(&request.prompt)
            }
        });
        (wire, sent)
    }

    pub(crate) async fn root(&self) -> Worker {
        let directory = self.directory.path().to_str().unwrap();
        let root = self.world.engine.create_root(directory, directory).await;
        root.unwrap()
    }

    /// Returns the outputs of an agent's tool results as stored, oldest first.
    pub(crate) async fn outputs(&self, agent: AgentId) -> Vec<String> {
        let rows = self.world.rows(agent).await;
        let results = rows.iter().filter(|row| is_kind(row, Kind::ToolResult));
        let results = results.map(|row| data::read::<ToolResultData>(row.data.as_deref()));
        results.filter_map(|result| result.output).collect()
    }
}

pub(crate) fn is_kind(row: &Row, kind: Kind) -> bool {
    row.kind.read_as() == Some(kind)
}

fn registry(dialect: &str, url: &str, window: u64) -> Registry {
    let provider = ProviderConfig {
        base_url: Some(url.to_owned()),
        dialect: Some(dialect.to_owned()),
        ..ProviderConfig::default()
    };
    let model = ModelSpec {
        dialect: dialect.to_owned(),
        context_window: Some(window),
        max_output: Some(MAX_OUTPUT),
        tools: true,
        ..ModelSpec::unknown("mock".to_owned(), "scripted".to_owned())
    };
    let client = Client::new(Deadlines::DEFAULT);
    Registry::new(Arc::new(|_| None), client, Arc::new(|| 7))
        .with_configuration(BTreeMap::from([("mock".to_owned(), provider)]), vec![model])
        .with_first(Some("mock:scripted".to_owned()))
}

/// Returns an answer of text.
pub(crate) fn say(text: &str) -> MockAnswer {
    MockAnswer {
        content: Some(text.to_owned()),
        ..MockAnswer::default()
    }
}

/// Returns an answer that runs these commands.
pub(crate) fn run(text: Option<&str>, commands: &[String]) -> MockAnswer {
    let call = |command: &String| {
        let arguments = serde_json::json!({ "command": command });
        ("bash".to_owned(), arguments.to_string())
    };
    MockAnswer {
        content: text.map(str::to_owned),
        calls: commands.iter().map(call).collect(),
        ..MockAnswer::default()
    }
}

/// Returns the refusal of a request that is too long.
pub(crate) fn overflow(tokens: u64, window: u64) -> MockAnswer {
    let message = format!(
        "This model's maximum context length is {window} tokens. However, you requested {tokens} \
         tokens. Please reduce the length of the messages."
    );
    MockAnswer {
        failure: Some((400, message)),
        ..MockAnswer::default()
    }
}
