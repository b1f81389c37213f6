//! Person and machine of a process.

use std::fs;

use ikigai_testkit::postgres::Database;
use serde_json::{Value, json};

use crate::control::screen;
use crate::e2e::program::Program;
use crate::support::{MockAnswer, TestUser, said};

/// Returns the line of `doctor` about the identity.
fn identity(user: &TestUser, variables: &[(&str, &str)]) -> String {
    let mut command = user.command(&["doctor"]);
    let doctor = said(command.envs(variables.iter().copied()).output().unwrap());
    let line = doctor.out.lines().find(|line| line.contains("identity:"));
    line.unwrap_or_else(|| panic!("{}{}", doctor.out, doctor.err))
        .to_owned()
}

fn machine(line: &str) -> &str {
    line.split_once("(machine ").unwrap().1
}

#[test]
fn a_home_is_one_machine_and_its_person_is_the_configured_or_the_login_name() {
    let (user, other) = (TestUser::with_file(), TestUser::with_file());
    let login = [("LOGNAME", "ann")];

    let first = identity(&user, &login);
    let again = identity(&user, &login);
    let elsewhere = identity(&other, &login);
    let settings = user.home().join(".config/ikigai");
    fs::create_dir_all(&settings).unwrap();
    fs::write(settings.join("config.toml"), "[user]\nname = \"Ann Lee\"\n").unwrap();
    let named = identity(&user, &login);
    fs::write(settings.join("config.toml"), "[user]\nname = \" \"\n").unwrap();
    let refused = user.ikigai(&["doctor"]);

    assert!(first.contains("identity: ann on "), "{first}");
    assert_eq!(first, again);
    assert_ne!(machine(&first), machine(&elsewhere));
    assert!(named.contains("identity: Ann Lee on "), "{named}");
    assert_eq!(machine(&named), machine(&first), "a name is no machine");
    assert_eq!(refused.code, Some(1), "{}", refused.out);
    assert!(
        refused.err.contains("expected 1 to 63 bytes"),
        "{}",
        refused.err
    );
}

#[test]
fn a_lost_machine_file_makes_another_machine() {
    let user = TestUser::with_file();
    let before = identity(&user, &[]);

    fs::remove_file(user.home().join(".local/state/ikigai/machine.id")).unwrap();
    let after = identity(&user, &[]);

    assert_ne!(machine(&before), machine(&after));
}

/// Two machines with one directory and one log.
struct TwoMachines {
    ann: TestUser,
    ben: TestUser,
    /// Store, and the name of each person there.
    db: String,
    people: [&'static str; 2],
}

impl TwoMachines {
    fn with_file() -> Self {
        let (ann, ben) = (TestUser::with_file(), TestUser::with_file());
        let db = ann.home().join("log.db").to_str().unwrap().to_owned();
        let people = ["ann", "ben"];
        Self {
            ann,
            ben,
            db,
            people,
        }
    }

    /// Runs the program as one of them, in the same directory.
    fn ikigai(&self, of: usize, arguments: &[&str]) -> MockAnswer {
        let user = [&self.ann, &self.ben][of];
        let mut command = user.command(&[&["--db", &self.db], arguments].concat());
        command.current_dir(self.ann.home().join("project"));
        said(command.env("LOGNAME", self.people[of]).output().unwrap())
    }

    /// Starts the program without a terminal, as one of them.
    fn start(&self, of: usize) -> Program {
        let user = [&self.ann, &self.ben][of];
        let mut command = user.command(&["--db", &self.db, "--headless"]);
        command
            .current_dir(self.ann.home().join("project"))
            .env("LOGNAME", self.people[of])
            .env("LANG", "C.UTF-8");
        Program::start(command).unwrap()
    }

    /// Returns the fields of the agents' JSON lines.
    fn agents(&self, of: usize, field: &str) -> Vec<String> {
        let listed = self.ikigai(of, &["agents", "--json"]);
        let lines = listed.out.lines().map(|line| {
            let agent: Value = serde_json::from_str(line).unwrap();
            agent[field].as_str().unwrap_or_default().to_owned()
        });
        lines.collect()
    }
}

fn agents_stay_apart(machines: &TwoMachines) {
    let [ann, ben] = machines.people;
    let first = machines.ikigai(0, &["run", "I like cherries"]);
    let second = machines.ikigai(1, &["run", "hello"]);
    assert_eq!(first.code, Some(0), "{}", first.err);
    assert_eq!(second.code, Some(0), "{}", second.err);

    // Both agents have the same name, each in its workspace.
    assert_eq!(machines.agents(0, "name"), ["project", "project"]);
    assert_eq!(machines.agents(0, "workspace"), ["project", "project-2"]);
    let logs = [0, 1].map(|of| machines.ikigai(of, &["log"]).out);
    assert!(logs[0].contains("cherries"), "{}", logs[0]);
    assert!(!logs[1].contains("cherries"), "{}", logs[1]);
    assert!(logs[0].contains(&format!("user by {ann}")), "{}", logs[0]);
    assert!(logs[1].contains(&format!("user by {ben}")), "{}", logs[1]);
    let foreign = machines.ikigai(1, &["log", "project/project"]);
    assert!(foreign.out.contains("cherries"), "{foreign:?}");

    // Rows are found and filtered by their authors.
    let by = |person: &str| {
        let found = machines.ikigai(0, &["search", &format!("by:{person}"), "kind:user"]);
        found.out.lines().count() / 2
    };
    assert_eq!([by(ann), by(ben), by("eve")], [1, 1, 0]);
    let filtered = machines.ikigai(0, &["log", "--by", ben]);
    assert_eq!(filtered.out, "");
    let exported = machines.ikigai(0, &["export", "--format", "md"]);
    assert!(
        exported.out.contains(&format!("· {ann}")),
        "{}",
        exported.out
    );
}

#[test]
fn machines_with_the_same_directory_have_their_own_agents_in_one_file() {
    agents_stay_apart(&TwoMachines::with_file());
}

#[test]
fn machines_with_the_same_directory_have_their_own_agents_on_a_server() {
    let database = Database::fresh();
    let person = database.url().split_once("//").unwrap().1.to_owned();
    let person = person.split(['@', ':', '/']).next().unwrap().to_owned();
    let machines = TwoMachines {
        db: database.url(),
        people: [&*person.leak(); 2],
        ..TwoMachines::with_file()
    };
    let [ann, _] = machines.people;
    let first = machines.ikigai(0, &["run", "I like cherries"]);
    let second = machines.ikigai(1, &["run", "hello"]);

    assert_eq!(first.code, Some(0), "{}", first.err);
    assert_eq!(second.code, Some(0), "{}", second.err);
    assert_eq!(machines.agents(0, "workspace"), ["project", "project-2"]);
    let log = machines.ikigai(1, &["log"]).out;
    assert!(!log.contains("cherries"), "{log}");
    // The role is the person, whatever the login name is.
    assert!(log.contains(&format!("user by {ann}")), "{log}");
}

/// A machine without its id adopts its workspace, and continues the agent.
#[test]
fn an_adopted_workspace_is_continued_here() {
    let machines = TwoMachines::with_file();
    machines.ikigai(0, &["run", "I like cherries"]);

    let listed = machines.ikigai(1, &["workspace"]);
    let unknown = machines.ikigai(1, &["workspace", "adopt", "nothing"]);
    let adopted = machines.ikigai(1, &["workspace", "adopt", "project"]);
    let again = machines.ikigai(1, &["workspace", "adopt", "project"]);

    let home = machines.ann.home().to_str().unwrap();
    let place = format!(":{home}/project");
    assert!(listed.out.contains(&place), "{}", listed.out);
    assert_eq!(unknown.code, Some(1), "{}", unknown.err);
    assert!(adopted.out.contains("1 agent"), "{adopted:?}");
    assert!(again.err.contains("already"), "{again:?}");
    let log = machines.ikigai(1, &["log"]).out;
    assert!(log.contains("cherries"), "{log}");
    let former = machines.ikigai(0, &["log"]);
    assert!(
        former.err.contains("no agent in this directory"),
        "{former:?}"
    );
}

/// A workspace that moved is adopted with the working directories of its agents.
#[test]
fn a_moved_directory_is_adopted_with_its_agents() {
    let user = TestUser::with_file();
    user.ikigai(&["run", "hello"]);
    let (old, new) = (user.home().join("project"), user.home().join("moved"));
    fs::rename(&old, &new).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = user.command(arguments);
        said(command.current_dir(&new).output().unwrap())
    };

    let adopted = run(&["workspace", "adopt", "project"]);
    let written = run(&["run", "--approve", "all", "create the file here.txt"]);

    assert_eq!(adopted.code, Some(0), "{}", adopted.err);
    assert_eq!(written.code, Some(0), "{}", written.err);
    assert!(new.join("here.txt").exists(), "{written:?}");
}

/// An agent of another machine is interrupted through the store; only its person may take it.
#[test]
fn an_agent_of_another_machine_is_interrupted_and_taken_by_its_person_only() {
    let machines = TwoMachines::with_file();
    let ann = machines.start(0);
    let idle = json!({"type": "wait_idle", "timeout_ms": 60_000});
    let asked = |program: &Program, request: &Value| program.ask(request).unwrap();
    asked(
        &ann,
        &json!({"type": "submit", "text": "count slowly to 5000"}),
    );
    let ben = machines.start(1);
    let keys = |keys: &str| json!({"type": "send_keys", "keys": keys});

    let agent = "project/project";
    let interrupted = asked(&ben, &json!({"type": "interrupt", "agent": agent}));
    let ended = asked(&ann, &idle);
    asked(&ben, &keys(&format!("/switch {agent}\\r")));
    asked(&ben, &keys("/take\\r"));
    let refused = screen(&ben);

    assert_eq!(interrupted["type"], "ok", "{interrupted}");
    assert_eq!(ended["type"], "idle", "{ended}");
    let log = machines.ikigai(0, &["log", "--json"]).out;
    assert!(log.contains(r#""cause":"user""#), "{log}");
    assert!(refused.contains("only ann"), "{refused}");
    let requests = "SELECT author, state FROM requests ORDER BY id";
    let requests = machines.ikigai(0, &["sql", "--json", requests]).out;
    assert_eq!(requests.matches("answered").count(), 2, "{requests}");
    assert!(requests.contains("ben"), "{requests}");
    assert_eq!((ann.end(), ben.end()), (Ok(()), Ok(())));
}
