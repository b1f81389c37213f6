//! Mail, waits and kills in many random orders. No mail is lost or shown twice, no wait exceeds its
//! deadline, and each reports true states.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ikigai_core::data::{self, ToolCallData, ToolResultData};
use ikigai_core::{AgentId, Row, RowRef};
use ikigai_engine::{AgentJob, Outcome, UiEvent};
use ikigai_providers::AnswerBlock;
use ikigai_store::{AgentRecord, MailRecord, MailState, ReadLog, Status};
use ikigai_testkit::{IdSource, Step, cases};
use tokio::time::Instant;

use super::support::{calls, fork, kill, send, wait, work_and_say};
use crate::support::World;

const NAMES: [&str; 4] = ["ada", "bob", "cyd", "dan"];

/// Number of orders in the short and in the long profile.
const ORDERS: u32 = 150;
const MANY_ORDERS: u32 = 5000;

/// Timeout of one order.
const LATEST: Duration = Duration::from_hours(1);

/// Random source of one order.
struct Dice(IdSource);

impl Dice {
    fn below(&self, most: u64) -> u64 {
        self.0.bits() % most
    }

    fn name(&self) -> &'static str {
        NAMES[usize::try_from(self.below(4)).unwrap()]
    }

    /// Draws a call of an agent tool; `text` makes messages distinct.
    fn call(&self, text: &str) -> AnswerBlock {
        match self.below(10) {
            0 => kill(self.name()),
            1 | 2 => send("parser", text),
            3 | 4 => send(self.name(), text),
            5 => wait(self.below(6), &[]),
            6 => wait(self.below(6), &[self.name(), self.name()]),
            _ => wait(self.below(30), &[self.name()]),
        }
    }

    /// Draws a few answers with calls, then a final text.
    fn script(&self, who: &str) -> Vec<Vec<Step>> {
        let pause = || Step::Sleep(Duration::from_secs(self.below(4)));
        let mut answers = Vec::new();
        for round in 0..self.below(4) {
            let block = |number| self.call(&format!("<{who} {round} {number}>"));
            let blocks = (0..=self.below(3)).map(block).collect();
            answers.push(vec![pause(), Step::FinishWith(blocks)]);
        }
        let last = Step::Say(format!("<{who} ends>"));
        answers.push(vec![pause(), last, Step::Finish]);
        answers
    }
}

/// Times at which rows were reported.
type Times = Arc<Mutex<HashMap<RowRef, Instant>>>;

/// State of a world after one order.
struct After {
    world: World,
    agents: Vec<AgentRecord>,
    rows: HashMap<AgentId, Vec<Row>>,
    mail: Vec<MailRecord>,
    times: HashMap<RowRef, Instant>,
}

async fn after_order(seed: u64) -> After {
    let world = World::new();
    let dice = Dice(IdSource::new(seed));
    let times = Times::default();
    let noted = times.clone();
    let note = move |update: &UiEvent| {
        if let UiEvent::Stored(row) = update {
            noted.lock().unwrap().insert(row.at, Instant::now());
        }
    };
    let of_children = note.clone();
    world
        .engine
        .observe(Arc::new(move |_, _, update| of_children(update)), false);
    let mut worker = world.root().await;
    let forks = NAMES.map(|name| fork(name, &format!("task of {name}")));
    world.provider.will_to("go", calls(forks));
    for answer in dice.script("parser") {
        world.provider.will_to("go", answer);
    }
    for name in NAMES {
        for answer in dice.script(name) {
            world.provider.will_to(&format!("task of {name}"), answer);
        }
    }
    for number in 0..60 {
        world.provider.will_say(&format!("<enough {number}>"));
    }
    world.store.hesitate(seed);

    let job = AgentJob::Say("go".to_owned());
    let working = work_and_say(&mut worker, job, std::future::pending());
    let ended = tokio::time::timeout(LATEST, working).await;

    let (outcome, told) = ended.unwrap_or_else(|_| panic!("order {seed} never ends"));
    assert_eq!(outcome.unwrap(), Outcome::Completed, "order {seed}");
    let rows_told = told.iter().filter_map(|update| match update {
        UiEvent::Stored(row) => Some(row.at),
        _ => None,
    });
    let rows_told: Vec<_> = rows_told.collect();
    let mut in_order = rows_told.clone();
    in_order.sort();
    assert_eq!(
        rows_told, in_order,
        "order {seed}: rows arrive in their order"
    );
    let agents = world.log().agents(None).await.unwrap();
    let mut rows = HashMap::new();
    let mut mail = Vec::new();
    for agent in &agents {
        rows.insert(agent.id, world.rows(agent.id).await);
        mail.extend(world.log().mail(agent.id).await.unwrap());
    }
    let times = times.lock().unwrap().clone();
    After {
        world,
        agents,
        rows,
        mail,
        times,
    }
}

impl After {
    fn agent(&self, id: AgentId) -> &AgentRecord {
        self.agents.iter().find(|agent| agent.id == id).unwrap()
    }

    /// Returns all results of a tool with their rows and calls.
    fn results(&self, of: AgentId, tool: &str) -> Vec<(&Row, ToolCallData, ToolResultData)> {
        let rows = &self.rows[&of];
        let results = rows.iter().filter(|row| row.kind.name() == "tool_result");
        results
            .filter_map(|row| {
                let result: ToolResultData = data::read(row.data.as_deref());
                let call = rows.iter().find(|call| Some(call.at) == result.call)?;
                let call: ToolCallData = data::read(call.data.as_deref());
                (result.name.as_deref() == Some(tool)).then_some((row, call, result))
            })
            .collect()
    }

    /// Counts occurrences of a text in an agent's `user` rows and results.
    fn shown(&self, to: AgentId, text: &str) -> usize {
        let rows = self.rows[&to].iter();
        rows.map(|row| match row.kind.name() {
            "user" => row.content.clone().unwrap_or_default(),
            "tool_result" => {
                let result: ToolResultData = data::read(row.data.as_deref());
                result.output.unwrap_or_default()
            }
            _ => String::new(),
        })
        .map(|shown| shown.matches(text).count())
        .sum()
    }

    fn check_mail(&self) {
        for mail in &self.mail {
            let receiver = self.agent(mail.to);
            let alive = receiver.status == Status::Running;
            let shown = self.shown(mail.to, &mail.text);
            match mail.state {
                MailState::Delivered => {
                    assert_eq!(shown, 1, "{mail:?}");
                    assert_eq!(mail.shown_by.map(|by| by.agent), Some(mail.to));
                }
                MailState::Queued => assert!(alive && shown == 0, "{mail:?}"),
                MailState::Bounced => assert!(!alive && shown == 0, "{mail:?}"),
                MailState::Withdrawn => panic!("no test withdraws {mail:?}"),
            }
        }
        // Mail from one sender to one receiver stays in order.
        for one in &self.mail {
            let later = self
                .mail
                .iter()
                .skip_while(|mail| mail.id != one.id)
                .skip(1);
            for other in later.filter(|other| (other.to, other.from) == (one.to, one.from)) {
                if let (Some(by), Some(by_other)) = (one.shown_by, other.shown_by) {
                    assert!(by.seq <= by_other.seq, "{one:?} {other:?}");
                }
            }
        }
        // A successful `send` created one mail, a failed one none.
        for agent in &self.agents {
            for (_, call, result) in self.results(agent.id, "send") {
                let arguments: serde_json::Value =
                    serde_json::from_str(&call.arguments.unwrap()).unwrap();
                let text = arguments["message"].as_str().unwrap();
                let sent = self.mail.iter().filter(|mail| mail.text == text).count();
                assert_eq!(sent, usize::from(result.success == Some(true)), "{text}");
            }
        }
    }

    fn check_waits(&self) {
        for agent in &self.agents {
            for (row, call, result) in self.results(agent.id, "wait") {
                let arguments: serde_json::Value =
                    serde_json::from_str(&call.arguments.unwrap()).unwrap();
                let most = Duration::from_secs(arguments["timeout"].as_u64().unwrap());
                let at = result.call.unwrap();
                let (Some(begun), Some(ended)) = (self.times.get(&at), self.times.get(&row.at))
                else {
                    continue;
                };
                let took = *ended - *begun;
                assert!(took <= most, "{took:?} of {most:?}: {result:?}");
                let output = result.output.unwrap();
                for name in NAMES {
                    self.check_word(
                        name,
                        &output,
                        *ended,
                        took + Duration::from_millis(100) >= most,
                    );
                }
            }
        }
    }

    /// Checks that the state a wait reported for an agent is true.
    fn check_word(&self, name: &str, output: &str, ended: Instant, is_late: bool) {
        let prefix = format!("{name}: ");
        let Some(word) = output.lines().find_map(|line| line.strip_prefix(&prefix)) else {
            return;
        };
        let agent = self.agents.iter().find(|agent| agent.name == name).unwrap();
        let ended_work = self.rows[&agent.id].iter().find(|row| {
            let text = row.content.as_deref().unwrap_or_default();
            row.kind.name() == "assistant" && text.contains("ends>")
        });
        match word {
            sent if ["message", "report", "failed"]
                .iter()
                .any(|it| sent.starts_with(it)) =>
            {
                let from = format!("<message from=\"{name}\"");
                assert!(output.contains(&from), "{output}");
            }
            "dead" => assert_ne!(agent.status, Status::Running, "{output}"),
            "idle" => {
                let at = ended_work
                    .unwrap_or_else(|| panic!("{name} never ended: {output}"))
                    .at;
                let told = self.times.get(&at);
                assert!(told.is_none_or(|told| *told <= ended), "{output}");
            }
            running => assert!(is_late && running.starts_with("running"), "{output}"),
        }
    }

    /// Checks that no call is open and dead agents have ended their turns.
    async fn check_rest(&self) {
        for agent in &self.agents {
            let kinds = self.world.kinds(agent.id).await;
            let count = |kind: &str| kinds.iter().filter(|other| *other == kind).count();
            assert_eq!(
                count("tool_call"),
                count("tool_result"),
                "{}: {:?}",
                agent.name,
                self.rows[&agent.id]
            );
            let last = kinds.last().unwrap();
            let dead = agent.status != Status::Running;
            assert!(
                !dead || last == "interrupted" || last == "usage",
                "{kinds:?}"
            );
        }
    }
}

/// Runs and checks one order; counts the mail and wait states seen.
async fn check_order(seed: u64, happened: &mut HashMap<String, usize>) {
    let after = after_order(seed).await;
    after.check_mail();
    after.check_waits();
    after.check_rest().await;
    for mail in &after.mail {
        *happened.entry(format!("{:?}", mail.state)).or_insert(0) += 1;
    }
    for agent in &after.agents {
        for (_, _, result) in after.results(agent.id, "wait") {
            for word in ["report", "idle", "dead", "running"] {
                let has = result
                    .output
                    .as_deref()
                    .unwrap()
                    .contains(&format!(": {word}"));
                *happened.entry(word.to_owned()).or_insert(0) += usize::from(has);
            }
        }
    }
}

/// E10a, E10c: mail and waits are correct for any order of sends, waits, ends and kills. Each mail
/// is shown once by the row that consumed it, is queued, or has bounced with its receiver. No wait
/// exceeds its deadline, and the states that it reports are true.
#[test]
fn prop_mail_waits_and_kills_hold_in_any_order() {
    let mut seen = HashMap::new();
    for seed in 0..u64::from(cases(ORDERS, MANY_ORDERS)) {
        // A runtime per order: dropping it ends leftover tasks, which release their log.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build();
        runtime.unwrap().block_on(check_order(seed, &mut seen));
    }
    // The orders must cover all cases.
    for what in ["Delivered", "Bounced", "report", "idle", "dead", "running"] {
        assert!(
            seen.get(what).is_some_and(|times| *times > 3),
            "{what}: {seen:?}"
        );
    }
}
