use std::fs;

use super::*;

struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let home = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        fs::create_dir_all(home.path("project/.git")).unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn places(&self) -> ExtensionPlaces {
        ExtensionPlaces {
            home: Some(self.path("home")),
            configuration: Some(self.path("config")),
            trust: Trust::new(Some(self.path("state"))),
        }
    }

    fn trusted(&self) -> Extensions {
        let (places, project) = (self.places(), self.path("project"));
        let items = places.trust.project(&project).items;
        places.trust.decide(&project, &items, true).unwrap();
        places.load(&project)
    }
}

#[test]
fn a_trusted_project_wins_over_the_user_and_an_untrusted_one_is_not_loaded() {
    let home = Home::new();
    let skill = |text: &str| format!("---\nname: pdf\ndescription: {text}\n---\nBody");
    home.write("home/.claude/skills/pdf/SKILL.md", &skill("shared"));
    home.write("config/skills/pdf/SKILL.md", &skill("own"));
    home.write("project/.agents/skills/pdf/SKILL.md", &skill("project"));

    let descriptions = |found: &Extensions| -> Vec<String> {
        let texts = found.skills.iter().map(|skill| &skill.text);
        texts.map(|text| text.description.clone()).collect()
    };
    assert_eq!(
        descriptions(&home.places().load(&home.path("project"))),
        ["own"]
    );
    assert_eq!(descriptions(&home.trusted()), ["project"]);
}

#[test]
fn front_matter_of_the_wild_is_understood() {
    let home = Home::new();
    home.write(
        "project/.claude/skills/review/SKILL.md",
        "---\nname: review\ndescription: >\n  Reviews\n  changes\nallowed-tools: Read, Bash(git diff:*)\n\
         context: fork\nagent: reviewer\nargument-hint: \"[file]\"\ndisable-model-invocation: true\n---\nLook at $1",
    );
    home.write(
        "project/.claude/agents/reviewer.md",
        "---\nname: reviewer\ndescription: Reviews\ntools: Read, Grep, Task\nmodel: inherit\n\
         isolation: worktree\n---\nYou review.\n",
    );
    home.write(
        "project/.opencode/agents/docs.md",
        "---\ndescription: Writes docs\ntools:\n  write: true\n  bash: false\nmodel: openai/gpt-5\n---\nYou write.",
    );
    home.write(
        "project/.claude/commands/git/fix.md",
        "Fix issue $ARGUMENTS",
    );

    let found = home.trusted();

    let skill = &found.skills[0];
    assert_eq!(skill.text.description, "Reviews changes");
    assert_eq!((skill.is_for_model, skill.is_for_user), (false, true));
    assert!(skill.text.forks);
    assert_eq!(skill.text.agent.as_deref(), Some("reviewer"));
    assert_eq!(skill.text.tools.as_deref().unwrap(), ["file_read", "bash"]);
    let agent = found.agent("Reviewer").unwrap();
    let tools = ["file_read", "grep", "fork", "wait", "send"];
    assert_eq!(agent.tools.as_deref().unwrap(), tools);
    assert_eq!((agent.model.as_deref(), agent.worktree), (None, true));
    assert_eq!(agent.body, "You review.");
    let docs = found.agent("docs").unwrap();
    assert_eq!(docs.refused_tools, ["bash"]);
    assert_eq!(docs.tools, None);
    assert_eq!(found.callable("fix").unwrap().name, "git:fix");
    assert_eq!(found.callable("review").unwrap().body, "Look at $1");
    assert!(found.callable("nothing").is_none());
}

#[test]
fn names_that_cannot_be_typed_are_left_out() {
    let home = Home::new();
    home.write("project/.claude/commands/two words.md", "x");
    home.write("project/.claude/commands/1st.md", "x");
    home.write("project/.claude/commands/fine.md", "x");

    let found = home.trusted();

    let names: Vec<_> = found.callables().map(|text| text.name.as_str()).collect();
    assert_eq!(names, ["fine"]);
}
