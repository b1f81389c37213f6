//! Short turns in which a process is killed; together they cover every step.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::EffectClass;
use ikigai_core::data::{AnsweredBy, Cause};
use ikigai_core::project::{ToolFacts, ToolSpec};
use ikigai_core::settings::Approve;
use ikigai_engine::CrashPoint;
use ikigai_engine::{Answer, Limits, Stop, UiEvent, UserInput, UserRequest};
use ikigai_providers::AnswerBlock;
use ikigai_testkit::{ScriptedProvider, Step};
use ikigai_tools::builtin;
use ikigai_tools::process::ChildEnvironment;
use ikigai_tools::{BadArguments, Output, Place, Prepared, Run, Tool, Touches};
use serde_json::{Value, json};

/// File to which each effect appends a line, so that effects can be counted.
pub(crate) const EFFECTS: &str = "effects";

/// File for the read call.
pub(crate) const NOTES: &str = "notes.txt";

/// Text of the model in the draft of [`Scenario::Text`].
pub(crate) const SAID: &str = "Once upon a time ";

/// Name of the other, idle agent.
pub(crate) const OTHER: &str = "other";

/// Name of the forked child.
const CHILD: &str = "child";

/// Prompt of the child.
pub(crate) const BEGIN: &str = "begin";

/// Summary that the model writes.
pub(crate) const SUMMARY: &str = "Goal: do it. State: the first calls were made.";

/// Message to a busy agent.
pub(crate) const ALSO: &str = "also this";

/// Turn in which a process is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// The model answers with text, long enough for a stored draft.
    Text,
    /// The model calls one tool, with an effect.
    Call,
    /// The model calls several tools, some in parallel; the first only reads.
    Parallel,
    /// The call prints more than a row holds.
    Blob,
    /// The call needs approval.
    Question,
    /// The call has invalid arguments.
    Refused,
    /// The user sends a message while the model answers.
    Queue,
    /// The user interrupts a running call.
    Stop,
    /// The turn's limit allows no request after the call.
    Limit,
    /// The earlier conversation exceeds the window.
    Cut,
    /// The calls print so much that older outputs are elided.
    Elide,
    /// The calls are so long that they are summarised inside the turn.
    InnerSummary,
    /// The calls are as long, and are cut for lack of summaries.
    InnerCut,
    /// The model forks a child.
    Fork,
    /// The model kills another agent.
    Kill,
    /// The model sends mail to another agent.
    Send,
    /// The model forks a child and waits for it.
    Wait,
    /// The earlier conversation is summarised in parallel with the turn.
    Summary,
    /// The call kills ikigai and keeps running, with a second process outside its session.
    Murder,
}

impl Scenario {
    pub(crate) const ALL: [Self; 19] = [
        Self::Text,
        Self::Call,
        Self::Parallel,
        Self::Blob,
        Self::Question,
        Self::Refused,
        Self::Queue,
        Self::Stop,
        Self::Limit,
        Self::Cut,
        Self::Elide,
        Self::InnerSummary,
        Self::InnerCut,
        Self::Fork,
        Self::Kill,
        Self::Send,
        Self::Wait,
        Self::Summary,
        Self::Murder,
    ];

    /// Returns the scenario's name, which is passed to another process.
    pub(crate) fn name(self) -> String {
        format!("{self:?}")
    }

    /// Returns the scenario of this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Returns the model of the scenario.
    pub(crate) fn provider(self) -> ScriptedProvider {
        match self {
            Self::Cut | Self::Summary => ScriptedProvider::with_window(16_000),
            Self::Elide | Self::InnerSummary | Self::InnerCut => {
                ScriptedProvider::with_window(20_000)
            }
            _ => ScriptedProvider::default(),
        }
    }

    /// Returns the messages before the turn in which the process is killed.
    pub(crate) fn prologue(self) -> Vec<String> {
        match self {
            Self::Cut | Self::Summary => vec!["word ".repeat(3_000); 2],
            _ => Vec::new(),
        }
    }

    /// Returns the message that starts that turn.
    pub(crate) fn message(self) -> String {
        match self {
            Self::Cut => "do it ".repeat(5_200),
            _ => "do it".to_owned(),
        }
    }

    /// Scripts the model's answers of the turn.
    pub(crate) fn answers(self, provider: &ScriptedProvider) {
        let say = |text: &str| Step::Say(text.to_owned());
        match self {
            Self::Text => provider.will([
                say("Once upon "),
                say("a time "),
                Step::Wait,
                say("they lived."),
                Step::Finish,
            ]),
            Self::Queue => provider.will([say("Yes. "), Step::Wait, Step::Finish]),
            Self::Cut => {}
            Self::Summary => provider.will_summarise_as(SUMMARY),
            Self::InnerSummary | Self::InnerCut => {
                provider.will_summarise_as(SUMMARY);
                let long = format!("# {}\n", "long ".repeat(4_900));
                for line in ["one", "two", "three"] {
                    let command = format!("{long}echo {line} >> {EFFECTS}; echo {line} done");
                    provider.will([Step::FinishWith(vec![shall(), bash(&command)])]);
                }
            }
            Self::Elide => {
                for line in ["one", "two", "three"] {
                    let command = format!("echo {line} >> {EFFECTS}; seq 1 4000");
                    provider.will([Step::FinishWith(vec![shall(), bash(&command)])]);
                }
            }
            _ => provider.will([Step::FinishWith(self.blocks())]),
        }
        provider.will_say_to(BEGIN, "I began");
        provider.will_say("done");
    }

    /// Returns true if the scenario has another, idle agent.
    pub(crate) fn has_other(self) -> bool {
        matches!(self, Self::Kill | Self::Send)
    }

    fn blocks(self) -> Vec<AnswerBlock> {
        let append = format!("echo once >> {EFFECTS}");
        let calls = match self {
            Self::Parallel => vec![
                call("file_read", &json!({"file_path": NOTES})),
                call("append", &json!({"line": "one"})),
                call("append", &json!({"line": "two"})),
                bash(&append),
            ],
            Self::Blob => vec![bash(&format!("{append}; seq 1 20000"))],
            Self::Refused => vec![call("bash", &json!({"comand": "true"}))],
            Self::Stop => vec![bash(&format!("{append}; echo begun; exec sleep 1000"))],
            Self::Fork => vec![fork()],
            Self::Wait => {
                let arguments = json!({"timeout": 60, "from_agents": [CHILD]});
                vec![fork(), call("wait", &arguments)]
            }
            Self::Kill => vec![call("kill", &json!({"agent": OTHER}))],
            Self::Send => vec![call("send", &json!({"to": OTHER, "message": ALSO}))],
            Self::Murder => vec![bash(&format!(
                "{append}; setsid -f sleep 1000; kill -KILL $PPID; exec sleep 1000"
            ))],
            _ => vec![bash(&append)],
        };
        [shall()].into_iter().chain(calls).collect()
    }

    /// Returns the approval mode.
    pub(crate) fn approve(self) -> Approve {
        if self == Self::Question {
            Approve::Ask
        } else {
            Approve::All
        }
    }

    /// Returns the limits of the turn.
    pub(crate) fn limits(self) -> Limits {
        let requests = if self == Self::Limit { 1 } else { 10 };
        Limits {
            requests,
            ..Limits::default()
        }
    }

    /// Returns the percentage of the window at which summaries start.
    pub(crate) fn summaries_at(self) -> Option<u64> {
        match self {
            Self::Summary => Some(25),
            // Only when the next request does not fit.
            Self::InnerSummary => Some(97),
            _ => None,
        }
    }

    /// Returns the crash point at which the waiting model continues.
    pub(crate) fn goes_on_at(self) -> CrashPoint {
        match self {
            Self::Queue => CrashPoint::AfterMessageQueued,
            _ => CrashPoint::AfterDraftStored,
        }
    }

    /// Returns the front end's reaction to an event.
    pub(crate) fn reply(self, update: &UiEvent) -> Option<UserRequest> {
        match (self, update) {
            (_, UiEvent::Question(question)) => Some(UserRequest::Answer {
                call: question.call,
                answer: Answer::Once,
                by: AnsweredBy::User,
            }),
            (Self::Queue, UiEvent::Text(text)) if text == "Yes. " => {
                Some(UserRequest::Line(UserInput::Message(ALSO.to_owned())))
            }
            (Self::Stop, UiEvent::Progress { line, .. }) if line == "begun" => {
                Some(UserRequest::Stop(Stop::Interrupt(Cause::User)))
            }
            _ => None,
        }
    }
}

fn fork() -> AnswerBlock {
    let arguments = json!({"name": CHILD, "prompt": BEGIN, "context": "fresh"});
    call("fork", &arguments)
}

fn shall() -> AnswerBlock {
    AnswerBlock::Text {
        text: "I shall.".to_owned(),
        item: None,
    }
}

fn bash(command: &str) -> AnswerBlock {
    call("bash", &json!({ "command": command }))
}

fn call(name: &str, arguments: &Value) -> AnswerBlock {
    AnswerBlock::Call {
        id: None,
        name: name.to_owned(),
        arguments: arguments.to_string(),
        item: None,
    }
}

/// Returns built-in tools and one that appends a line without a process or conflicts.
pub(crate) fn tools() -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> = vec![Arc::new(Append)];
    tools.extend(builtin::all(ChildEnvironment::default()));
    tools.retain(|tool| ["append", "bash", "file_read"].contains(&&*tool.spec().name));
    tools
}

struct Append;

impl Tool for Append {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "append".to_owned(),
            description: "Appends a line.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {"line": {"type": "string"}},
                "required": ["line"],
            }),
            facts: ToolFacts::default(),
        }
    }

    fn prepare(&self, arguments: &str, place: &Place) -> Result<Prepared, BadArguments> {
        let arguments: Value =
            serde_json::from_str(arguments).map_err(|error| BadArguments(error.to_string()))?;
        let line = arguments["line"].as_str().unwrap_or_default().to_owned();
        let file = place.workdir.join(EFFECTS);
        let subject = line.clone();
        Ok(Prepared {
            class: EffectClass::Write,
            // Appends of whole lines do not conflict.
            touches: Touches::writing([place.workdir.join(&line)]),
            shown: line.clone(),
            pattern: subject.clone(),
            subject,
            preview: None,
            deadline: Duration::from_mins(1),
            needs: Vec::new(),
            unconfined: None,
            run: Run::Blocking(Box::new(move |_| {
                append(&file, &line);
                Output::done("appended", "appended")
            })),
        })
    }
}

fn append(file: &Path, line: &str) {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        .unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}
