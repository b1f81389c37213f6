//! A model that writes summaries by rules, from the request alone.

use ikigai_core::summary::{SUMMARY_PROMPT, SUMMARY_REQUEST};
use ikigai_testkit::wire::prompt::{Prompt, PromptBlock};

/// Line above a stored summary.
const HEADING: &str = "Summary of the conversation so far";

/// Line above the summary of earlier chunks.
const EARLIER: &str = "Summary of the conversation before this part:";

/// Author of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    User,
    Agent,
    Tool,
    /// An earlier summary.
    Summary,
}

/// Returns true if a request asks for a summary, in either form.
pub(crate) fn is_summary_prompt(prompt: &Prompt) -> bool {
    prompt.system == SUMMARY_PROMPT || instruction(prompt).starts_with(SUMMARY_REQUEST)
}

fn instruction(prompt: &Prompt) -> &str {
    match prompt.blocks.last() {
        Some(PromptBlock::User(text)) => text,
        _ => "",
    }
}

/// Writes the sections that the prompt asks for, from matching lines.
pub(crate) fn write_summary(prompt: &Prompt) -> String {
    let (asked, lines) = material(prompt);
    let asks_for = |words: &str| asked.contains(words);
    let mut summary = Vec::new();
    let mut add = |title: &str, picked: &dyn Fn(Speaker, &str) -> bool| {
        summary.push(title.to_owned());
        for (speaker, line) in &lines {
            let line = line.trim_start_matches("- ").trim();
            let line = format!("- {line}");
            if picked(*speaker, &line) && !summary.contains(&line) {
                summary.push(line);
            }
        }
    };
    if asks_for("earlier summary") {
        add("Earlier:", &|speaker, line| {
            speaker == Speaker::Summary && is_fact(line)
        });
    }
    if asks_for("user's rules") {
        let is_rule = |line: &str| ["ever ", "lways ", "ust "].iter().any(|w| line.contains(w));
        add("Rules:", &|speaker, line| {
            speaker == Speaker::User && is_rule(line)
        });
    }
    if asks_for("facts") && asks_for("the user stated") {
        add("Facts of the user:", &|speaker, line| {
            speaker == Speaker::User && is_fact(line)
        });
    }
    if asks_for("Decisions") {
        add("Decisions:", &|speaker, line| {
            speaker == Speaker::Agent && line.starts_with("- Decision")
        });
    }
    if asks_for("commands run and their results") {
        add("State:", &|speaker, line| {
            speaker == Speaker::Tool && is_figure(line)
        });
    }
    summary.join("\n")
}

/// Returns true if the line is a short sentence with a number.
fn is_fact(line: &str) -> bool {
    line.len() < 200 && line.contains(|c: char| c.is_ascii_digit()) && line.ends_with('.')
}

/// Returns true if the line is the outcome of a command.
fn is_figure(line: &str) -> bool {
    is_fact(line) && line.contains("outcome")
}

/// Returns a prompt's instruction and its conversation lines with their speakers.
fn material(prompt: &Prompt) -> (String, Vec<(Speaker, String)>) {
    let mut lines = Vec::new();
    if prompt.system == SUMMARY_PROMPT {
        let text = instruction(prompt);
        let (told, asked) = text.split_once("</conversation>").unwrap_or((text, ""));
        let (earlier, told) = told.split_once("<conversation>").unwrap_or(("", told));
        let earlier = earlier.strip_prefix(EARLIER).unwrap_or_default();
        lines.extend(
            earlier
                .lines()
                .map(|line| (Speaker::Summary, line.to_owned())),
        );
        let mut speaker = Speaker::User;
        for line in told.lines() {
            let named = [
                ("user: ", Speaker::User),
                ("agent: ", Speaker::Agent),
                ("agent calls ", Speaker::Agent),
                ("tool answers: ", Speaker::Tool),
                ("tool fails: ", Speaker::Tool),
            ];
            let named = named
                .iter()
                .find_map(|(name, who)| Some((line.strip_prefix(name)?, *who)));
            let (line, who) = named.unwrap_or((line, speaker));
            speaker = who;
            if line.starts_with(HEADING) {
                speaker = Speaker::Summary;
            }
            lines.push((speaker, line.to_owned()));
        }
        return (asked.to_owned(), lines);
    }
    let conversation = prompt.blocks.split_last().map_or(&[][..], |(_, rest)| rest);
    for block in conversation {
        let (speaker, text) = match block {
            PromptBlock::User(text) if text.starts_with(HEADING) => (Speaker::Summary, text),
            PromptBlock::User(text) => (Speaker::User, text),
            PromptBlock::Assistant(text) => (Speaker::Agent, text),
            PromptBlock::Result(text) => (Speaker::Tool, text),
            PromptBlock::Call(..) => continue,
        };
        lines.extend(text.lines().map(|line| (speaker, line.to_owned())));
    }
    (instruction(prompt).to_owned(), lines)
}
