//! Rules of the demo model: one table, of which the first matching rule applies.

use ikigai_core::Request;
use ikigai_core::counts::counted;
use ikigai_core::message::{Block, Role};
use serde_json::{Value, json};

use super::messages::{is_said, texts, without_notes};

/// Start of a message from another agent.
const MAIL: &str = "<message from=";

/// Largest number that the model counts to, so that every response ends.
const MOST_COUNTED: u32 = 10_000;

/// Number of messages that a summary quotes, and characters of each.
const MOST_SUMMARISED: usize = 12;
const SUMMARISED_CHARACTERS: usize = 30;

/// One step of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DemoStep {
    /// Writes this text.
    Say(String),
    Think(String),
    Call {
        tool: String,
        arguments: String,
    },
    /// Fails once and starts over.
    Stumble(String),
    /// Fails finally.
    Fail(String),
}

/// Words that must all be in the message, and the response to the message and the results since.
type Rule = (&'static [&'static str], fn(&Ask) -> Vec<DemoStep>);

/// The table. Rules that call tools apply only if the request has these tools.
const RULES: &[Rule] = &[
    (&["fail", "once"], stumble),
    (&["fail"], fail),
    (&["fork"], fork_helpers),
    (&["list", "rust", "files"], list_rust_files),
    (&["create"], create_a_file),
    (&["count", "files"], count_files),
    (&["count", "tests"], count_tests),
    (&["count"], count),
    (&["did", "i", "say"], recite),
    (&["remember"], recite),
    (&["think"], think),
    (&["fix", "failing", "test"], fix_the_test),
    (&["fix", "it"], fix_the_test),
    (&["ask", "push"], ask_to_push),
    (&["run"], run_a_command),
    (&["read"], read_a_file),
    (&["hello"], greet),
    (&["hi"], greet),
];

/// Message to respond to.
pub(super) struct Ask<'a> {
    request: &'a Request,
    /// The user's last message.
    pub(super) said: &'a str,
    words: Vec<String>,
    /// Results of tools since then, in order.
    results: Vec<&'a str>,
    /// True if the last of these calls failed.
    has_failed: bool,
    /// Number of responses with calls since then.
    round: usize,
}

impl<'a> Ask<'a> {
    pub(super) fn of(request: &'a Request) -> Self {
        let last = request.messages.iter().rposition(is_said);
        let since = last.map_or(&[][..], |last| &request.messages[last + 1..]);
        let said = last.and_then(|last| texts(&request.messages[last]).last());
        let said = without_notes(said.unwrap_or_default().trim());
        let results = since.iter().flat_map(|message| &message.blocks);
        let results = results.filter_map(|block| match block {
            Block::ToolResult {
                content, is_error, ..
            } => Some((content.as_str(), *is_error)),
            _ => None,
        });
        let results: Vec<_> = results.collect();
        Self {
            request,
            said,
            words: said
                .to_lowercase()
                .split(|c: char| !c.is_alphanumeric())
                .map(str::to_owned)
                .collect(),
            has_failed: results.last().is_some_and(|(_, is_error)| *is_error),
            results: results.into_iter().map(|(content, _)| content).collect(),
            round: since
                .iter()
                .filter(|message| message.role == Role::Tool)
                .count(),
        }
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.words.iter().any(|said| said == word)
    }

    fn number(&self) -> Option<u32> {
        self.words.iter().find_map(|word| word.parse().ok())
    }

    /// Returns the text between backticks, or else the last word.
    fn object(&self) -> &str {
        let quoted = self.said.split('`').nth(1);
        let last = || self.said.split_whitespace().last();
        quoted.or_else(last).unwrap_or_default()
    }

    /// Returns the text between backticks, or else the text after `run`.
    fn command(&self) -> &str {
        let quoted = self.said.split('`').nth(1);
        let after_run = || self.said.split_once("run ").map(|(_, rest)| rest.trim());
        quoted.or_else(after_run).unwrap_or_default()
    }

    /// Returns the words that look like file names.
    fn files(&self) -> Vec<&str> {
        let words = self.said.split_whitespace();
        let bare = words.map(|word| word.trim_matches(|c: char| "`\"',;:.?!".contains(c)));
        bare.filter(|word| word.contains('.') || word.contains('/'))
            .collect()
    }

    fn last_result(&self) -> &str {
        self.results.last().copied().unwrap_or_default()
    }

    fn is_given(&self, tool: &str) -> bool {
        self.request.tools.iter().any(|given| given.name == tool)
    }
}

/// Makes the response.
pub(super) fn answer(ask: &Ask) -> Vec<DemoStep> {
    let rule = RULES
        .iter()
        .find(|(words, _)| words.iter().all(|word| ask.has(word)));
    let steps = match rule {
        // Messages of other agents are no commands.
        _ if ask.said.starts_with(MAIL) => read_mail(ask),
        Some((_, answer)) => answer(ask),
        None => repeat(ask),
    };
    let missing = steps.iter().find_map(|step| match step {
        DemoStep::Call { tool, .. } if !ask.is_given(tool) => Some(tool.clone()),
        _ => None,
    });
    match missing {
        None => steps,
        Some(tool) => vec![say(format!(
            "I would use the tool `{tool}`, but it is not available."
        ))],
    }
}

/// Summarises a conversation in text form: its length, and the start of each user message.
///
/// Fails if the instructions ask for it.
pub(super) fn summarise(ask: &Ask) -> Vec<DemoStep> {
    let (lines, request) = ask
        .said
        .rsplit_once("</conversation>")
        .unwrap_or(("", ask.said));
    if request.contains("fail") {
        return fail(ask);
    }
    let messages = ask.request.messages.iter();
    let own = messages
        .filter(|message| message.role == Role::User)
        .flat_map(texts);
    let own = own.filter(|text| *text != ask.said).flat_map(str::lines);
    let lines = lines.lines().filter_map(|line| line.strip_prefix("user: "));
    let said: Vec<_> = own
        .chain(lines)
        .map(|line| line.chars().take(SUMMARISED_CHARACTERS).collect::<String>())
        .collect();
    let newest = said.len().saturating_sub(MOST_SUMMARISED);
    vec![say(format!(
        "The user sent {} messages. The last ones: {}. (The demo model only counts and quotes.)",
        said.len(),
        said[newest..].join(" / ")
    ))]
}

fn read_mail(ask: &Ask) -> Vec<DemoStep> {
    let messages = ask.request.messages.iter().rev();
    let latest = messages.take_while(|message| message.role == Role::User);
    let mail = latest.flat_map(texts).filter(|text| text.starts_with(MAIL));
    let mail = mail.flat_map(|text| text.lines().filter(|line| !line.starts_with('<')));
    let mail: Vec<_> = mail.collect();
    vec![say(format!("Received:\n{}", mail.join("\n")))]
}

fn say(text: impl Into<String>) -> DemoStep {
    DemoStep::Say(text.into())
}

fn call(tool: &str, arguments: &Value) -> DemoStep {
    DemoStep::Call {
        tool: tool.to_owned(),
        arguments: arguments.to_string(),
    }
}

fn fail(_: &Ask) -> Vec<DemoStep> {
    vec![DemoStep::Fail(
        "the demo model failed, as requested".to_owned(),
    )]
}

fn stumble(_: &Ask) -> Vec<DemoStep> {
    vec![
        say("This is lost, "),
        DemoStep::Stumble("the demo model failed once, as requested".to_owned()),
        say("The first attempt failed; this is the second."),
    ]
}

fn count(ask: &Ask) -> Vec<DemoStep> {
    let numbers = 1..=ask.number().unwrap_or(10).min(MOST_COUNTED);
    let numbers: Vec<_> = numbers.map(|number| number.to_string()).collect();
    vec![say(numbers.join(" "))]
}

fn recite(ask: &Ask) -> Vec<DemoStep> {
    let of_user = ask
        .request
        .messages
        .iter()
        .filter(|message| message.role == Role::User);
    let mut earlier: Vec<_> = of_user.flat_map(texts).collect();
    earlier.pop();
    if earlier.is_empty() {
        return vec![say("This is your first message.")];
    }
    let first_line = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    let lines: Vec<_> = earlier
        .iter()
        .enumerate()
        .map(|(index, text)| format!("{}. {}", index + 1, first_line(text)))
        .collect();
    vec![say(format!("Your earlier messages:\n{}", lines.join("\n")))]
}

fn think(ask: &Ask) -> Vec<DemoStep> {
    vec![
        DemoStep::Think(format!(
            "The message has {} words. I am only a script, so that is all.",
            ask.said.split_whitespace().count()
        )),
        say("Done thinking (I am only a script)."),
    ]
}

fn list_rust_files(ask: &Ask) -> Vec<DemoStep> {
    if ask.round == 0 {
        let glob = call("glob", &json!({ "pattern": "**/*.rs" }));
        return vec![say("Looking for Rust files."), glob];
    }
    let files = match ask.last_result().matches(".rs").count() {
        0 => "no Rust files".to_owned(),
        files => counted(files, "Rust file"),
    };
    vec![say(format!("Found {files}."))]
}

fn fix_the_test(ask: &Ask) -> Vec<DemoStep> {
    match ask.round {
        0 => vec![
            say("Running the tests first."),
            call("bash", &json!({ "command": "cargo test" })),
        ],
        1 => vec![
            DemoStep::Think("Looking at the failures and the sources.".to_owned()),
            call("grep", &json!({ "pattern": "panicked|FAILED" })),
            call("glob", &json!({ "pattern": "**/*.rs" })),
        ],
        _ => vec![say(
            "I am only a scripted demo. A real model would edit the file now.",
        )],
    }
}

/// Forks helpers.
///
/// If they are to count files of directories, it first finds these, waits for the helpers, and adds
/// up their results.
fn fork_helpers(ask: &Ask) -> Vec<DemoStep> {
    let helpers = ask
        .words
        .iter()
        .find_map(|word| place_of(word, NUMBERS))
        .or(ask.number().map(|number| number as usize));
    let helpers = helpers.unwrap_or(1).clamp(1, 8);
    let names: Vec<_> = (1..=helpers)
        .map(|number| format!("helper-{number}"))
        .collect();
    let fork = |name: &String, prompt: &str| {
        let order = json!({ "name": name, "prompt": prompt, "context": "fresh" });
        call("fork", &order)
    };
    let counts = ask.has("count") && ask.has("files");
    let waits = ask.has("wait");
    match (ask.round, counts, waits) {
        (0, true, _) => vec![
            say("Looking for directories."),
            call("glob", &json!({ "pattern": "*/*" })),
        ],
        (1, true, _) => {
            let directories = directories_in(ask.last_result());
            let directory = |index: usize| directories.get(index).map_or(".", |found| *found);
            let prompts = (0..).map(|index| format!("count the files of {}", directory(index)));
            let forks = names.iter().zip(prompts);
            forks.map(|(name, prompt)| fork(name, &prompt)).collect()
        }
        (0, false, _) => {
            let task = ask
                .said
                .split_once(" to ")
                .map_or("hello", |(_, task)| task);
            names.iter().map(|name| fork(name, task)).collect()
        }
        (1, false, true) | (2, true, true) => {
            let wait = json!({ "agents": names_in(&ask.results), "timeout": 300 });
            vec![call("wait", &wait)]
        }
        (_, true, true) => {
            let numbers: Vec<_> = ask.last_result().lines().filter_map(files_said).collect();
            let sum: u32 = numbers.iter().sum();
            let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
            vec![say(format!("{} = {sum} files.", numbers.join(" + ")))]
        }
        (_, false, true) => vec![say(format!("Their answers:\n{}", ask.last_result()))],
        _ => vec![say("They are working; their answers arrive as mail.")],
    }
}

/// Returns the names of children in results of `fork`.
fn names_in<'a>(results: &[&'a str]) -> Vec<&'a str> {
    let lines = results
        .iter()
        .filter_map(|result| result.strip_prefix("forked "));
    lines
        .filter_map(|rest| rest.split_whitespace().next())
        .collect()
}

/// Returns the first components of paths, each once, in order.
fn directories_in(paths: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let names = paths.lines().filter_map(|path| path.split_once('/'));
    for (name, _) in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found.sort_unstable();
    found
}

/// Returns the number in a helper's `There are 12 files in src.`
fn files_said(line: &str) -> Option<u32> {
    let rest = line
        .strip_prefix("There are ")
        .or_else(|| line.strip_prefix("There is "))?;
    let (number, rest) = rest.split_once(' ')?;
    number.parse().ok().filter(|_| rest.starts_with("file"))
}

/// Counts the files of a directory.
fn count_files(ask: &Ask) -> Vec<DemoStep> {
    let directory = ask.object();
    if ask.round == 0 {
        let glob = json!({ "pattern": "**/*", "path": directory });
        return vec![call("glob", &glob)];
    }
    if ask.has_failed {
        return vec![say(format!("Result: {}", ask.last_result()))];
    }
    let files = ask
        .last_result()
        .lines()
        .filter(|line| !line.is_empty())
        .count();
    let files = match files {
        1 => "There is 1 file".to_owned(),
        files => format!("There are {files} files"),
    };
    vec![say(format!("{files} in {directory}."))]
}

/// Counts lines that look like Rust test attributes.
fn count_tests(ask: &Ask) -> Vec<DemoStep> {
    if ask.round == 0 {
        let grep = json!({ "pattern": r"#\[(\w+::)?test", "glob": "**/*.rs" });
        return vec![call("grep", &grep)];
    }
    if ask.has_failed {
        return vec![say(format!("Result: {}", ask.last_result()))];
    }
    let lines = ask.last_result().lines();
    let tests = match lines.filter(|line| line.contains("#[")).count() {
        0 => "no tests".to_owned(),
        tests => counted(tests, "test"),
    };
    vec![say(format!("Found {tests} in the Rust files here."))]
}

fn ask_to_push(ask: &Ask) -> Vec<DemoStep> {
    if ask.round == 0 {
        return vec![call("bash", &json!({ "command": "git push" }))];
    }
    vec![say(format!("Result: {}", ask.last_result()))]
}

fn run_a_command(ask: &Ask) -> Vec<DemoStep> {
    if ask.round == 0 {
        return vec![call("bash", &json!({ "command": ask.command() }))];
    }
    let result = ask.last_result();
    // Only a command that ran has an exit status.
    if ask.has_failed && !result.contains("\n[exit ") && !result.starts_with("[exit ") {
        return vec![say(format!("It did not run: {result}"))];
    }
    let output = super::printed_part(result);
    if output.is_empty() {
        return vec![say("It printed nothing.")];
    }
    vec![say(format!("It printed:\n{output}"))]
}

/// Reads all named files in parallel.
fn read_a_file(ask: &Ask) -> Vec<DemoStep> {
    let read = |path: &str| call("file_read", &json!({ "file_path": path }));
    let files = ask.files();
    if ask.round == 0 {
        return match files.as_slice() {
            [] => vec![read(ask.object())],
            files => files.iter().map(|file| read(file)).collect(),
        };
    }
    let lines: usize = ask.results.iter().map(|text| text.lines().count()).sum();
    let subject = if files.len() > 1 {
        "They have"
    } else {
        "It has"
    };
    vec![say(format!("{subject} {lines} lines."))]
}

/// Writes a file of some lines, and changes one of them on request.
fn create_a_file(ask: &Ask) -> Vec<DemoStep> {
    let Some(file) = ask.files().first().copied() else {
        return vec![say("Which file? For example notes.txt.")];
    };
    let line = |number: usize| format!("line {number}");
    let ordinal = ask.words.iter().find_map(|word| place_of(word, ORDINALS));
    let changed = ordinal.filter(|_| ask.has("change"));
    match (ask.round, changed) {
        (0, _) => {
            let counted = ask.words.iter().find_map(|word| place_of(word, NUMBERS));
            let lines = counted.or(ask.number().map(|number| number as usize));
            let lines: Vec<_> = (1..=lines.unwrap_or(1).min(100)).map(line).collect();
            let content = lines.join("\n") + "\n";
            let write = json!({ "file_path": file, "content": content });
            vec![say("Writing the file."), call("file_write", &write)]
        }
        (1, Some(number)) => {
            let edit = json!({
                "file_path": file,
                "old_string": line(number) + "\n",
                "new_string": format!("line {number}, changed\n"),
            });
            vec![call("file_edit", &edit)]
        }
        _ => vec![say(format!("Result: {}", ask.last_result()))],
    }
}

const NUMBERS: &[&str] = &["one", "two", "three", "four", "five", "six", "seven"];
const ORDINALS: &[&str] = &["first", "second", "third", "fourth", "fifth", "sixth"];

/// Returns the number that a word means, counted from 1.
fn place_of(word: &str, words: &[&str]) -> Option<usize> {
    words
        .iter()
        .position(|known| *known == word)
        .map(|index| index + 1)
}

fn greet(ask: &Ask) -> Vec<DemoStep> {
    vec![say(format!("Hello. {}", what_it_is(ask)))]
}

fn repeat(ask: &Ask) -> Vec<DemoStep> {
    vec![say(format!(
        "You said: {}\n\n{}",
        ask.said,
        what_it_is(ask)
    ))]
}

fn what_it_is(ask: &Ask) -> String {
    let messages = ask.request.messages.len();
    let messages = counted(messages, "message");
    format!(
        "I am the built-in demo model: scripted, offline, always the same. \
         This conversation has {messages}. \
         Try `list the rust files`, `run ls`, `read README.md`, `what did I say`, `think`, \
         `count slowly to 100` or `fail once`."
    )
}
