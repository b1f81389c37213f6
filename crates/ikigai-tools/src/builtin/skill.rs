//! `skill`: opens the instructions of a skill, or a file that comes with them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ikigai_core::EffectClass;
use ikigai_core::project::{ToolFacts, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments::{self, Aliases, BadArguments, ToolArguments};
use crate::extensions::{ExtensionPlaces, Skill};
use crate::permission::literal_pattern;
use crate::{CallContext, Output, Place, Prepared, Run, Tool, Touches, files};

/// Name of the tool.
pub(super) const NAME: &str = "skill";

/// Facts about its calls.
pub(super) const FACTS: ToolFacts = ToolFacts::READING;

/// Longest time for reading a file.
const DEADLINE: Duration = Duration::from_secs(30);

/// Most files of a skill that are listed, and the deepest directory.
const MOST_FILES: usize = 100;
const MOST_LEVELS: usize = 3;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SkillArguments {
    /// Name of the skill. Without it: all skills.
    #[serde(default)]
    name: Option<String>,
    /// A file that the skill names, relative to its directory. Without it: the instructions.
    #[serde(default)]
    file: Option<String>,
}

impl ToolArguments for SkillArguments {
    const ALIASES: Aliases = &[
        ("skill", "name"),
        ("skill_name", "name"),
        ("command", "name"),
        ("path", "file"),
        ("file_path", "file"),
    ];
}

/// Tool that opens skills.
pub struct SkillTool {
    places: ExtensionPlaces,
}

impl SkillTool {
    /// Creates the tool for skills in these places.
    pub fn new(places: ExtensionPlaces) -> Self {
        Self { places }
    }
}

impl Tool for SkillTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Opens the instructions of a skill, which are to be followed, or a file \
                          that comes with them."
                .to_owned(),
            parameters: arguments::schema_of::<SkillArguments>(),
            facts: FACTS,
        }
    }

    fn prepare(&self, text: &str, _place: &Place) -> Result<Prepared, BadArguments> {
        let call = arguments::read::<SkillArguments>(text)?;
        let arguments = call.values;
        let subject = arguments.name.clone().unwrap_or_default();
        let places = self.places.clone();
        Ok(Prepared {
            class: EffectClass::Read,
            touches: Touches::default(),
            shown: call.shown,
            pattern: literal_pattern(&subject),
            subject,
            preview: None,
            deadline: DEADLINE,
            needs: Vec::new(),
            unconfined: None,
            run: Run::Blocking(Box::new(move |context| open(context, &places, &arguments))),
        }
        .with_remark(call.remark))
    }
}

fn open(context: &CallContext, places: &ExtensionPlaces, arguments: &SkillArguments) -> Output {
    let extensions = places.load(&context.place.workdir);
    let skills = extensions.skills.iter().filter(|skill| skill.is_for_model);
    let Some(name) = &arguments.name else {
        let lines = skills.map(|it| format!("- {}: {}\n", it.text.name, it.text.description));
        return Output::done(lines.collect::<String>(), "all skills");
    };
    let Some(skill) = extensions.skill(name).filter(|skill| skill.is_for_model) else {
        let names: Vec<_> = skills.map(|skill| skill.text.name.as_str()).collect();
        return Output::failed(format!(
            "There is no skill `{name}`. There are: {}.",
            names.join(", ")
        ));
    };
    match &arguments.file {
        None => Output::done(instructions(skill), skill.text.name.clone()),
        Some(file) => match read(skill, file) {
            Ok(bytes) => Output::done(bytes, format!("{}/{file}", skill.text.name)),
            Err(reason) => Output::failed(format!("`{file}` {reason}")),
        },
    }
}

fn instructions(skill: &Skill) -> String {
    let directory = skill.directory();
    let mut text = format!("Skill `{}` in {}\n", skill.text.name, directory.display());
    let others = other_files(directory);
    if !others.is_empty() {
        let _ = writeln!(text, "Its files: {}", others.join(", "));
    }
    if skill.text.forks {
        let agent = skill.text.agent.as_deref();
        let agent = agent.map_or_else(String::new, |name| format!(" with agent `{name}`"));
        let _ = writeln!(
            text,
            "It is meant for a child: `fork` one{agent} and put the instructions into its prompt."
        );
    }
    let _ = write!(text, "\n{}", skill.text.body.trim());
    text
}

/// Lists the files beside `SKILL.md`.
fn other_files(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = vec![(directory.to_owned(), 1)];
    while let Some((inner, level)) = waiting.pop() {
        let mut entries: Vec<PathBuf> = fs::read_dir(&inner)
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        entries.sort();
        for path in entries {
            if path.is_dir() && !path.is_symlink() && level < MOST_LEVELS {
                waiting.push((path, level + 1));
            } else if path.is_file()
                && !path.ends_with("SKILL.md")
                && found.len() < MOST_FILES
                && let Ok(below) = path.strip_prefix(directory)
            {
                found.push(below.display().to_string());
            }
        }
    }
    found.sort();
    found
}

/// Reads a file of a skill; the path must stay in its directory.
fn read(skill: &Skill, file: &str) -> Result<Vec<u8>, String> {
    let missing = |error: std::io::Error| format!("cannot be read: {error}");
    let directory = skill.directory().canonicalize().map_err(missing)?;
    let path = directory.join(file).canonicalize().map_err(missing)?;
    if !path.starts_with(&directory) {
        return Err("is outside of the skill; use `file_read`".to_owned());
    }
    match files::find(&path) {
        Ok(files::FileSnapshot::Whole { bytes, .. }) => Ok(bytes),
        Ok(files::FileSnapshot::Large { bytes, .. }) => {
            Err(format!("is too large: {}", files::size(bytes)))
        }
        Ok(files::FileSnapshot::Nothing) => Err("does not exist".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
