//! Conversion of an external tool's answer to a result.

use std::time::Duration;

use serde_json::Value;

use crate::output::clean;
use crate::process::{Cause, Ended, describe_exit, describe_left_behind};
use crate::{CallEnding, Output, arguments};

/// Longest line shown to the user, in characters.
const MOST_SHOWN_CHARS: usize = 200;

/// Most bytes shown of unexpected output.
const MOST_TOLD_BYTES: usize = 8 * 1024;

/// Parses an answer.
///
/// `{"output": …, "success": …}` is the expected form; any other JSON is the output itself. Output
/// that is not JSON is a failure that shows the output.
pub(super) fn read(ended: Ended, deadline: Duration) -> Output {
    let mut remarks = Vec::new();
    let answered = match ended.cause {
        Cause::Exited(status) => {
            let answer = understand(&ended.output);
            if !status.success() {
                remarks.push(describe_exit(status));
            }
            match answer {
                Ok((text, success)) => Answered {
                    text,
                    is_meant: true,
                    success: success && status.success(),
                    ending: CallEnding::Ran,
                },
                Err(complaint) => {
                    // A failed tool need not answer; the exit status is enough.
                    if status.success() {
                        remarks.push(complaint);
                    }
                    Answered {
                        text: text_of(&ended.output),
                        is_meant: false,
                        success: false,
                        ending: CallEnding::Ran,
                    }
                }
            }
        }
        Cause::Deadline => {
            remarks.push(format!("stopped after {} s", deadline.as_secs()));
            Answered::stopped(&ended.output)
        }
        Cause::Stopped => {
            remarks.push("stopped".to_owned());
            Answered::stopped(&ended.output)
        }
    };
    if !answered.success && !ended.errors.is_empty() {
        remarks.insert(0, text_of(&ended.errors));
    }
    remarks.extend(describe_left_behind(ended.left_behind));
    remarks.extend(ended.warning);
    answered.into_output(&remarks)
}

struct Answered {
    text: String,
    /// True if the text is a proper answer, false if it is raw output.
    is_meant: bool,
    success: bool,
    ending: CallEnding,
}

impl Answered {
    fn stopped(output: &[u8]) -> Self {
        Self {
            text: text_of(output),
            is_meant: false,
            success: false,
            ending: CallEnding::Stopped,
        }
    }

    fn into_output(self, remarks: &[String]) -> Output {
        let lines = self.text.lines().count();
        let shown = match (self.success, lines) {
            (true, 0) => "done".to_owned(),
            (true, 1) => arguments::one_line(&self.text, MOST_SHOWN_CHARS),
            (true, n) => format!("{n} lines"),
            (false, _) => {
                let remarks = remarks.iter().map(String::as_str);
                let meant = self.is_meant.then_some(self.text.as_str());
                let said = meant.into_iter().chain(remarks).chain([self.text.as_str()]);
                let first = said.flat_map(str::lines).find(|line| !line.is_empty());
                arguments::one_line(first.unwrap_or("failed"), MOST_SHOWN_CHARS)
            }
        };
        let mut body = self.text;
        for remark in remarks {
            if !body.is_empty() && !body.ends_with('\n') {
                body.push('\n');
            }
            body.push_str(remark.trim_end());
        }
        Output {
            success: self.success,
            ending: self.ending,
            ..Output::done(body, shown)
        }
    }
}

fn understand(output: &[u8]) -> Result<(String, bool), String> {
    let value: Value = serde_json::from_slice(output).map_err(|error| {
        if output.trim_ascii().is_empty() {
            "the tool printed nothing; it must print JSON".to_owned()
        } else {
            format!("the tool did not print JSON: {error}")
        }
    })?;
    let Value::Object(mut object) = value else {
        return Ok((as_text(value), true));
    };
    let success = object.get("success").and_then(Value::as_bool);
    match object.remove("output") {
        Some(output) => Ok((as_text(output), success.unwrap_or(true))),
        None => Ok((as_text(Value::Object(object)), success.unwrap_or(true))),
    }
}

fn as_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Returns the end of the output as text; errors are usually there.
fn text_of(bytes: &[u8]) -> String {
    let from = bytes.len().saturating_sub(MOST_TOLD_BYTES);
    clean(bytes.get(from..).unwrap_or_default())
}

#[cfg(test)]
mod tests;
