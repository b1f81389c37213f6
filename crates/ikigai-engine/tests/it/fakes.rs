//! Fake tools that do what their arguments say and record it in a diary.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ikigai_core::EffectClass;
use ikigai_core::project::{ToolFacts, ToolSpec};
use ikigai_providers::AnswerBlock;
use ikigai_testkit::Step;
use ikigai_tools::{
    BadArguments, CallContext, CallEnding, Output, Place, Prepared, Run, Tool, Touches,
};
use serde_json::{Value, json};
use tokio::time::Instant;

/// Secret that fakes print in place of [`KEY_HERE`]; no model has seen it.
pub(crate) const KEY: &str = "sk-secret-0123456789";
pub(crate) const KEY_HERE: &str = "(the key)";

/// Event in the life of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The call of this label began to run.
    Began(String),
    /// It ended by itself.
    Ended(String),
    /// It ended because it was stopped.
    Stopped(String),
}

/// Callback at the start of a call; gets its label.
type Look = Arc<dyn Fn(&str) + Send + Sync>;

/// Record of the fake tools' calls. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct CallLog {
    moments: Arc<Mutex<Vec<(Instant, Moment)>>>,
    look: Arc<Mutex<Option<Look>>>,
}

impl CallLog {
    pub(crate) fn moments(&self) -> Vec<Moment> {
        let timed = self.timed().into_iter();
        timed.map(|(_, moment)| moment).collect()
    }

    /// Returns all events with their times.
    pub(crate) fn timed(&self) -> Vec<(Instant, Moment)> {
        self.moments.lock().unwrap().clone()
    }

    /// Returns the labels of all calls that ran, in starting order.
    pub(crate) fn began(&self) -> Vec<String> {
        let moments = self.moments().into_iter();
        let began = moments.filter_map(|moment| match moment {
            Moment::Began(label) => Some(label),
            Moment::Ended(_) | Moment::Stopped(_) => None,
        });
        began.collect()
    }

    /// Sets a callback that runs whenever a call starts.
    pub(crate) fn look_when_one_begins(&self, look: impl Fn(&str) + Send + Sync + 'static) {
        *self.look.lock().unwrap() = Some(Arc::new(look));
    }

    fn note(&self, moment: Moment) {
        let look = self.look.lock().unwrap().clone();
        if let (Moment::Began(label), Some(look)) = (&moment, look) {
            look(label);
        }
        self.moments.lock().unwrap().push((Instant::now(), moment));
    }

    /// Returns a tool that executes.
    pub(crate) fn tool(&self, name: &'static str) -> Arc<dyn Tool> {
        Arc::new(Fake {
            name,
            class: EffectClass::Execute,
            call_log: self.clone(),
        })
    }

    /// Returns a tool per effect class: `look` reads, `change` writes, `act` executes.
    pub(crate) fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let fake = |name, class| -> Arc<dyn Tool> {
            Arc::new(Fake {
                name,
                class,
                call_log: self.clone(),
            })
        };
        vec![
            fake("act", EffectClass::Execute),
            fake("change", EffectClass::Write),
            fake("look", EffectClass::Read),
        ]
    }
}

/// A call of a fake tool, as a model would write it.
#[derive(Clone, Debug)]
pub(crate) struct FakeCall {
    tool: &'static str,
    arguments: Value,
}

impl FakeCall {
    /// Creates a call that takes one second, touches nothing and succeeds.
    pub(crate) fn new(tool: &'static str, label: &str) -> Self {
        Self {
            tool,
            arguments: json!({ "label": label, "millis": 1000 }),
        }
    }

    fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.arguments[key] = value.into();
        self
    }

    pub(crate) fn reading(self, paths: &[&str]) -> Self {
        self.with("reads", paths.to_vec())
    }

    /// Reads and writes these files.
    pub(crate) fn writing(self, paths: &[&str]) -> Self {
        self.with("writes", paths.to_vec())
    }

    /// May touch any file.
    pub(crate) fn anywhere(self) -> Self {
        self.with("anywhere", true)
    }

    pub(crate) fn taking(self, time: Duration) -> Self {
        self.with("millis", u64::try_from(time.as_millis()).unwrap())
    }

    /// Prints this instead of its label.
    pub(crate) fn printing(self, text: &str) -> Self {
        self.with("prints", text)
    }

    /// Fails, panics, or ignores a stop.
    pub(crate) fn that(self, what: &str) -> Self {
        self.with("that", what)
    }

    pub(crate) fn label(&self) -> &str {
        self.arguments["label"].as_str().unwrap()
    }

    /// Returns the call as a block of an answer.
    pub(crate) fn block(&self) -> AnswerBlock {
        AnswerBlock::Call {
            id: None,
            name: self.tool.to_owned(),
            arguments: self.arguments.to_string(),
            item: None,
        }
    }
}

/// Returns an answer of these calls without text.
pub(crate) fn calling(fakes: &[FakeCall]) -> [Step; 1] {
    [Step::FinishWith(
        fakes.iter().map(FakeCall::block).collect(),
    )]
}

/// Returns a call of a real tool.
pub(crate) fn call(name: &str, arguments: &Value) -> AnswerBlock {
    AnswerBlock::Call {
        id: None,
        name: name.to_owned(),
        arguments: arguments.to_string(),
        item: None,
    }
}

struct Fake {
    name: &'static str,
    class: EffectClass,
    call_log: CallLog,
}

impl Tool for Fake {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.to_owned(),
            description: "obeys".to_owned(),
            parameters: json!({ "type": "object" }),
            facts: ToolFacts::default(),
        }
    }

    fn prepare(&self, arguments: &str, place: &Place) -> Result<Prepared, BadArguments> {
        let wanted: Value = serde_json::from_str(arguments)
            .map_err(|error| BadArguments(format!("`look` wants an object: {error}")))?;
        let label = wanted["label"].as_str().unwrap_or_default().to_owned();
        let call_log = self.call_log.clone();
        Ok(Prepared {
            class: self.class,
            touches: touches(&wanted, place),
            shown: label.clone(),
            subject: label.clone(),
            pattern: format!("{}*", label.split(' ').next().unwrap_or_default()),
            preview: None,
            deadline: Duration::from_hours(1),
            needs: Vec::new(),
            unconfined: None,
            run: Run::Async(Box::new(move |context| {
                Box::pin(carry_out(wanted, label, call_log, context))
            })),
        })
    }
}

fn touches(wanted: &Value, place: &Place) -> Touches {
    if wanted["anywhere"] == true {
        return Touches::everything();
    }
    let paths = |key: &str| -> Vec<PathBuf> {
        let names = wanted[key].as_array().into_iter().flatten();
        names
            .filter_map(Value::as_str)
            .map(|name| place.workdir.join(name))
            .collect()
    };
    let mut touches = Touches::writing(paths("writes"));
    if wanted["writes"].is_null() {
        touches = Touches::reading(paths("reads"));
    }
    touches
}

async fn carry_out(
    wanted: Value,
    label: String,
    call_log: CallLog,
    context: CallContext,
) -> Output {
    call_log.note(Moment::Began(label.clone()));
    let time = Duration::from_millis(wanted["millis"].as_u64().unwrap_or_default());
    let that = wanted["that"].as_str().unwrap_or_default();
    if that == "ignores its stop" {
        std::future::pending::<()>().await;
    }
    tokio::select! {
        biased;
        () = context.stop.cancelled() => {
            call_log.note(Moment::Stopped(label.clone()));
            return Output {
                ending: CallEnding::Stopped,
                ..Output::failed(format!("{label} so far"))
            };
        }
        () = tokio::time::sleep(time) => {}
    }
    assert!(that != "panics", "panics on purpose");
    call_log.note(Moment::Ended(label.clone()));
    if that == "fails" {
        return Output::failed(format!("{label} failed"));
    }
    let printed = wanted["prints"].as_str().unwrap_or(&label);
    let printed = printed.replace(KEY_HERE, KEY);
    (context.progress)(&printed);
    if printed.ends_with('\n') {
        (context.output)(&printed);
    }
    Output::done(printed, format!("{label} is done"))
}
