//! A model server for all dialects, with scripted responses.
//!
//! It applies the rules of the dialect to every request.

mod cache;
mod encode_answer;

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use self::cache::PromptCache;
use self::encode_answer::MockUsage;
use crate::server::{Received, Script, read_request};
use crate::tcp_server::{TcpServer, held};
use crate::wire::WireDialect;

/// Scripted response to one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MockAnswer {
    /// Text of the response.
    pub content: Option<String>,
    /// Calls: names, and arguments as JSON.
    pub calls: Vec<(String, String)>,
    /// Status and message of a failure, sent instead.
    pub failure: Option<(u16, String)>,
    /// True if the response never ends.
    pub stalls: bool,
    /// Text that a request must contain to get this response.
    pub only_to: Option<String>,
}

/// A received request.
#[derive(Clone, Debug)]
pub struct MockRequest {
    /// Method and path.
    pub line: String,
    /// Dialect of the request.
    pub spoken: WireDialect,
    /// Body of the request.
    pub body: Value,
}

/// The server. It ends on drop.
pub struct Mock {
    listening: TcpServer,
    shared: Arc<MockState>,
}

/// Script of the model: makes the response to each request.
pub type ModelScript = Box<dyn FnMut(&MockRequest) -> MockAnswer + Send>;

#[derive(Default)]
struct MockState {
    says: Mutex<VecDeque<MockAnswer>>,
    script: Mutex<Option<ModelScript>>,
    /// None if the server has no prompt cache.
    cache: Mutex<Option<PromptCache>>,
    asked: Mutex<Vec<MockRequest>>,
    faults: Mutex<Vec<String>>,
    /// Documents at other paths, by method and path.
    documents: Mutex<HashMap<String, (u16, String)>>,
    looked_up: Mutex<Vec<Received>>,
}

impl MockAnswer {
    /// Reads `{"content"}`, `{"tool_calls": [{"name", "arguments"}]}` or `{"error", "status"}`.
    ///
    /// Each can also have `stall` and `match`.
    pub fn read(value: &Value) -> Result<Self, String> {
        let text = |field: &str| value[field].as_str().map(str::to_owned);
        let mut said = Self {
            content: text("content"),
            stalls: value["stall"] == true,
            only_to: text("match"),
            ..Self::default()
        };
        if let Some(error) = value.get("error") {
            let status = value["status"].as_u64().unwrap_or(500);
            let status = u16::try_from(status).map_err(|_| format!("{status} is no status"))?;
            let message = error
                .as_str()
                .map_or_else(|| error.to_string(), str::to_owned);
            said.failure = Some((status, message));
        }
        for call in value["tool_calls"].as_array().into_iter().flatten() {
            let name = call["name"].as_str().ok_or("a call has no name")?;
            let arguments = match &call["arguments"] {
                Value::String(text) => text.clone(),
                Value::Null => "{}".to_owned(),
                value => value.to_string(),
            };
            said.calls.push((name.to_owned(), arguments));
        }
        if said.content.is_none() && said.calls.is_empty() && said.failure.is_none() {
            return Err(format!("{value} says nothing"));
        }
        Ok(said)
    }
}

impl Mock {
    /// Starts to listen.
    pub fn start() -> Self {
        Self::with(MockState::default())
    }

    /// Starts a server with a prompt cache, whose responses a script makes.
    ///
    /// Requests are not recorded: the script can do so.
    pub fn play(script: impl FnMut(&MockRequest) -> MockAnswer + Send + 'static) -> Self {
        Self::with(MockState {
            script: Mutex::new(Some(Box::new(script))),
            cache: Mutex::new(Some(PromptCache::default())),
            ..MockState::default()
        })
    }

    fn with(shared: MockState) -> Self {
        let shared = Arc::new(shared);
        let state = Arc::clone(&shared);
        let listening = TcpServer::start(move || {
            let state = Arc::clone(&state);
            move |stream| answer(stream, &state)
        });
        Self { listening, shared }
    }

    /// Returns its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.listening.address)
    }

    /// Adds responses to the next requests, after the ones that are left.
    pub fn expect(&self, says: impl IntoIterator<Item = MockAnswer>) {
        held(&self.shared.says).extend(says);
    }

    /// Serves a document for requests of this method and path, such as `GET /v1/models`.
    pub fn will_serve(&self, line: &str, status: u16, document: &str) {
        let answer = (status, document.to_owned());
        held(&self.shared.documents).insert(line.to_owned(), answer);
    }

    /// Returns the requests so far that were not for a response of the model.
    pub fn looked_up(&self) -> Vec<Received> {
        held(&self.shared.looked_up).clone()
    }

    /// Returns the requests so far.
    pub fn asked(&self) -> Vec<MockRequest> {
        held(&self.shared.asked).clone()
    }

    /// Returns the rule violations of requests.
    pub fn faults(&self) -> Vec<String> {
        held(&self.shared.faults).clone()
    }

    /// Returns the number of unused responses.
    pub fn left(&self) -> usize {
        held(&self.shared.says).len()
    }
}

impl MockState {
    fn next_said(&self, asked: MockRequest, text: &str) -> Option<MockAnswer> {
        if let Some(script) = held(&self.script).as_mut() {
            return Some(script(&asked));
        }
        let mut says = held(&self.says);
        let fits = |said: &MockAnswer| said.only_to.as_ref().is_none_or(|only| text.contains(only));
        let at = says.iter().position(fits);
        let said = at.and_then(|at| says.remove(at));
        // In the order of the responses.
        held(&self.asked).push(asked);
        said
    }
}

fn answer(mut stream: TcpStream, shared: &MockState) -> io::Result<()> {
    let Some(request) = read_request(&mut stream)? else {
        return Ok(());
    };
    let Some(spoken) = dialect_of(&request) else {
        let documents = held(&shared.documents);
        let found = documents.get(&request.line).cloned();
        drop(documents);
        held(&shared.looked_up).push(request);
        let (status, text) = found.unwrap_or((404, "there is nothing here".to_owned()));
        return stream.write_all(&Script::answer(status, &[], &text).bytes());
    };
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    if let Err(fault) = spoken.check(&body) {
        held(&shared.faults).push(format!("{}: {fault}", request.line));
    }
    let text = body.to_string();
    let asked = MockRequest {
        line: request.line.clone(),
        spoken,
        body,
    };
    let cached = held(&shared.cache)
        .as_mut()
        .map(|cache| cache.look_up(spoken, &asked.body));
    let said = shared.next_said(asked, &text);
    let Some(said) = said else {
        let failed = failure(spoken, "nothing is expected here");
        let stays = [("x-should-retry", "false")];
        return stream.write_all(&Script::answer(500, &stays, &failed).bytes());
    };
    if let Some((status, message)) = &said.failure {
        let soon = [
            ("retry-after-ms", "1"),
            ("content-type", "application/json"),
        ];
        let failed = failure(spoken, message);
        return stream.write_all(&Script::answer(*status, &soon, &failed).bytes());
    }
    stream.write_all(&Script::stream().bytes())?;
    let usage = MockUsage {
        input: text.len() / 4,
        cached,
    };
    for part in encode_answer::parts(spoken, &said, usage) {
        stream.write_all(part.as_bytes())?;
    }
    if said.stalls {
        stream.read_to_end(&mut Vec::new())?;
    }
    Ok(())
}

fn failure(spoken: WireDialect, message: &str) -> String {
    let error = json!({ "type": "scripted", "message": message });
    let failure = match spoken {
        WireDialect::Messages => json!({ "type": "error", "error": error }),
        _ => json!({ "error": error }),
    };
    failure.to_string()
}

/// Returns the dialect of a request, by its path.
fn dialect_of(request: &Received) -> Option<WireDialect> {
    let path = request.line.strip_prefix("POST ")?;
    let path = path.split('?').next().unwrap_or_default();
    let known = [
        ("/chat/completions", WireDialect::Chat),
        ("/responses", WireDialect::Responses),
        ("/messages", WireDialect::Messages),
        (":streamGenerateContent", WireDialect::Gemini),
    ];
    let found = known.into_iter().find(|(end, _)| path.ends_with(end));
    found.map(|(_, dialect)| dialect)
}
