//! Surroundings of an agent: the facts that its model is given with a message.
//!
//! The first message of a conversation has all of them, a later one only those that changed. Both
//! are stored in the message's row as they are sent.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ikigai_core::environment_block::{ENVIRONMENT, NOTE, frame};
use ikigai_core::fork::ForkPrompt;
use ikigai_core::settings::{Approve, WorktreeSetting};
use ikigai_core::{AgentState, Event, Settings};
use ikigai_tools::permission::Sandbox;
use ikigai_tools::process::git_status;
use ikigai_tools::{AllowedHost, Confinement, Place};

use crate::EngineReader;
use crate::file_system::checkout;
use crate::tools::Freedom;
use crate::worktrees::{own_worktree, short_commit};

/// Time limit of the repository's status.
const STATUS_TIME: Duration = Duration::from_millis(200);

/// Size limit of the repository's status.
const STATUS_BYTES: usize = 2 * 1024;

/// Number of writable paths, or hosts, that are listed.
const MOST_PATHS: usize = 12;

/// Size of a catalogue after which further entries are left out.
const CATALOGUE_BYTES: usize = 12 * 1024;

/// Longest description in a catalogue, in characters.
const ENTRY_CHARS: usize = 300;

/// Labels of the facts, in the order in which they are sent.
const LABELS: [&str; 13] = [
    AGENT,
    "working directory",
    "repository",
    "platform",
    "shell",
    "date",
    "model",
    "permission mode",
    "sandbox",
    PROCESSES,
    "skills",
    "agent definitions",
    MCP_TOOLS,
];

const AGENT: &str = "agent";
const PROCESSES: &str = "background processes";
const MCP_TOOLS: &str = "MCP tools";

/// Value of a fact that names nothing any more.
const NONE: &str = "none";

/// Settings of an agent as far as its model needs to know them.
pub(crate) struct SeatQuery<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) mode: Approve,
    /// True if a user answers questions.
    pub(crate) answers: bool,
    /// True if the status of the repository is wanted, which only a first message has.
    pub(crate) status: bool,
}

/// Facts about the surroundings of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeatFacts {
    by_label: BTreeMap<String, String>,
    /// Status of the repository, which is sent once.
    status: String,
}

/// Gathers the facts for an agent; none if its environment describes no platform.
pub(crate) async fn seat_facts(engine: &EngineReader, query: SeatQuery<'_>) -> Option<SeatFacts> {
    let platform = engine.environment().platform()?;
    let workdir = PathBuf::from(query.settings.workdir.as_deref().unwrap_or("/"));
    let mut facts = SeatFacts::default();
    facts.set("working directory", &workdir.display().to_string());
    match checkout(&workdir).await {
        Some(checkout) => {
            let branch = checkout.branch.map(|branch| format!(", branch {branch}"));
            let root = checkout.root.display();
            facts.set(
                "repository",
                &format!("{root}{}", branch.unwrap_or_default()),
            );
            if query.status {
                facts.status = repository_status(engine, &workdir).await;
            }
        }
        None => facts.set("repository", "none"),
    }
    facts.set("platform", &platform.system);
    facts.set("shell", &platform.shell);
    let now = engine.environment().now();
    facts.set("date", &engine.environment().day(now));
    facts.set("model", &model_name(engine, query.settings));
    facts.set("permission mode", &mode_meaning(query.mode, query.answers));
    let extensions = engine.extensions(&workdir).await;
    facts.set_catalogue(
        "skills",
        "before a task that one is about, open it with `skill` and follow it",
        extensions
            .skills
            .iter()
            .filter(|skill| skill.is_for_model)
            .map(|skill| {
                let text = &skill.text;
                (&*text.name, &*text.description, Some(&*text.path))
            }),
    );
    facts.set_catalogue(
        "agent definitions",
        "kinds of children for `fork` with `agent`",
        extensions
            .agents
            .iter()
            .map(|agent| (&*agent.name, &*agent.description, None)),
    );
    facts.set("sandbox", &sandbox_meaning(engine, workdir).await);
    Some(facts)
}

/// Returns the name of the model in the form that `fork` and `/model` take.
fn model_name(engine: &EngineReader, settings: &Settings) -> String {
    let Ok(choice) = engine.choice(settings) else {
        return "none".to_owned();
    };
    let level = choice.level.map_or_else(String::new, |it| format!("/{it}"));
    format!(
        "{}:{}{level}",
        choice.provider.unwrap_or_default(),
        choice.model.unwrap_or_default()
    )
}

/// Returns the short status of the repository that holds a directory; empty if git does not answer.
async fn repository_status(engine: &EngineReader, workdir: &Path) -> String {
    let place = Place {
        workdir: workdir.to_owned(),
        hidden: engine.safety().hidden.clone(),
    };
    let status = git_status(
        workdir.to_owned(),
        &engine.safety().shell,
        engine.confinement(&place, Freedom::Reading),
        STATUS_TIME,
        STATUS_BYTES,
    );
    let Some(status) = status.await else {
        return String::new();
    };
    let status = (engine.safety().blank)(status.as_bytes()).into_owned();
    let status = String::from_utf8_lossy(&status);
    // The first line names the branch.
    let (_, rest) = status.split_once('\n').unwrap_or((&status, ""));
    if rest.trim().is_empty() {
        return "clean".to_owned();
    }
    rest.trim_end().to_owned()
}

/// Describes the limits of commands, and how to ask for more.
async fn sandbox_meaning(engine: &EngineReader, workdir: PathBuf) -> String {
    let place = Place {
        workdir,
        hidden: engine.safety().hidden.clone(),
    };
    let Confinement::Sandbox {
        write,
        network,
        hosts,
        ..
    } = engine.confinement(&place, Freedom::Working)
    else {
        return "off: commands run with all rights of the user".to_owned();
    };
    if engine.sandbox_for(ikigai_core::EffectClass::Execute).await == Sandbox::Missing {
        return "not available on this machine: commands run with all rights of the user"
            .to_owned();
    }
    let paths = write.iter().take(MOST_PATHS);
    let mut paths: Vec<_> = paths.map(|path| path.display().to_string()).collect();
    if write.len() > MOST_PATHS {
        paths.push(format!("{} more", write.len() - MOST_PATHS));
    }
    let network = match hosts.as_ref() {
        _ if network => "may use the network".to_owned(),
        [] => "may not use the network".to_owned(),
        hosts => {
            let hosts = list_hosts(hosts);
            format!("may reach only {hosts}, by HTTP and HTTPS through the proxy in HTTPS_PROXY")
        }
    };
    format!(
        "commands may write only below {} and {network}. If one needs more, \
         call `bash` with `unconfined: true` and a `reason`: the user is asked",
        paths.join(", ")
    )
}

/// Lists hosts, or their beginning.
fn list_hosts(hosts: &[AllowedHost]) -> String {
    let mut names: Vec<_> = hosts.iter().map(ToString::to_string).collect();
    if names.len() > MOST_PATHS {
        let more = names.len() - MOST_PATHS;
        names.truncate(MOST_PATHS);
        names.push(format!("{more} more"));
    }
    names.join(", ")
}

fn mode_meaning(mode: Approve, answers: bool) -> String {
    let meaning = match mode {
        Approve::Read => "only reading is allowed, other calls are refused",
        Approve::Ask => "reading needs no approval, edits and commands do",
        Approve::Edits => {
            "reading and edits in the working directory need no approval, commands do"
        }
        Approve::All => "no call needs approval",
    };
    let absent = match mode {
        Approve::Ask | Approve::Edits if !answers => {
            "; there is no user to ask, so calls that need approval are refused"
        }
        _ => "",
    };
    format!("{} ({meaning}{absent})", mode.word())
}

/// Agent as its model sees it.
pub(crate) struct SeatIdentity<'a> {
    pub(crate) name: &'a str,
    /// Name of its parent; true if the parent's model forked it.
    pub(crate) parent: Option<(&'a str, bool)>,
    /// Separate worktree.
    pub(crate) worktree: Option<&'a WorktreeSetting>,
}

impl fmt::Display for SeatIdentity<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}`", self.name)?;
        let Some((parent, is_by_model)) = self.parent else {
            return Ok(());
        };
        if is_by_model {
            write!(
                formatter,
                ", a child of agent `{parent}`. Your last answer is your report to it. You cannot \
                 ask the user; to ask, `send` to `parent` with `question: true`, then `wait` for the \
                 answer."
            )?;
        } else {
            write!(
                formatter,
                ", forked from agent `{parent}` by the user, who reads your answers."
            )?;
        }
        match self.worktree {
            None => write!(
                formatter,
                " You share the working directory with `{parent}`"
            ),
            Some(setting) => {
                let commit = short_commit(setting.base.as_deref().unwrap_or_default());
                let checkout = setting.checkout.as_deref().unwrap_or_default();
                write!(
                    formatter,
                    " You work in a git worktree of your own, made from commit {commit} of {checkout}: \
                     where your prompt names a path there, use the same path below your worktree. All \
                     changes in it, committed or not, are merged into the tree of `{parent}` by the user"
                )
            }
        }
    }
}

impl SeatFacts {
    fn set(&mut self, label: &str, value: &str) {
        // A fact is one line.
        let value = value.replace(char::is_control, " ");
        self.by_label.insert(label.to_owned(), value);
    }

    /// Sets a fact with a line for each entry: name, description, file. Without entries it is left
    /// out.
    fn set_catalogue<'a>(
        &mut self,
        label: &str,
        use_of: &str,
        entries: impl Iterator<Item = (&'a str, &'a str, Option<&'a Path>)>,
    ) {
        let mut text = String::new();
        let mut left_out = 0;
        for (name, description, path) in entries {
            if text.len() > CATALOGUE_BYTES {
                left_out += 1;
                continue;
            }
            let mut line: String = description.chars().take(ENTRY_CHARS).collect();
            if line.len() < description.len() {
                line.push('…');
            }
            if let Some(path) = path {
                let _ = write!(line, " ({})", path.display());
            }
            let _ = write!(text, "\n- {name}: {}", line.replace(char::is_control, " "));
        }
        if left_out > 0 {
            let _ = write!(text, "\n- … {left_out} more");
        }
        if !text.is_empty() {
            self.by_label
                .insert(label.to_owned(), format!("{use_of}{text}"));
        }
    }

    /// Adds the name of an agent, and of its parent if its first row is a fork.
    pub(crate) fn with_agent(self, agent: &AgentState) -> Self {
        let parent = agent.fork().map(|fork| {
            let parent = fork.parent_name.as_deref().unwrap_or("parent");
            (parent, fork.call.is_some())
        });
        let settings = agent.settings();
        self.with_identity(&SeatIdentity {
            name: settings.name.as_deref().unwrap_or_default(),
            parent,
            worktree: own_worktree(agent.agent(), settings),
        })
    }

    /// Adds the name of an agent.
    pub(crate) fn with_identity(mut self, identity: &SeatIdentity<'_>) -> Self {
        self.set(AGENT, &identity.to_string());
        self
    }

    /// Replaces the facts about the repository by those of a worktree that is not created yet.
    pub(crate) fn in_worktree(mut self, setting: &WorktreeSetting) -> Self {
        self.set("repository", setting.path.as_deref().unwrap_or_default());
        "clean".clone_into(&mut self.status);
        self
    }

    /// Adds the running background processes; without any the fact is left out.
    pub(crate) fn with_processes(mut self, running: &[String]) -> Self {
        if !running.is_empty() {
            self.set(PROCESSES, &running.join("; "));
        }
        self
    }

    /// Adds how the tools of servers differ from those that requests offer.
    pub(crate) fn with_tools(mut self, difference: Option<&str>) -> Self {
        if let Some(difference) = difference {
            self.set(MCP_TOOLS, difference);
        }
        self
    }

    /// Takes back what no longer holds, for a model that knows of it.
    pub(crate) fn corrected(mut self, known: Option<&BTreeMap<String, String>>) -> Self {
        for (label, value) in [(PROCESSES, NONE), (MCP_TOOLS, "those in your list")] {
            let was_known = known.is_some_and(|known| known.contains_key(label));
            if was_known && !self.by_label.contains_key(label) {
                self.set(label, value);
            }
        }
        self
    }

    fn lines(&self, is_wanted: impl Fn(&str, &str) -> bool) -> String {
        let mut lines = String::new();
        for label in LABELS {
            if let Some(value) = self.by_label.get(label).filter(|it| is_wanted(label, it)) {
                let _ = writeln!(lines, "{label}: {value}");
            }
        }
        lines
    }

    /// Returns all facts for the end of a summary.
    pub(crate) fn for_summary(&self) -> String {
        format!("Environment now:\n{}", self.lines(|_, _| true).trim_end())
    }

    /// Returns the block with all facts, and a note on pinned files.
    fn block(&self, note: &str) -> String {
        let mut lines = self.lines(|_, _| true);
        if !self.status.is_empty() {
            let _ = writeln!(lines, "git status at the start:\n{}", self.status);
        }
        lines.push_str(note);
        frame(ENVIRONMENT, &[], &lines)
    }

    /// Returns the text before a message whose model knows these facts; none if nothing changed.
    fn text_after(&self, known: Option<&BTreeMap<String, String>>, note: &str) -> Option<String> {
        let Some(known) = known else {
            return Some(self.block(note));
        };
        let mut changed = self.lines(|label, value| known.get(label).is_none_or(|it| it != value));
        changed.push_str(note);
        let is_changed = !changed.is_empty();
        is_changed.then(|| {
            frame(
                NOTE,
                &[],
                &format!("Changed since the last message:\n{changed}"),
            )
        })
    }

    /// Puts the facts that the model does not know, and a note on pinned files, before the first of
    /// these messages.
    pub(crate) fn add_to(
        &self,
        messages: &mut [Event],
        known: Option<&BTreeMap<String, String>>,
        note: &str,
    ) {
        let mut before = self.text_after(known, note);
        for message in messages {
            let Event::User { text, data } = message else {
                continue;
            };
            data.environment = Some(self.by_label.clone());
            if let Some(block) = before.take() {
                data.typed.get_or_insert_with(|| text.clone());
                *text = format!("{block}\n\n{text}");
            }
        }
    }

    /// Makes the first message of a child.
    pub(crate) fn prompt(&self, typed: &str) -> ForkPrompt {
        ForkPrompt {
            text: format!("{}\n\n{typed}", self.block("")),
            typed: Some(typed.to_owned()),
            environment: Some(self.by_label.clone()),
        }
    }
}
