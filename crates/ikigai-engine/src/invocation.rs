//! Calls of commands and skills by the user: `/NAME ARGUMENTS` becomes a prompt.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::EffectClass;
use ikigai_tools::extensions::ExtensionText;
use ikigai_tools::permission::Decision;
use ikigai_tools::process::own_cookie;
use ikigai_tools::{CallContext, CallInputs, Confinement, Run};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::input::{command_word, words};
use crate::ledger::Ledger;
use crate::tools::Freedom;

/// Longest time of a command in a prompt, in seconds.
const COMMAND_SECONDS: u64 = 30;

/// Most commands in a prompt.
const MOST_COMMANDS: usize = 10;

/// Prompt of a command or skill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Invocation {
    /// Text for the model.
    pub(crate) text: String,
    /// The same without the outputs of commands, whose words name no files.
    pub(crate) without_outputs: String,
}

/// Whether commands in a prompt run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PromptCommands {
    Run,
    Skip,
}

/// Returns the prompt of a line that calls a command or skill; none for other lines.
///
/// A failure of a command in the prompt is an error for the user.
pub(crate) async fn invocation(
    ledger: &Ledger,
    line: &str,
    commands: PromptCommands,
) -> Result<Option<Invocation>, String> {
    let Some((name, arguments)) = command_word(line) else {
        return Ok(None);
    };
    let extensions = ledger.engine.extensions(&ledger.workdir()).await;
    let Some(text) = extensions.callable(name) else {
        return Ok(None);
    };
    let is_skill = extensions.is_skill(text);
    expand(ledger, text, is_skill, arguments.trim(), commands)
        .await
        .map(Some)
}

/// Makes the prompt of a command or skill.
pub(crate) async fn expand(
    ledger: &Ledger,
    text: &ExtensionText,
    is_skill: bool,
    arguments: &str,
    commands: PromptCommands,
) -> Result<Invocation, String> {
    let body = substitute(text, arguments);
    let mut found = Invocation::default();
    if is_skill {
        let directory = text.path.parent().unwrap_or(Path::new("/"));
        found.push(&format!(
            "Follow the skill `{}`. Its files are in {}.\n\n",
            text.name,
            directory.display()
        ));
    }
    let mut left = body.as_str();
    let mut count = 0;
    while let Some((before, command, after)) = next_command(left) {
        found.push(before);
        count += 1;
        if count > MOST_COMMANDS {
            return Err(format!(
                "/{} has more than {MOST_COMMANDS} commands",
                text.name
            ));
        }
        let output = match commands {
            PromptCommands::Run => run(ledger, command)
                .await
                .map_err(|reason| format!("/{}: `{command}`: {reason}", text.name))?,
            PromptCommands::Skip => String::new(),
        };
        found.text.push_str(output.trim_end());
        left = after;
    }
    found.push(left);
    Ok(found)
}

impl Invocation {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.without_outputs.push_str(text);
    }
}

/// Puts the arguments into the text; a text without a place for them gets them at its end.
fn substitute(text: &ExtensionText, arguments: &str) -> String {
    let list = words(arguments).unwrap_or_else(|_| {
        let words = arguments.split_whitespace();
        words.map(str::to_owned).collect()
    });
    let directory = text.path.parent().unwrap_or(Path::new("/"));
    let directory = directory.display().to_string();
    let body = text.body.trim();
    let mut filled = String::new();
    let mut has_place = false;
    let mut left = body;
    while let Some(at) = left.find('$') {
        filled.push_str(&left[..at]);
        let rest = &left[at + 1..];
        if let Some(after) = rest.strip_prefix("ARGUMENTS") {
            filled.push_str(arguments);
            (has_place, left) = (true, after);
        } else if let Some(after) = rest.strip_prefix("{CLAUDE_SKILL_DIR}") {
            filled.push_str(&directory);
            left = after;
        } else if let Some(digit) = rest.chars().next().and_then(|first| first.to_digit(10))
            && digit > 0
            && !is_number(&rest[1..])
        {
            let word = usize::try_from(digit).ok().and_then(|n| list.get(n - 1));
            filled.push_str(word.map_or("", String::as_str));
            (has_place, left) = (true, &rest[1..]);
        } else {
            filled.push('$');
            left = rest;
        }
    }
    filled.push_str(left);
    if !has_place && !arguments.is_empty() {
        filled.push_str("\n\nArguments: ");
        filled.push_str(arguments);
    }
    filled
}

/// Returns true if the text behind a digit continues a number: `5.00`, `10`.
fn is_number(rest: &str) -> bool {
    let digits = rest.strip_prefix('.').unwrap_or(rest);
    digits.starts_with(|next: char| next.is_ascii_digit())
}

/// Splits a text at its next ``!`command` ``.
fn next_command(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.find("!`")?;
        let is_start = text[..at]
            .chars()
            .next_back()
            .is_none_or(char::is_whitespace);
        let behind = &text[at + 2..];
        match behind.find('`') {
            Some(end) if is_start && !behind[..end].trim().is_empty() => {
                return Some((&text[..at], &behind[..end], &behind[end + 1..]));
            }
            _ => from = at + 2,
        }
    }
}

/// Runs a command of a prompt, as a call of `bash` that needs no approval.
async fn run(ledger: &Ledger, command: &str) -> Result<String, String> {
    let engine = &ledger.engine;
    let tools = engine.toolset(ledger.settings()).await;
    let arguments = json!({"command": command, "timeout": COMMAND_SECONDS}).to_string();
    let prepared = tools.prepare("bash", &arguments)?;
    let sandbox = engine.sandbox_for(EffectClass::Execute).await;
    let judged = engine.judge(ledger.grant(), sandbox, "bash", &prepared, &tools.place);
    let freedom = match judged {
        Decision::Allow => Freedom::Working,
        Decision::AllowConfined => Freedom::Reading,
        Decision::Ask { pattern } => {
            return Err(format!(
                "needs approval. Allow `bash` \"{pattern}\" in your config, or use /approve all"
            ));
        }
        Decision::Refuse(reason) => return Err(reason),
    };
    let confinement = match prepared.class {
        EffectClass::Execute => tools.confinement(engine, freedom),
        _ => Confinement::None,
    };
    let context = CallContext {
        place: tools.place.clone(),
        stop: CancellationToken::new(),
        inputs: CallInputs::default(),
        progress: Arc::new(|_| {}),
        output: Arc::new(|_| {}),
        cookie: own_cookie("prompt"),
        confinement,
        temporary: None,
    };
    let Run::Async(work) = prepared.run else {
        return Err("cannot run here".to_owned());
    };
    let most = Duration::from_secs(COMMAND_SECONDS + 5);
    let Ok(output) = tokio::time::timeout(most, work(context)).await else {
        return Err(format!("not done within {COMMAND_SECONDS} s"));
    };
    let text = (engine.safety().blank)(&output.body).into_owned();
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(body: &str) -> ExtensionText {
        ExtensionText {
            name: "fix".to_owned(),
            description: String::new(),
            argument_hint: None,
            path: "/skills/fix/SKILL.md".into(),
            body: body.to_owned(),
            forks: false,
            agent: None,
            model: None,
            tools: None,
        }
    }

    #[test]
    fn arguments_are_put_where_the_text_names_them() {
        let cases = [
            ("Fix $ARGUMENTS now", "12 high", "Fix 12 high now"),
            ("Fix $1 ($2), $3.", "\"a b\" high", "Fix a b (high), ."),
            ("Costs $5.00, $10 or $x", "", "Costs $5.00, $10 or $x"),
            ("Fix", "12", "Fix\n\nArguments: 12"),
            ("Run ${CLAUDE_SKILL_DIR}/x", "", "Run /skills/fix/x"),
            ("$1", "it's", "it's"),
            ("ends with $", "", "ends with $"),
        ];

        for (body, arguments, expected) in cases {
            assert_eq!(substitute(&text(body), arguments), expected, "{body}");
        }
    }

    #[test]
    fn commands_are_found_only_where_they_begin_a_word() {
        let found = next_command("Status: !`git status` and more");

        assert_eq!(found, Some(("Status: ", "git status", " and more")));
        for none in ["Hello!`git`", "!`", "!` `", "! `x`", ""] {
            assert_eq!(next_command(none), None, "{none}");
        }
    }
}
